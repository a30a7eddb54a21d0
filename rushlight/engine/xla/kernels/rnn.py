"""A recurrent layer on XLA: one ``lax.scan`` over the cell; on the CPU large ones by the kernels in C."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ... import cells
from ...numpy.kernels.rnn import KINDS, WORTH, places
from . import native, products
from .vjp import with_backward


def recurrent(needs, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, kind, sizes, reverse):
    arrays = (x, h, c, w_ih, w_hh, b_ih, b_hh)
    rows = x.shape[0] if sizes else x.shape[0] * x.shape[1]
    if w_hr is None and native.serves(*arrays) and rows * w_ih.shape[0] >= WORTH:
        return _by_kernel(needs, *arrays, kind, sizes, reverse)
    return _by_scan(needs, *arrays, w_hr, kind=kind, sizes=sizes, reverse=reverse)


def recurrent_backward(g, edges, known):
    if known["aux"][0] == _BY_KERNEL:
        return _kernel_backward(g, edges, known)
    return _scan_backward(g, edges, known)


# -- by a kernel, the same as on NumPy (``numpy/kernels/rnn.py``) ------------------------------------------------------

_BY_KERNEL = "kernel"


def _by_kernel(needs, x, h, c, w_ih, w_hh, b_ih, b_hh, kind, sizes, reverse):
    flat, gru = x.reshape(-1, x.shape[-1]), kind == "gru"
    biases = [bias for bias in (b_ih, None if gru else b_hh) if bias is not None]
    gates = products.linear(None, flat, w_ih, sum(biases[1:], biases[0]) if biases else None)
    rows = native.Place((len(flat), h.shape[1]), x.dtype)
    outputs = native.call(
        "recurrent",
        *map(jnp.asarray, places(x, sizes)),
        w_hh,
        b_hh if gru else None,
        native.Over(gates),
        rows,
        rows,
        native.Over(h),
        None if c is None else native.Over(c),
        None if kind.startswith("rnn") else rows,
        None if c is None else rows,
        *(KINDS.index(kind), *h.shape, int(reverse)),
    )
    gates, before, y, *state = outputs[: 4 if c is None else 5]
    kept = (_BY_KERNEL, gates, before, *outputs[4 if c is None else 5 :])
    return (y.reshape(*x.shape[:-1], -1), *state), kept if needs else None


def _kernel_backward(g, edges, known):
    x, w_ih, w_hh, kind = (known[name] for name in ("x", "w_ih", "w_hh", "kind"))
    _, gates, before, *kept = known["aux"]
    inner, squashed = [*kept, None, None][:2]
    flat, all_gates, gru = x.reshape(-1, x.shape[-1]), native.Place(gates.shape, gates.dtype), kind == "gru"
    found = native.call(
        "recurrent_backward",
        *map(jnp.asarray, places(x, known["sizes"])),
        *(w_hh, gates, before, inner, squashed),
        jnp.reshape(g[0], before.shape),
        native.Over(jnp.asarray(g[1])),
        native.Over(jnp.asarray(g[2])) if kind == "lstm" else None,
        all_gates,
        all_gates if gru else None,
        *(KINDS.index(kind), *g[1].shape, int(known["reverse"])),
    )
    dh, *found = found
    dc, *found = found if kind == "lstm" else (None, *found)
    from_x, from_h = found[0], found[-1]
    gradients = (
        lambda: products.matmul(from_x, w_ih).reshape(x.shape),
        lambda: dh,
        lambda: dc,
        lambda: products.weight_gradient(from_x, flat),
        lambda: products.weight_gradient(from_h, before),
        lambda: products.sum_of_rows(from_x),
        lambda: products.sum_of_rows(from_h),
        lambda: None,
    )
    return [None if e is None else gradient() for e, gradient in zip(edges, gradients)]


# -- as a scan ---------------------------------------------------------------------------------------------------------


_UNROLL = 5  # steps in one turn of the loop: a language model's takes 4.4 ms on an H200, 5.4 with one, 4.7 with all


def _scan(x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, *, kind, sizes, reverse):
    from .. import namespace as xla

    rows = xla.linear(x, w_ih, b_ih)
    alive = None
    if sizes:
        at = cells.Packing(sizes)
        rows, alive = rows[at.rows], at.alive[..., None]

    def steps(rows, h, c, w_hh, b_hh, w_hr):
        """((y, (h, c)), h before each step); there may be a bias for each step and row, too."""
        many = b_hh is not None and b_hh.ndim == 3

        def advance(state, given):
            rows, alive, bias = given
            after = cells.step(xla, kind, rows, *state, w_hh, bias if many else b_hh, w_hr)
            if alive is not None:  # sequences that have ended, or not begun, stay as they are
                after = tuple(None if a is None else jnp.where(alive, a, b) for a, b in zip(after, state))
            return after, (after[0], state[0])

        given = rows, alive, b_hh if many else None
        last, (y, before) = jax.lax.scan(advance, (h, c), given, reverse=reverse, unroll=_UNROLL)
        return (y, last), before

    y, (h, c) = _with_one_product(steps, apart=kind == "gru")(rows, h, c, w_hh, b_hh, w_hr)
    if sizes:
        y = y[at.steps, at.sequences]
    return (y, h) if c is None else (y, h, c)


def _with_one_product(steps, apart: bool):
    """``steps`` with a backward that multiplies for the gradient of ``w_hh`` once, after the loop, not in every step.

    Each step gives the gradients of its rows. Those are also the gradients of the hidden part, which is just added to
    them; but where the two are kept ``apart``, the bias is made one for each row, and gives them.
    """

    @jax.custom_vjp
    def whole(*arrays):
        return steps(*arrays)[0]

    def forward(rows, h, c, w_hh, b_hh, w_hr):
        bias = ()
        if apart:
            bias = (jnp.broadcast_to(jnp.zeros((), rows.dtype) if b_hh is None else b_hh, rows.shape),)

        def of_others(rows, h, c, w_hr, *bias):
            return steps(rows, h, c, w_hh, *(bias or (b_hh,)), w_hr)

        out, vjp, before = jax.vjp(of_others, rows, h, c, w_hr, *bias, has_aux=True)
        return out, (vjp, before, b_hh is None)

    def backward(kept, g):
        vjp, before, unbiased = kept
        of_rows, of_h, of_c, of_hr, *of_bias = vjp(g)
        of_hidden = of_bias[0] if apart else of_rows
        of_hh = jnp.einsum("tbg,tbh->gh", of_hidden, before)
        return of_rows, of_h, of_c, of_hh, None if unbiased else jnp.sum(of_hidden, axis=(0, 1)), of_hr

    whole.defvjp(forward, backward)
    return whole


_by_scan, _scan_backward = with_backward(_scan)
