"""Running totals and their kin along one dimension: cumulative sums and extremes, differences, integrals."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..autograd.op import differentiable as xp
from ..autograd.op import op
from ..tensor import Tensor
from . import returns
from .common import number_of, refuse_complex_gradient
from .dims import wrap_dims
from .public import PUBLIC, public
from .reduce import accumulation_dtype, axis_of, cast, check_ordered, sum_, tensor_argument, type_word
from .shape import slice_of

# -- primitives ------------------------------------------------------------------------------------------------------


@op(exact=True, x=lambda xp, g, axis, back: xp.shift(g, axis=axis, fill=0, back=not back))
def _shift(xp, x, *, axis, fill=0, back=False):
    """``x`` moved one place up (or ``back``) along ``axis``, ``fill`` coming in and the last element going out."""
    n = x.shape[axis]
    part = [slice(None)] * x.ndim
    part[axis] = slice(1, None) if back else slice(0, n - 1)
    new = xp.full([min(n, 1) if i == axis else m for i, m in enumerate(x.shape)], fill, dtype=x.dtype)
    rest = x[tuple(part)]
    return xp.concatenate((rest, new) if back else (new, rest), axis=axis)


def _scan_of_gradient(xp, g, a, axis, reverse):
    return xp.linear_scan(xp.conj(xp.shift(a, axis=axis, back=not reverse)), g, axis=axis, reverse=not reverse)


@op(
    a=lambda xp, g, a, y, axis, reverse: (
        _scan_of_gradient(xp, g, a, axis, reverse) * xp.conj(xp.shift(y, axis=axis, back=reverse))
    ),
    b=_scan_of_gradient,
)
def _linear_scan(xp, a, b, *, axis, reverse=False):
    """``y[i] = a[i] * y[i-1] + b[i]``: the recurrence behind gradients of products and of log-sums."""
    return xp.linear_scan(a, b, axis=axis, reverse=reverse)


@op(x=lambda xp, g, axis: xp.flip(xp.cumsum(xp.flip(g, axis=axis), axis=axis), axis=axis))
def _cumsum(xp, x, *, axis, dtype=None):
    return xp.cumsum(x, axis=axis, dtype=dtype)


def _cumprod_gradient(xp, g, x, axis):
    # y[j] = (all before i) * x[i] * (those after i, up to j). Nothing is divided by x, so zeros need no care.
    before = xp.cumprod(xp.shift(x, axis=axis, fill=1), axis=axis)
    return xp.conj(before) * xp.linear_scan(xp.conj(xp.shift(x, axis=axis, back=True)), g, axis=axis, reverse=True)


@op(x=_cumprod_gradient)
def _cumprod(xp, x, *, axis, dtype=None):
    return xp.cumprod(x, axis=axis, dtype=dtype)


def _logcumsumexp_gradient(xp, g, x, y, axis):
    # sum over j >= i of g[j] exp(x[i] - y[j]), in steps of exp(y[i] - y[i+1]), none of which can overflow.
    # Two infinite sums in a row are the same sum: a step of exp(0).
    after = xp.shift(y, axis=axis, fill=float("inf"), back=True)
    decay = xp.exp(xp.where(y == after, 0.0, y - after))
    return xp.conj(xp.exp(x - y)) * xp.linear_scan(xp.conj(decay), g, axis=axis, reverse=True)


@op(x=_logcumsumexp_gradient)
def _logcumsumexp(xp, x, *, axis):
    if x.dtype.kind != "c":
        return xp.cumlogsumexp(x, axis=axis)
    if 0 in x.shape:
        return xp.copy(x)
    top = xp.max(xp.real(x), axis=axis, keepdims=True)
    return xp.log(xp.cumsum(xp.exp(x - top), axis=axis)) + top


def _running_gradient(xp, g, y, axis, x_shape):
    return xp.add_along_axis(g[0], y[1], axis=axis, size=x_shape[axis])


@op(node="CummaxBackward0", uses=(1,), x=_running_gradient)
def _cummax_and_index(xp, x, *, axis):
    return _running(xp, x, xp.cummax(x, axis=axis), axis)


@op(node="CumminBackward0", uses=(1,), x=_running_gradient)
def _cummin_and_index(xp, x, *, axis):
    return _running(xp, x, xp.cummin(x, axis=axis), axis)


def _running(xp, x, values, axis):
    """(values, indices) of a running extreme; of equal elements the last counts, and of NaNs too."""
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    extreme = xp.logical_or(xp.equal(x, values), xp.isnan(x))
    return values, xp.cummax(xp.where(extreme, places, 0), axis=axis)


# -- cumulative ------------------------------------------------------------------------------------------------------


def along(function, input, dim, **static):
    """``function`` along ``dim``; a 0-dim tensor goes as one of length 1."""
    axis = axis_of(input, dim)
    if axis is not None:
        return function(input, axis=axis, **static)
    result = function(xp.reshape(input, shape=(1,)), axis=0, **static)
    if isinstance(result, tuple):
        return tuple(number_of(r) for r in result)
    return number_of(result)


@public(inplace=True)
def cumsum(input, dim, *, dtype=None):
    """The running sum along ``dim``."""
    axis_of(tensor_argument(input, "cumsum"), dim)
    if dtype is dtypes.bool_ and input._array.size and input._array.ndim:
        raise NotImplementedError("\"cumsum_out_cpu\" not implemented for 'Bool'")
    input, total = cast(input, dtype), accumulation_dtype(input, dtype)
    return along(xp.cumsum, input, dim, dtype=total)


@public(inplace=True)
def cumprod(input, dim, *, dtype=None):
    """The running product along ``dim``."""
    axis_of(tensor_argument(input, "cumprod"), dim)
    if dtype is dtypes.bool_ and input._array.size and input._array.ndim:
        raise NotImplementedError("\"cumprod_out_cpu\" not implemented for 'Bool'")
    input, total = cast(input, dtype), accumulation_dtype(input, dtype)
    return along(xp.cumprod, input, dim, dtype=total)


def _in_place_scan(name):
    """PyTorch has no kernel that counts in bools; where there is nothing to add it needs none."""
    plain = getattr(Tensor, name)

    def method(self, dim, *, dtype=None):
        if self._array.dtype.kind != "b" or dtype not in (None, self.dtype):
            return plain(self, dim, dtype=dtype)
        if axis_of(self, dim) is not None and self._array.size:
            raise NotImplementedError(f"\"{name[:-1]}_out_cpu\" not implemented for 'Bool'")
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = plain.__doc__
    setattr(Tensor, name, method)


_in_place_scan("cumsum_")
_in_place_scan("cumprod_")


@public
def logcumsumexp(input, dim):
    """``log(cumsum(exp(input)))`` along ``dim``, without overflow."""
    axis_of(tensor_argument(input, "logcumsumexp"), dim)
    if input._array.dtype.kind in "biu":
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{type_word(input)}'")
    return along(xp.logcumsumexp, input, dim)


@public
def cummax(input, dim):
    """The largest element so far along ``dim``, and where it was."""
    dim = _running_dim(tensor_argument(input, "cummax"), dim, "cummax")
    if input._array.ndim and input._array.size:
        check_ordered(input, "cummax", "cummax_cpu")
    refuse_complex_gradient("cummax", input)
    return returns.cummax(along(xp.cummax_and_index, input, dim))


def _running_dim(input, dim, name) -> int:
    """``dim``, checked; of a tensor without elements PyTorch takes any."""
    try:
        axis_of(input, dim)
    except IndexError:
        if not input._array.ndim:
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}") from None
        if input._array.size:
            raise
        return 0
    return dim


@public
def cummin(input, dim):
    """The smallest element so far along ``dim``, and where it was."""
    dim = _running_dim(tensor_argument(input, "cummin"), dim, "cummin")
    if input._array.ndim and input._array.size:
        check_ordered(input, "cummin", "cummin_cpu")
    refuse_complex_gradient("cummin", input)
    return returns.cummin(along(xp.cummin_and_index, input, dim))


# -- differences -----------------------------------------------------------------------------------------------------


def part(x, axis, start, stop):
    """``x[start:stop]`` along ``axis``."""
    return slice_of(x, axis, slice(start, stop))


@public
def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The ``n``-th difference of neighbours along ``dim``."""
    if tensor_argument(input, "diff")._array.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = axis_of(input, dim)
    ends = [t for t in (prepend, input, append) if t is not None]
    if n == 0:
        return xp.clone(input)
    x = PUBLIC["cat"](ends, dim=axis) if len(ends) > 1 else input
    for _ in range(min(n, x._array.shape[axis])):
        after, before = part(x, axis, 1, None), part(x, axis, 0, -1)
        x = xp.logical_xor(after, before) if x._array.dtype.kind == "b" else after - before
    return x


