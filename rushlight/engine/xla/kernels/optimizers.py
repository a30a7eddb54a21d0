"""Updates of parameters in programs for the CPU: all large ones in one call of a kernel, in place."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from . import native

_WORTH = 1 << 13  # elements; smaller state travels packed, and XLA's update of it is part of cutting it apart


def serves_update(*arrays) -> bool:
    """Is there a kernel for a parameter, its gradient and its state?"""
    p = arrays[0]
    return p.size > _WORTH and p.ndim <= 8 and all(a.shape == p.shape for a in arrays) and native.serves(*arrays)


def update_all(kernel: str, parameters, *parts, numbers):
    """The new parameters and parts of the state, a list each; the last list of ``parts`` are the gradients.

    One call for all: it waits for every gradient, so that nobody reads the old parameters any more, and XLA need not
    keep a copy of them.
    """
    *state, gradients = parts
    over = [[native.Over(a) for a in part] for part in (parameters, *state)]
    given = jnp.stack([jnp.asarray(n, np.float64) for n in numbers])
    made = iter(native.call(kernel, over[0], gradients, *over[1:], numbers=given))
    return [[next(made) for _ in part] for part in over]
