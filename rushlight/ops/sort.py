"""Order: sorting, ranks, medians, sorted look-up and distinct values. NaN counts as the largest, as in PyTorch."""

from __future__ import annotations

import math

import numpy as np

from .. import dtypes
from ..autograd.mode import state
from ..autograd.op import differentiable as xp
from ..autograd.op import op, variant
from ..tensor import Tensor
from . import returns
from .common import complex_dtype, own, refuse, refuse_complex_gradient
from .dims import wrap_dim
from .public import PUBLIC, public
from .reduce import (
    axis_of,
    check_not_empty,
    check_ordered,
    even_gradient_of_all,
    even_gradient_of_numbers,
    picked,
    picked_gradient,
    tensor_argument,
    type_word,
)
from .scan import along

# -- primitives ------------------------------------------------------------------------------------------------------


@op(
    node="GatherBackward0",
    exact=True,
    x=lambda xp, g, index, axis, x_shape: xp.add_along_axis(g, index, axis=axis, size=x_shape[axis]),
)
def _take_along_axis(xp, x, index, *, axis):
    return xp.take_along_axis(x, index, axis=axis)


@op(exact=True, value=lambda xp, g, index, axis: xp.take_along_axis(g, index, axis=axis))
def _add_along_axis(xp, value, index, *, axis, size, unique=False):
    """Zeros of length ``size`` along ``axis``, with ``value`` added where ``index`` says."""
    return xp.add_along_axis(value, index, axis=axis, size=size, unique=unique)


def _order(xp, x, axis, descending):
    """The stable order of ``x``: sorted backwards from its end, equal elements still come first things first."""
    if not descending:
        return xp.argsort(x, axis=axis)
    order = xp.argsort(xp.flip(x, axis=axis), axis=axis)
    return x.shape[axis] - 1 - xp.flip(order, axis=axis)


def _sorted_gradient(xp, g, y, axis, x_shape):
    return xp.add_along_axis(g[0], y[1], axis=axis, size=x_shape[axis], unique=True)


@op(node="SortBackward0", uses=(1,), x=_sorted_gradient)
def _sort_and_index(xp, x, *, axis, descending=False):
    order = _order(xp, x, axis, descending)
    return xp.take_along_axis(x, order, axis=axis), order


@op
def _argsort(xp, x, *, axis=-1, descending=False):
    return _order(xp, x, axis, descending)


@op(node="TopkBackward0", uses=(1,), x=_sorted_gradient)
def _topk(xp, x, *, k, axis, largest=True):
    if largest and 0 < k < x.shape[axis]:
        found = xp.top_order(x, k=k, axis=axis)
        among = _order(xp, xp.take_along_axis(x, found, axis=axis), axis, True)
        order = xp.take_along_axis(found, among, axis=axis)
    else:
        order = _first(_order(xp, x, axis, largest), k, axis)
    return xp.take_along_axis(x, order, axis=axis), order


def _first(x, k, axis, start=0):
    return x[(slice(None),) * axis + (slice(start, start + k),)]


@op(uses=(1,), x=picked_gradient)
def _kthvalue(xp, x, *, k, axis, keepdims=False):
    return picked(xp, x, _first(xp.argsort(x, axis=axis), 1, axis, k - 1), axis, keepdims)


@op(node="MedianBackward1", uses=(1,), x=picked_gradient)
def _median_and_index(xp, x, *, axis, keepdims=False):
    return picked(xp, x, _middle(xp, x, axis, False), axis, keepdims)


@op(node="NanmedianBackward1", uses=(1,), x=picked_gradient)
def _nanmedian_and_index(xp, x, *, axis, keepdims=False):
    return picked(xp, x, _middle(xp, x, axis, True), axis, keepdims)


@op(node="MedianBackward0", x=even_gradient_of_all)
def _median_of_all(xp, x):
    return _middle_of_all(xp, x, False)


@op(node="NanmedianBackward0", x=even_gradient_of_numbers)
def _nanmedian_of_all(xp, x):
    return _middle_of_all(xp, x, True)


def _middle_of_all(xp, x, without_nan):
    x = xp.reshape(x, shape=(math.prod(x.shape),))
    if not x.shape[0]:
        return xp.asarray(math.nan, dtype=x.dtype)
    return picked(xp, x, _middle(xp, x, 0, without_nan), 0, False)[0]