@public(method=False, out=False)
def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """The slope of ``input`` along each ``dim``: central differences inside, one-sided ones at the edges."""
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if input.dtype is dtypes.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    dims = range(input._array.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = wrap_dims(tuple(dims), input._array.ndim)
    spacing = 1 if spacing is None else spacing
    steps = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(axes)
    if len(steps) != len(axes):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
            f"{input._array.ndim}', since dim argument was not given, but got a list of length {len(steps)}"
        )
    for axis in axes:
        if input._array.shape[axis] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(
        _slope_at(input, axis, step, edge_order)
        if isinstance(step, Tensor) and step._array.ndim
        else _slope(input, axis, step, edge_order)
        for axis, step in zip(axes, steps)
    )


def _slope(x, axis, step, edge_order):
    """The slope on a grid of one ``step``."""
    inner = (part(x, axis, 2, None) - part(x, axis, 0, -2)) / (2 * step)
    first = (part(x, axis, 1, 2) - part(x, axis, 0, 1)) / step
    last = (part(x, axis, -1, None) - part(x, axis, -2, -1)) / step
    if edge_order == 2:
        first = (-1.5 * part(x, axis, 0, 1) + 2 * part(x, axis, 1, 2) - 0.5 * part(x, axis, 2, 3)) / step
        last = (1.5 * part(x, axis, -1, None) - 2 * part(x, axis, -2, -1) + 0.5 * part(x, axis, -3, -2)) / step
    return PUBLIC["cat"]([first, inner, last], dim=axis)


