"""Strided parts of an array's trailing axes on XLA.

Reads are ``lax.slice``, writes ``lax.pad`` with interior padding: XLA fuses a sum of these into one loop, where
select-and-scatter or a scatter would be many times slower.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax


def pick(x, *, low, size, step):
    lead = x.ndim - len(low)
    start = (*[0] * lead, *low)
    stop = (*x.shape[:lead], *(a + (n - 1) * s + 1 for a, n, s in zip(low, size, step)))
    return lax.slice(x, start, stop, (*[1] * lead, *step))


def spread(x, *, low, full, step):
    lead = x.ndim - len(low)
    sizes = x.shape[lead:]
    widths = [(a, f - a - (n - 1) * s - 1, s - 1) for a, f, n, s in zip(low, full, sizes, step)]
    return lax.pad(x, np.zeros((), x.dtype), [(0, 0, 0)] * lead + widths)


def max_windows(x, *, offsets, size, step):
    best = pick(x, low=offsets[0], size=size, step=step)
    which = jnp.zeros(best.shape, np.uint8 if len(offsets) < 256 else np.int32)
    for k, offset in enumerate(offsets[1:], 1):
        part = pick(x, low=offset, size=size, step=step)
        larger = (part > best) | jnp.isnan(part)
        best, which = jnp.where(larger, part, best), jnp.where(larger, np.array(k, which.dtype), which)
    return best, which


def sum_windows(x, *, offsets, size, step):
    return functools.reduce(jnp.add, (pick(x, low=o, size=size, step=step) for o in offsets))
