"""Softmax and its logarithm on NumPy, some rows at a time; sums of rows go through BLAS."""

from __future__ import annotations

import math

import numpy as np

from . import parallel, sums

_HIGH, _LOW = 60.0, 1e-6  # exp up to here needs no shift, as long as a row's sum is not less than that
_FEW = 1 << 12  # elements; below, the calls are the cost


def softmax(x, axis):
    if 0 < x.size < _FEW and x.ndim:
        y = np.subtract(x, np.maximum.reduce(x, axis, None, None, True))
        np.exp(y, y)
        return np.divide(y, np.add.reduce(y, axis, None, None, True), y)

    def fill(out, x):
        out /= exponentials(out, x)[0]

    return _in_rows(fill, axis, x)


def softmax_backward_data(g, y, axis):
    def fill(out, g, y):
        np.subtract(g, _products(g, y), out=out)
        out *= y

    return _in_rows(fill, axis, g, y)


def log_softmax(x, axis):
    if 0 < x.size < _FEW and x.ndim:
        y = np.subtract(x, np.maximum.reduce(x, axis, None, None, True))
        return np.subtract(y, np.log(np.add.reduce(np.exp(y), axis, None, None, True)), y)

    def fill(out, x):
        np.subtract(x, np.maximum.reduce(x, 1, None, None, True), out=out)
        out -= np.log(_sums(np.exp(out)))

    return _in_rows(fill, axis, x)


def log_softmax_backward_data(g, y, axis):
    def fill(out, g, y):
        np.exp(y, out=out)
        out *= _sums(g)
        np.subtract(g, out, out=out)

    return _in_rows(fill, axis, g, y)


def exponentials(out, x):
    """``out`` = exp(x - shifts), (rows, n) or (…, n, columns); returns (its sums along n, the shifts). x is kept.

    Numbers of ordinary size need no shift, and to look for the largest of each row costs as much as exp itself.
    """
    if np.maximum.reduce(x, axis=None, initial=-np.inf) <= _HIGH:
        np.exp(x, out=out)
        total = _sums(out)
        if np.minimum.reduce(total, axis=None, initial=np.inf) >= _LOW:
            return total, 0
    shifts = np.maximum.reduce(x, 1, None, None, True, initial=-np.inf)
    shifts[np.isneginf(shifts)] = 0  # of nothing but -inf; all exponentials are 0
    np.subtract(x, shifts, out=out)
    np.exp(out, out=out)
    return _sums(out), shifts


def _in_rows(fill, axis, *arrays):
    """A new array, filled by ``fill(out, *arrays)``: it gets pieces, (rows, n) or (…, n, columns), n along ``axis``."""
    shape = arrays[0].shape or (1,)
    axis = (axis or 0) % len(shape)  # None where there are no dimensions
    seen = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    seen = seen[:2] if seen[2] == 1 else seen
    out, sources = np.empty(arrays[0].shape, arrays[0].dtype), [a.reshape(seen) for a in arrays]
    target = out.reshape(seen)

    def work(start, stop):
        fill(target[start:stop], *[s[start:stop] for s in sources])

    if out.size:
        parallel.rows(seen[0], math.prod(seen[1:]), work)
    return out


def _sums(x):
    return sums.along(x)[:, None] if x.ndim == 2 else sums.reduce(x, 1, keepdims=True)


def _products(x, y):
    return sums.products(x, y)[:, None] if x.ndim == 2 else sums.reduce(x * y, 1, keepdims=True)
