"""Variances and standard deviations, in double precision inside, as PyTorch has them, and gradients of large arrays.

A variance is of differences from the mean, never a difference of squares, so numbers far from 0 lose nothing. The mean
is found from differences, too, those from one of the numbers: equal numbers have no variance at all.
"""

from __future__ import annotations

import math

import numpy as np

from ...fallback import FORWARDS
from ...native import library
from . import chains, sums

_FIRST, _ALL = slice(1), slice(None)


def _spread(x, axis, keepdims, correction, root):
    """(variance, or its root; mean); None where this does not serve."""
    axes = sums.axes_of(axis, x.ndim)
    count = math.prod([x.shape[a] for a in axes])
    if x.dtype.char not in "fd" or not x.size or count <= correction:
        return None
    found = _of_rows(x, axes, count, count - correction, root)
    if found is None:
        found = _of_any(x, axes, count, count - correction, root)
    shape = [1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes]
    return [np.asarray(part, x.dtype).reshape(shape) for part in found]


def _of_rows(x, axes, count, freedom, root):
    """By the library, in one pass over memory; None where it does not serve."""
    first = x.ndim - len(axes)
    if library is None or min(axes, default=0) < first:
        return None
    if not first and x.flags.f_contiguous:
        x = x.T
    if not x.flags.c_contiguous:
        return None
    mean, spread = (np.empty(x.shape[:first], x.dtype) for _ in range(2))
    library.row_spreads(x, mean, spread, count, int(root), float(freedom))
    return spread, mean


def _of_any(x, axes, count, freedom, root):
    axes, start = tuple(axes), x[tuple([_FIRST if a in axes else _ALL for a in range(x.ndim)])]
    away = np.subtract(x, start, dtype=np.float64)
    middle = sums.reduce(away, axes, None, None, True) / count
    away -= middle
    found = sums.reduce(np.multiply(away, away, away), axes, None, None, True) / freedom
    return np.sqrt(found) if root else found, start + middle


def _body(name, root, both):
    def spread(xp, x, *, axis=None, keepdims=False, correction=1):
        found = _spread(x, axis, keepdims, correction, root)
        if found is None:
            return FORWARDS[name](xp, x, axis=axis, keepdims=keepdims, correction=correction)
        return tuple(found) if both else found[0]

    return spread


def _difference(xp, g, x, mean):
    return g * (x - mean)


def _slope(g, saved):
    """The gradient of a variance; None where the library does not serve."""
    x, axis, correction = saved["x"], saved["axis"], saved["correction"]
    if x.size < chains.WORTH or x.dtype.char not in "fd":
        return None
    mean = sums.reduce(x, axis, None, None, True)
    count = x.size // mean.size
    if count <= correction:
        return None
    scaled = g.reshape(mean.shape) * x.dtype.type(2.0 / (count - correction))
    found = chains.evaluated(_difference, (scaled, x, np.asarray(mean / count)), {})
    return None if found is None else (found,)


def _root_slope(g, saved):
    y = saved["y"]
    flat = y == 0  # the root has no slope there
    return _slope(np.where(flat, y.dtype.type(0), g / (2 * np.where(flat, y.dtype.type(1), y))), saved)


BODIES = {
    "var": _body("var", False, False),
    "std": _body("std", True, False),
    "var_mean": _body("var_mean", False, True),
    "std_mean": _body("std_mean", True, True),
}
BACKWARD = {
    "var": lambda g, edges, saved: _slope(g, saved),
    "std": lambda g, edges, saved: _root_slope(g, saved),
}
