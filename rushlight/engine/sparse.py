"""Gradients of tables of which few rows were read: places and values, as they travel through the tape.

It is no engine. ``Coordinates`` is what the rule of a lookup with ``sparse=True`` returns; the tape adds such
gradients up, hands them to a leaf, or spreads them out for whatever else asks. Users see a sparse tensor.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["Coordinates"]

DEFERS = False


class Coordinates:
    """``values[k]`` belongs at ``indices[:, k]`` of an array of zeros; places may repeat, their values add up."""

    __slots__ = ("coalesced", "indices", "shape", "values")

    def __init__(self, indices, values, shape, coalesced=False):
        self.indices, self.values, self.shape, self.coalesced = indices, values, tuple(shape), coalesced

    @property
    def dtype(self):
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.values.dtype.itemsize

    def dense(self):
        """All elements."""
        xp = _of(self.values)
        places, rows = _flat(xp, self.indices, self.shape)
        flat = (self.values.shape[0], math.prod(self.values.shape[1:]))
        lines = xp.add_rows(xp.reshape(self.values, shape=flat), places, size=rows)
        return xp.reshape(lines, shape=self.shape)

    def __add__(self, other):
        return add(self, other)

    __radd__ = __add__

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        """NumPy's own sums: the tape adds arrays with ``np.add``."""
        if ufunc is not np.add or method != "__call__":
            return NotImplemented
        total = add(*inputs)
        if out is None:
            return total
        np.copyto(out[0], total)
        return out[0]


def add(a, b):
    """The sum: sparse of two sparse ones, else dense."""
    if not isinstance(a, Coordinates):
        a, b = b, a
    if not isinstance(b, Coordinates):
        return b + a.dense()
    xp = _of(a.values)
    return Coordinates(
        xp.concatenate([a.indices, b.indices], axis=1), xp.concatenate([a.values, b.values], axis=0), a.shape
    )


def astype(x, dtype):
    return Coordinates(x.indices, _of(x.values).astype(x.values, dtype=dtype), x.shape, x.coalesced)


def reshape(x, shape):
    return _of(x.values).reshape(x.dense(), shape=shape)


def device_of(x):
    return _of(x.values).device_of(x.values)


def to_numpy(x):
    return _of(x.values).to_numpy(x.dense())


def table_rows(xp, g, index, *, rows, padding_idx):
    """The gradient of a table of ``rows`` rows that was read at ``index``: those rows."""
    places, values = xp.reshape(index, shape=(1, -1)), xp.reshape(g, shape=(-1, g.shape[-1]))
    if padding_idx is not None:
        if values.__class__ is np.ndarray:
            kept = np.flatnonzero(places[0] != padding_idx)
            places, values = places[:, kept], values[kept]
        else:  # a compiled program knows no places: their values are zero
            values = xp.where(xp.reshape(places == padding_idx, shape=(-1, 1)), 0.0, values)
    return Coordinates(xp.astype(places, dtype=np.int64), xp.astype(values, dtype=g.dtype), (rows, g.shape[-1]))


def _of(array):
    from . import namespace_of

    return namespace_of(array)


def _flat(xp, indices, shape):
    """(the number of each place, counted over the leading dimensions; how many there are)."""
    places, total = indices[0] * 0, 1
    for d in range(indices.shape[0]):
        places, total = places * shape[d] + indices[d], total * shape[d]
    return places, total
