"""The quantized tensor: a plain tensor of codes, with a scale and zero point for all of them or for each channel.

What moves elements moves codes; what computes with numbers asks for ``dequantize()``, but for the few functions that
PyTorch has for codes too. All of them are in one table.
"""

from __future__ import annotations

import functools
import sys

from ..autograd.overriding import DisableTorchFunctionSubclass, functions_called
from ..layout import per_channel_affine, per_tensor_affine
from ..ops.public import PUBLIC
from ..ops.quantize import along, codes
from ..tensor import Tensor

__all__ = ["QuantizedTensor"]


class QuantizedTensor(Tensor):
    """``(codes - zero) · scale``; with an ``axis``, scale and zero have an element for each index along it."""

    __slots__ = ("_axis", "_codes", "_kind", "_scale", "_zero")

    def __new__(cls, codes, kind, scale, zero, axis=None):
        t = object.__new__(cls)
        t._node = t._grad = t._storage = t._view = None
        t._codes, t._kind, t._scale, t._zero, t._axis = codes, kind, scale, zero, axis
        return t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _find(func)(*args, **(kwargs or {}))

    @property
    def _array(self):
        """Shape and strides for whoever only asks these."""
        self._codes._sync()
        return self._codes._array

    is_quantized = True

    @property
    def dtype(self):
        return self._kind

    @property
    def device(self):
        return self._codes.device

    @property
    def requires_grad(self):
        return False

    @requires_grad.setter
    def requires_grad(self, value):
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad=True):
        if requires_grad:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        return self

    grad = grad_fn = None
    is_leaf = True

    def _sync(self):
        self._codes._sync()

    def _come_home(self):
        self._codes._come_home()

    def _owner(self):
        return self._codes._owner()

    def _with(self, codes) -> QuantizedTensor:
        """Other codes that mean the same."""
        return QuantizedTensor(codes, self._kind, self._scale, self._zero, self._axis)

    def __copy__(self):
        return self._with(self._codes)

    def __deepcopy__(self, memo):
        made = memo[id(self)] = self._with(self._codes.clone())
        return made

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __repr__(self, *, tensor_contents=None):
        return _text(self)

    def __reduce_ex__(self, protocol):
        from ..io.rebuild import quantized_from_codes

        return quantized_from_codes, (self._codes, self._kind, quantizer(self))


def quantizer(q: QuantizedTensor) -> tuple:
    """How codes stand for numbers, as files say it."""
    if q._axis is None:
        return per_tensor_affine, q._scale, q._zero
    return per_channel_affine, q._scale, q._zero, q._axis


def _text(q: QuantizedTensor) -> str:
    from .._printing import _host_values, _names_device, _values_text, _with_notes

    prefix = "tensor("
    shown = "[]" if q.numel() == 0 else _values_text(_host_values(q.dequantize()), len(prefix))
    notes = [f"size={tuple(q.shape)}", f"dtype={q.dtype}", f"quantization_scheme={q.qscheme()}"]
    if _names_device(q.device):
        notes.insert(0, f"device='{q.device}'")
    notes += [f"scale={q._scale}", f"zero_point={q._zero}"]
    if q._axis is not None:
        notes.append(f"axis={q._axis}")
    return _with_notes(prefix + shown, notes, len(prefix))


# -- what can be done with it ------------------------------------------------------------------------------------------

_TABLE: dict = {}  # PyTorch's name -> function


def _find(func):
    found = _by_function().get(func)
    if found is None and hasattr(func, "op"):  # an operator that a method of a plain tensor came to
        found = _TABLE.get(func.op.name)
    if found is None:
        name = getattr(func, "__name__", str(func))
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'QuantizedCPU' backend. There is no such operator "
            "on quantized tensors here; dequantize() gives the numbers"
        )
    return found


@functools.cache
def _by_function() -> dict:
    return {function: _TABLE[name] for function, name in functions_called(_TABLE, "nn.functional").items()}


def _entry(function):
    _TABLE[function.__name__] = function
    return function


@_entry
def int_repr(q):
    return q._codes.clone()


@_entry
def dequantize(q):
    if isinstance(q, (list, tuple)):
        return tuple(dequantize(t) for t in q)
    if q._axis is None:
        scale, zero = q._scale, q._zero
    else:
        scale, zero = (along(v, q._axis, q.ndim) for v in (q._scale.float(), q._zero.int()))
    return (q._codes.int() - zero).float() * scale


def _per(axis: bool, name: str, read):
    def ask(q):
        if (q._axis is not None) is not axis:
            wanted = "kPerChannelAffine" if axis else "kPerTensorAffine"
            raise RuntimeError(f"{name}: expected a tensor quantized by {wanted}, but this one has {q.qscheme()}")
        return read(q)

    _TABLE[name] = ask


