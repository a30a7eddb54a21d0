"""Many elements to few: sums, means, extremes."""

from __future__ import annotations

from ..autograd.op import op


def _kept(xp, g, axis, keepdims, shape):
    """A reduction's gradient with the reduced axes back in place, as 1."""
    if keepdims or not shape:
        return g
    axes = range(len(shape)) if axis is None else [a % len(shape) for a in (axis if isinstance(axis, tuple) else (axis,))]
    return xp.reshape(g, shape=tuple(1 if i in axes else n for i, n in enumerate(shape)))


@op(x=lambda xp, g, axis, keepdims, x_shape: xp.broadcast_to(_kept(xp, g, axis, keepdims, x_shape), shape=x_shape))
def sum_(xp, x, *, axis=None, keepdims=False):
    return xp.sum(x, axis=axis, keepdims=keepdims)


@op(
    x=lambda xp, g, axis, keepdims, x_shape: xp.broadcast_to(
        _kept(xp, g, axis, keepdims, x_shape) * (1.0 / _count(x_shape, axis)), shape=x_shape
    )
)
def mean(xp, x, *, axis=None, keepdims=False):
    return xp.sum(x, axis=axis, keepdims=keepdims) * (1.0 / _count(x.shape, axis))


def _count(shape, axis) -> int:
    n = 1
    for a in range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,):
        n *= shape[a]
    return n
