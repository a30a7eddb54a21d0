"""Strided parts of an array's trailing axes, read and put back, on NumPy; positions outside the array are skipped."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from ...native import library
from . import sums
from .copies import copied
from .parallel import over

_FEW = 16  # elements of a window
_BLOCK = 1 << 20  # bytes to work on at a time, so that what is read again is still in the cache


def pick(x, *, low, size, step):
    """Positions ``low + step * i``, ``i < size``, along each trailing axis; 0 where they are outside."""
    there, here = clipped(low, size, step, x.shape[x.ndim - len(low) :])
    if here is None:
        return x[there]
    out = np.zeros((*x.shape[: x.ndim - len(low)], *size), dtype=x.dtype)
    out[here] = x[there]
    return out


def spread(x, *, low, full, step):
    """The adjoint of ``pick``: zeros of trailing shape ``full`` with x in those positions."""
    out = np.zeros((*x.shape[: x.ndim - len(full)], *full), dtype=x.dtype)
    there, here = clipped(low, x.shape[x.ndim - len(full) :], step, full)
    out[there] = x if here is None else x[here]
    return out


def clipped(low, size, step, full):
    """(the index of positions ``low + step * i`` inside ``full``, the index of those ``i``: None if all are)."""
    there, here, whole = [Ellipsis], [Ellipsis], True
    for a, n, s, f in zip(low, size, step, full):
        first = max(0, -(a // s))
        last = max(first, min(n, (f - 1 - a) // s + 1))
        whole = whole and first == 0 and last == n
        start = a + first * s
        there.append(slice(start, start + (last - first - 1) * s + 1 if last > first else start, s))
        here.append(slice(first, last))
    return tuple(there), None if whole else tuple(here)


def max_windows(x, *, offsets, size, step):
    """(the largest element of each window, which of ``offsets`` it is at); the first wins, or the last NaN."""
    best = np.empty((*x.shape[: x.ndim - len(step)], *size), dtype=x.dtype)
    which = np.empty(best.shape, dtype=small_int(len(offsets)))
    if library is not None and is_for_kernel(x, offsets):
        library.max_windows(np.ascontiguousarray(x), flat(offsets), best, which, *numbers(x.shape, size, step))
        return best, which
    places = [clipped(offset, size, step, x.shape[x.ndim - len(step) :]) for offset in offsets]

    def work(start, stop):
        _max_of(x[start:stop], best[start:stop], which[start:stop], places)

    if x.ndim > len(step) and best.size:
        over(len(x), max(1, _BLOCK // (x[0].nbytes or 1)), lambda: work)
    else:
        _max_of(x, best, which, places)
    return best, which


def _max_of(x, best, which, places):
    best[...] = lowest(x.dtype)
    for there, here in places:
        part = best if here is None else best[here]
        np.maximum(part, x[there], out=part)
    # The first of equals has the highest score. Arithmetic on bytes, for a masked copy is ten times slower.
    count, score = len(places), which
    score[...] = 0
    for k, (there, here) in enumerate(places):
        equal = (x[there] == (best if here is None else best[here])).view(np.uint8)
        part = score if here is None else score[here]
        np.maximum(part, equal * score.dtype.type(count - k), out=part)
    np.subtract(score.dtype.type(count), score, out=which)
    if best.dtype.kind == "f" and np.isnan(np.add.reduce(best, axis=None)):  # perhaps: opposite infinities do it too
        for k, (there, here) in enumerate(places):
            np.copyto(which if here is None else which[here], which.dtype.type(k), where=np.isnan(x[there]))


def is_for_kernel(x, offsets) -> bool:
    return x.dtype.char in "fd" and x.size > 0 and 0 < len(offsets) <= 255 and len(offsets[0]) <= 3


@functools.lru_cache(64)
def flat(offsets: tuple):
    """As the kernel takes them, of three dimensions."""
    return np.array([(0,) * (3 - len(o)) + tuple(o) for o in offsets], np.int64)


@functools.lru_cache(64)
def _flat_of(taps: tuple):
    return flat(tuple(itertools.product(*taps)))


@functools.lru_cache(256)
def numbers(shape, size, step):
    """What the kernel wants to know: how many volumes, their size, how many windows they have, and how far apart."""
    dims = len(step)
    fill = (1,) * (3 - dims)
    return math.prod(shape[: len(shape) - dims]), *fill, *shape[len(shape) - dims :], *fill, *size, *fill, *step


def lowest(dtype):
    """What loses against everything."""
    return -np.inf if dtype.kind not in "iu" else np.iinfo(dtype).min


def small_int(count):
    return np.uint8 if count <= 255 else np.int32


def first_inside(offsets, size, step, full):
    """For each window, the number of the first offset that is inside the array."""
    inside = np.ones((len(offsets), *size), dtype=bool)
    for axis, (n, s, f) in enumerate(zip(size, step, full)):
        at = np.array([o[axis] for o in offsets])[:, None] + np.arange(n) * s
        inside &= ((at >= 0) & (at < f)).reshape(-1, *[n if a == axis else 1 for a in range(len(size))])
    return inside.argmax(0)


def max_windows_backward(g, edges, saved):
    """All of ``max_pool``'s gradient in one buffer, instead of one spread per window element."""
    g = g[0]
    which, offsets, step, shape = saved["aux"][1], saved["offsets"], saved["step"], saved["x_shape"]
    size, full = g.shape[g.ndim - len(step) :], shape[len(shape) - len(step) :]
    if library is not None and which.dtype == np.uint8 and is_for_kernel(g, offsets):
        out = np.empty(shape, dtype=g.dtype)
        g, which = np.ascontiguousarray(g), np.ascontiguousarray(which)
        library.max_windows_slope(g, which, flat(offsets), out, *numbers(shape, size, step))
        return (out,)
    out = np.zeros(shape, dtype=g.dtype)
    places, alone = [clipped(offset, size, step, full) for offset in offsets], _apart(offsets, step)

    def work(start, stop):
        _put_chosen(out[start:stop], g[start:stop], which[start:stop], places, alone)

    if len(shape) > len(step) and out.size:
        over(len(out), max(1, _BLOCK // out[0].nbytes), lambda: work)
    else:
        _put_chosen(out, g, which, places, alone)
    return (out,)


def _put_chosen(out, g, which, places, alone):
    for k, (there, here) in enumerate(places):
        mine, chosen = (g, which) if here is None else (g[here], which[here])
        if alone:
            np.multiply(mine, chosen == k, out=out[there])
        else:
            out[there] += mine * (chosen == k)


def _apart(offsets, step) -> bool:
    """Does no element of the input belong to two windows?"""
    low, high = np.min(offsets, 0), np.max(offsets, 0)
    return bool((high - low < step).all())


def sum_windows(x, *, taps, size, step):
    """The sum of each window, one axis after the other: ``taps`` lists for each where in a window elements sit."""
    if _sums_by_kernel(x, taps):
        total = np.empty((*x.shape[: x.ndim - len(taps)], *size), x.dtype)
        library.sum_windows(np.ascontiguousarray(x), _flat_of(taps), total, *numbers(x.shape, size, step))
        return total
    if _are_tiles(x, taps, size, step, x.shape[x.ndim - len(step) :]):
        total = np.empty((*x.shape[: x.ndim - len(taps)], *size), x.dtype)
        library.sum_tiles(np.ascontiguousarray(x), total, total.size // size[1], size[1], *step)
        return total
    for axis in range(len(taps)):
        x = _sum_along(x, axis - len(taps), taps[axis], size[axis], step[axis])
    return x


def _sums_by_kernel(x, taps) -> bool:
    """Windows of few elements: larger ones are summed with fewer additions one axis after the other."""
    return library is not None and x.dtype.char in "fd" and x.size > 0 and 0 < math.prod(map(len, taps)) <= _FEW


def _are_tiles(x, taps, size, step, full) -> bool:
    """Are they images that windows cover, each element once, and does the library take them?"""
    if library is None or x.dtype.char not in "fd" or not x.size or len(taps) != 2:
        return False
    return all(map(_side_by_side, taps, size, step, full))


def _sum_along(x, axis, taps, size, step):
    shape, at = list(x.shape), x.ndim + axis
    if _side_by_side(taps, size, step, shape[at]):
        return sums.reduce(x.reshape(*shape[:at], size, step, *shape[at + 1 :]), at + 1)
    shape[at] = size
    out, begun = np.zeros(shape, dtype=x.dtype), False
    for low in taps:
        there, here = _axis_clipped(low, size, step, x.shape[at], at)
        if here is None and not begun:
            np.copyto(out, x[there])
        else:
            target = out if here is None else out[here]
            target += x[there]
        begun = True
    return out


def spread_windows(x, *, taps, full, step):
    """The adjoint of ``sum_windows``."""
    if _sums_by_kernel(x, taps):
        out, size = np.empty((*x.shape[: x.ndim - len(taps)], *full), x.dtype), x.shape[x.ndim - len(taps) :]
        library.spread_windows(np.ascontiguousarray(x), _flat_of(taps), out, *numbers(out.shape, size, step))
        return out
    if _are_tiles(x, taps, x.shape[x.ndim - len(step) :], step, full):
        out = np.empty((*x.shape[: x.ndim - len(taps)], *full), x.dtype)
        library.spread_tiles(np.ascontiguousarray(x), out, x.size // x.shape[-1], x.shape[-1], *step)
        return out
    for axis in reversed(range(len(taps))):
        at = x.ndim + axis - len(taps)
        size, shape = x.shape[at], list(x.shape)
        shape[at] = full[axis]
        if _side_by_side(taps[axis], size, step[axis], full[axis]):
            each = (*x.shape[: at + 1], step[axis], *x.shape[at + 1 :])
            x = copied(np.broadcast_to(np.expand_dims(x, at + 1), each)).reshape(shape)
            continue
        out = np.zeros(shape, dtype=x.dtype)
        for low in taps[axis]:
            there, here = _axis_clipped(low, size, step[axis], full[axis], at)
            out[there] += x if here is None else x[here]
        x = out
    return x


def _side_by_side(taps, size, step, full) -> bool:
    """Are the windows along an axis one after the other, all of it in one?"""
    return size * step == full and tuple(taps) == tuple(range(step))


def _axis_clipped(low, size, step, full, axis):
    there, here = clipped((low,), (size,), (step,), (full,))
    before = (slice(None),) * axis
    return (*before, there[1]), None if here is None else (*before, here[1])


def columns(x, *, offsets, size, step):
    """The elements of each window as an axis before the windows': (…, len(offsets), *size)."""
    lead = x.shape[: x.ndim - len(step)]
    out = np.empty((*lead, len(offsets), *size), dtype=x.dtype)
    index = (slice(None),) * len(lead)
    for k, offset in enumerate(offsets):
        out[(*index, k)] = pick(x, low=offset, size=size, step=step)
    return out


def add_columns(x, *, offsets, full, step):
    """The adjoint of ``columns``."""
    lead = x.shape[: x.ndim - len(step) - 1]
    out = np.zeros((*lead, *full), dtype=x.dtype)
    size, index = x.shape[x.ndim - len(step) :], (slice(None),) * len(lead)
    for k, offset in enumerate(offsets):
        there, here = clipped(offset, size, step, full)
        part = x[(*index, k)]
        out[there] += part if here is None else part[here]
    return out
