"""A recurrent layer on XLA: one ``lax.scan`` over the cell."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ... import cells
from .vjp import with_backward


def _scan(x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, kind, sizes, reverse):
    from .. import namespace as xla

    rows = xla.linear(x, w_ih, b_ih)
    alive = None
    if sizes:
        at = cells.Packing(sizes)
        rows, alive = rows[at.rows], at.alive[..., None]

    def advance(state, given):
        rows, alive = given
        after = cells.step(xla, kind, rows, *state, w_hh, b_hh, w_hr)
        if alive is not None:  # sequences that have ended, or not begun, stay as they are
            after = tuple(None if a is None else jnp.where(alive, a, b) for a, b in zip(after, state))
        return after, after[0]

    (h, c), y = jax.lax.scan(advance, (h, c), (rows, alive), reverse=reverse)
    if sizes:
        y = y[at.steps, at.sequences]
    return (y, h) if c is None else (y, h, c)


recurrent, recurrent_backward = with_backward(_scan)
