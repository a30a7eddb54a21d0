"""The same elements in another shape or order; most are views."""

from __future__ import annotations

from ..autograd.op import op


@op(node="ViewBackward0", view=True, write=lambda xp, x, value, shape: xp.reshape(value, shape=x.shape), x=lambda xp, g: g)
def reshape(xp, x, *, shape):
    return xp.reshape(x, shape=shape)


def _inverse(axes):
    order = [0] * len(axes)
    for i, a in enumerate(axes):
        order[a] = i
    return tuple(order)


@op(
    node="PermuteBackward0",
    view=True,
    write=lambda xp, x, value, axes: xp.transpose(value, axes=_inverse(axes)),
    x=lambda xp, g, axes: xp.transpose(g, axes=_inverse(axes)),
)
def transpose(xp, x, *, axes):
    return xp.transpose(x, axes)


@op(node="ExpandBackward0", view=True, x=lambda xp, g: g)
def broadcast_to(xp, x, *, shape):
    return xp.broadcast_to(x, shape)


@op(
    node="TBackward0",
    view=True,
    write=lambda xp, x, value: xp.matrix_transpose(value),
    x=lambda xp, g: xp.matrix_transpose(g),
)
def matrix_transpose(xp, x):
    return xp.matrix_transpose(x)
