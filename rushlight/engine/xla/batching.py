"""JAX's own batching, for the arrays of a ``vmap`` that lie on this engine."""

from __future__ import annotations

from typing import Any

import jax


def mapped(function, axes: tuple, size: int, arrays):
    """``function(*arrays)`` mapped over ``axes`` (None: not mapped over); its result may hold more than arrays."""
    made: list[Any] = []

    def one(*given):
        leaves, tree = jax.tree.flatten(function(*given))
        numeric = [hasattr(leaf, "dtype") for leaf in leaves]
        made[:] = tree, numeric, [None if n else leaf for n, leaf in zip(numeric, leaves)]
        return [leaf for n, leaf in zip(numeric, leaves) if n]

    found = iter(jax.vmap(one, axes, axis_size=size)(*arrays))
    tree, numeric, others = made
    return jax.tree.unflatten(tree, [next(found) if n else other for n, other in zip(numeric, others)])
