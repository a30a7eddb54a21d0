"""A tensor with a mask: what the mask says no to is not there, for sums, for gradients, for the printed page.

>>> mt = rushlight.masked.masked_tensor(rushlight.tensor([1.0, 2.0, 3.0]), rushlight.tensor([True, False, True]))
>>> mt.sum()
MaskedTensor(  4.0000, True)
"""

from __future__ import annotations

import functools

from .. import dtypes
from ..autograd import carried
from ..autograd.carried import Carrier
from ..autograd.grad import grad as _plain_grad
from ..autograd.overriding import _words, functions_called
from ..ops.public import PUBLIC
from ..tensor import Tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]


def masked_tensor(data, mask, requires_grad=False) -> MaskedTensor:
    """A new leaf with the values of ``data``; what ``mask`` is False for is not there."""
    _check(data, mask)
    made = MaskedTensor(data.detach().clone(), mask.clone())
    return made.requires_grad_() if requires_grad else made


def as_masked_tensor(data, mask) -> MaskedTensor:
    """``data`` with a mask; gradients flow back to it.

    Differs from PyTorch: ``data.grad`` is a plain tensor, with 0 where the mask is False.
    """
    _check(data, mask)
    return MaskedTensor(PUBLIC["where"](mask, data, data.detach()) if data.requires_grad else data, mask)


def is_masked_tensor(obj) -> bool:
    """Is it a MaskedTensor?"""
    return isinstance(obj, MaskedTensor)


class MaskedTensor(Carrier):
    """``data`` where ``mask`` is True; functions of it come to ``call`` below."""

    __slots__ = ("_masked_data", "_masked_mask")
    _masked_data: Tensor
    _masked_mask: Tensor

    def __new__(cls, data, mask, requires_grad=False):
        t = object.__new__(cls)
        t._start()
        t._masked_data, t._masked_mask = data, mask
        if requires_grad:
            t._masked_data.requires_grad_()
        return t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return call(func, args, kwargs or {})

    @property
    def _inside(self):
        return self._masked_data

    def _carrying(self, inside):
        return MaskedTensor(inside, self._masked_mask)

    @property
    def _array(self):
        """The data's, for whoever asks for a shape."""
        self._masked_data._sync()
        return self._masked_data._array

    @property
    def shape(self):
        return self._masked_data.shape

    def get_data(self):
        """The values, also those that are masked."""
        return self._masked_data

    def get_mask(self):
        """Which values count."""
        return self._masked_mask

    def to_tensor(self, value):
        """A plain tensor, with ``value`` where the mask is False."""
        return self._masked_data.masked_fill(~self._masked_mask, value)

    def __deepcopy__(self, memo):
        made = memo[id(self)] = MaskedTensor(self._masked_data.__deepcopy__(memo), self._masked_mask.clone())
        return made

    def __reduce_ex__(self, protocol):
        data = self._masked_data if self._masked_data.is_leaf else self._masked_data.detach()
        return MaskedTensor, (data, self._masked_mask)

    def __repr__(self, *, tensor_contents=None):
        return _text(self)

    __str__ = __repr__

    def __format__(self, form):
        return format(repr(self), form)


def _check(data, mask) -> None:
    if not isinstance(data, Tensor) or isinstance(data, MaskedTensor):
        raise TypeError("data must be a Tensor")
    if not isinstance(mask, Tensor) or isinstance(mask, MaskedTensor):
        raise TypeError("mask must be a Tensor")
    if data.layout is not mask.layout:
        raise TypeError(f"data and mask must have the same layout, got {data.layout} and {mask.layout}")
    if data.is_sparse or data.is_sparse_csr:
        raise NotImplementedError("masked tensors of sparse ones are not built here; use to_dense()")
    if mask.dtype is not dtypes.bool_:
        raise TypeError("mask must have dtype bool.")
    if data.dtype.is_complex:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.size() != mask.size():
        raise ValueError("data.size() must equal mask.size()")


def _text(mt: MaskedTensor) -> str:
    data, mask = mt._masked_data.detach(), mt._masked_mask
    if mt.ndim == 0:
        shown = _number(data.item()) if mask.item() else "--"
        return f"MaskedTensor({shown}, {mask.item()})"
    return "MaskedTensor(\n" + _lines(data.tolist(), mask.tolist(), 1) + "\n)"


def _lines(data: list, mask: list, depth: int) -> str:
    indent = "  " * depth
    if not data or not isinstance(data[0], list):
        return indent + "[" + ", ".join(_number(v) if there else "      --" for v, there in zip(data, mask)) + "]"
    inner = ",\n".join(_lines(d, m, depth + 1) for d, m in zip(data, mask))
    return f"{indent}[\n{inner}\n{indent}]"


def _number(value) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


# -- what can be done with it ------------------------------------------------------------------------------------------

_POINTWISE = _words(
    """
    abs absolute acos arccos acosh arccosh add angle arctan2 asin arcsin asinh arcsinh atan arctan atan2 atanh arctanh
    bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clip conj_physical
    copysign cos cosh deg2rad digamma div divide eq erf erfc erfinv exp exp2 expm1 fix floor floor_divide fmax fmin
    fmod frac ge greater greater_equal gt i0 isnan ldexp le less less_equal lgamma log log10 log1p log2 logaddexp
    logaddexp2 logit lt maximum minimum mul multiply mvlgamma nan_to_num ne neg negative nextafter not_equal positive
    pow rad2deg reciprocal remainder round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square sub subtract tan
    tanh true_divide trunc
    float double half bfloat16 int long short char byte bool to clone contiguous detach ones_like zeros_like empty_like
    copy fill cpu cuda __and__ __or__ __xor__ __invert__ __eq__ __pos__ __pow__ __floordiv__
    """
)
_MOVES = _words(  # data and mask go the same way
    """
    __getitem__ view reshape transpose t unsqueeze expand expand_as broadcast_to flatten chunk split select narrow
    slice _reshape_alias swapaxes unflatten cat stack concat hstack vstack
    """
)
_REDUCTIONS = _words("sum mean prod amax amin argmax argmin var std")
_ASKED = _words(  # of the data as of any tensor
    """
    shape size dim ndim ndimension numel nelement __len__ stride is_contiguous is_floating_point is_complex is_signed
    item __bool__ __float__ __int__ element_size get_device is_cpu is_cuda is_meta layout storage_offset nbytes
    """
)
TABLE: dict = {"backward": carried.backward, "grad": carried.grad}


