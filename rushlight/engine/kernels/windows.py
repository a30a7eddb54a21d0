"""Strided parts of an array's trailing axes, read and put back, on NumPy."""

from __future__ import annotations

import numpy as np


def slices(low, size, step):
    """The index of positions ``low + step * i`` for ``i < size``, along each trailing axis."""
    return (Ellipsis, *(slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(low, size, step)))


def pick(x, *, low, size, step):
    return x[slices(low, size, step)]


def spread(x, *, low, full, step):
    out = np.zeros((*x.shape[: x.ndim - len(full)], *full), dtype=x.dtype)
    out[slices(low, x.shape[x.ndim - len(full) :], step)] = x
    return out


def max_windows(x, *, offsets, size, step):
    """(the largest element of each window, which of ``offsets`` it is at); NaN counts as largest, the first wins."""
    best = pick(x, low=offsets[0], size=size, step=step).copy()
    which = np.zeros(best.shape, dtype=np.uint8 if len(offsets) < 256 else np.int32)
    for k, offset in enumerate(offsets[1:], 1):
        part = pick(x, low=offset, size=size, step=step)
        larger = part > best
        if best.dtype.kind == "f":
            larger |= np.isnan(part)
        np.copyto(best, part, where=larger)
        which[larger] = k
    return best, which


def max_windows_backward(g, edges, saved):
    """All of ``max_pool``'s gradient in one buffer, instead of one spread per window element."""
    g = g[0]
    which, offsets, step, shape = saved["aux"][1], saved["offsets"], saved["step"], saved["x_shape"]
    out = np.zeros(shape, dtype=g.dtype)
    size = g.shape[g.ndim - len(step) :]
    for k, offset in enumerate(offsets):
        out[slices(offset, size, step)] += g * (which == k)
    return (out,)


def sum_windows(x, *, offsets, size, step):
    total = pick(x, low=offsets[0], size=size, step=step).copy()
    for offset in offsets[1:]:
        total += pick(x, low=offset, size=size, step=step)
    return total


def sum_windows_backward(g, edges, saved):
    out = np.zeros(saved["x_shape"], dtype=g.dtype)
    step = saved["step"]
    size = g.shape[g.ndim - len(step) :]
    for offset in saved["offsets"]:
        out[slices(offset, size, step)] += g
    return (out,)
