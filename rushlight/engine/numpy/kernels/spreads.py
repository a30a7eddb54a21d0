"""Variances and standard deviations over the last axes of large arrays: two passes over memory, and two for a gradient.

A variance is of differences from the mean, never a difference of squares, so numbers far from 0 lose nothing.
"""

from __future__ import annotations

import math

import numpy as np

from ...fallback import FORWARDS
from . import chains, sums


def _spread(x, axis, keepdims, correction, root):
    """(variance, or its root; mean); None where the library does not serve."""
    count = math.prod(x.shape) if axis is None else math.prod([x.shape[a] for a in sums.axes_of(axis, x.ndim)])
    if x.size < chains.WORTH or x.dtype.char not in "fd" or count <= correction:
        return None
    mean = np.asarray(sums.reduce(x, axis, None, None, True) / count)
    squares = sums.rowwise(x, axis, sums.SQUARES, mean)
    if squares is None:
        return None
    found = squares / (count - correction)
    if root:
        found = np.sqrt(found)
        if np.isposinf(found).any():  # perhaps only the squares are too large
            return None
    shape = mean.shape if keepdims else squares.shape
    return np.asarray(found, x.dtype).reshape(shape), mean.reshape(shape)


def _body(name, root, both):
    def spread(xp, x, *, axis=None, keepdims=False, correction=1):
        found = _spread(x, axis, keepdims, correction, root)
        if found is None:
            return FORWARDS[name](xp, x, axis=axis, keepdims=keepdims, correction=correction)
        return found if both else found[0]

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
