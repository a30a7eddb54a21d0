"""The call that an operator is, by its name. An entry gets the node's name, the operator's arrays and its options."""

from __future__ import annotations

import sys

from ... import dtypes
from ...autograd import dispatching
from ...autograd.overriding import _words
from ...tensor import Tensor
from .space import aten

__all__ = ["CALLS", "REDUCTIONS", "dim_given", "dims_of", "end_of", "lowered", "unless"]


def lowered(call, args, static) -> tuple:
    """(overload, arguments, keyword arguments, what makes the op's output of its result or None)."""
    o = call.op
    static = {**o.static, **static}
    made = CALLS[o.name](call.node, *args, **static) if o.name in CALLS else _plain_call(o.name, args, static)
    if made is None:
        from ...library import own_overload

        return own_overload(call), args, static, None
    overload, given, *rest = made
    return overload, tuple(given), rest[0] if rest else {}, rest[1] if len(rest) > 1 else None


_NAMES = {
    "negative": "neg", "absolute": "abs", "invert": "bitwise_not", "equal": "eq", "not_equal": "ne", "less": "lt",
    "less_equal": "le", "greater": "gt", "greater_equal": "ge", "subtract": "sub", "multiply": "mul", "divide": "div",
    "real_sign": "sign", "arctan2": "atan2", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
}  # fmt: skip
_TENSOR_OR_SCALAR = _words("eq ne lt le gt ge remainder fmod bitwise_and bitwise_or bitwise_xor")
_TENSOR = _words("add sub mul div")
_SAME = _words(
    """
    abs acos acosh asin asinh atan atan2 atanh bitwise_not ceil conj cos cosh digamma erf erfc erfinv exp exp2 expm1
    floor floor_divide frac isinf isnan isfinite lgamma log log10 log1p log2 logical_and logical_not logical_or
    logical_xor maximum minimum neg reciprocal relu round rsqrt sgn sigmoid sign silu sin sinh softsign sqrt tan tanh
    trunc hypot fmax fmin log_sigmoid mish selu nextafter logaddexp dot
    """
)


def _plain_call(name: str, args, static):
    """The call of an operator that is one of arrays alone, under PyTorch's name."""
    name = _NAMES.get(name, name)
    if static:
        return None
    if name in _TENSOR:
        return getattr(aten, name).Tensor, args
    if name in _TENSOR_OR_SCALAR:
        packet = getattr(aten, name)
        return (packet.Tensor if isinstance(args[1], Tensor) else packet.Scalar), args
    return (getattr(aten, name).default, args) if name in _SAME else None


CALLS: dict = {}


def _call(function):
    CALLS[function.__name__.strip("_")] = function
    return function


@_call
def power(node, x, w):
    if not isinstance(x, Tensor):
        return aten.pow.Scalar, (x, w)
    return (aten.pow.Tensor_Tensor if isinstance(w, Tensor) else aten.pow.Tensor_Scalar), (x, w)


@_call
def rsub(node, x, w, *, alpha=1):
    given = {} if alpha == 1 else {"alpha": alpha}
    return (aten.rsub.Tensor if isinstance(w, Tensor) else aten.rsub.Scalar), (x, w), given


@_call
def add_scaled(node, x, w, *, alpha):
    return aten.add.Tensor, (x, w), {"alpha": alpha}


@_call
def lerp(node, x, end, weight):
    return (aten.lerp.Tensor if isinstance(weight, Tensor) else aten.lerp.Scalar), (x, end, weight)


@_call
def addcmul(node, x, a, b, *, value=1):
    return aten.addcmul.default, (x, a, b), unless(1, value=value)


@_call
def addcdiv(node, x, a, b, *, value=1):
    return aten.addcdiv.default, (x, a, b), unless(1, value=value)


def unless(default, **given) -> dict:
    return {name: value for name, value in given.items() if value != default}


@_call
def clip(node, x, low, high):
    if node == "ClampMinBackward0":
        return aten.clamp_min.default, (x, low)
    name = "Tensor" if isinstance(low, Tensor) or isinstance(high, Tensor) else "default"
    return getattr(aten.clamp, name), (x, low) if high is None else (x, low, high)


