"""Layers with int8 weights whose inputs are made codes on the way, by the range that each call's input has."""

from __future__ import annotations

from typing import Any

from .... import dtypes
from ....compat import missing as _missing
from ....nn.layers import rnn as _rnn
from ....nn.module import Module
from ....ops.quantize import DYNAMIC
from . import Linear as _Static
from . import _in_one_line, _quantized_weight

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell"]


def __dir__():
    return __all__


class Linear(_Static):
    """A linear layer with a weight of codes; it takes and gives float32."""

    def forward(self, x):
        w, b = self._packed_params._packed_params
        return DYNAMIC.linear(x, w, b)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return f"{text}, qscheme={self.weight().qscheme()}"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        made = cls(mod.in_features, mod.out_features)
        made.set_weight_bias(_quantized_weight(mod.weight, mod.qconfig.weight()), mod.bias)
        return made


class _Params(Module):
    """The weights of one layer in one direction."""

    def __init__(self, names, values) -> None:
        super().__init__()
        self.names, self.param = list(names), tuple(values)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(self, state_dict, prefix, *args):
        self.param = tuple(state_dict.pop(prefix + "param"))
        super()._load_from_state_dict(state_dict, prefix, *args)


class _Layers(_rnn.RNNBase):
    """What ``LSTM`` and ``GRU`` share: ``torch.lstm`` itself takes weights of codes."""

    _all_weight_values: Any

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        if mod.proj_size:
            raise NotImplementedError("dynamic quantization of an LSTM with projections is not here")
        made = cls.__new__(cls)
        Module.__init__(made)
        for name in cls.__constants__:
            setattr(made, name, getattr(mod, name))
        made._all_weights = [list(names) for names in mod._all_weights]
        made._all_weight_values = _rnn_list(
            _Params(names, [_packed(name, getattr(mod, name), mod.qconfig) for name in names])
            for names in mod._all_weights
        )
        made.train(mod.training)
        return made

    @property
    def _flat_weights(self) -> list:
        return [value for part in self._all_weight_values for value in part.param]

    def _weight_dtype(self):
        return dtypes.float32

    def __getstate__(self) -> dict:
        return Module.__getstate__(self)

    def __setstate__(self, state: dict) -> None:
        Module.__setstate__(self, state)

    def get_weight(self) -> dict:
        """The weights of codes by name."""
        parts = self._all_weight_values
        return {n: v for part in parts for n, v in zip(part.names, part.param) if n.startswith("weight")}

    def get_bias(self) -> dict:
        """The biases by name."""
        parts = self._all_weight_values
        return {n: v for part in parts for n, v in zip(part.names, part.param) if n.startswith("bias")}

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    __repr__ = _in_one_line


class LSTM(_Layers, _rnn.LSTM):
    """An LSTM with weights of codes."""


class GRU(_Layers, _rnn.GRU):
    """A GRU with weights of codes."""


class _Cell:
    """A recurrent cell with weights of codes."""

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        made = cls.__new__(cls)
        Module.__init__(made)
        for name in ("input_size", "hidden_size", "bias", "nonlinearity"):
            if hasattr(mod, name):
                setattr(made, name, getattr(mod, name))
        for name in ("weight_ih", "weight_hh"):
            setattr(made, name, _quantized_weight(getattr(mod, name), mod.qconfig.weight()))
        made.bias_ih, made.bias_hh = mod.bias_ih, mod.bias_hh
        made.train(mod.training)
        return made

    def _check_dtypes(self, x, states) -> None:
        """Codes are made of whatever comes."""

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"


class LSTMCell(_Cell, _rnn.LSTMCell):
    """An LSTM cell with weights of codes."""


class GRUCell(_Cell, _rnn.GRUCell):
    """A GRU cell with weights of codes."""


class RNNCell(_Cell, _rnn.RNNCell):
    """A plain recurrent cell with weights of codes."""


def _rnn_list(parts):
    from ....nn.containers import ModuleList

    return ModuleList(parts)


def _packed(name: str, value, qconfig):
    return _quantized_weight(value, qconfig.weight()) if name.startswith("weight") else value


__getattr__ = _missing(__name__)
