"""Order along an axis by the library in C: sorting by digits, and selection where one or a few elements are wanted.

NumPy sorts all of a row, on one thread, where the element in its middle is asked for.
"""

from __future__ import annotations

import numpy as np

from ...fallback import FORWARDS
from ...native import library
from . import copies

_LONGEST = (1 << 31) - 1  # elements of a row
_REALS = {4: np.float32, 8: np.float64}  # as which the library takes what is as large


def order(x, axis, descending=False):
    """The stable order along an axis, NaN last, or first if descending; None where the library does not serve."""
    if not _serves(x, axis):
        return None
    rows, whole = _rows(x, axis)
    place = np.empty(rows.shape, np.int64)
    library.sort_rows(rows, None, place, rows.shape[-1], descending, whole)
    return _back(place, axis)


def _argsort(xp, x, *, axis=-1, descending=False):
    found = order(x, axis, descending)
    return FORWARDS["argsort"](xp, x, axis=axis, descending=descending) if found is None else found


def _sort_and_index(xp, x, *, axis, descending=False):
    if not _serves(x, axis):
        return FORWARDS["sort_and_index"](xp, x, axis=axis, descending=descending)
    rows, whole = _rows(x, axis)
    value, place = np.empty(rows.shape, rows.dtype), np.empty(rows.shape, np.int64)
    library.sort_rows(rows, value, place, rows.shape[-1], descending, whole)
    return _back(value.view(x.dtype), axis), _back(place, axis)


def _topk(xp, x, *, k, axis, largest=True):
    if not k or not _serves(x, axis):
        return FORWARDS["topk"](xp, x, k=k, axis=axis, largest=largest)
    rows, whole = _rows(x, axis)
    shape = (*rows.shape[:-1], k)
    value, place = np.empty(shape, rows.dtype), np.empty(shape, np.int64)
    library.top_rows(rows, value, place, rows.shape[-1], k, largest, whole)
    return _back(value.view(x.dtype), axis), _back(place, axis)


def _picking(name, nan_first=False, without_nan=False):
    """The body of an op that picks one element by its rank: that of ``k``, or the middle."""

    def body(xp, x, *, axis, keepdims=False, **static):
        if not _serves(x, axis):
            return FORWARDS[name](xp, x, axis=axis, keepdims=keepdims, **static)
        rows, whole = _rows(x, axis)
        n = rows.shape[-1]
        value, place = np.empty(rows.shape[:-1], rows.dtype), np.empty(rows.shape[:-1], np.int64)
        library.pick_rows(rows, value, place, n, static.get("k", (n + 1) // 2) - 1, nan_first, without_nan, whole)
        found = value.view(x.dtype), place
        return tuple([np.expand_dims(each, axis) for each in found]) if keepdims else found

    return body


def _serves(x, axis) -> bool:
    if x.__class__ is not np.ndarray or x.dtype.kind not in "fi" or x.itemsize not in _REALS or not x.size:
        return False
    return library is not None and axis.__class__ is int and x.shape[axis] <= _LONGEST


def _rows(x, axis):
    """(the array as the library takes it, the axis last and in C order; whether that is of whole numbers)."""
    rows = copies.contiguous(x if axis == x.ndim - 1 else np.moveaxis(x, axis, -1))
    return rows.view(_REALS[x.itemsize]), x.dtype.kind == "i"


def _back(rows, axis):
    return rows if axis == rows.ndim - 1 else copies.contiguous(np.moveaxis(rows, -1, axis))


BACKWARD: dict = {}
BODIES = {
    "argsort": _argsort,
    "sort_and_index": _sort_and_index,
    "topk": _topk,
    "kthvalue": _picking("kthvalue"),
    "median_and_index": _picking("median_and_index", nan_first=True),
    "nanmedian_and_index": _picking("nanmedian_and_index", without_nan=True),
}