def _middle(xp, x, axis, skip_nan):
    """Where the (lower) median is: among the numbers, or at the first NaN if there is one and none are skipped."""
    order, nan = xp.argsort(x, axis=axis), xp.isnan(x)
    if skip_nan:
        numbers = x.shape[axis] - xp.sum(nan, axis=axis, keepdims=True)
        return xp.take_along_axis(order, xp.maximum(numbers - 1, 0) // 2, axis=axis)
    middle = _first(order, 1, axis, (x.shape[axis] - 1) // 2)
    first_nan = xp.argmax(nan, axis=axis, keepdims=True)
    return xp.where(xp.any(nan, axis=axis, keepdims=True), first_nan, middle)


@op(uses=(1,), x=picked_gradient)
def _mode(xp, x, *, axis, keepdims=False):
    order = xp.argsort(x, axis=axis)
    ordered = xp.take_along_axis(x, order, axis=axis)
    n = x.shape[axis]
    places = np.arange(n).reshape([n if i == axis else 1 for i in range(x.ndim)])
    new = xp.not_equal(_first(ordered, n - 1, axis, 1), _first(ordered, n - 1, axis))
    starts = xp.concatenate((xp.ones_like(_first(order, 1, axis), dtype=bool), new), axis=axis)
    # The longest run ends at the place farthest from its start; of equal ones the first has the smallest value.
    run = places - xp.cummax(xp.where(starts, places, 0), axis=axis)
    last = xp.argmax(run, axis=axis, keepdims=True)
    return picked(xp, x, xp.take_along_axis(order, last, axis=axis), axis, keepdims)


# -- sorting ---------------------------------------------------------------------------------------------------------

_stable_sort = variant(xp.sort_and_index, "SortBackward1")


@public
def sort(input, dim=-1, descending=False, *, stable=None):
    """``(values, indices)`` in order along ``dim``; equal elements keep theirs.

    >>> import rushlight as torch
    >>> torch.tensor([3, 1, 2]).sort(descending=True).values
    tensor([3, 2, 1])
    """
    _check_sortable(input, dim, "sort", "Sort")
    function = xp.sort_and_index if stable is None else _stable_sort
    return returns.sort(along(function, input, dim, descending=bool(descending)))


@public
def argsort(input, dim=-1, descending=False, *, stable=False):
    """The indices that sort ``input`` along ``dim``."""
    _check_sortable(input, dim, "argsort", "Sort")
    return along(xp.argsort, input, dim, descending=bool(descending))


@public
def msort(input):
    """``input`` sorted along its first dimension."""
    return sort(input, 0)[0]


@public
def topk(input, k, dim=-1, largest=True, sorted=True):
    """The ``k`` largest (or smallest) elements along ``dim``, in order, and their indices."""
    _check_sortable(input, dim, "topk", "topk")
    if input._array.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    axis = axis_of(input, dim)
    if not 0 <= k <= (1 if axis is None else input._array.shape[axis]):
        raise RuntimeError("selected index k out of range")
    return returns.topk(along(xp.topk, input, dim, k=int(k), largest=bool(largest)))


def _check_sortable(input, dim, name, word):
    axis_of(tensor_argument(input, name), dim)
    if input.dtype.is_complex:
        raise RuntimeError(f" {word} does not support complex dtypes on CPU")


# -- ranks -----------------------------------------------------------------------------------------------------------


def _ranked(input, dim, name):
    """The axis of a function that picks one element along ``dim`` by its rank; checks the tensor."""
    axis = axis_of(tensor_argument(input, name), dim)
    check_not_empty(input, axis, name)
    return axis


@public
def kthvalue(input, k, dim=-1, keepdim=False):
    """The ``k``-th smallest element along ``dim`` and its index."""
    axis = _ranked(input, dim, "kthvalue")
    if axis is not None:
        _check_kernel(input, "kthvalue")
    if not 1 <= k <= (1 if axis is None else input._array.shape[axis]):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis or 0}")
    refuse_complex_gradient("kthvalue", input)
    return returns.kthvalue(_one_of(xp.kthvalue, input, axis, keepdim, k=int(k)))


@public
def median(input, dim=None, keepdim=False):
    """The median (the lower of two); along ``dim`` with its index. NaN if there is any."""
    return _median(input, dim, keepdim, "median", xp.median_of_all, xp.median_and_index)


@public
def nanmedian(input, dim=None, keepdim=False):
    """The median of the elements that are not NaN."""
    return _median(input, dim, keepdim, "nanmedian", xp.nanmedian_of_all, xp.nanmedian_and_index)


def _median(input, dim, keepdim, name, of_all, and_index):
    axis = None if dim is None else _ranked(input, dim, name)
    if dim is None and not input._array.size and not input.dtype.is_floating_point:
        refuse_complex_gradient(name, input)
        return _of_nothing(input)
    _check_kernel(input, name)
    if dim is None:
        return of_all(input)
    return getattr(returns, name)(_one_of(and_index, input, axis, keepdim))


@public
def mode(input, dim=-1, keepdim=False):
    """The most frequent element along ``dim`` (the smallest of several) and the index of its last occurrence."""
    axis = _ranked(input, dim, "mode")
    if axis is not None and (input._array.size or not input.dtype.is_complex):  # one number is its own mode
        check_ordered(input, "mode", "mode_cpu")
    refuse_complex_gradient("mode", input)
    return returns.mode(_one_of(xp.mode, input, axis, keepdim))


def _of_nothing(input):
    """The median of no elements: nan, or what a cast makes of it."""
    array = input._array
    if array.dtype.kind in "biu":
        small = array.dtype.itemsize < 4  # by way of 32 bits
        lowest = array.dtype.kind == "b" or (0 if small else np.iinfo(array.dtype).min)
        return PUBLIC["full"]((), lowest, dtype=input.dtype, device=input.device)
    return PUBLIC["full"]((), math.nan, dtype=input.dtype)


def _one_of(function, input, axis, keepdim, **static):
    if axis is None:
        values, indices = function(xp.reshape(input, shape=(1,)), axis=0, keepdims=False, **static)
        return values, indices
    return function(input, axis=axis, keepdims=bool(keepdim), **static)


def _check_kernel(input, name):
    if tensor_argument(input, name)._array.dtype.kind in "bc":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{type_word(input)}'")


@public
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The values below which fractions ``q`` of the elements lie, all or along ``dim``."""
    return _quantile(input, q, dim, keepdim, interpolation, False, "quantile")


@public
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """``quantile`` of the elements that are not NaN."""
    return _quantile(input, q, dim, keepdim, interpolation, True, "nanquantile")


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(input, q, dim, keepdim, interpolation, skip_nan, name):
    if state.casting is not None:
        input, q = state.casting.raise_(input, q)
    q = _check_quantile(input, q, interpolation, name)
    ndim = input._array.ndim
    axis = 0 if dim is None else axis_of(input, dim) or 0
    x = xp.reshape(input, shape=(input._array.size,)) if dim is None or not ndim else input
    n = x._array.shape[axis]
    ordered = sort(x, axis)[0]
    nan = xp.isnan(x.detach())
    count = n - xp.sum(nan, axis=axis, keepdims=True) if skip_nan else n
    # Ranks lie along a new first axis, one for each q.
    ranks = xp.reshape(q, shape=(-1, *[1] * x._array.ndim)) * (count - 1)
    ranks = xp.maximum(ranks, 0.0) if skip_nan else xp.where(xp.any(nan, axis=axis, keepdims=True), n - 1.0, ranks)
    result = _between(ordered, ranks, axis, interpolation)
    shape = [1 if i == axis else m for i, m in enumerate(x._array.shape)]
    if dim is None or not ndim:
        shape = [1] * ndim
    if not keepdim:
        shape = [] if dim is None or not ndim else shape[:axis] + shape[axis + 1 :]
    lead = list(q._array.shape)
    return own(xp.reshape(result, shape=tuple(lead + shape)))


def _between(ordered, ranks, axis, interpolation):
    """The elements at fractional ``ranks`` of what is ``ordered`` along ``axis``."""
    if interpolation == "lower":
        ranks = xp.floor(ranks)
    elif interpolation == "higher":
        ranks = xp.ceil(ranks)
    elif interpolation == "nearest":
        ranks = xp.round(ranks)
    low, high = xp.floor(ranks), xp.ceil(ranks)
    below, above = _at(ordered, low, axis), _at(ordered, high, axis)
    if interpolation == "midpoint":
        return below + (above - below) * 0.5
    return below if interpolation != "linear" else xp.lerp(below, above, ranks - low)


def _at(ordered, ranks, axis):
    places = xp.astype(ranks, dtype=np.dtype(np.int64))
    count = places._array.shape[0]
    shape = ordered._array.shape
    rows = xp.broadcast_to(ordered, shape=(count, *shape))
    places = xp.broadcast_to(places, shape=(count, *[1 if i == axis else m for i, m in enumerate(shape)]))
    return xp.take_along_axis(rows, places, axis=axis + 1)


def _check_quantile(input, q, interpolation, name):
    if not tensor_argument(input, name)._array.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if input._array.dtype not in (np.float32, np.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        return PUBLIC["full"]((), q, dtype=input.dtype, device=input.device)
    if q._array.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q._array.__class__ is np.ndarray and not ((q._array >= 0) & (q._array <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return q


# -- sorted look-up --------------------------------------------------------------------------------------------------


@op
def _searchsorted(xp, sequence, values, *, side="left"):
    return xp.searchsorted(sequence, values, side=side)


@public(method=False)
def searchsorted(sorted_sequence, self=None, *, input=None, out_int32=False, right=False, side=None, sorter=None):
    """Where each value would go into ``sorted_sequence`` (row by row if that has rows) to keep it sorted."""
    values = input if self is None else self
    if right and side == "left":
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if sorter is not None:
        if sorter._array.shape != sorted_sequence._array.shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(sorted_sequence.shape)} and got sorter tensor {list(sorter.shape)}"
            )
        if sorter.dtype is not dtypes.int64:
            raise RuntimeError(
                f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {type_word(sorter)}"
            )
    sequence = (
        sorted_sequence if sorter is None else xp.take_along_axis(sorted_sequence, sorter, axis=sorter._array.ndim - 1)
    )
    if not isinstance(values, Tensor):
        values = PUBLIC["tensor"](values, device=sequence.device)
    common = dtypes.promote_types(sequence.dtype, values.dtype)
    if values._array.size and (common.is_complex or common is dtypes.bool_):
        raise NotImplementedError(f"\"searchsorted_out_cpu\" not implemented for '{type_word(values)}'")
    if sequence._array.ndim != 1 and sequence._array.shape[:-1] != values._array.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(sequence.shape)} and input "
            f"value tensor {list(values.shape)}"
        )
    found = xp.searchsorted(sequence.detach(), values.detach(), side="right" if right else side or "left")
    return xp.astype(found, dtype=np.dtype(np.int32)) if out_int32 else found


@public(method=False)
def bucketize(input, boundaries, *, out_int32=False, right=False):
    """The index of the interval between ``boundaries`` that each element lies in."""
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@op
def _isin(xp, elements, test_elements, *, assume_unique=False, invert=False):
    return xp.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)


@public(method=False)
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Which ``elements`` occur among ``test_elements``."""
    if not (isinstance(elements, Tensor) or isinstance(test_elements, Tensor)):
        raise TypeError("isin() received an invalid combination of arguments: one of the two must be Tensor")
    for t in (elements, test_elements):
        if isinstance(t, (bool, complex)) or (isinstance(t, Tensor) and (t.dtype.is_complex or t.dtype.name == "bool")):
            word = type_word(t) if isinstance(t, Tensor) else type(t).__name__
            raise RuntimeError(f"Unsupported input type encountered for isin(): {word}")
    return xp.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)


