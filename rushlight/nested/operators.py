"""What can be done with nested tensors: each a composition of plain operators on their values.

A function that meets a nested tensor, and a method of one, come here by ``__torch_function__``. What works element by
element is called on the values; the others are a table by PyTorch's names. No operator's rule knows of them.
"""

from __future__ import annotations

import functools
import math
import sys

from .. import dtypes
from ..autograd import carried
from ..autograd.grad import grad as _plain_grad
from ..autograd.op import differentiable as xp
from ..autograd.op import variant
from ..autograd.overriding import _words, functions_called
from ..ops.common import known_values
from ..ops.public import PUBLIC
from ..tensor import Tensor
from .tensor import NestedTensor, _place, _sizes, from_list, known_lengths

__all__ = ["call", "starts"]

TABLE: dict = {}  # name -> function
_VALUES = variant(xp.alias, "NestedGetValuesBackward0")
_JAGGED = variant(xp.alias, "NestedViewFromJaggedBackward0")
_POINTWISE = _words(
    """
    abs absolute acos arccos acosh arccosh add angle asin arcsin asinh arcsinh atan arctan atan2 atanh arctanh
    bitwise_and bitwise_not bitwise_or bitwise_xor ceil celu clamp clamp_max clamp_min clip clone copysign cos cosh
    deg2rad detach digamma div divide dropout elu empty_like eq erf erfc erfinv exp exp2 expm1 fill float_power
    floor floor_divide fmax fmin fmod frac full_like ge gelu greater greater_equal gt hardshrink hardsigmoid hardswish
    hardtanh heaviside hypot isfinite isinf isnan isneginf isposinf le leaky_relu lerp less less_equal lgamma log log10
    log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit logsigmoid lt masked_fill
    maximum minimum mish mul multiply nan_to_num ne neg negative nextafter not_equal ones_like positive pow prelu
    rad2deg rand_like randn_like randint_like reciprocal relu relu6 remainder round rrelu rsqrt rsub selu sgn sigmoid
    sign signbit silu sin sinc sinh softplus softshrink softsign sqrt square sub subtract tan tanh tanhshrink threshold
    true_divide trunc fix where xlogy zero zeros_like
    float double half bfloat16 int long short char byte bool cfloat cdouble real imag conj
    """
)
# Python's operators, by their methods' names.
_POINTWISE |= {
    f"__{name}__"
    for name in _words("and or xor invert rand ror rxor eq pos pow rpow rsub rtruediv floordiv rfloordiv rmod")
}
# What is asked of the values as of any tensor.
_ASKED = _words(
    """
    numel nelement element_size nbytes itemsize is_floating_point is_complex is_signed get_device is_cpu is_cuda is_meta
    is_xla untyped_storage is_inference __bool__ item __float__ __int__ is_conj is_neg
    """
)


def call(func, args, kwargs):
    """What ``func`` gives for these arguments; NotImplementedError if it is nothing for nested tensors."""
    name = _names().get(func)
    if name is None:
        name = func.op.name if hasattr(func, "op") else _own_name(func)
        name = {"subtract": "sub", "multiply": "mul", "divide": "div", "power": "pow", "equal": "eq"}.get(name, name)
    if name in TABLE:
        return TABLE[name](*args, **kwargs)
    if name in _POINTWISE or (name.endswith("_") and name[:-1] in _POINTWISE):
        return _pointwise(name, func, args, kwargs)
    if name in _ASKED:
        return func(args[0]._values, *args[1:], **kwargs)
    raise NotImplementedError(
        f"{name}: there is no such function of nested tensors; unbind() gives the examples, to_padded_tensor() a dense "
        "tensor, values() all elements"
    )


def _own_name(func) -> str:
    owner = getattr(func, "__self__", None)  # of a property's ``__get__``
    return getattr(owner.fget if isinstance(owner, property) else func, "__name__", str(func))