def call(func, args, kwargs):
    """What ``func`` gives for these arguments; a TypeError if it is nothing for masked tensors."""
    name = _names().get(func) or (func.op.name if hasattr(func, "op") else getattr(func, "__name__", str(func)))
    plain = name[:-1] if name.endswith("_") and not name.startswith("__") else name
    if name in TABLE:
        return TABLE[name](*args, **kwargs)
    if plain in _POINTWISE:
        return _pointwise(func, args, kwargs, plain != name)
    if name in _MOVES:
        return _moved(func, args, kwargs)
    if name in _REDUCTIONS:
        return _reduced(name, *args, **kwargs)
    if name in _ASKED:
        return func(args[0]._masked_data, *args[1:], **kwargs)
    raise TypeError(
        f"{name}: there is no such function of masked tensors; get_data() and get_mask() give their parts, "
        "to_tensor(value) a plain tensor"
    )


@functools.cache
def _names() -> dict:
    """function -> PyTorch's name of it."""
    names = {*TABLE, *_POINTWISE, *_MOVES, *_REDUCTIONS, *_ASKED, *(word + "_" for word in _POINTWISE)}
    return {**functions_called(names, "nn.functional"), _plain_grad: "grad"}


def _pointwise(func, args, kwargs, writes: bool):
    """On the data; masks must agree, and a plain tensor has that of the others."""
    masks = [a._masked_mask for a in args if isinstance(a, MaskedTensor)]
    if any(not PUBLIC["equal"](masks[0], other) for other in masks[1:]):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    made = func(*(_data(a) for a in args), **{name: _data(a) for name, a in kwargs.items()})
    if writes:
        return args[0]
    return MaskedTensor(made, masks[0].expand(made.shape) if made.shape != masks[0].shape else masks[0])


def _data(value):
    return value._masked_data if isinstance(value, MaskedTensor) else value


def _moved(func, args, kwargs):
    """On data and mask alike."""
    parts = [func(*(_part(a, which) for a in args), **kwargs) for which in ("_masked_data", "_masked_mask")]
    if isinstance(parts[0], Tensor):
        return MaskedTensor(*parts)
    return tuple(MaskedTensor(data, mask) for data, mask in zip(*parts))


def _part(value, which: str):
    if isinstance(value, (tuple, list)):
        return type(value)(_part(v, which) for v in value)
    return getattr(value, which) if isinstance(value, MaskedTensor) else value


def _reduced(name: str, mt, *args, **kwargs):
    """Of the elements that are there; a result without any is masked."""
    from .. import masked

    names: tuple = ("dim", "unbiased") if name in ("var", "std") and args[1:] else ("dim", "keepdim")
    if name in ("var", "std") and len(args) == 1 and isinstance(args[0], bool):
        names = ("unbiased",)
    given = {**dict(zip(names, args)), **kwargs}
    mask, dim, keepdim = mt._masked_mask, given.get("dim"), bool(given.get("keepdim"))
    made = getattr(masked, name)(mt._masked_data, mask=mask, **given)
    return MaskedTensor(made, mask.any() if dim is None else _any(mask, dim, keepdim))


def _any(mask, dim, keepdim: bool):
    return PUBLIC["any"](mask, dim if isinstance(dim, int) else tuple(dim), keepdim)


def _entry(function):
    TABLE[function.__name__] = function
    return function


@_entry
def all(mt, dim=None, keepdim=False):
    """Are all true that are there?"""
    filled = mt._masked_data.to(dtypes.bool_) | ~mt._masked_mask
    if dim is None:
        return MaskedTensor(filled.all(), mt._masked_mask.any())
    return MaskedTensor(filled.all(dim, keepdim), _any(mt._masked_mask, dim, keepdim))


@_entry
def softmax(mt, dim=None, _stacklevel=3, dtype=None):
    from .. import masked

    return mt._carrying(masked.softmax(mt._masked_data, dim, dtype=dtype, mask=mt._masked_mask))


@_entry
def where(condition, input, other):
    """Chosen from two masked tensors, with their masks."""
    if not (isinstance(input, MaskedTensor) and isinstance(other, MaskedTensor)):
        raise ValueError("where: both tensors to choose from must be masked tensors")
    choose = PUBLIC["where"]
    condition = _data(condition)
    return MaskedTensor(
        choose(condition, input._masked_data, other._masked_data),
        choose(condition, input._masked_mask, other._masked_mask),
    )


@_entry
def __setitem__(mt, index, value):
    mt._masked_data[index] = _data(value)
    mt._masked_mask[index] = value._masked_mask if isinstance(value, MaskedTensor) else True


@_entry
def to_dense(mt, *_, **__):
    return mt


@_entry
def tolist(mt):
    raise RuntimeError(".tolist() is not supported for tensor subclasses, got MaskedTensor")


@_entry
def numpy(mt, *_, **__):
    raise RuntimeError(".numpy() is not supported for tensor subclasses.")
