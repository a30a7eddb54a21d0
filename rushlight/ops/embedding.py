"""Rows of a table: lookup, and lookup with a reduction over bags."""

from __future__ import annotations

from ..autograd.op import differentiable, op
from ..engine.fallback import FORWARDS
from ..engine.sparse import table_rows
from .dims import numel


def _embedding_rule(xp, g, w_shape, index, padding_idx, by_freq):
    return xp.embedding_slope(g, index, rows=w_shape[0], padding_idx=padding_idx, by_freq=by_freq)


@op(exact=True, w=_embedding_rule)
def embedding(xp, w, index, *, padding_idx=None, by_freq=False):
    return xp.take(w, index, axis=0)


def _rows_rule(xp, g, w_shape, index, padding_idx):
    return xp.table_rows(g, index, rows=w_shape[0], padding_idx=padding_idx)


@op(node="EmbeddingBackward0", exact=True, w=_rows_rule)
def embedding_by_rows(xp, w, index, *, padding_idx=None):
    """``embedding`` whose gradient is only the rows that were read; ``sparse=True`` asks for it."""
    return xp.take(w, index, axis=0)


# In a recorded backward pass gradients are Tensors, and that of a table is one with all its rows.
FORWARDS["table_rows"] = table_rows
differentiable.table_rows = lambda g, index, *, rows, padding_idx: embedding_slope(
    g, index, rows=rows, padding_idx=padding_idx, by_freq=False
)


def _kept(xp, g, index, rows, padding_idx, by_freq):
    """The gradient of each looked-up row, without those of ``padding_idx``, divided by how often a row was read."""
    if by_freq:
        counts = xp.bincount(xp.reshape(index, shape=(-1,)), length=rows)
        g = g / xp.expand_dims(xp.astype(xp.embedding(counts, index), dtype=g.dtype), axis=-1)
    if padding_idx is not None:
        g = xp.where(xp.expand_dims(index == padding_idx, axis=-1), 0.0, g)
    return g


@op(
    g=lambda xp, g, index, rows, padding_idx, by_freq: _kept(
        xp, xp.embedding(g, index), index, rows, padding_idx, by_freq
    )
)
def embedding_slope(xp, g, index, *, rows, padding_idx, by_freq):
    """Zeros of ``rows`` rows with each row of g added where it was looked up."""
    g = _kept(xp, g, index, rows, padding_idx, by_freq)
    count = numel(index.shape)  # not -1: rows may have no elements
    return xp.add_rows(xp.reshape(g, shape=(count, g.shape[-1])), xp.reshape(index, shape=(count,)), size=rows)


@op
def bincount(xp, x, *, length=0):
    return xp.bincount(x, length=length)


@op(node="EmbeddingBagBackward0", derive=True)
def bag_sum(xp, w, index, bag, scale, *, bags, by_freq=False):
    """The sum of ``w[index] * scale`` over each bag; ``bag`` says for each index where it belongs."""
    return xp.sum_rows(xp.embedding(w, index, by_freq=by_freq) * xp.expand_dims(scale, axis=1), bag, size=bags)


@op(x=lambda xp, g, bag: xp.embedding(g, bag))
def sum_rows(xp, x, bag, *, size):
    return xp.add_rows(x, bag, size=size)


def _bag_max_rule(xp, g, w_shape, aux):
    rows, columns, any_ = aux
    return xp.add_at_zeros(xp.where(any_, g, 0.0), rows, columns, shape=w_shape)


def _bag_winners(xp, w, index, bag, bags):
    """(the row of the table that each element of the result is from, its column, whether the bag has any)."""
    count, width = index.shape[0], w.shape[1]
    rows = xp.take(w, index, axis=0)
    best = xp.index_reduce(xp.full((bags + 1, width), -xp.inf, dtype=w.dtype), rows, index=(bag,), how="amax")
    winner = (rows == xp.take(best, bag, axis=0)) | (rows != rows)  # a nan is the largest
    place = xp.where(winner, xp.arange(count)[:, None], count)
    first = xp.index_reduce(xp.full((bags + 1, width), count), place, index=(bag,), how="amin")[:bags]
    any_ = first < count
    if not count:
        return xp.zeros((bags, width), dtype=index.dtype), xp.arange(width)[None, :], any_
    return xp.take(index, xp.where(any_, first, 0), axis=0), xp.arange(width)[None, :], any_


@op(node="EmbeddingBagBackward0", aux=_bag_winners, residuals=True, w=_bag_max_rule)
def bag_max(xp, w, index, bag, *, bags, aux):
    """The largest of ``w[index]`` over each bag, 0 for an empty one; ``bag`` is ``bags`` for what is left out."""
    rows, columns, any_ = aux
    return xp.where(any_, xp.index_at(w, rows, columns), 0.0)


@op
def is_class(xp, index, *, classes):
    """Whether each index is 0, 1, … ``classes - 1``: a last axis of that size."""
    return xp.expand_dims(index, -1) == xp.arange(classes)


@op
def one_hot(xp, index, *, classes):
    """The same as 0 and 1."""
    return xp.astype(xp.is_class(index, classes=classes), dtype="int64")


@op(node="PdistBackward0", derive=True)
def pdist(xp, x, first, second, *, p):
    """The p-norm of ``x[first] - x[second]``."""
    difference = xp.embedding(x, first) - xp.embedding(x, second)
    return xp.vector_norm(difference, ord=p, axis=(1,), keepdims=False)
