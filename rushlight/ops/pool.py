"""Pooling: windows over the trailing axes, as one strided part of the input per window element.

``step`` is how far apart windows start, ``size`` how many there are, ``offsets`` where in a window each element sits,
less the padding: positions outside the input are skipped. Where a window is a product of the same positions along each
axis, these are listed axis by axis, as ``taps``. Written so, forward and backward are slices, comparisons and sums,
which both engines run fast and which differentiate as often as needed.
"""

from __future__ import annotations

import functools
import itertools
import operator

import numpy as np

from ..autograd.op import op
from .dims import numel

# -- parts of windows --------------------------------------------------------------------------------------------------


@op(exact=True, x=lambda xp, g, low, step, x_shape: xp.spread(g, low=low, full=tuple(x_shape[-len(low) :]), step=step))
def pick(xp, x, *, low, size, step):
    """Every ``step``-th position from ``low`` on, ``size`` of them, along each trailing axis; 0 outside."""
    return xp.pick(x, low=low, size=size, step=step)


@op(exact=True, x=lambda xp, g, low, step, x_shape: xp.pick(g, low=low, size=tuple(x_shape[-len(low) :]), step=step))
def spread(xp, x, *, low, full, step):
    """The adjoint of ``pick``: zeros of trailing shape ``full`` with x in those positions."""
    return xp.spread(x, low=low, full=full, step=step)


@functools.lru_cache(256)
def taps_of(kernel, dilation, padding) -> tuple:
    """Where the elements of the first window sit, along each axis."""
    return tuple(tuple(range(-p, d * k - p, d)) for k, d, p in zip(kernel, dilation, padding))


@functools.lru_cache(256)
def offsets_of(kernel, dilation, padding) -> tuple:
    """Where the elements of the first window sit, in the order of memory."""
    return tuple(itertools.product(*taps_of(kernel, dilation, padding)))


# -- the largest -------------------------------------------------------------------------------------------------------


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


@op
def flat_positions(xp, which, *, offsets, step, full):
    """``max_pool``'s second output as positions in the flattened trailing axes of the input."""
    at, total = xp.astype(which, dtype="int64"), 0
    for axis, (s, f) in enumerate(zip(step, full)):
        starts = (np.arange(which.shape[axis - len(step)]) * s).reshape(-1, *[1] * (len(step) - axis - 1))
        total = total * f + xp.asarray(starts) + xp.asarray(np.array([o[axis] for o in offsets]))[at]
    return total


def _flat(xp, x, dims):
    return xp.reshape(x, shape=(*x.shape[: x.ndim - dims], numel(x.shape[x.ndim - dims :])))


def _to_positions(xp, g, index, dims, x_shape):
    return xp.add_positions(g, index, full=tuple(x_shape[len(x_shape) - dims :]))


@op(node="MaxPool2DWithIndicesBackward0", exact=True, x=_to_positions)
def at_positions(xp, x, index, *, dims):
    """The elements at ``index``, which counts in the flattened ``dims`` trailing axes of x; it has as many axes."""
    found = xp.gather(_flat(xp, x, dims), _flat(xp, index, dims), axis=x.ndim - dims)
    return xp.reshape(found, shape=index.shape)


@op(x=lambda xp, g, index, full: xp.at_positions(g, index, dims=len(full)))
def add_positions(xp, x, index, *, full):
    """The adjoint of ``at_positions``."""
    dims = len(full)
    lead = x.shape[: x.ndim - dims]
    out = xp.scatter_zeros(_flat(xp, x, dims), _flat(xp, index, dims), axis=x.ndim - dims, shape=(*lead, numel(full)))
    return xp.reshape(out, shape=(*lead, *full))


@op(node="MaxUnpool2DBackward0", exact=True, x=lambda xp, g, index, full: xp.at_positions(g, index, dims=len(full)))
def unpool(xp, x, index, *, full):
    """Zeros with x at ``index``, where of several the last one stays."""
    dims = len(full)
    lead = x.shape[: x.ndim - dims]
    zeros = xp.zeros((*lead, numel(full)), dtype=x.dtype)
    out = xp.scatter(zeros, _flat(xp, index, dims), _flat(xp, x, dims), axis=x.ndim - dims)
    return xp.reshape(out, shape=(*lead, *full))


