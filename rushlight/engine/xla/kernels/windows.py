"""Strided parts of an array's trailing axes on XLA.

Reads are ``lax.slice``, writes ``lax.pad`` with interior padding: XLA fuses a sum of these into one loop, where
select-and-scatter or a scatter would be many times slower.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...numpy.kernels.windows import first_inside, flat, is_for_kernel, lowest, numbers, small_int
from . import native

_WORTH = 1 << 10  # elements from which on a kernel is called


def _one_program(function):
    """Run eagerly as one program, not one for every slice; in a trace it is as if written out."""
    code = function.__code__
    return jax.jit(
        function, static_argnames=code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount], inline=True
    )


def pick(x, *, low, size, step, fill=0):
    """Positions ``low + step * i``, ``i < size``, along each trailing axis; ``fill`` where they are outside."""
    lead = x.ndim - len(low)
    stop = [a + (n - 1) * s + 1 for a, n, s in zip(low, size, step)]
    widths = [(max(0, -a), max(0, b - f), 0) for a, b, f in zip(low, stop, x.shape[lead:])]
    if any(before or after for before, after, _ in widths):
        x = lax.pad(x, np.array(fill, x.dtype), [(0, 0, 0)] * lead + widths)
        low = [a + before for a, (before, _, _) in zip(low, widths)]
        stop = [b + before for b, (before, _, _) in zip(stop, widths)]
    return lax.slice(x, (*[0] * lead, *low), (*x.shape[:lead], *stop), (*[1] * lead, *step))


def spread(x, *, low, full, step):
    """The adjoint of ``pick``."""
    lead = x.ndim - len(low)
    sizes = x.shape[lead:]
    widths = [(a, f - a - (n - 1) * s - 1, s - 1) for a, f, n, s in zip(low, full, sizes, step)]
    return lax.pad(x, np.zeros((), x.dtype), [(0, 0, 0)] * lead + widths)


def max_windows(x, *, offsets, size, step):
    if native.serves(x) and x.size >= _WORTH and is_for_kernel(x, offsets):
        shape = (*x.shape[: x.ndim - len(step)], *size)
        places = native.Place(shape, x.dtype), native.Place(shape, np.dtype(np.uint8))
        return tuple(native.call("max_windows", x, flat(offsets), *places, *numbers(x.shape, size, step)))
    return _max_windows(x, offsets=offsets, size=size, step=step)


def max_windows_backward(g, edges, saved):
    """None, where the rule shall do it."""
    g, which, offsets, shape = g[0], saved["aux"][1], saved["offsets"], tuple(saved["x_shape"])
    if which.dtype != np.uint8 or not (native.serves(g) and g.size >= _WORTH and is_for_kernel(g, offsets)):
        return None
    of_windows = numbers(shape, g.shape[g.ndim - len(saved["step"]) :], saved["step"])
    return native.call("max_windows_slope", g, which, flat(offsets), native.Place(shape, g.dtype), *of_windows)


@_one_program
def _max_windows(x, *, offsets, size, step):
    """(the largest element of each window, which of ``offsets`` it is at); the first wins, or the last NaN."""
    fill = lowest(x.dtype)
    first = first_inside(offsets, size, step, x.shape[x.ndim - len(step) :]).astype(small_int(len(offsets)))
    best = jnp.full((*x.shape[: x.ndim - len(step)], *size), fill, x.dtype)
    which = jnp.broadcast_to(first, best.shape)
    for k, offset in enumerate(offsets):
        part = pick(x, low=offset, size=size, step=step, fill=fill)
        larger = (part > best) | jnp.isnan(part)
        best, which = jnp.where(larger, part, best), jnp.where(larger, np.array(k, which.dtype), which)
    return best, which


@_one_program
def sum_windows(x, *, taps, size, step):
    """The sum of each window, one axis after the other: ``taps`` lists for each where in a window elements sit."""
    for axis in range(len(taps)):
        low, sizes, steps = _along(x, axis, taps)
        sizes[axis], steps[axis] = size[axis], step[axis]
        parts = (pick(x, low=low(a), size=sizes, step=steps) for a in taps[axis])
        x = functools.reduce(jnp.add, parts)
    return x


@_one_program
def spread_windows(x, *, taps, full, step):
    """The adjoint of ``sum_windows``."""
    for axis in reversed(range(len(taps))):
        low, sizes, steps = _along(x, axis, taps)
        sizes[axis], steps[axis] = full[axis], step[axis]
        parts = (spread(x, low=low(a), full=sizes, step=steps) for a in taps[axis])
        x = functools.reduce(jnp.add, parts)
    return x


def _along(x, axis, taps):
    count = len(taps)
    return lambda a: [a if i == axis else 0 for i in range(count)], list(x.shape[x.ndim - count :]), [1] * count


@_one_program
def columns(x, *, offsets, size, step):
    """The elements of each window as an axis before the windows': (…, len(offsets), *size)."""
    return jnp.stack([pick(x, low=o, size=size, step=step) for o in offsets], axis=x.ndim - len(step))


@_one_program
def add_columns(x, *, offsets, full, step):
    """The adjoint of ``columns``."""
    axis = x.ndim - len(step) - 1
    parts = (spread(lax.index_in_dim(x, k, axis, False), low=o, full=full, step=step) for k, o in enumerate(offsets))
    return functools.reduce(jnp.add, parts)