_per(False, "q_scale", lambda q: q._scale)
_per(False, "q_zero_point", lambda q: q._zero)
_per(True, "q_per_channel_scales", lambda q: q._scale)
_per(True, "q_per_channel_zero_points", lambda q: q._zero)
_per(True, "q_per_channel_axis", lambda q: q._axis)


@_entry
def qscheme(q):
    return per_tensor_affine if q._axis is None else per_channel_affine


@_entry
def relu(q, inplace=False):
    """Codes below the one for 0 become it."""
    return q._with(q._codes.clamp(min=q._zero))


@_entry
def equal(q, other):
    return _means_the_same(q, other) and PUBLIC["equal"](q._codes, other._codes)


@_entry
def item(q):
    return dequantize(q).item()


@_entry
def __eq__(q, other):
    return dequantize(q) == (dequantize(other) if isinstance(other, QuantizedTensor) else other)


@_entry
def copy_(q, source, non_blocking=False):
    """Takes over what ``source`` is; numbers are made codes."""
    if isinstance(source, QuantizedTensor):
        q._codes.copy_(source._codes)
        q._scale, q._zero, q._axis = source._scale, source._zero, source._axis
    else:
        parts = (PUBLIC["as_tensor"](v) for v in (q._scale, q._zero))
        q._codes.copy_(codes(source.detach().float(), *parts, q._kind))
    return q


@_entry
def cat(tensors, dim=0):
    first = tensors[0]
    if not all(_means_the_same(first, t) for t in tensors):
        raise RuntimeError("All inputs should have the same quantization parameters.")
    return first._with(PUBLIC["cat"]([t._codes for t in tensors], dim))


def _means_the_same(a, b) -> bool:
    if not isinstance(b, QuantizedTensor) or a._kind is not b._kind or a._axis != b._axis:
        return False
    if a._axis is None:
        return a._scale == b._scale and a._zero == b._zero
    return PUBLIC["equal"](a._scale, b._scale) and PUBLIC["equal"](a._zero, b._zero)


def _itself(name: str):
    """The function that everybody calls: it knows weights of codes."""

    def call(*args, **kwargs):
        with DisableTorchFunctionSubclass():
            return PUBLIC[name](*args, **kwargs)

    return call


for _name in ("lstm", "gru", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"):
    _TABLE[_name] = _itself(_name)

# What is asked of the codes as of any tensor.
for _name in [
    "shape",
    "ndim",
    "numel",
    "nelement",
    "size",
    "dim",
    "ndimension",
    "stride",
    "is_contiguous",
    "element_size",
    "itemsize",
    "nbytes",
    "storage_offset",
    "data_ptr",
    "__len__",
    "is_floating_point",
    "is_complex",
    "is_cpu",
    "is_cuda",
    "is_meta",
    "is_xla",
    "get_device",
    "untyped_storage",
    "is_inference",
    "layout",
]:
    _TABLE[_name] = (lambda name: lambda q, *a, **k: _told(q._codes, name, a, k))(_name)


def _told(codes, name, args, kwargs):
    value = getattr(codes, name) if name != "__len__" else codes.__len__
    return value(*args, **kwargs) if callable(value) else value


# What only moves elements, or chooses among them. Where each channel has its scale only copies keep their meaning.
_COPIES = "clone contiguous detach cpu cuda"
_MOVES = """
    __getitem__ view reshape flatten unflatten squeeze unsqueeze transpose swapaxes t permute expand narrow select
    chunk split unbind index_select flip roll repeat movedim
"""
_CHOICES = "max min amax amin maximum minimum sort topk max_pool1d max_pool2d"


def _on_codes(name: str, copies: bool):
    def call(q, *args, **kwargs):
        if q._axis is not None and not copies:
            raise RuntimeError(
                "Setting strides is possible only on uniformly quantized tensor; this one has a scale for each "
                "channel, dequantize() it first"
            )
        plain = (
            getattr(q._codes, name, None) or PUBLIC.get(name) or getattr(sys.modules["rushlight.nn"].functional, name)
        )
        others = [a._codes if isinstance(a, QuantizedTensor) else a for a in args]
        made = plain(*others, **kwargs) if hasattr(q._codes, name) else plain(q._codes, *others, **kwargs)
        return _wrapped(q, made)

    _TABLE[name] = call


def _wrapped(q, made):
    """Codes as quantized tensors; indices, which are int64, stay as they are."""
    if isinstance(made, Tensor):
        return q._with(made) if made.dtype is q._codes.dtype else made
    parts = [_wrapped(q, part) for part in made]
    return type(made)(parts)


for _name in _COPIES.split():
    _on_codes(_name, copies=True)
for _name in (*_MOVES.split(), *_CHOICES.split()):
    _on_codes(_name, copies=False)