@_call
def where(node, condition, x, w):
    return aten.where.self, (condition, _as_tensor(x, w), _as_tensor(w, x))


def _as_tensor(value, other):
    from ..creation import scalar_tensor

    return value if isinstance(value, Tensor) else scalar_tensor(value, dtype=other.dtype)


@_call
def masked_fill(node, x, mask, value):
    overload = aten.masked_fill.Tensor if isinstance(value, Tensor) else aten.masked_fill.Scalar
    return overload, (x, mask, value)


@_call
def clone(node, x):
    from ... import contiguous_format

    asked = dispatching.state.given == ("clone",)  # else it is reshape or contiguous that wants a copy
    return aten.clone.default, (x,), {} if asked else {"memory_format": contiguous_format}


@_call
def astype(node, x, *, dtype):
    return aten._to_copy.default, (x,), {"dtype": _kind(dtype)}


def _kind(dtype):
    """torch.float32 for NumPy's, or for itself: gradient rules have Tensors, whose dtypes are PyTorch's."""
    return dtype if isinstance(dtype, dtypes.dtype) else dtypes.of_numpy(dtype)


# shapes


@_call
def matrix_transpose(node, x):
    return (aten.t.default, (x,)) if x.ndim == 2 else (aten.transpose.int, (x, -2, -1))


@_call
def transpose(node, x, *, axes):
    return aten.permute.default, (x, list(axes))


@_call
def swapaxes(node, x, *, axis1, axis2):
    return aten.transpose.int, (x, axis1, axis2)


@_call
def view_as_shape(node, x, *, shape):
    return aten.view.default, (x, list(shape))


@_call
def reshape(node, x, *, shape):
    return aten.view.default, (x, list(shape))


@_call
def unsafe_view(node, x, *, shape):
    return aten._unsafe_view.default, (x, list(shape))


@_call
def expand_dims(node, x, *, axis):
    return (aten.unsqueeze.default, (x, axis)) if isinstance(axis, int) else None


@_call
def squeeze(node, x, *, axis):
    if axis is None:
        return aten.squeeze.default, (x,)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return (aten.squeeze.dim, (x, axes[0])) if len(axes) == 1 else (aten.squeeze.dims, (x, list(axes)))


@_call
def broadcast_to(node, x, *, shape):
    return aten.expand.default, (x, list(shape))


@_call
def select_part(node, x, *, axis, index):
    return aten.select.int, (x, axis, index)


@_call
def slice_part(node, x, *, axis, start, size, step=1):
    end = end_of(x.shape[axis], start, size, step, dispatching.state.given)
    return aten.slice.Tensor, (x, axis, start, end) if step == 1 else (x, axis, start, end, step)


def end_of(length: int, start: int, size: int, step: int, given) -> int:
    """Where a slice ends; PyTorch says the largest integer for one without an end, ``x[1:]``."""
    if given and given[0] == "getitem" and start + size * step >= length:
        index = given[1] if isinstance(given[1], tuple) else (given[1],)
        if any(isinstance(part, slice) and part.stop is None for part in index):
            return sys.maxsize
    return start + (size - 1) * step + 1 if size else start


@_call
def split_sizes(node, x, *, sizes, axis):
    where = () if axis == 0 else (axis,)
    if len(set(sizes[:-1])) <= 1 and sizes[-1] <= sizes[0]:
        return aten.split.Tensor, (x, sizes[0], *where)
    return aten.split_with_sizes.default, (x, list(sizes), *where)


@_call
def unbind(node, x, *, axis):
    return aten.unbind.int, (x,) if axis == 0 else (x, axis)


@_call
def cat(node, *parts, axis):
    return aten.cat.default, (list(parts),) if axis == 0 else (list(parts), axis)


@_call
def stack(node, *parts, axis):
    return aten.stack.default, (list(parts),) if axis == 0 else (list(parts), axis)


@_call
def repeat(node, x, *, repeats):
    return aten.repeat.default, (x, dims_of(repeats))


@_call
def flip(node, x, *, axis):
    return aten.flip.default, (x, dims_of(axis))


@_call
def roll(node, x, *, shift, axis):
    return aten.roll.default, (x, dims_of(shift), [] if axis is None else dims_of(axis))


