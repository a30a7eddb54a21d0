"""The largest and smallest along an axis: NumPy takes element by element, or is on one thread."""

from __future__ import annotations

import math

import numpy as np

_WORTH, _ROWS_WORTH = 1 << 10, 1 << 15  # elements; along the innermost axis NumPy is quick
_LONGEST = (1 << 31) - 1  # places are counted in 32 bits


def install(library, bodies, backward) -> None:
    for name, smallest in (("argmax", False), ("argmin", True)):
        bodies[name] = _places(library.extremes, bodies[name], smallest)
    for name, smallest in (("max_and_index", False), ("min_and_index", True)):
        bodies[name] = _both(library.extremes, bodies[name], smallest)


def _places(kernel, plain, smallest):
    def places(xp, x, *, axis=None, keepdims=False):
        if not _serves(x, axis):
            return plain(xp, x, axis=axis, keepdims=keepdims)
        place = np.empty(_shape(x, axis, keepdims), np.int64)
        kernel(x, None, place, *_sizes(x, axis), smallest)
        return place

    return places


def _both(kernel, plain, smallest):
    def both(xp, x, *, axis, keepdims=False):
        if not _serves(x, axis):
            return plain(xp, x, axis=axis, keepdims=keepdims)
        shape = _shape(x, axis, keepdims)
        best, place = np.empty(shape, x.dtype), np.empty(shape, np.int64)
        kernel(x, best, place, *_sizes(x, axis), smallest)
        return best, place

    return both


def _serves(x, axis) -> bool:
    if not isinstance(axis, int) or x.dtype.char not in "fd" or not x.flags.c_contiguous or not 0 <= axis < x.ndim:
        return False
    inner = math.prod(x.shape[axis + 1 :])
    return x.size >= (_WORTH if inner > 1 else _ROWS_WORTH) and 0 < x.shape[axis] <= _LONGEST


def _sizes(x, axis) -> tuple[int, int]:
    return x.shape[axis], math.prod(x.shape[axis + 1 :])


def _shape(x, axis, keepdims) -> tuple:
    return (*x.shape[:axis], *(1,) * keepdims, *x.shape[axis + 1 :])
