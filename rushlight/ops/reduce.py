"""Many elements to few: sums, means, products, extremes, norms; and softmax, which divides by such a sum."""

from __future__ import annotations

import builtins
import math

import numpy as np

from .. import dtypes
from ..autograd.mode import state
from ..autograd.op import differentiable as xp
from ..autograd.op import op, variant
from ..tensor import Tensor
from . import returns
from .common import refuse_complex_gradient
from .creation import sizes
from .dims import wrap_dim, wrap_dims
from .public import PUBLIC, public

# -- which dimensions ------------------------------------------------------------------------------------------------


def axis_of(input, dim):
    """PyTorch's ``dim`` as an axis counted from the front; None for a 0-dim tensor, which has one imaginary axis."""
    ndim = input._array.ndim
    axis = wrap_dim(dim, ndim)
    return axis if ndim else None


def axes_of(input, dim):
    """PyTorch's ``dim`` (an int, several, or None and () for all) as axes; None for all."""
    if dim is None:
        return None
    if dim.__class__ is int:
        return axis_of(input, dim)
    return wrap_dims(dim, input._array.ndim) or None if input._array.ndim else _no_axes(dim)


def _no_axes(dims):
    wrap_dims(dims, 0)


def kept(xp, value, axis, keepdims, shape):
    """A reduction's result (or its gradient) with the reduced axes back in place, as 1."""
    if keepdims or not shape:
        return value
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [a % len(shape) for a in axes]
    return xp.reshape(value, shape=tuple([1 if i in axes else n for i, n in enumerate(shape)]))


def count_of(shape, axis) -> int:
    """How many elements each result of a reduction is made of."""
    if axis is None:
        return math.prod(shape)
    return math.prod([shape[a] for a in axis]) if isinstance(axis, tuple) else shape[axis]


def numpy_dtype(x):
    """The NumPy dtype of an array, or of a Tensor where a rule is being recorded."""
    return x._array.dtype if isinstance(x, Tensor) else x.dtype


def tensor_argument(input, function):
    if not isinstance(input, Tensor):
        raise TypeError(f"{function}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input


def type_word(input) -> str:
    """The dtype as PyTorch's errors spell it: Long, Float, ComplexFloat."""
    return input.dtype.char.removesuffix("Tensor")


def cast(input, dtype):
    """``input`` as ``dtype`` (None: as it is)."""
    if dtype is None or input._array.dtype == dtype.numpy:
        return input
    if input._node is not None and state.grad and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"Autograd not support dtype: {dtype.char.removesuffix('Tensor')}")
    return xp.astype(input, dtype=dtype.numpy)


# -- sums ------------------------------------------------------------------------------------------------------------

_INT64 = np.dtype(np.int64)


@op(x=lambda xp, g, axis, keepdims, x_shape: kept(xp, g, axis, keepdims, x_shape))
def _sum(xp, x, *, axis=None, keepdims=False, dtype=None):
    return xp.sum(x, axis=axis, keepdims=keepdims, dtype=dtype)


@op(x=lambda xp, g, axis, keepdims, x_shape: kept(xp, g, axis, keepdims, x_shape) / _divisor(x_shape, axis))
def _mean(xp, x, *, axis=None, keepdims=False):
    return xp.sum(x, axis=axis, keepdims=keepdims) / _divisor(x.shape, axis)


def _divisor(shape, axis):
    return count_of(shape, axis) or math.nan  # the mean of nothing is nan


@op(
    x=lambda xp, g, x, axis, keepdims, x_shape: xp.where(
        xp.isnan(x), 0, xp.broadcast_to(kept(xp, g, axis, keepdims, x_shape), shape=x_shape)
    )
)
def _nansum(xp, x, *, axis=None, keepdims=False):
    return xp.sum(xp.where(xp.isnan(x), 0, x), axis=axis, keepdims=keepdims)


_sum_over, _mean_over = variant(xp.sum, "SumBackward1"), variant(xp.mean, "MeanBackward1")


def accumulation_dtype(input, dtype):
    """The dtype that sums and products come in: integers add up in int64 unless told otherwise."""
    if dtype is not None:
        return dtype.numpy
    return _INT64 if input._array.dtype.kind in "biu" else None