@_call
def pad_constant(node, x, *, pad, value=0):
    pairs = [p for pair in reversed(pad) for p in pair]
    while len(pairs) > 2 and pairs[-2:] == [0, 0]:
        del pairs[-2:]
    return aten.constant_pad_nd.default, (x, pairs, float(value))


@_call
def tril(node, x, *, k=0):
    return aten.tril.default, (x,) if k == 0 else (x, k)


@_call
def triu(node, x, *, k=0):
    return aten.triu.default, (x,) if k == 0 else (x, k)


@_call
def index_at(node, x, *indices, dims=None):
    return None if dims is not None else (aten.index.Tensor, (x, list(indices)))


@_call
def gather(node, x, index, *, axis):
    return aten.gather.default, (x, axis, index)


@_call
def take_slices(node, x, index, *, axis):
    return aten.index_select.default, (x, axis, index)


# sums and what is like them


def dims_of(axis) -> list:
    return [axis] if isinstance(axis, int) else list(axis)


def _reduction(name: str, overload: str):
    """sum and mean: all elements, or some dimensions."""

    def made(node, x, *, axis=None, keepdims=False, dtype=None):
        packet = getattr(aten, name)
        kind = {} if dtype is None else {"dtype": _kind(dtype)}
        if axis is None and not keepdims:
            return packet.default, (x,), kind
        dims = list(range(x.ndim)) if axis is None else dims_of(axis)
        return getattr(packet, overload), (x, dims, True) if keepdims else (x, dims), kind

    return made


CALLS["sum"], CALLS["mean"] = _reduction("sum", "dim_IntList"), _reduction("mean", "dim")


def _whole_or_one(name: str):
    """any, all, argmax: all elements, or one dimension."""

    def made(node, x, *, axis=None, keepdims=False):
        packet = getattr(aten, name)
        if axis is None:
            return None if keepdims else (packet.default, (x,))
        if not isinstance(axis, int):
            return None
        overload = packet.default if name.startswith("arg") else packet.dim
        return overload, (x, axis, True) if keepdims else (x, axis)

    return made


for _name in ("any", "all", "argmax", "argmin"):
    CALLS[_name] = _whole_or_one(_name)


def _spread_of(name: str):
    def made(node, x, *, axis=None, keepdims=False, correction=1):
        packet = getattr(aten, name)
        options = {**({} if axis is None and correction == 1 else {"correction": correction})}
        if keepdims:
            options["keepdim"] = True
        return packet.correction, (x,) if axis is None else (x, dims_of(axis)), options

    return made


CALLS["var"], CALLS["std"] = _spread_of("var"), _spread_of("std")


def _extreme(name: str):
    def of_all(node, x):
        return getattr(aten, name).default, (x,)

    def along(node, x, *, axis, keepdims=False):
        return getattr(aten, name).dim, (x, axis, True) if keepdims else (x, axis), {}, tuple

    def only(node, x, *, axis=None, keepdims=False):
        packet = getattr(aten, "a" + name)
        if axis is None:
            return packet.default, (x, [], True) if keepdims else (x,)
        return packet.default, (x, dims_of(axis), True) if keepdims else (x, dims_of(axis))

    CALLS[f"{name}_of_all"], CALLS[f"{name}_and_index"], CALLS[name] = of_all, along, only


_extreme("max")
_extreme("min")


@_call
def prod(node, x, *, axis=None, keepdims=False, dtype=None):
    return (aten.prod.default, (x,)) if axis is None and dtype is None else None


@_call
def vector_norm(node, x, *, ord=2, axis=None, keepdims=False):
    if axis is None and not keepdims:
        return aten.linalg_vector_norm.default, (x,) if ord == 2 else (x, ord)
    dims = None if axis is None else dims_of(axis)
    return aten.linalg_vector_norm.default, (x, ord, dims, True) if keepdims else (x, ord, dims)


@_call
def cumsum(node, x, *, axis, dtype=None):
    return aten.cumsum.default, (x, axis), {} if dtype is None else {"dtype": _kind(dtype)}