# -- distinct values -------------------------------------------------------------------------------------------------


@op
def _unique(xp, x, *, axis=None):
    return xp.on_host(lambda x: np.unique(x, True, True, True, axis=axis, equal_nan=False), "unique", x)


@op
def _unique_consecutive(xp, x, *, axis=None):
    return xp.on_host(lambda x: _runs(x, axis), "unique_consecutive", x)


def _no_slope(xp, g, what):
    raise NotImplementedError(f"the derivative for '{what}' is not implemented.")


@op(node="Unique2Backward0", exact=True, x=_no_slope)
def found_among(xp, x, values, *, what):
    """``values``, which were found among those of ``x``; PyTorch has no gradient for it either."""
    return xp.asarray(values, copy=True)


_among = {
    "_unique2": found_among,
    "unique_dim": variant(found_among, "UniqueDimBackward0"),
    "unique_consecutive": variant(found_among, "UniqueConsecutiveBackward0"),
}


def _runs(x, axis):
    rows = x.reshape(-1, 1) if axis is None else np.moveaxis(x, axis, 0)
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(tuple(range(1, rows.ndim)))
    starts = np.flatnonzero(new)
    inverse = np.cumsum(new) - 1
    values = x.reshape(-1)[starts] if axis is None else np.take(x, starts, axis)
    return values, inverse.reshape(x.shape) if axis is None else inverse, np.diff(starts, append=len(rows))