@public
def sum_(input, dim=None, keepdim=False, *, dtype=None):
    """The sum of all elements, or over ``dim``.

    >>> import rushlight as torch
    >>> torch.tensor([[1, 2], [3, 4]]).sum(0)
    tensor([4, 6])
    """
    if dim is None and dtype is None and not keepdim and isinstance(input, Tensor) and input._array.dtype.kind in "fc":
        return xp.sum(input)
    tensor_argument(input, "sum")
    axis = None if dim is None and not keepdim else axes_of(input, dim)
    input, total = cast(input, dtype), accumulation_dtype(input, dtype)
    if dim is None and not keepdim:
        return xp.sum(input, dtype=total)
    return _sum_over(input, axis=axis, keepdims=keepdim, dtype=total)


@public
def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """The sum with NaN taken as zero."""
    axes_of(tensor_argument(input, "nansum"), dim)
    if input._array.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if input._array.dtype.kind in "biu":
        return sum_(input, dim, keepdim, dtype=dtype)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        return sum_(cast(input, dtype), dim, keepdim, dtype=dtype)
    if dtype is not None and dtype.is_complex:
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{dtype.char.removesuffix('Tensor')}'")
    return xp.nansum(cast(input, dtype), axis=axes_of(input, dim), keepdims=keepdim)


@public
def mean(input, dim=None, keepdim=False, *, dtype=None):
    """The mean of all elements, or over ``dim``."""
    input = cast(tensor_argument(input, "mean"), dtype)
    if input._array.dtype.kind in "biu":
        which = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {type_word(input)}"
        )
    if dim is None and not keepdim:
        return xp.mean(input)
    return _mean_over(input, axis=axes_of(input, dim), keepdims=keepdim)


@public
def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    """The mean of the elements that are not NaN."""
    if tensor_argument(input, "nanmean")._array.dtype.kind in "biu":
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {type_word(input)}"
        )
    axis = axes_of(input, dim)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {dtype.char.removesuffix('Tensor')}"
        )
    present = xp.sum(xp.logical_not(xp.isnan(input.detach())), axis=axis, keepdims=keepdim)
    return xp.divide(nansum(input, dim, keepdim, dtype=dtype), present)


