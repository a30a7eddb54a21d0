"""Operators that PyTorch has as several: what they do here in one step, in its steps."""

from __future__ import annotations

import functools

import numpy as np

from ...autograd import dispatching
from ...autograd.op import differentiable as xp
from ...autograd.op import variant
from ...tensor import Tensor

__all__ = ["EXPANSIONS", "as_view"]


def _expand_linear(node, x, w, b=None):
    turned = xp.matrix_transpose
    if x.ndim == 2:
        return xp.matmul(x, turned(w)) if b is None else xp.add_matmul(b, x, turned(w), beta=1, alpha=1)
    if b is None:
        return _expand_matmul("", x, turned(w))
    if not x.is_contiguous():
        return xp.add(_expand_matmul("", x, turned(w)), b)
    rows = xp.view_as_shape(x, shape=(_rows(x), x.shape[-1]))
    made = xp.add_matmul(b, rows, turned(w), beta=1, alpha=1)
    return xp.view_as_shape(made, shape=(*x.shape[:-1], w.shape[0]))


def _rows(x) -> int:
    return functools.reduce(lambda a, b: a * b, x.shape[:-1], 1)


def _expand_matmul(node, x, w):
    """A product of batches: rows together where one side is a matrix, else ``bmm``."""
    if x.ndim == w.ndim and (x.ndim == 2 or node in ("BmmBackward0", "MmBackward0")):
        return xp.matmul(x, w) if x.ndim == 2 and not node else None
    if x.ndim >= 3 and w.ndim == 2 and (w._node is not None or x.is_contiguous()):
        rows = as_view(x, (_rows(x), x.shape[-1]))
        return xp.unsafe_view(xp.matmul(rows, w), shape=(*x.shape[:-1], w.shape[-1]))
    batch = np.broadcast_shapes(tuple(x.shape[:-2]), tuple(w.shape[:-2]))
    count = functools.reduce(lambda a, b: a * b, batch, 1)
    sides = []
    for t in (x, w):
        wide = _expanded(t, shape=(*batch, *t.shape[-2:]))
        sides.append(as_view(wide, (count, *t.shape[-2:])))
    return xp.unsafe_view(_batch_matmul()(*sides), shape=(*batch, x.shape[-2], w.shape[-1]))


def as_view(t, shape):
    if t.is_contiguous() or tuple(t.shape) == tuple(shape):
        return xp.view_as_shape(t, shape=shape)
    return xp.unsafe_view(xp.clone(t), shape=shape)


def _expanded(t, *, shape):
    return xp.broadcast_to(t, shape=shape)


@functools.cache
def _batch_matmul():
    return variant(xp.matmul, "BmmBackward0")


def _expand_matvec(node, x, w):
    if x.ndim == 2:
        return None
    rows = as_view(x, (_rows(x), x.shape[-1]))
    return xp.unsafe_view(xp.matvec(rows, w), shape=tuple(x.shape[:-1]))


def _expand_dropout(node, x, mask, *, scale):
    scaled = lambda: mask.to(x.dtype) * scale
    return xp.multiply(x, dispatching.undispatched(scaled) if type(mask) is Tensor else mask)


EXPANSIONS = {
    "linear": _expand_linear,
    "matmul": _expand_matmul,
    "matvec": _expand_matvec,
    "native_dropped": _expand_dropout,
}
