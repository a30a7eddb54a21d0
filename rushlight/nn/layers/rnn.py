"""Recurrent layers: ``RNN``, ``LSTM``, ``GRU`` and their cells."""

from __future__ import annotations

import math
import numbers

from ...errors import warn_user
from ...ops import PUBLIC
from ...ops.creation import empty, zeros
from ...ops.linalg import check_linear_dtypes
from ...tensor import Tensor
from .. import init
from ..module import Module
from ..parameter import Parameter
from ..utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_MODES = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What all recurrent layers are: weights by layer and direction, states checked and put in order, one call."""

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        _check_options(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in _MODES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._all_weights = []
        for layer in range(num_layers):
            for direction in range(2 if bidirectional else 1):
                shapes = self._shapes(layer, direction)
                for name, shape in shapes.items():
                    setattr(self, name, Parameter(empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(list(shapes))
        self.reset_parameters()

    def _shapes(self, layer, direction) -> dict:
        """``{name: shape}`` of the weights of one layer in one direction."""
        rows, directions = _GATES[self.mode] * self.hidden_size, 2 if self.bidirectional else 1
        out = self.proj_size or self.hidden_size
        shapes: dict[str, tuple] = {
            "weight_ih": (rows, self.input_size if layer == 0 else out * directions),
            "weight_hh": (rows, out),
        }
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        suffix = f"_l{layer}{'_reverse' if direction else ''}"
        return {name + suffix: shape for name, shape in shapes.items()}

    def reset_parameters(self) -> None:
        """Draw all weights from U(-1/√hidden_size, 1/√hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    @property
    def all_weights(self) -> list:
        """The weights of each layer and direction, as a list of lists."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list:
        return [getattr(self, name) for name in self._flat_weights_names]

    def __getstate__(self) -> dict:
        """With the lists that PyTorch's layers keep: a saved layer is to work there too."""
        lists = {"_flat_weights_names": self._flat_weights_names, "_flat_weights": self._flat_weights}
        return {**super().__getstate__(), **lists}

    def __setstate__(self, state: dict) -> None:
        super().__setstate__({name: v for name, v in state.items() if not name.startswith("_flat_weight")})

    def flatten_parameters(self) -> None:
        """Nothing to do: this rearranges weights for cuDNN, which is not used."""

    def forward(self, input, hx=None):
        packed = isinstance(input, PackedSequence)
        x = input.data if packed else self._dense(input)
        batched = packed or x.dim() == 3
        if not batched:
            x = x.unsqueeze(0 if self.batch_first else 1)
        batch = int(input.batch_sizes[0]) if packed else x.shape[0 if self.batch_first else 1]
        if hx is None:
            hx = self._zeros(x, batch)
        else:
            hx = self._given(hx, batched, input.sorted_indices if packed else None)
        self._check(x, hx, batch, packed)
        options = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        hx = hx if len(hx) > 1 else hx[0]
        layers = PUBLIC[_MODES[self.mode]]
        if packed:
            output, *state = layers(x, input.batch_sizes, hx, *options)
            output = PackedSequence(output, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
            state = [_ordered(s, input.unsorted_indices) for s in state]
        else:
            output, *state = layers(x, hx, *options, self.batch_first)
            if not batched:
                output = output.squeeze(0 if self.batch_first else 1)
                state = [s.squeeze(1) for s in state]
        return output, (tuple(state) if len(state) > 1 else state[0])

    # -- states: always a tuple, of h or of h and c

    def _widths(self) -> tuple:
        return (self.proj_size or self.hidden_size, self.hidden_size)[: 2 if self.mode == "LSTM" else 1]

    def _zeros(self, x, batch) -> tuple:
        count = self.num_layers * (2 if self.bidirectional else 1)
        return tuple(zeros(count, batch, width, dtype=x.dtype, device=x.device) for width in self._widths())

    def _given(self, hx, batched, order) -> tuple:
        hx = (hx[0], hx[1]) if self.mode == "LSTM" else (hx,)
        want = 3 if batched else 2
        if any(s.dim() != want for s in hx):
            word = "batched 3-D" if batched else "unbatched 2-D"
            names, dims = ("hx and cx", f"({hx[0].dim()}-D, {hx[-1].dim()}-D) tensors")
            if len(hx) == 1:
                names, dims = "hx", f"{hx[0].dim()}-D tensor"
            raise RuntimeError(f"For {word} input, {names} should also be {want}-D but got {dims}")
        if not batched:
            hx = tuple(s.unsqueeze(1) for s in hx)
        return tuple(_ordered(s, order) for s in hx)

    def _dense(self, input):
        if input.dim() not in (2, 3):
            tensor = "tensor " if self.mode.startswith("RNN") else ""
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D {tensor}instead")
        return input

    def _check(self, x, hx, batch, packed) -> None:
        dtype = self._weight_dtype()
        if x.dtype != dtype:
            raise ValueError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({dtype}). Convert input: "
                f"input.to({dtype}), or convert model: model.to({x.dtype})"
            )
        if packed and x.dim() != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {x.dim()}")
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.shape[-1]}"
            )
        if not packed and not x.shape[1 if self.batch_first else 0]:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        count = self.num_layers * (2 if self.bidirectional else 1)
        for i, (state, width) in enumerate(zip(hx, self._widths())):
            if tuple(state.shape) != (count, batch, width):
                name = f"hidden[{i}]" if len(hx) > 1 else "hidden"
                raise RuntimeError(f"Expected {name} size {(count, batch, width)}, got {list(state.shape)}")
            if state.dtype != dtype:
                raise RuntimeError(
                    f"Expected {'hx' if len(hx) == 1 else f'hx[{i}]'} to have the weights' dtype, {dtype}, "
                    f"but got {state.dtype}"
                )

    def _weight_dtype(self):
        return getattr(self, self._all_weights[0][0]).dtype

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0),
            ("bidirectional", False),
        ):  # fmt: skip
            value = getattr(self, name)
            if value != usual:
                text += f", {name}={value}"
        return text