@functools.cache
def _names() -> dict:
    """function -> PyTorch's name of it."""
    names = {*TABLE, *_POINTWISE, *_ASKED, *(n + "_" for n in _POINTWISE)}
    return {**functions_called(names, "nn.functional"), _plain_grad: "grad"}


def entry(*names):
    """Put a function into the table, under its own name or these."""

    def put(function):
        for name in names or (function.__name__.strip("_"),):
            TABLE[name] = function
        return function

    return put


# -- element by element ------------------------------------------------------------------------------------------------


def _pointwise(name, func, args, kwargs):
    """``func`` of the values; dense tensors among the arguments are laid out as these are."""
    first = next(a for a in (*args, *kwargs.values()) if isinstance(a, NestedTensor))
    plain = [_laid_out(name, first, a) for a in args]
    made = func(*plain, **{key: _laid_out(name, first, a) for key, a in kwargs.items()})
    if name.endswith("_") and not name.startswith("__"):
        return args[0]
    return first._with(made) if isinstance(made, Tensor) else made


def _laid_out(name: str, nt: NestedTensor, other):
    """An argument as it meets the values of ``nt``."""
    if not isinstance(other, Tensor) or other.ndim == 0:
        return other
    if isinstance(other, NestedTensor):
        if (other.ndim, other._ragged_idx, other._symbol) != (nt.ndim, nt._ragged_idx, nt._symbol):
            raise _unlike(name, nt, other)
        return other._values
    if other.ndim > nt.ndim:
        raise _unlike(name, nt, other)
    dense = other.reshape((*[1] * (nt.ndim - other.ndim), *other.shape))
    if dense.shape[0] not in (1, len(nt)):
        raise _unlike(name, nt, other)
    if dense.shape[nt._ragged_idx] == 1:
        return dense.squeeze(0) if dense.shape[0] == 1 else _each(nt, dense.squeeze(nt._ragged_idx))
    if dense.shape[nt._ragged_idx] != nt._max_seqlen or nt._lengths is not None:
        raise _unlike(name, nt, other)
    return _unpadded(nt, dense.expand((len(nt), *dense.shape[1:])))


def _unlike(name: str, a: Tensor, b: Tensor):
    return RuntimeError(
        f"cannot call binary pointwise function {name}.Tensor with inputs of shapes {_sizes(a)} and {_sizes(b)}"
    )


def from_jagged(values, offsets, lengths=None, ragged=1, known=(None, None)) -> NestedTensor:
    """A view of ``values``: no leaf, even if these are one."""
    return NestedTensor(_JAGGED(values) if values.requires_grad else values, offsets, lengths, ragged, known)


# -- examples and their elements ---------------------------------------------------------------------------------------


def starts(lengths: Tensor) -> Tensor:
    """Where each example begins, and where the last one ends."""
    zero = PUBLIC["zeros"](1, dtype=dtypes.int64, device=lengths.device)
    return PUBLIC["cat"]([zero, lengths.cumsum(0)])


def _rows(nt: NestedTensor) -> Tensor:
    """The example of each element."""
    count = nt._values.shape[nt._ragged_idx - 1]
    places = PUBLIC["arange"](count, device=nt.device)
    return PUBLIC["searchsorted"](nt._offsets[1:].contiguous(), places, right=True)


def _positions(nt: NestedTensor) -> Tensor:
    """The place of each element in its example."""
    count = nt._values.shape[nt._ragged_idx - 1]
    return PUBLIC["arange"](count, device=nt.device) - nt._offsets[:-1][_rows(nt)]


def _first(nt: NestedTensor) -> Tensor:
    """The values with the dimension of elements first."""
    return nt._values.movedim(nt._ragged_idx - 1, 0)


def _put_back(nt: NestedTensor, lines: Tensor) -> Tensor:
    return lines.movedim(0, nt._ragged_idx - 1)


def _each(nt: NestedTensor, dense: Tensor) -> Tensor:
    """(examples, …) repeated for each element of the example."""
    return _put_back(nt, dense[_rows(nt)])


