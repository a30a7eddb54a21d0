"""Attention on NumPy, a few heads at a time on each thread, so that their weights stay in cache and are never kept.

Forward keeps one number a row, the logarithm of its softmax's denominator; backward makes the weights again from it.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ....layout import dense_strides
from ...native import library
from .. import layouts
from . import parallel
from .products import four
from .softmax import exponentials


def attention(needs, q, k, v, mask, noise, *, scale, causal):
    """softmax(q kᵀ scale + mask) v and the rows' normalizers: see ``ops.attention.attention``."""
    if not needs & 8 and _serves(q, k, v, mask, noise):  # a mask's gradient is for NumPy
        return _native(needs, q, k, v, mask, noise, scale, causal)
    shape, heads = _Heads.common(q, k, v, mask, noise)
    order = _query_order(q, (*shape, q.shape[-2], v.shape[-1]))
    q, k, v = (heads.flat(a) for a in (q, k, v))
    out = np.empty((heads.count, q.shape[1], v.shape[2]), dtype=np.result_type(q, v))
    normalizers = np.empty((heads.count, q.shape[1], 1), dtype=out.dtype)

    def work(start, stop):
        block = slice(start, stop)
        scores = _scores(q, k, heads, mask, block, scale, causal)
        weights = np.empty_like(scores)
        total, shifts = exponentials(*[a.reshape(-1, a.shape[-1]) for a in (weights, scores)])
        total[total == 0] = 1  # a row that may look nowhere
        normalizers[block] = (np.log(total) + shifts).reshape(normalizers[block].shape)
        if noise is not None:
            weights *= heads.part(noise, block)
        np.matmul(weights, v[block], out=out[block])
        out[block] /= total.reshape(normalizers[block].shape)

    parallel.rows(heads.count, q.shape[1] * k.shape[1], work)
    result = out.reshape(*shape, *out.shape[1:])
    if order is not None:
        result = layouts.laid(result, dense_strides(result.shape, order))
    return result, ((_kept(result), normalizers) if needs else None)


def _common(*arrays) -> tuple:
    """The leading dimensions of all that are given."""
    shapes = {a.shape[:-2] for a in arrays if a is not None}
    return shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)


def _kept(result):
    """As in PyTorch only attention by heads keeps its result, which then may not be written to."""
    return result if result.ndim == 4 else None


def attention_backward(g, edges, known):
    q, k, v, mask, noise, scale = (known[name] for name in ("q", "k", "v", "mask", "noise", "scale"))
    out, normalizers = known["aux"]
    if normalizers.ndim == 1:
        return _native_backward(g, edges, known)
    shape, heads = _Heads.common(q, k, v, mask, noise)
    q, k, v, g, out = (None if a is None else heads.flat(a) for a in (q, k, v, g, out))
    dq, dk, dv = (np.empty_like(a) for a in (q, k, v))
    d_mask = None
    if edges[3] is not None:
        d_mask = np.empty((heads.count, q.shape[1], k.shape[1]), dtype=q.dtype)

    def work(start, stop):
        block = slice(start, stop)
        weights = _scores(q, k, heads, mask, block, scale, known["causal"])
        weights -= normalizers[block]
        np.exp(weights, out=weights)
        kept = weights if noise is None else weights * heads.part(noise, block)
        np.matmul(kept.swapaxes(1, 2), g[block], out=dv[block])
        d_scores = g[block] @ v[block].swapaxes(1, 2)
        if noise is not None:
            d_scores *= heads.part(noise, block)
        along = np.vecdot(d_scores, weights) if out is None else np.vecdot(g[block], out[block])
        d_scores -= along[..., None]
        d_scores *= weights
        if d_mask is not None:
            d_mask[block] = d_scores
        np.matmul(d_scores, k[block], out=dq[block])
        np.matmul(d_scores.swapaxes(1, 2), q[block], out=dk[block])
        for d in (dq[block], dk[block]):
            d *= scale

    parallel.rows(heads.count, q.shape[1] * k.shape[1], work)
    gradients = (dq, dk, dv, d_mask)
    return [
        a.reshape(*shape, *a.shape[1:]) if e is not None and a is not None else None
        for a, e in zip((*gradients, None), edges)
    ]


# -- by the library in C -----------------------------------------------------------------------------------------------