def _slope_at(x, axis, places, edge_order):
    """The slope on a grid whose points are at ``places``."""
    steps = xp.reshape(diff(places), shape=[-1 if i == axis else 1 for i in range(x._array.ndim)])
    slopes = (part(x, axis, 1, None) - part(x, axis, 0, -1)) / steps
    left, right = part(steps, axis, 0, -1), part(steps, axis, 1, None)
    into, out_of = part(slopes, axis, 0, -1), part(slopes, axis, 1, None)
    inner = (right * into + left * out_of) / (left + right)
    first, last = part(slopes, axis, 0, 1), part(slopes, axis, -1, None)
    if edge_order == 2:
        # The slope changes linearly: carry the first (last) change on for half a step.
        bend = (out_of - into) / (left + right)
        first = first - part(bend, axis, 0, 1) * part(steps, axis, 0, 1)
        last = last + part(bend, axis, -1, None) * part(steps, axis, -1, None)
    return PUBLIC["cat"]([first, inner, last], dim=axis)


# -- integrals -------------------------------------------------------------------------------------------------------


@public(method=False, out=False, aliases=("trapz",))
def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral of ``y`` along ``dim`` by the trapezoidal rule, at places ``x`` or ``dx`` apart."""
    if x is None:
        _check_step("trapezoid", dx)
        if not y._array.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        axis = axis_of(y, dim)
        if not y._array.shape[axis]:
            return sum_(y.detach(), axis, dtype=y.dtype)
        if y._array.dtype.kind == "b":
            raise RuntimeError("trapezoid: received a bool input for `y`, but bool is not supported")
        total = sum_(y, axis) - (part(y, axis, 0, 1) + part(y, axis, -1, None)).sum(axis) * 0.5
        return total * (1 if dx is None else dx)
    axis = axis_of(y, dim)
    if y._array.ndim and not y._array.shape[axis]:
        return sum_(y, axis)
    return sum_(_strips(y, x, dx, dim), axis) / 2.0


@public(method=False, out=False)
def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """The running integral of ``y`` along ``dim`` by the trapezoidal rule."""
    _check_step("cumulative_trapezoid", dx)
    return cumsum(_strips(y, x, dx, dim) / 2.0, axis_of(y, dim))


def _check_step(name, dx) -> None:
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


def _strips(y, x, dx, dim):
    """Twice the area between neighbours."""
    if any(t is not None and t._array.dtype.kind == "b" for t in (y, x)):
        raise RuntimeError("trapezoid: received a bool input for `x` or `y`, but bool is not supported")
    axis = axis_of(y, dim)
    heights = part(y, axis, 1, None) + part(y, axis, 0, -1)
    if x is None:
        return heights * (1 if dx is None else dx)
    if x._array.ndim == 1:
        if x._array.size != y._array.shape[axis]:
            raise RuntimeError("trapezoid: There must be one `x` value for each sample point")
        x = xp.reshape(x, shape=[-1 if i == axis else 1 for i in range(y._array.ndim)])
    elif x._array.ndim < y._array.ndim:
        x = xp.reshape(x, shape=[1] * (y._array.ndim - x._array.ndim) + list(x._array.shape))
    return heights * diff(x, dim=axis)