def _unpadded(nt: NestedTensor, dense: Tensor) -> Tensor:
    """The inverse of ``to_padded_tensor``: values where ``nt`` has its own."""
    return _put_back(nt, dense.movedim(nt._ragged_idx, 1)[_rows(nt), _positions(nt)])


def _solid(nt: NestedTensor, message: str) -> NestedTensor:
    if nt._lengths is not None:
        raise RuntimeError(message)
    return nt


@entry()
def unbind(nt, dim=0):
    """The examples, as views."""
    if _place(dim, nt.ndim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    counts, inner = known_lengths(nt), nt._ragged_idx - 1
    begins = known_values(nt._offsets)
    return tuple(nt._values.narrow(inner, int(b), int(n)) for b, n in zip(begins, counts))


@entry()
def to_padded_tensor(nt, padding, output_size=None, out=None):
    """Dense, with ``padding`` where an example is shorter than the longest, or than ``output_size`` says."""
    _solid(nt, "to_padded_tensor(): not supported for nested tensors with holes")
    lines, row, position = _first(nt), _rows(nt), _positions(nt)
    longest = nt._max_seqlen if output_size is None else output_size[nt._ragged_idx]
    if output_size is not None and longest < nt._max_seqlen:
        kept = position < longest
        lines, row, position = lines[kept], row[kept], position[kept]
    base = PUBLIC["full"]((len(nt) * longest, *lines.shape[1:]), padding, dtype=nt.dtype, device=nt.device)
    filled = base.index_copy(0, row * longest + position, lines)
    return filled.unflatten(0, (len(nt), longest)).movedim(1, nt._ragged_idx)


@entry()
def values(nt):
    return _VALUES(nt._values) if nt.requires_grad else nt._values


@entry()
def contiguous(nt, memory_format=None):
    """In order and without gaps."""
    if nt._lengths is None:
        return nt if nt._values.is_contiguous() else nt._with(nt._values.contiguous())
    return from_list(list(nt.unbind()))


@entry()
def to(nt, *args, **kwargs):
    made = nt._values.to(*args, **kwargs)
    if made is nt._values:
        return nt
    if made.device == nt.device:
        return nt._with(made)
    offsets, lengths = (t if t is None else t.to(made.device) for t in (nt._offsets, nt._lengths))
    return NestedTensor(made, offsets, lengths, nt._ragged_idx, nt._known, nt._symbol)


TABLE["cpu"] = lambda nt, *_, **__: to(nt, "cpu")
TABLE["cuda"] = lambda nt, device=None, *_, **__: to(nt, "cuda" if device is None else device)
TABLE["type_as"] = lambda nt, other: to(nt, other.dtype)
TABLE["is_same_size"] = lambda a, b: a.shape == b.shape
TABLE["is_pinned"] = lambda nt, *_: False
TABLE["pin_memory"] = lambda nt, *_: nt
TABLE["data_ptr"] = TABLE["storage_offset"] = lambda nt: 0


@entry("copy_")
def copy_(nt, source, non_blocking=False):
    if not isinstance(source, NestedTensor) or len(source) != len(nt) or source.ndim != nt.ndim:
        raise RuntimeError("copy_ only supports Nested Tensors that have same size and offsets")
    nt._values.copy_(source._values)
    return nt


@entry()
def tolist(nt):
    raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")


@entry("numpy", "__array__")
def numpy(nt, *_, **__):
    raise RuntimeError(".numpy() is not supported for tensor subclasses.")


TABLE["backward"], TABLE["grad"] = carried.backward, carried.grad


# -- shapes ------------------------------------------------------------------------------------------------------------


def _inner(name: str, nt: NestedTensor, dim: int, ragged=False) -> int:
    """A dimension of the values, which is not that of the examples, nor the ragged one unless that is ``ragged``."""
    d = _place(dim, nt.ndim)
    if d == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if d == nt._ragged_idx and not ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return d - 1


@entry("view", "reshape")
def view(nt, *shape):
    """The sizes before and of the ragged dimension must stay; -1 there stands for it."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    ragged = nt._ragged_idx
    kept = tuple(sizes[:ragged]) == tuple(nt.shape[:ragged]) and len(sizes) > ragged
    if not kept or not (sizes[ragged] is nt._symbol or sizes[ragged] == -1 or sizes[ragged] == nt._symbol):
        raise RuntimeError(f"view(): cannot view shape {_sizes(nt)} as {list(sizes)}")
    inner = nt._values.shape[ragged - 1]
    return nt._with(nt._values.reshape((*sizes[1:ragged], inner, *sizes[ragged + 1 :])))


TABLE["view_as"] = TABLE["reshape_as"] = lambda nt, other: view(nt, *other.shape)


@entry()
def expand(nt, *shape):
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    ragged = nt._ragged_idx
    if len(sizes) != nt.ndim or sizes[0] not in (-1, len(nt)) or sizes[ragged] not in (-1, nt._symbol):
        raise RuntimeError(f"expand(): cannot expand shape {_sizes(nt)} -> {list(sizes)}")
    return nt._with(nt._values.expand([-1 if d == ragged else s for d, s in enumerate(sizes)][1:]))


TABLE["expand_as"] = lambda nt, other: expand(nt, *other.shape)


@entry()
def flatten(nt, start_dim=0, end_dim=-1):
    first, last = _place(start_dim, nt.ndim), _place(end_dim, nt.ndim)
    if first == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if first <= nt._ragged_idx <= last and first != last:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    moved = last - first if nt._ragged_idx > last else 0
    return nt._with(nt._values.flatten(first - 1, last - 1), nt._ragged_idx - moved)


@entry()
def unflatten(nt, dim, sizes):
    inner = _inner("unflatten", nt, dim)
    moved = len(sizes) - 1 if nt._ragged_idx > inner + 1 else 0
    return nt._with(nt._values.unflatten(inner, sizes), nt._ragged_idx + moved)


@entry("transpose", "swapaxes", "swapdims")
def transpose(nt, dim0, dim1):
    a, b = _place(dim0, nt.ndim), _place(dim1, nt.ndim)
    if a != b and 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    if a == b:
        return nt
    ragged = {a: b, b: a}.get(nt._ragged_idx, nt._ragged_idx)
    return nt._with(nt._values.transpose(a - 1, b - 1), ragged)


@entry()
def permute(nt, *dims):
    order = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order = [_place(d, nt.ndim) for d in order]
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return nt._with(nt._values.permute([d - 1 for d in order[1:]]), order.index(nt._ragged_idx))


TABLE["mT"] = lambda nt: transpose(nt, -2, -1)


@entry()
def unsqueeze(nt, dim):
    if not -nt.ndim - 1 <= dim <= nt.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-nt.ndim - 1}, {nt.ndim}], but got {dim})"
        )
    d = dim % (nt.ndim + 1)
    if d == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return nt._with(nt._values.unsqueeze(d - 1), nt._ragged_idx + (d <= nt._ragged_idx))


@entry()
def squeeze(nt, dim=None):
    if dim is None:
        raise NotImplementedError("squeeze: of a nested tensor a dimension must be named")
    inner = _inner("squeeze", nt, dim)
    if nt._values.shape[inner] != 1:
        return nt
    return nt._with(nt._values.squeeze(inner), nt._ragged_idx - (inner + 1 < nt._ragged_idx))


@entry()
def select(nt, dim, index):
    if _place(dim, nt.ndim) == 0:
        return unbind(nt)[index]
    inner = _inner("select", nt, dim)
    return nt._with(nt._values.select(inner, index), nt._ragged_idx - (inner + 1 < nt._ragged_idx))


@entry()
def narrow(nt, dim, start, length):
    return nt._with(nt._values.narrow(_inner("narrow", nt, dim), start, length))


@entry("__getitem__")
def getitem(nt, index):
    """An example, or a part of the dimensions that are not ragged."""
    keys = index if isinstance(index, tuple) else (index,)
    if any(isinstance(k, (Tensor, list)) for k in keys):
        raise NotImplementedError("a nested tensor is indexed by numbers, slices, None and ...; not by tensors")
    if keys and isinstance(keys[0], int):
        example = unbind(nt)[keys[0]]
        return example[keys[1:]] if len(keys) > 1 else example
    named = sum(k is not None and k is not Ellipsis for k in keys)
    if Ellipsis not in keys:
        keys = (*keys, Ellipsis)
    dim, made = 0, nt
    for key in keys:
        if key is Ellipsis:
            dim += nt.ndim - named
        elif key is None:
            made, dim = unsqueeze(made, dim), dim + 1
        elif isinstance(key, slice):
            inner = _inner("slice", made, dim)
            made, dim = made._with(made._values[(*[slice(None)] * inner, key)]), dim + 1
        else:
            made = select(made, dim, key)
    return made


@entry("__setitem__")
def setitem(nt, index, value):
    getitem(nt, index).copy_(value if isinstance(value, Tensor) else PUBLIC["tensor"](value, dtype=nt.dtype))


@entry()
def chunk(nt, chunks, dim=0):
    if _place(dim, nt.ndim) == 0:
        return _groups(nt, math.ceil(len(nt) / chunks))
    return tuple(nt._with(v) for v in nt._values.chunk(chunks, _inner("chunk", nt, dim)))


def _groups(nt: NestedTensor, count: int) -> tuple:
    parts = unbind(nt)
    return tuple(from_list(list(parts[i : i + count])) for i in range(0, len(parts), count))


@entry()
def split(nt, split_size_or_sections, dim=0):
    return tuple(nt._with(v) for v in nt._values.split(split_size_or_sections, _inner("split", nt, dim)))


def _joined(name: str):
    def join(tensors, dim=0):
        first = next(t for t in tensors if isinstance(t, NestedTensor))
        ndim = first.ndim + (name == "stack")
        d = _place(dim, ndim)
        if d == 0:
            raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
        if name == "cat" and d == first._ragged_idx:
            raise RuntimeError("cat(): not supported for NestedTensor on ragged dim")
        made = PUBLIC[name]([_laid_out(name, first, t) for t in tensors], d - 1)
        return first._with(made, first._ragged_idx + (name == "stack" and d <= first._ragged_idx))

    TABLE[name] = join


for _name in ("cat", "stack"):
    _joined(_name)
TABLE["concat"] = TABLE["concatenate"] = TABLE["cat"]


# -- reductions --------------------------------------------------------------------------------------------------------


def _reduction(name: str):
    """Over all elements; over the ragged dimension, each example by itself; over others, on the values."""

    def reduce(nt, dim=None, keepdim=False, **kwargs):
        plain = PUBLIC[name]
        if isinstance(dim, Tensor):
            raise NotImplementedError(f"{name}: of two nested tensors use {name}imum")
        if dim is None or dim == ():
            solid = contiguous(nt) if nt._lengths is not None else nt
            return plain(solid._values, **kwargs)
        dims = {_place(d, nt.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
        _check_reduced(name, nt, dims)
        inner = [d - 1 for d in sorted(dims - {0})]
        if nt._ragged_idx not in dims:
            return _reduced(
                nt, plain(nt._values, inner if len(inner) > 1 else inner[0], keepdim, **kwargs), dims, keepdim
            )
        if 0 in dims:
            made = plain(nt._values, inner if len(inner) > 1 else inner[0], keepdim, **kwargs)
            return made.unsqueeze(0) if keepdim else made
        return _over_examples(name, nt, keepdim, kwargs)

    TABLE[name] = reduce


def _check_reduced(name: str, nt: NestedTensor, dims: set) -> None:
    ragged = nt._ragged_idx in dims
    if 0 in dims and not ragged:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested "
            "tensors"
        )
    if ragged and 0 not in dims and len(dims) > 1:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
        )
    if ragged:
        _solid(
            nt,
            f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with "
            "holes",
        )


def _reduced(nt: NestedTensor, made, dims: set, keepdim: bool):
    """What is left when dimensions that are not ragged are gone."""
    ragged = nt._ragged_idx - (0 if keepdim else sum(d < nt._ragged_idx for d in dims))
    if isinstance(made, Tensor):
        return nt._with(made, ragged)
    return type(made)(*[nt._with(part, ragged) for part in made])


def _over_examples(name: str, nt: NestedTensor, keepdim: bool, kwargs: dict):
    """A row of results for each example."""
    if name in ("sum", "mean"):
        made = _segment_sum(nt, _first(nt).to(kwargs["dtype"]) if kwargs.get("dtype") else _first(nt))
        if name == "mean":
            made = made / nt._offsets.diff().reshape(-1, *[1] * (made.ndim - 1))
        return made.unsqueeze(nt._ragged_idx) if keepdim else made
    padded = to_padded_tensor(nt, _neutral(name, nt.dtype))
    return PUBLIC[name](padded, nt._ragged_idx, keepdim, **kwargs)


def _segment_sum(nt: NestedTensor, lines: Tensor) -> Tensor:
    """(examples, …): the sums of the elements of each."""
    if not lines.is_floating_point() and not lines.is_complex():
        lines = lines.long()
    zeros = PUBLIC["zeros"]((len(nt), *lines.shape[1:]), dtype=lines.dtype, device=lines.device)
    return zeros.index_add(0, _rows(nt), lines)


def _neutral(name: str, dtype):
    """What leaves a result as it is."""
    if name in ("all", "prod"):
        return 1
    if name == "any":
        return 0
    lowest = "max" in name
    if dtype.is_floating_point:
        return -math.inf if lowest else math.inf
    if dtype is dtypes.bool_:
        return not lowest
    bounds = sys.modules[__name__.split(".")[0]].iinfo(dtype)
    return bounds.min if lowest else bounds.max


for _name in ("sum", "mean", "prod", "all", "any", "amax", "amin", "max", "min", "argmax", "argmin"):
    _reduction(_name)


def _softmax(name: str):
    def function(nt, dim=None, _stacklevel=3, dtype=None):
        if dim is None:
            raise RuntimeError(f"{name}(): a nested tensor needs a dim")
        d = _place(dim, nt.ndim)
        if d == 0:
            raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
        if d != nt._ragged_idx:
            return nt._with(PUBLIC[name](nt._values, d - 1, dtype=dtype))
        if name == "log_softmax":
            raise RuntimeError("log_softmax(): not supported when reducing along the ragged dimension for NestedTensor")
        _solid(nt, f"{name}(): not supported where ragged_idx != 1 for NestedTensor with holes")
        return nt._with(_put_back(nt, _segment_softmax(nt, _first(nt) if dtype is None else _first(nt).to(dtype))))

    TABLE[name] = function


def _segment_softmax(nt: NestedTensor, lines: Tensor) -> Tensor:
    """Softmax of each example by itself, without padding."""
    row = _rows(nt)
    low = PUBLIC["full"]((len(nt), *lines.shape[1:]), -math.inf, dtype=lines.dtype, device=lines.device)
    largest = low.index_reduce(0, row, lines.detach(), "amax")
    powers = (lines - largest[row]).exp()
    return powers / _segment_sum(nt, powers)[row]


for _name in ("softmax", "log_softmax"):
    _softmax(_name)


# -- layers ------------------------------------------------------------------------------------------------------------


def _plain(name: str):
    """The function that everybody calls."""
    package = sys.modules[__name__.split(".")[0]]
    return getattr(package.nn.functional, name)


def _last_dim(name: str, nt) -> NestedTensor:
    if not isinstance(nt, NestedTensor) or nt._ragged_idx == nt.ndim - 1 or nt._lengths is not None:
        raise ValueError(f"NestedTensor {name}: expected input to be a contiguous jagged layout NestedTensor")
    return nt


@entry()
def linear(input, weight, bias=None):
    nt = _last_dim("linear", input)
    return nt._with(_plain("linear")(nt._values, weight, bias))


def _norm(name: str):
    def function(input, normalized_shape, *args, **kwargs):
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        if input.ndim - len(normalized_shape) <= input._ragged_idx:
            raise RuntimeError(
                f"{name}(): normalizing over the ragged dimension is not supported for NestedTensor; given "
                f"normalized_shape={list(normalized_shape)} and an input of size {_sizes(input)}"
            )
        return input._with(_plain(name)(input._values, normalized_shape, *args, **kwargs))

    TABLE[name] = function


for _name in ("layer_norm", "rms_norm"):
    _norm(_name)


@entry()
def embedding(input, weight, *args, **kwargs):
    if not isinstance(input, NestedTensor):
        raise RuntimeError("embedding(): the weight cannot be nested")
    return input._with(_plain("embedding")(input._values, weight, *args, **kwargs))


@entry("matmul", "bmm", "__matmul__")
def matmul(a, b):
    """Rows times a matrix on the values; by examples, with padding of zeros."""
    if isinstance(a, NestedTensor) and not isinstance(b, NestedTensor):
        if a._ragged_idx != a.ndim - 1 and a._lengths is None:
            if b.ndim <= 2:
                return a._with(PUBLIC["matmul"](a._values, b))
            if a._ragged_idx == a.ndim - 2 and b.ndim == a.ndim and b.shape[0] == len(a):
                return a._with(_unpadded(a, PUBLIC["matmul"](to_padded_tensor(a, 0.0), b)))
    elif isinstance(a, NestedTensor) and _inner_is_ragged(a, b):
        return PUBLIC["matmul"](to_padded_tensor(a, 0.0), to_padded_tensor(b, 0.0))
    raise RuntimeError(f"matmul(): not supported between inputs of shapes {_sizes(a)} and {b.shape}")


def _inner_is_ragged(a: NestedTensor, b: NestedTensor) -> bool:
    return a._symbol == b._symbol and a._ragged_idx == a.ndim - 1 and b._ragged_idx == b.ndim - 2


@entry()
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Each example's queries look at its own keys: example by example, or, compiled, through a mask of the rows."""
    parts = (query, key, value)
    if not all(isinstance(t, NestedTensor) for t in parts):
        asked = ", ".join(f"{n}.is_nested: {t.is_nested}" for n, t in zip(("query", "key", "and value"), parts))
        raise ValueError(f"Expected query, key, and value to be nested tensors, but got {asked} instead.")
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    if any(t.ndim != 4 or t._ragged_idx != 2 or t._lengths is not None for t in parts):
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. Nested query, key and value are of shape "
            "(examples, heads, ragged, width): use unflatten(-1, [heads, -1]).transpose(1, 2)"
        )
    attend = functools.partial(_plain("scaled_dot_product_attention"), scale=scale, enable_gqa=enable_gqa)
    if known_values(query._offsets) is None or known_values(key._offsets) is None:
        mask = _rows(query).unsqueeze(1) == _rows(key)
        if is_causal:
            mask = mask & (_positions(query).unsqueeze(1) >= _positions(key))
        flat = [t._values.unsqueeze(0) for t in parts]
        return query._with(attend(*flat, attn_mask=mask, dropout_p=dropout_p).squeeze(0))
    rows = [
        attend(*(t.unsqueeze(0) for t in three), dropout_p=dropout_p, is_causal=is_causal).squeeze(0).transpose(0, 1)
        for three in zip(*(unbind(t) for t in parts))
    ]
    return query._with(PUBLIC["cat"](rows).transpose(0, 1))