def _axis_of_slices(input, dim) -> int:
    shape = input._array.shape
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = wrap_dim(dim, len(shape))
    if 0 in shape[:axis] + shape[axis + 1 :]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return axis


@public(out=False)
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct values (or slices along ``dim``) in order, with where each element went and how often each is."""
    refuse("unique", complex_dtype, input)
    axis = None if dim is None else _axis_of_slices(input, dim)
    values, _, inverse, counts = xp.unique(input.detach(), axis=axis)
    values = _recorded(input, values, "_unique2" if dim is None else "unique_dim")
    return _distinct(values, inverse, counts, return_inverse, return_counts)


@public(out=False)
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """``input`` without elements (or slices along ``dim``) equal to the one before."""
    refuse("unique", complex_dtype, input)
    axis = None if dim is None else _axis_of_slices(input, dim)
    values, inverse, counts = xp.unique_consecutive(input.detach(), axis=axis)
    values = _recorded(input, values, "unique_consecutive")
    return _distinct(values, inverse, counts, return_inverse, return_counts)


def _recorded(input, values, what):
    return values if input._node is None or not state.grad else _among[what](input, values, what=what)


def _distinct(values, inverse, counts, return_inverse, return_counts):
    result = (values,) + (inverse,) * return_inverse + (counts,) * return_counts
    return result if len(result) > 1 else values