def _ordered(state, order):
    """The sequences of a state in another order."""
    return state if order is None else state.index_select(1, order)


def _check_options(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size) -> None:
    is_number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not is_number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warn_user(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}"
        )
    for name, value, kind in (
        ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
        ("bias", bias, bool),
        ("batch_first", batch_first, bool),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu.

    >>> rnn = nn.RNN(10, 20, 2)
    >>> output, hn = rnn(rushlight.zeros(5, 3, 10))
    >>> output.shape, hn.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", *args, **kwargs) -> None:
        _only_lstm_projects(kwargs)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory; ``proj_size`` makes the hidden state smaller than the cell's.

    >>> lstm = nn.LSTM(10, 20, bidirectional=True)
    >>> output, (hn, cn) = lstm(rushlight.zeros(5, 3, 10))
    >>> output.shape, hn.shape
    (torch.Size([5, 3, 40]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units."""

    def __init__(self, *args, **kwargs) -> None:
        _only_lstm_projects(kwargs)
        super().__init__("GRU", *args, **kwargs)


def _only_lstm_projects(kwargs) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


# -- cells -------------------------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """One step of a recurrent layer, as a module with ``num_chunks`` gates."""

    __constants__ = ["input_size", "hidden_size", "bias"]
    function: str
    states = 1
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        shapes = {
            "weight_ih": (rows, input_size),
            "weight_hh": (rows, hidden_size),
            "bias_ih": (rows,),
            "bias_hh": (rows,),
        }
        for name, shape in shapes.items():
            given = bias or name.startswith("weight")
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)) if given else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights from U(-1/√hidden_size, 1/√hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def forward(self, input, hx=None):
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        states = None if hx is None else (tuple(hx) if self.states > 1 else (hx,))
        for i, state in enumerate(states or ()):
            if state.dim() not in (1, 2):
                what = f"hx[{i}]" if self.states > 1 else "hidden"
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {state.dim()}D instead")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if states is None:
            states = (zeros(x.shape[0], self.hidden_size, dtype=x.dtype, device=x.device),) * self.states
        elif not batched:
            states = tuple(s.unsqueeze(0) for s in states)
        self._check(x, states)
        self._check_dtypes(x, states)
        result = PUBLIC[self._function()](
            x, states if self.states > 1 else states[0], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
        if batched:
            return result
        return tuple(r.squeeze(0) for r in result) if self.states > 1 else result.squeeze(0)

    def _function(self) -> str:
        return self.function

    def _check_dtypes(self, x, states) -> None:
        check_linear_dtypes(x._array, self.weight_ih._array, self.bias_ih)
        for state in states:
            check_linear_dtypes(state._array, self.weight_hh._array, self.bias_hh)

    def _check(self, x, states) -> None:
        if x.shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x.shape[1]} expected {self.input_size}")
        for i, state in enumerate(states):
            if state.shape[0] != x.shape[0]:
                raise RuntimeError(f"Input batch size {x.shape[0]} doesn't match hidden{i} batch size {state.shape[0]}")
            if state.dim() != 2 or state.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {state.shape[1]}, expected {self.hidden_size}"
                )

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        if nonlinearity != "tanh":
            text += f", nonlinearity={nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def _function(self) -> str:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return f"rnn_{self.nonlinearity}_cell"


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (h, c) from an input and (h, c)."""

    function, states = "lstm_cell", 2

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    function = "gru_cell"

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)
