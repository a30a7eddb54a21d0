"""Pooling: windows over the trailing axes, as one strided part of the input per window element.

``offsets`` lists where in a window each element sits, ``size`` how many windows there are, ``step`` how far apart
they start; padding has been put around the input before. Written so, forward and backward are slices, comparisons
and sums, which both engines run fast and which differentiate as often as needed.
"""

from __future__ import annotations

import functools
import operator

from ..autograd.op import op


@op(exact=True, x=lambda xp, g, low, step, x_shape: xp.spread(g, low=low, full=tuple(x_shape[-len(low) :]), step=step))
def pick(xp, x, *, low, size, step):
    """Every ``step``-th position from ``low`` on, ``size`` of them, along each trailing axis."""
    return xp.pick(x, low=low, size=size, step=step)


@op(exact=True, x=lambda xp, g, low, step, x_shape: xp.pick(g, low=low, size=tuple(x_shape[-len(low) :]), step=step))
def spread(xp, x, *, low, full, step):
    """The adjoint of ``pick``: zeros of trailing shape ``full`` with x in those positions."""
    return xp.spread(x, low=low, full=full, step=step)


@op(
    node="MaxPool2DWithIndicesBackward0",
    aux=lambda xp, x, offsets, size, step: xp.max_windows(x, offsets=offsets, size=size, step=step),
    x=lambda xp, g, aux, offsets, step, x_shape: _spread_chosen(xp, g, aux[1], offsets, step, x_shape),
)
def max_pool(xp, x, *, offsets, size, step, aux):
    """(the largest element of every window, which of ``offsets`` it sits at)."""
    return aux


def _spread_chosen(xp, g, which, offsets, step, x_shape):
    g = g[0]  # the other output, which element it was, has no gradient
    full = tuple(x_shape[-len(step) :])
    parts = (
        xp.spread(g * xp.astype(which == k, dtype=g.dtype), low=offset, full=full, step=step)
        for k, offset in enumerate(offsets)
    )
    return functools.reduce(operator.add, parts)


@op(
    node="AvgPool2DBackward0",
    x=lambda xp, g, offsets, step, x_shape: _spread_everywhere(xp, g, offsets, step, x_shape),
)
def sum_pool(xp, x, *, offsets, size, step):
    """The sum of every window."""
    return xp.sum_windows(x, offsets=offsets, size=size, step=step)


def _spread_everywhere(xp, g, offsets, step, x_shape):
    full = tuple(x_shape[-len(step) :])
    return functools.reduce(operator.add, (xp.spread(g, low=o, full=full, step=step) for o in offsets))
