"""Reading and adding along an axis by index: by the library in C where the arrays lie in order."""

from __future__ import annotations

import math

import numpy as np

from ...native import library
from . import copies

_WORTH = 1 << 10  # elements, from which on the library is quicker than one call of NumPy's


def take(x, index, axis):
    """``take_along_axis`` of numbers of any kind, since they are only copied; None where the library does not serve, as
    all functions here."""
    kind = copies.REALS.get(x.itemsize)
    if kind is None or not _serves(x.view(kind), index, axis) or _others(x.shape, axis) != _others(index.shape, axis):
        return None
    out = np.empty(index.shape, x.dtype)
    found = _called(library.take_along, x.view(kind), index, out.view(kind), x.shape, index.shape[axis], axis)
    return None if found is None else out


def add(out, value, index, axis):
    """``value``, of the index's shape, added to ``out`` in place where the index says."""
    if not _serves(value, index, axis) or value.shape != index.shape or not _fits(out, value, axis):
        return None
    return _called(library.add_along, value, index, out, out.shape, index.shape[axis], axis)


def put(out, value, index, axis):
    """``value``, a number or of the index's shape, written over ``out`` where that says; in equal places the last."""
    kind = copies.REALS.get(out.itemsize)
    if (
        kind is None
        or not _serves(out.view(kind), index, axis)
        or _others(out.shape, axis) != _others(index.shape, axis)
    ):
        return None
    each = np.empty(index.shape, out.dtype)
    each[...] = value
    found = _called(library.put_along, each.view(kind), index, out.view(kind), out.shape, index.shape[axis], axis)
    return None if found is None else out


def add_to_zeros(value, index, axis, shape):
    """The same with zeros of ``shape``, which are made only where the library serves."""
    if (
        not _serves(value, index, axis)
        or value.shape != index.shape
        or _others(shape, axis) != _others(value.shape, axis)
    ):
        return None
    return add(np.zeros(shape, value.dtype), value, index, axis)


def add_slices(out, value, index, axis):
    """Slices of ``value`` added to those of ``out`` in place: slice i at ``index[i]``."""
    if not _serves(value, index, axis) or index.ndim != 1 or not _fits(out, value, axis):
        return None
    if value.shape[axis] != len(index):
        return None
    return _called(library.add_slices, value, index, out, out.shape, len(index), axis)


def take_slices(x, index, axis):
    """The slices of ``x`` that ``index`` names, which are only copied, too."""
    kind = copies.REALS.get(x.itemsize) if x.size >= _WORTH else None
    if kind is None or not _serves(x.view(kind), index, axis) or index.ndim != 1:
        return None
    out = np.empty((*x.shape[:axis], len(index), *x.shape[axis + 1 :]), x.dtype)
    found = _called(library.take_slices, x.view(kind), index, out.view(kind), x.shape, len(index), axis)
    return None if found is None else out


def spread_slices(value, index, axis, shape):
    """Zeros of ``shape``, with slices of ``value`` added: slice i at ``index[i]``."""
    if not _serves(value, index, axis) or index.ndim != 1 or value.shape[axis] != len(index):
        return None
    if _others(shape, axis) != _others(value.shape, axis):
        return None
    out = np.empty(shape, value.dtype)
    return _called(library.spread_slices, value, index, out, shape, len(index), axis)


def merged(index: tuple, shape: tuple):
    """(axis, one index, shape) for rows of indices of neighbouring axes: the same place in the shape with these joined.

    None where that is not what they are, where they are few, and where one is out of range or counts from the end.
    """
    if getattr(index[-1], "size", 0) < _WORTH:
        return None
    axis = sum(i.__class__ is slice for i in index)
    rows = index[axis:]
    if len(rows) < 2 or any(i.__class__ is not np.ndarray or i.ndim != 1 or i.dtype.char != "l" for i in rows):
        return None
    if any(i != slice(None) for i in index[:axis]) or len({len(i) for i in rows}) > 1:
        return None
    place, sizes = None, shape[axis : axis + len(rows)]
    for i, n in zip(rows, sizes):
        if i.min() < 0 or i.max() >= n:
            return None
        place = i if place is None else place * n + i
    return axis, place, (*shape[:axis], math.prod(sizes), *shape[axis + len(rows) :])


def take_at(x, index: tuple):
    """``x[index]`` of such indices."""
    found = merged(index, x.shape) if x.flags.c_contiguous else None
    if found is None:
        return None
    axis, place, shape = found
    out = take_slices(x.reshape(shape), place, axis)
    return x.reshape(shape).take(place, axis) if out is None else out


def add_at(out, value, index: tuple):
    """``value`` added to ``out`` in place there."""
    found = merged(index, out.shape) if out.flags.c_contiguous else None
    if found is None or add_slices(out.reshape(found[2]), value, found[1], found[0]) is None:
        return None
    return out


def spread_at(value, index: tuple, shape):
    """Zeros of ``shape``, with ``value`` added there."""
    found = merged(index, shape)
    spread = None if found is None else spread_slices(value, found[1], found[0], found[2])
    return None if spread is None else spread.reshape(shape)


def _called(kernel, x, index, out, shape, k, axis):
    try:
        kernel(x, index, out, math.prod(shape[:axis]), shape[axis], k, math.prod(shape[axis + 1 :]))
    except (TypeError, IndexError):  # of other dtypes, or out of range, which NumPy has words for
        return None
    return out


def _serves(x, index, axis) -> bool:
    if library is None or x.__class__ is not np.ndarray or x.dtype.char not in "fd" or not x.size:
        return False
    return 0 <= axis < x.ndim and index.dtype.char == "l" and x.flags.c_contiguous and index.flags.c_contiguous


def _fits(out, value, axis) -> bool:
    same = _others(out.shape, axis) == _others(value.shape, axis)
    return same and out.dtype == value.dtype and out.flags.c_contiguous


def _others(shape, axis):
    return (*shape[:axis], *shape[axis + 1 :])
