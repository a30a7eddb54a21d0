"""Sizes that stay open while a program is traced: JAX's symbols, which are no ``int`` and stand for any.

What needs a number all the same (which strides a view would have) looks at an example; what would make an array of such
a size makes it in the trace.
"""

from __future__ import annotations

import collections

import numpy as np

_EXAMPLE = 7  # no size of 1, which strides treat in a way of its own


def is_open(size) -> bool:
    return type(size).__name__ == "_DimExpr"


def has_open(sizes) -> bool:
    for n in sizes:  # noqa: SIM110 (asked for every new shape: a generator takes twice as long)
        if n.__class__ is not int and is_open(n):
            return True
    return False


def example(value):
    """``value``, a size or containers of sizes, with a number for each open one."""
    if is_open(value):
        return value._evaluate(collections.defaultdict(lambda: _EXAMPLE))
    if isinstance(value, (tuple, list)):
        return type(value)([example(part) for part in value])
    if isinstance(value, dict):
        return {name: example(part) for name, part in value.items()}
    if isinstance(value, slice):
        return slice(example(value.start), example(value.stop), example(value.step))
    return value


def places(n):
    """0, 1, … n - 1."""
    if not is_open(n):
        return np.arange(n)
    from .xla import namespace as xla

    return xla.arange(n)
