"""Rows of a table, and bags of them, by kernels: NumPy copies them on one thread."""

from __future__ import annotations

import numpy as np

from ..numpy.kernels.losses import add_rows
from . import library


def install(library, bodies, backward) -> None:
    for name in ("embedding", "embedding_by_rows"):
        bodies[name] = _rows(library.take_rows, bodies[name])
    backward["embedding"] = _rows_backward
    bodies["bag_sum"], backward["bag_sum"] = _bag_sum(bodies["bag_sum"]), _bag_sum_backward
    bodies["bag_max"], backward["bag_max"] = _bag_max, _bag_max_backward
    bodies["one_hot"] = _one_hot(bodies["one_hot"])


def _rows(kernel, plain):
    def rows(xp, w, index, **static):
        if w.ndim == 2:
            try:
                out = np.empty((*index.shape, w.shape[1]), w.dtype)
                kernel(w, index, out, *w.shape)
                return out
            except (TypeError, IndexError):  # of other dtypes, not in C order, or not in the table: said by NumPy
                pass
        return plain(xp, w, index, **static)

    return rows


def _rows_backward(g, edges, saved):
    """None where the op's rule does the work. A row that gets no gradient is cleared at the end."""
    (rows, width), index, padding = saved["w_shape"], saved["index"], saved["padding_idx"]
    if saved["by_freq"]:
        return None
    out = add_rows(g.reshape(index.size, width), index.reshape(index.size), rows)
    if padding is not None:
        out[padding] = 0
    return out, None


# -- bags --------------------------------------------------------------------------------------------------------------


def _bag_sum(plain):
    def bag_sum(xp, w, index, bag, scale, *, bags, by_freq=False):
        try:
            out = np.empty((bags, w.shape[1]), w.dtype)
            library.bag_sum(w, index, bag, scale, out, w.shape[0], bags, w.shape[1])
            return out
        except (TypeError, IndexError):
            return plain(xp, w, index, bag, scale, bags=bags, by_freq=by_freq)

    return bag_sum


def _bag_sum_backward(g, edges, saved):
    """None where the op's rule does the work."""
    w, index, bag, scale = (saved[name] for name in ("w", "index", "bag", "scale"))
    if saved["by_freq"] or g.dtype != w.dtype or not g.size:
        return None
    made = [None if edges[i] is None else np.empty(a.shape, a.dtype) for i, a in ((0, w), (3, scale))]
    try:
        g = g if g.flags.c_contiguous else np.ascontiguousarray(g)
        library.bag_sum_slope(g, w, index, bag, scale, *made, w.shape[0], saved["bags"], w.shape[1])
    except TypeError:
        return None
    return made[0], None, None, made[1]


def _bag_max(needs, w, index, bag, *, bags):
    """(the largest, as the op's aux: the row of the table that each is from, its column, whether there is any)."""
    try:
        out, row = np.empty((bags, w.shape[1]), w.dtype), np.empty((bags, w.shape[1]), np.int64)
        library.bag_max(w, index, bag, out, row, w.shape[0], bags, w.shape[1])
    except (TypeError, IndexError):
        return None
    return out, (row, np.arange(w.shape[1])[None, :], row >= 0)


def _bag_max_backward(g, edges, saved):
    (row, _, any_), shape = saved["aux"], saved["w_shape"]
    try:
        out, row = np.empty(shape, g.dtype), np.where(any_, row, -1)  # forward may have been the op's own
        library.bag_max_slope(g if g.flags.c_contiguous else np.ascontiguousarray(g), row, out, shape[1])
        return out, None, None
    except TypeError:
        return None


# -- classes -----------------------------------------------------------------------------------------------------------


def _one_hot(plain):
    def one_hot(xp, index, *, classes):
        try:
            out = np.empty((*index.shape, classes), np.int64)
            library.one_hot(index, out, classes)
            return out
        except TypeError:
            return plain(xp, index, classes=classes)

    return one_hot