def _serves(q, k, v, mask, noise) -> bool:
    if library is None or not (q.size and k.size and v.size) or q.dtype.char not in "fd":
        return False
    if mask is not None and mask.dtype != bool and mask.dtype != q.dtype:
        return False
    return q.dtype == k.dtype == v.dtype and (noise is None or noise.dtype == q.dtype)


def _native(needs, q, k, v, mask, noise, scale, causal):
    batch = _common(q, k, v, mask, noise)
    shape = (*batch, q.shape[-2], v.shape[-1])
    order = _query_order(q, shape)
    out = np.empty(shape if order is None else [shape[d] for d in order], q.dtype)
    out = out if order is None else out.transpose(np.argsort(order))
    normalizers = np.empty(math.prod(batch) * q.shape[-2], q.dtype)
    arrays, exclude = _arguments(batch, q, k, v, mask, noise)
    library.attention(*arrays, four(out, batch), normalizers, int(causal), int(exclude), scale)
    return out, ((_kept(out), normalizers) if needs else None)


def _native_backward(g, edges, known):
    q, k, v, mask, noise = (known[name] for name in ("q", "k", "v", "mask", "noise"))
    out, normalizers = known["aux"]
    batch = g.shape[:-2]
    gradients = [_by_query((*batch, *a.shape[-2:]), a.dtype) for a in (q, k, v)]
    arrays, exclude = _arguments(batch, q, k, v, mask, noise)
    out, g, *targets = (None if a is None else four(a, batch) for a in (out, g, *gradients))
    library.attention_backward(
        *arrays, out, normalizers, g, *targets, int(known["causal"]), int(exclude), known["scale"]
    )
    return [a if e is not None else None for a, e in zip((*gradients, None, None), edges)]


def _arguments(batch, q, k, v, mask, noise):
    """What the library takes, and whether the mask says where to look."""
    exclude = mask is not None and mask.dtype == bool
    if exclude:
        mask = np.where(mask, q.dtype.type(0), q.dtype.type(-np.inf))
    if mask is not None:
        mask = np.broadcast_to(mask, (*mask.shape[:-2], q.shape[-2], k.shape[-2]))
    return [None if a is None else four(a, batch) for a in (q, k, v, mask, noise)], exclude


def _query_order(q, shape):
    """The order in which the dimensions of a result lie: but for the last as the queries' do; None: in plain order."""
    order = [*sorted(range(q.ndim - 1), key=lambda d: -q.strides[d]), q.ndim - 1]
    if q.shape != shape or order == list(range(q.ndim)):
        return None
    layouts.watch()
    return order


def _by_query(shape, dtype):
    """An array in whose memory the heads of one query lie together, as those of a projection do."""
    if len(shape) != 4:
        return np.empty(shape, dtype)
    batch, heads, length, size = shape
    return np.empty((batch, length, heads, size), dtype).swapaxes(1, 2)


# -- on NumPy ----------------------------------------------------------------------------------------------------------


def _scores(q, k, heads, mask, block, scale, causal):
    scores = (q[block] * scale) @ k[block].swapaxes(1, 2)
    if causal:
        np.copyto(scores, -np.inf, where=_future(*scores.shape[1:]))
    if mask is not None:
        part = heads.part(mask, block)
        if part.dtype == bool:
            np.copyto(scores, -np.inf, where=~part)
        else:
            scores += part
    return scores


@functools.lru_cache(maxsize=8)
def _future(rows, columns):
    return ~np.tri(rows, columns, dtype=bool)


class _Heads:
    """The leading dimensions of all arrays as one: ``count`` heads."""

    @classmethod
    def common(cls, *arrays):
        shape = _common(*arrays)
        return shape, cls(shape)

    def __init__(self, shape):
        self.shape, self.count = shape, math.prod(shape)

    def flat(self, a):
        return np.broadcast_to(a, (*self.shape, *a.shape[-2:])).reshape(self.count, *a.shape[-2:])

    def part(self, a, block):
        """The heads of ``block`` of a mask, which is often the same for many: copied no further than that."""
        if math.prod(a.shape[:-2]) == 1:
            return a.reshape(1, *a.shape[-2:])
        index = np.unravel_index(np.arange(block.start, block.stop), self.shape)
        return np.broadcast_to(a, (*self.shape, *a.shape[-2:]))[index]