@_call
def logsumexp(node, x, *, axis, keepdims=False):
    return aten.logsumexp.default, (x, dims_of(axis), True) if keepdims else (x, dims_of(axis))


@_call
def sort_and_index(node, x, *, axis, descending=False):
    given = (x,) if axis == x.ndim - 1 and not descending else (x, axis, descending)
    return aten.sort.default, given, {}, tuple


@_call
def topk(node, x, *, axis, k, largest=True):
    given = (x, k) if axis == x.ndim - 1 and largest else (x, k, axis, largest)
    return aten.topk.default, given, {}, tuple


# products


@_call
def matmul(node, x, w):
    if x.ndim == w.ndim == 2:
        return aten.mm.default, (x, w)
    return (aten.bmm.default, (x, w)) if x.ndim == w.ndim == 3 else (aten.matmul.default, (x, w))


@_call
def matvec(node, x, w):
    return aten.mv.default, (x, w)


@_call
def add_matmul(node, b, x, w, *, beta=1, alpha=1):
    packet = aten.addmm if x.ndim == 2 else aten.baddbmm
    return packet.default, (b, x, w), {**unless(1, beta=beta), **unless(1, alpha=alpha)}


# layers


@_call
def softmax(node, x, *, axis):
    return aten._softmax.default, (x, dim_given("softmax", axis, dispatching.state.given), False)


@_call
def log_softmax(node, x, *, axis):
    return aten._log_softmax.default, (x, dim_given("log_softmax", axis, dispatching.state.given), False)


def dim_given(name: str, axis: int, given) -> int:
    """The dimension as it was given: operators here count from the front."""
    return given[1] if given and given[0] == name and isinstance(given[1], int) else axis


@_call
def gelu(node, x, *, approximate="none"):
    return aten.gelu.default, (x,), unless("none", approximate=approximate)


@_call
def leaky_relu(node, x, *, negative_slope):
    return aten.leaky_relu.default, (x,) if negative_slope == 0.01 else (x, negative_slope)


@_call
def elu(node, x, *, alpha=1.0, scale=1.0, input_scale=1.0):
    return (aten.elu.default, (x, alpha)) if scale == input_scale == 1 else None


@_call
def round(node, x, *, decimals=0):
    return (aten.round.decimals, (x,), {"decimals": decimals}) if decimals else (aten.round.default, (x,))


@_call
def softplus(node, x, *, beta=1, threshold=20):
    return aten.softplus.default, (x,) if (beta, threshold) == (1, 20) else (x, beta, threshold)


@_call
def hardtanh(node, x, *, low, high):
    return aten.hardtanh.default, (x, low, high)


@_call
def embedding(node, w, index, *, padding_idx=None, by_freq=False):
    rest = () if padding_idx is None and not by_freq else (-1 if padding_idx is None else padding_idx, by_freq)
    return aten.embedding.default, (w, index, *rest)


@_call
def conv(node, x, w, b=None, *, stride, padding, dilation, groups):
    dims = len(stride)
    if any(not isinstance(p, int) for p in padding):  # more on one side
        return None
    rest = (list(stride), list(padding), list(dilation), False, [0] * dims, groups)
    return aten.convolution.default, (x, w, b, *rest)


@_call
def normalized(node, x, w, b, *, view, axes, affine, eps):
    if node == "NativeLayerNormBackward0":
        shape = list(x.shape[len(x.shape) - len(axes) :])
        return aten.native_layer_norm.default, (x, shape, w, b, eps), {}, lambda out: (*out, None)
    return None


@_call
def nll_loss(node, x, target, weight, *, ignore_index, reduction):
    if x.ndim > 2:
        return None
    place = REDUCTIONS[reduction]
    return aten.nll_loss_forward.default, (x, target, weight, place, ignore_index), {}, lambda out: out[0]


REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


@_call
def mse_mean(node, x, w):
    return aten.mse_loss.default, (x, w)


@_call
def binary_cross_entropy_with_logits(node, x, target, weight, pos_weight, *, reduction):
    rest: tuple = (weight, pos_weight, REDUCTIONS[reduction])
    return aten.binary_cross_entropy_with_logits.default, (x, target, *(() if rest == (None, None, 1) else rest))
