"""Fused bodies on XLA that bring their own backward: ``jax.vjp`` of the body, its residuals kept by the tape."""

from __future__ import annotations

import functools

import jax

from ..devices import portable


def with_backward(function):
    """(body, backward) for an op declared with ``residuals=True``; ``function(*arrays, **static)`` is the body.

    Both halves are jitted: eagerly that is one program each, and inside a trace it makes no difference.
    """

    @functools.cache
    def programs(wanted, static):
        def body(*arrays):
            with portable():  # what is traced here is kept for all programs, and differentiated
                return function(*arrays, **dict(static))

        def forward(*arrays):
            def of_wanted(*some):
                filled = list(arrays)
                for i, a in zip(wanted, some):
                    filled[i] = a
                return body(*filled)

            return jax.vjp(of_wanted, *[arrays[i] for i in wanted])

        return jax.jit(forward if wanted else body)

    def body(needs, *arrays, **static):
        wanted = tuple(i for i in range(len(arrays)) if needs >> i & 1)
        result = programs(wanted, tuple(static.items()))(*arrays)
        if not wanted:
            return result, None
        out, vjp = result
        leaves, tree = jax.tree.flatten(vjp)
        return out, (wanted, tree, tuple(leaves))

    def backward(g, edges, known):
        wanted, tree, leaves = known["aux"]
        found = _run(jax.tree.unflatten(tree, leaves), tuple(g) if isinstance(g, list) else g)
        gradients = dict(zip(wanted, found))
        return [gradients.get(i) for i in range(len(edges))]

    return body, backward


@jax.jit
def _run(vjp, g):
    return vjp(g)