@op
def largest_of(xp, x, *starts, reach):
    """Flat positions of the largest element of windows that begin at ``starts``.

    There are ``starts`` and a ``reach`` for each trailing axis. ``reach`` lists how long each window is (or says it for
    all); starts are (windows,), or (…, windows) with x's leading axes. Of equals the first is found, of NaN the last.
    """
    dims = len(starts)
    full = x.shape[x.ndim - dims :]
    position = 0
    for axis, (start, r, n) in enumerate(zip(starts, reach, full)):
        longest = r if isinstance(r, int) else max(r, default=1)
        steps = np.arange(longest) if isinstance(r, int) else np.minimum(np.arange(longest), np.array(r)[:, None] - 1)
        at = xp.expand_dims(start, axis=-1) + xp.asarray(steps)  # (…, windows, longest)
        shape = [1] * (2 * dims)
        shape[axis], shape[dims + axis] = at.shape[-2:]
        position = position * n + xp.reshape(at, shape=(*at.shape[:-2], *shape))
    size, count = position.shape[-2 * dims : -dims], numel(position.shape[-dims:])
    lead = x.shape[: x.ndim - dims]
    position = xp.reshape(position, shape=(*position.shape[: -2 * dims], *size, count))
    position = xp.broadcast_to(position, (*lead, *size, count))
    if 0 in position.shape:
        return xp.zeros((*lead, *size), dtype=np.int64)
    values = xp.gather(_flat(xp, x, dims), xp.reshape(position, shape=(*lead, -1)), axis=x.ndim - dims)
    values = xp.reshape(values, shape=position.shape)
    no_number = xp.isnan(values)
    last = count - 1 - xp.argmax(xp.flip(no_number, axis=-1), axis=-1)
    best = xp.expand_dims(xp.where(xp.any(no_number, axis=-1), last, xp.argmax(values, axis=-1)), axis=-1)
    return xp.squeeze(xp.take_along_axis(position, best, axis=-1), axis=-1)


@op
def random_starts(xp, x, *, n, size, window):
    """Where ``size`` windows begin among ``n`` elements: a step apart on average, shifted by x from [0, 1)."""
    x = xp.expand_dims(x, axis=-1)
    step = (n - window) / (size - 1) if size > 1 else 0.0
    count = xp.asarray(np.arange(size - 1), dtype=x.dtype)
    step = xp.asarray(step, dtype=x.dtype)
    starts = xp.trunc((count + x) * step) - xp.trunc(x * step)
    last = xp.zeros((*starts.shape[:-1], 1), dtype=x.dtype) + (n - window)
    return xp.astype(xp.concatenate([starts, last], axis=-1), dtype="int64")


# -- sums and averages -------------------------------------------------------------------------------------------------


@op(x=lambda xp, g, taps, step, x_shape: xp.spread_windows(g, taps=taps, full=tuple(x_shape[-len(step) :]), step=step))
def sum_windows(xp, x, *, taps, size, step):
    """The sum of every window."""
    return xp.sum_windows(x, taps=taps, size=size, step=step)


@op(x=lambda xp, g, taps, step, x_shape: xp.sum_windows(g, taps=taps, size=tuple(x_shape[-len(step) :]), step=step))
def spread_windows(xp, x, *, taps, full, step):
    """The adjoint of ``sum_windows``: every element added to all places of its window."""
    return xp.spread_windows(x, taps=taps, full=full, step=step)


@op(
    node="AvgPool2DBackward0",
    x=lambda xp, g, taps, step, divisor, x_shape: xp.avg_pool_slope(
        g, taps=taps, full=tuple(x_shape[-len(step) :]), step=step, divisor=divisor
    ),
)
def avg_pool(xp, x, *, taps, size, step, divisor):
    """The sum of every window over ``divisor``: one number, or for each axis one for each window."""
    total = xp.sum_windows(x, taps=taps, size=size, step=step)
    if total.dtype.kind in "iu":
        return xp.astype(xp.trunc(total / _divisors(xp, divisor, np.float64)), dtype=x.dtype)
    return total / _divisors(xp, divisor, total.dtype)


@op(
    x=lambda xp, g, taps, step, divisor, x_shape: xp.avg_pool(
        g, taps=taps, size=tuple(x_shape[-len(step) :]), step=step, divisor=divisor
    )
)
def avg_pool_slope(xp, x, *, taps, full, step, divisor):
    """The adjoint of ``avg_pool``."""
    return xp.spread_windows(x / _divisors(xp, divisor, x.dtype), taps=taps, full=full, step=step)


def _divisors(xp, divisor, dtype):
    if not isinstance(divisor, tuple):
        return divisor
    return xp.asarray(functools.reduce(np.multiply.outer, map(np.array, divisor)), dtype=dtype)


# -- columns -----------------------------------------------------------------------------------------------------------


@op(
    node="Im2ColBackward0",
    exact=True,
    x=lambda xp, g, offsets, size, step, x_shape: xp.col2im(
        g, offsets=offsets, size=size, step=step, full=tuple(x_shape[-len(step) :])
    ),
)
def im2col(xp, x, *, offsets, size, step):
    """(…, C, *full) to (…, C * len(offsets), windows)."""
    *lead, channels = x.shape[: x.ndim - len(step)]
    found = xp.columns(x, offsets=offsets, size=size, step=step)
    return xp.reshape(found, shape=(*lead, channels * len(offsets), numel(size)))


@op(
    node="Col2ImBackward0",
    x=lambda xp, g, offsets, size, step: xp.im2col(g, offsets=offsets, size=size, step=step),
)
def col2im(xp, x, *, offsets, size, step, full):
    """The adjoint of ``im2col``."""
    *lead, rows, _ = x.shape
    x = xp.reshape(x, shape=(*lead, rows // len(offsets), len(offsets), *size))
    return xp.add_columns(x, offsets=offsets, full=full, step=step)