@public(function=False, out=False)
def sum_to_size(self, *size):
    """The sum over the dimensions that broadcasting ``size`` to this shape would repeat."""
    size = sizes("sum_to_size", size)
    shape = self._array.shape
    if not size:
        return sum_(self)
    extra = len(shape) - len(size)
    if extra < 0 or builtins.any(n not in (1, m) for n, m in zip(size, shape[extra:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(size) if n == 1 and shape[i + extra] != 1)
    if not axes:
        return self
    total = _sum_over(self, axis=axes, keepdims=True, dtype=accumulation_dtype(self, None))
    return xp.reshape(total, shape=size) if extra else total


# -- products --------------------------------------------------------------------------------------------------------


def _prod_gradient(xp, g, x, axis, keepdims, x_shape):
    """g times the product of all *other* elements: of those before and those after, so that zeros need no care."""
    if axis is None:
        flat = xp.reshape(x, shape=(math.prod(x_shape),))
        others = xp.reshape(xp.other_products(flat, axis=0), shape=x_shape)
        return xp.conj(others) * kept(xp, g, None, False, x_shape)
    return xp.conj(xp.other_products(x, axis=axis)) * kept(xp, g, axis, keepdims, x_shape)


@op(derive=True)
def _other_products(xp, x, *, axis):
    before = xp.cumprod(xp.shift(x, axis=axis, fill=1), axis=axis)
    after = xp.flip(xp.cumprod(xp.flip(xp.shift(x, axis=axis, fill=1, back=True), axis=axis), axis=axis), axis=axis)
    return before * after


@op(x=_prod_gradient)
def _prod(xp, x, *, axis=None, keepdims=False, dtype=None):
    return xp.prod(x, axis=axis, keepdims=keepdims, dtype=dtype)


_prod_over = variant(xp.prod, "ProdBackward1")


@public
def prod(input, dim=None, keepdim=False, *, dtype=None):
    """The product of all elements, or over one ``dim``."""
    axis = None if dim is None else axis_of(tensor_argument(input, "prod"), dim)
    input, total = cast(tensor_argument(input, "prod"), dtype), accumulation_dtype(input, dtype)
    if dim is None:
        return xp.prod(input, dtype=total)
    return _prod_over(input, axis=axis, keepdims=keepdim, dtype=total)


# -- extremes --------------------------------------------------------------------------------------------------------


def _even_gradient(xp, g, x, y, axis, keepdims, x_shape):
    """The gradient of an extreme, in equal parts for all elements that have its value."""
    return _shares(xp, g, xp.equal(x, kept(xp, y, axis, keepdims, x_shape)), axis, keepdims, x_shape)


def even_gradient_of_all(xp, g, x, y):
    """The same over all elements. Of those with a NaN y is NaN, and each NaN has that value: so PyTorch does for max(),
    but not for amax."""
    return _share_of_all(xp, g, xp.logical_or(xp.equal(x, y), xp.isnan(x)))


def even_gradient_of_numbers(xp, g, x, y):
    """The same where y is NaN only if there are no numbers."""
    return _share_of_all(xp, g, _same(xp, x, y))


def _share_of_all(xp, g, holders):
    return xp.where(holders, g / xp.astype(xp.sum(holders), dtype=numpy_dtype(g)), 0.0)


def _shares(xp, g, holders, axis, keepdims, x_shape):
    share = xp.astype(holders, dtype=numpy_dtype(g))
    return kept(xp, g, axis, keepdims, x_shape) / xp.sum(share, axis=axis, keepdims=True) * share


def _same(xp, x, y):
    return xp.logical_or(xp.equal(x, y), xp.logical_and(xp.isnan(x), xp.isnan(y)))


@op(node="AmaxBackward0", x=_even_gradient)
def _max(xp, x, *, axis=None, keepdims=False):
    return xp.max(x, axis=axis, keepdims=keepdims)


@op(node="AminBackward0", x=_even_gradient)
def _min(xp, x, *, axis=None, keepdims=False):
    return xp.min(x, axis=axis, keepdims=keepdims)


@op(node="MaxBackward1", x=even_gradient_of_all)
def _max_of_all(xp, x):
    return xp.max(x)


@op(node="MinBackward1", x=even_gradient_of_all)
def _min_of_all(xp, x):
    return xp.min(x)


@op(
    x=lambda xp, g, x, y, axis, keepdims, x_shape: (
        _even_gradient(xp, g[0], x, y[0], axis, keepdims, x_shape)
        + _even_gradient(xp, g[1], x, y[1], axis, keepdims, x_shape)
    )
)
def _aminmax(xp, x, *, axis=None, keepdims=False):
    return xp.min(x, axis=axis, keepdims=keepdims), xp.max(x, axis=axis, keepdims=keepdims)


@op
def _argmax(xp, x, *, axis=None, keepdims=False):
    return xp.argmax(x, axis=axis, keepdims=keepdims)


@op
def _argmin(xp, x, *, axis=None, keepdims=False):
    return xp.argmin(x, axis=axis, keepdims=keepdims)


@op
def _at_index(xp, index, *, axis, size):
    """True where the place along ``axis`` (of length ``size``) is the one that ``index`` (length 1 there) names."""
    return xp.equal(index, np.arange(size).reshape([size if i == axis else 1 for i in range(index.ndim)]))


def picked_gradient(xp, g, y, axis, keepdims, x_shape):
    """The gradient of (values, indices) along one axis: each value's goes to the element it was picked from."""
    if not x_shape:
        return g[0]
    value, index = (kept(xp, part, axis, keepdims, x_shape) for part in (g[0], y[1]))
    return xp.put_one(value, index, axis=axis, size=x_shape[axis])


@op(exact=True, value=lambda xp, g, index, axis: xp.take_along_axis(g, index, axis=axis))
def _put_one(xp, value, index, *, axis, size):
    """``value`` at the place along ``axis`` that ``index`` names, both of length 1 there; zeros elsewhere."""
    return xp.where(xp.at_index(index, axis=axis, size=size), value, 0)


def picked(xp, x, index, axis, keepdims):
    """(values, indices) of the elements of ``x`` that ``index`` (length 1 along ``axis``) names."""
    if axis is None:
        return xp.reshape(x, shape=()), xp.reshape(index, shape=())
    values = xp.take_along_axis(x, index, axis=axis)
    return (values, index) if keepdims else (xp.squeeze(values, axis=axis), xp.squeeze(index, axis=axis))


@op(node="MaxBackward0", uses=(1,), x=picked_gradient)
def _max_and_index(xp, x, *, axis, keepdims=False):
    return xp.max(x, axis=axis, keepdims=keepdims), xp.argmax(x, axis=axis, keepdims=keepdims)


@op(node="MinBackward0", uses=(1,), x=picked_gradient)
def _min_and_index(xp, x, *, axis, keepdims=False):
    return xp.min(x, axis=axis, keepdims=keepdims), xp.argmin(x, axis=axis, keepdims=keepdims)


_HINT = "Specify the reduction dim with the 'dim' argument."


def check_not_empty(input, axis, name):
    """Raise PyTorch's error for a reduction that has no value on nothing."""
    if input._array.size:
        return
    if axis is None:
        if input._array.ndim:
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. {_HINT}")
        return
    for a in axis if isinstance(axis, tuple) else (axis,):
        if input._array.shape[a] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {a} to have non-zero size.")


def check_ordered(input, name, kernel=None):
    """Complex numbers have no order: raise PyTorch's error."""
    if tensor_argument(input, name)._array.dtype.kind == "c":
        if kernel is None:
            raise RuntimeError(f"{name}(): does not support complex input")
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_word(input)}'")


def _axes_of_ordered(input, dim, name, kernel):
    """The axes of a largest or smallest element; no kernel is looked for where there are no elements."""
    axis = axes_of(tensor_argument(input, name), dim)
    check_not_empty(input, axis, name)
    if input._array.size:
        check_ordered(input, name, kernel)
    else:
        refuse_complex_gradient(name, input)
    return axis


@public
def amax(input, dim=(), keepdim=False):
    """The largest elements over ``dim``; ties share the gradient."""
    axis = _axes_of_ordered(input, dim, "amax", "max_values_cpu")
    return xp.max(input, axis=axis, keepdims=keepdim)


@public
def amin(input, dim=(), keepdim=False):
    """The smallest elements over ``dim``; ties share the gradient."""
    axis = _axes_of_ordered(input, dim, "amin", "min_values_cpu")
    return xp.min(input, axis=axis, keepdims=keepdim)


@public
def aminmax(input, *, dim=None, keepdim=False):
    """The smallest and the largest elements at once."""
    if dim is None and not tensor_argument(input, "aminmax")._array.size:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    check_ordered(input, "aminmax", "aminmax_cpu")
    axis = None if dim is None else axis_of(input, dim)
    if not input._array.size and input._array.shape[axis] == 0:
        raise IndexError(f"aminmax: Expected reduction dim {axis} to have non-zero size.")
    return returns.aminmax(xp.aminmax(input, axis=axis, keepdims=keepdim))


@public
def max_(input, dim=None, keepdim=False, *, other=None):
    """The largest element; with ``dim``, (values, indices) along it; with a tensor, the larger of each pair.

    >>> import rushlight as torch
    >>> torch.tensor([[1, 5], [7, 2]]).max(dim=1).indices
    tensor([1, 0])
    """
    return _extreme(input, dim, keepdim, other, "max")


@public
def min_(input, dim=None, keepdim=False, *, other=None):
    """The smallest element; with ``dim``, (values, indices) along it; with a tensor, the smaller of each pair."""
    return _extreme(input, dim, keepdim, other, "min")


def _extreme(input, dim, keepdim, other, name):
    if other is None and isinstance(dim, Tensor):
        other = dim
    whole, along, result = _EXTREMES[name]
    if other is not None:
        return PUBLIC[name + "imum"](input, other)
    if dim is None:
        check_not_empty(tensor_argument(input, name), None, name)
        check_ordered(input, name, name + "_all")
        return whole(input)
    axis = axis_of(tensor_argument(input, name), dim)
    check_not_empty(input, axis, name)
    check_ordered(input, name)
    return result(along(input, axis=axis, keepdims=keepdim))


_EXTREMES = {
    "max": (xp.max_of_all, xp.max_and_index, returns.max),
    "min": (xp.min_of_all, xp.min_and_index, returns.min),
}


@public
def argmax(input, dim=None, keepdim=False):
    """The index of the (first) largest element, counted over all elements or along ``dim``."""
    return _arg_extreme(xp.argmax, input, dim, keepdim, "argmax")


@public
def argmin(input, dim=None, keepdim=False):
    """The index of the (first) smallest element, counted over all elements or along ``dim``."""
    return _arg_extreme(xp.argmin, input, dim, keepdim, "argmin")


def _arg_extreme(find, input, dim, keepdim, name):
    check_ordered(input, name)
    if input._array.dtype.kind == "b":
        raise RuntimeError(f"{name}(): does not support bool input")
    axis = None if dim is None else axis_of(input, dim)
    if axis is None and not input._array.size:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
    check_not_empty(input, axis, name)
    return find(input, axis=axis, keepdims=keepdim)


# -- truth and counts ------------------------------------------------------------------------------------------------


@op
def _all(xp, x, *, axis=None, keepdims=False):
    return xp.all(x, axis=axis, keepdims=keepdims)


@op
def _any(xp, x, *, axis=None, keepdims=False):
    return xp.any(x, axis=axis, keepdims=keepdims)


@public
def all_(input, dim=None, keepdim=False):
    """Whether all elements are true."""
    return _truth(xp.all, input, dim, keepdim, "all")


@public
def any_(input, dim=None, keepdim=False):
    """Whether any element is true."""
    return _truth(xp.any, input, dim, keepdim, "any")


def _truth(reduce, input, dim, keepdim, name):
    tensor_argument(input, name)
    # Unlike other reductions, these take an empty list of dims at its word.
    axis = () if isinstance(dim, (tuple, list)) and not dim else axes_of(input, dim)
    result = reduce(input, axis=axis, keepdims=keepdim)
    return cast(result, dtypes.uint8) if input.dtype is dtypes.uint8 else result


@public
def count_nonzero(input, dim=None):
    """How many elements are not zero."""
    tensor_argument(input, "count_nonzero")
    return xp.sum(xp.not_equal(input, 0), axis=axes_of(input, dim), dtype=_INT64)


# -- exponentials ----------------------------------------------------------------------------------------------------


@op(
    promote="float",
    x=lambda xp, g, x, y, axis, keepdims, x_shape: (
        kept(xp, g, axis, keepdims, x_shape) * xp.conj(xp.exp(x - kept(xp, y, axis, keepdims, x_shape)))
    ),
)
def _logsumexp(xp, x, *, axis=None, keepdims=False):
    if not math.prod(x.shape):
        return xp.log(xp.sum(xp.exp(x), axis=axis, keepdims=keepdims))
    top = xp.max(xp.real(x), axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)
    total = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else xp.reshape(total, shape=_reduced(x.shape, axis))


def _reduced(shape, axis):
    gone = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple([n for i, n in enumerate(shape) if i not in gone])


@public
def logsumexp(input, dim, keepdim=False):
    """``log(sum(exp(input)))`` over ``dim``, without overflow."""
    if not keepdim and isinstance(dim, (tuple, list)) and not dim and tensor_argument(input, "logsumexp")._array.ndim:
        raise RuntimeError(
            f"output with shape [] doesn't match the broadcast shape {[1] * input._array.ndim}: name the dimensions"
        )
    return xp.logsumexp(tensor_argument(input, "logsumexp"), axis=axes_of(input, dim), keepdims=keepdim)


@op(wide=True, x=lambda xp, g, y, axis: xp.softmax_backward_data(g, y, axis=axis))
def _softmax(xp, x, *, axis):
    e = xp.exp(x - _top(xp, x, axis))
    return e / xp.sum(e, axis=axis, keepdims=True)


@op(
    grad=lambda xp, g, out, axis: xp.softmax_backward_data(g, out, axis=axis),
    out=lambda xp, g, grad, out, axis: (
        g * (grad - xp.sum(grad * out, axis=axis, keepdims=True)) - grad * xp.sum(g * out, axis=axis, keepdims=True)
    ),
)
def _softmax_backward_data(xp, grad, out, *, axis):
    return out * (grad - xp.sum(grad * out, axis=axis, keepdims=True))


@op(wide=True, x=lambda xp, g, y, axis: xp.log_softmax_backward_data(g, y, axis=axis))
def _log_softmax(xp, x, *, axis):
    shifted = x - _top(xp, x, axis)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


@op(
    grad=lambda xp, g, out, axis: g - xp.sum(g * xp.exp(out), axis=axis, keepdims=True),
    out=lambda xp, g, grad, out, axis: -g * xp.exp(out) * xp.sum(grad, axis=axis, keepdims=True),
)
def _log_softmax_backward_data(xp, grad, out, *, axis):
    return grad - xp.exp(out) * xp.sum(grad, axis=axis, keepdims=True)


def _top(xp, x, axis):
    return xp.max(x, axis=axis, keepdims=True) if math.prod(x.shape) else 0


@public
def softmax(input, dim, dtype=None):
    """``exp(input)`` divided by its sum over ``dim``."""
    return _normalized(xp.softmax, input, dim, dtype, "softmax")


@public
def log_softmax(input, dim, dtype=None):
    """The logarithm of ``softmax``, without overflow."""
    return _normalized(xp.log_softmax, input, dim, dtype, "log_softmax")


def _normalized(function, input, dim, dtype, name):
    input = cast(tensor_argument(input, name), dtype)
    axis = axis_of(input, dim)
    if input._array.dtype.kind in "biuc":
        if not input._array.size:
            refuse_complex_gradient("_" + name, input)
            return PUBLIC["empty_like"](input)
        which = "lastdim_" if axis is None or axis == input._array.ndim - 1 else ""
        raise NotImplementedError(f"\"{name}_{which}kernel_impl\" not implemented for '{type_word(input)}'")
    return function(input, axis=axis)


def _public_softmax_backward_data(grad_output, output, dim, input_dtype):
    if grad_output._array.shape != output._array.shape:
        raise RuntimeError(
            "Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'; but "
            f"{list(grad_output.shape)} does not equal {list(output.shape)}"
        )
    return cast(xp.softmax_backward_data(grad_output, output, axis=axis_of(output, dim)), input_dtype)


PUBLIC["_softmax_backward_data"] = _public_softmax_backward_data

# -- norms -----------------------------------------------------------------------------------------------------------


def _norm_gradient(xp, g, x, y, ord, axis, keepdims, x_shape):
    """The gradient of a vector norm; zero where the norm has a kink at zero, as PyTorch chooses."""
    if ord == 0:
        return None  # it counts
    g, y = kept(xp, g, axis, keepdims, x_shape), kept(xp, y, axis, keepdims, x_shape)
    size = xp.abs(x)
    direction = xp.sign(x)
    if ord == 1:
        return g * direction
    if math.isinf(ord):
        share = xp.astype(_same(xp, size, y), dtype=numpy_dtype(size))
        return g * direction * share / xp.sum(share, axis=axis, keepdims=True)
    if ord == 2:
        return g * xp.where(xp.equal(y, 0), 0, x / y)
    if ord < 2:
        slope = xp.where(xp.equal(size, 0), 0, xp.power(size, ord - 1))
        return direction * slope * xp.where(xp.equal(y, 0), 0, g * xp.power(y, 1 - ord))
    return x * xp.power(size, ord - 2) * xp.where(xp.equal(y, 0), 0, g / xp.power(y, ord - 1))


@op(node="LinalgVectorNormBackward0", x=_norm_gradient)
def _vector_norm(xp, x, *, ord=2, axis=None, keepdims=False):
    """The ``ord``-norm over ``axis``, of real dtype."""
    if ord == 0:
        zero = xp.real(xp.zeros_like(x))
        return xp.sum(xp.where(xp.not_equal(x, 0), zero + 1, zero), axis=axis, keepdims=keepdims)
    size = xp.abs(x)
    if math.isinf(ord):
        if not count_of(x.shape, axis):
            return xp.sum(size, axis=axis, keepdims=keepdims)
        return (xp.max if ord > 0 else xp.min)(size, axis=axis, keepdims=keepdims)
    if ord == 1:
        return xp.sum(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        return xp.sqrt(xp.sum(size * size, axis=axis, keepdims=keepdims))
    return xp.power(xp.sum(xp.power(size, ord), axis=axis, keepdims=keepdims), 1.0 / ord)


@op(promote="common", derive=True)
def _dist(xp, x, w, *, p=2.0):
    return xp.vector_norm(xp.subtract(x, w), ord=p)


def _other_norms(xp, x, p, axis):
    """The norm over all axes but one, and these axes."""
    others = tuple([i for i in range(len(x.shape)) if i != axis])
    return xp.vector_norm(x, ord=p, axis=others, keepdims=True), others


def _renorm_gradient(xp, g, x, p, axis, maxnorm, x_shape):
    # Only where the norm is too long does it take part: one that is nan stays out of the gradient too.
    norms, others = _other_norms(xp, x, p, axis)
    along = xp.real(xp.sum(g * xp.conj(x), axis=others, keepdims=True)) / (norms + 1e-7)
    through_norm = _norm_gradient(xp, along, x, norms, p, others, True, x_shape)
    return xp.where(norms > maxnorm, (g - through_norm) * (maxnorm / (norms + 1e-7)), g)


@op(x=_renorm_gradient)
def _renorm(xp, x, *, p, axis, maxnorm):
    norms, _ = _other_norms(xp, x, p, axis)
    return x * xp.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


@public
def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    """The ``p``-norm of all elements or over ``dim``; ``"fro"`` is 2, ``"nuc"`` the sum of singular values."""
    tensor_argument(input, "norm")
    if p == "nuc":
        import rushlight

        axes = tuple(range(input._array.ndim)) if dim is None else dim
        return rushlight.linalg.matrix_norm(cast(input, dtype), "nuc", axes, keepdim)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"only valid p-norm, 'fro' or 'nuc' are supported. Got {p}")
    input = norm_input("linalg.vector_norm", input, dtype)
    order = 2 if p is None or p == "fro" else p
    axis = axes_of(input, dim)
    if order < 0 or math.isinf(order):
        check_norm_not_empty(input, axis, order)
    return xp.vector_norm(input, ord=order, axis=axis, keepdims=keepdim)


def norm_input(name, input, dtype):
    """``input`` as ``dtype`` (None: as it is), in which its norm may be taken."""
    if input._array.dtype.kind in "biu":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {type_word(input)}")
    if dtype is None:
        return input
    word = dtype.char.removesuffix("Tensor")
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {word}")
    if dtype.is_complex != input.is_complex():
        kind = "complex" if input.is_complex() else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {word}")
    if dtypes.promote_types(input.dtype, dtype) is not dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({type_word(input)}) should be convertible without narrowing to the "
            f"specified dtype ({word})"
        )
    return cast(input, dtype)


def check_norm_not_empty(input, axis, order):
    if input._array.size == 0 and (axis is None or count_of(input._array.shape, axis) == 0):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {float(order)} norm on an empty tensor because the operation does "
            "not have an identity"
        )


@public
def dist(input, other, p=2):
    """The ``p``-norm of ``input - other``."""
    tensor_argument(input, "dist")
    if not isinstance(other, Tensor):
        raise TypeError(f"dist(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    kinds = [t.dtype for t in (input, other)]
    if dtypes.bool_ in kinds:
        PUBLIC["sub"](input, other)  # has the error
    if not any(d.is_floating_point or d.is_complex for d in kinds):
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got " + type_word(input) + " instead."
        )
    return xp.dist(input, other, p=p)


@public(inplace=True)
def renorm(input, p, dim, maxnorm):
    """``input`` with each slice along ``dim`` scaled down to a ``p``-norm of at most ``maxnorm``."""
    ndim = tensor_argument(input, "renorm")._array.ndim
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input._array.dtype.kind in "biu":
        raise RuntimeError(f"renorm: Expected a floating point or complex tensor as input. Got {type_word(input)}")
    return xp.renorm(input, p=p, axis=axis_of(input, dim), maxnorm=float(maxnorm))
