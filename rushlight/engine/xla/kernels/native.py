"""The kernels in C inside compiled programs: XLA calls them through its foreign function interface.

``call`` is the seam. A body asks ``serves`` first: the library must be there, and the program be one for this
machine's CPU. Exported programs run elsewhere, and what JAX is to differentiate must be JAX's own.
"""

from __future__ import annotations

import functools

import jax
import numpy as np

from ...native import library
from ..devices import for_this_cpu

_TARGET = "rushlight_kernel"
_ABSENT, _WRITTEN_OVER = -1, 1  # see native/src/ffi.c


class Place:
    """An array for a kernel to write; its dimensions lie in memory in ``order``, the outermost first."""

    def __init__(self, shape, dtype, order=None):
        self.shape, self.dtype, self.order = tuple(shape), dtype, order


class Laid:
    """An array to read, whose dimensions shall lie in memory in ``order``: XLA makes what leads to it so."""

    def __init__(self, array, order):
        self.array, self.order = array, order


class Over:
    """An array to read and to write: the kernel gets a copy, unless nobody else needs it."""

    def __init__(self, array):
        self.array = array


def serves(*arrays) -> bool:
    """May kernels be called, and do they take these arrays (None among them)?"""
    given = [a for a in arrays if a is not None]
    dtype = given[0].dtype
    return may_call() and dtype.char in "fd" and all(a.dtype == dtype and a.size for a in given)


def may_call() -> bool:
    return for_this_cpu() and _registered()


@functools.cache
def _registered() -> bool:
    if library is None:
        return False
    try:
        jax.ffi.register_ffi_target(_TARGET, library.xla_handler, platform="cpu")
    except jax.errors.JaxRuntimeError:  # an interface that has changed
        return False
    return True


def call(kernel: str, *arguments):
    """The arrays that a kernel writes, in its own order; ``arguments`` are what it takes."""
    arrays, results, orders, layouts, aliases = [], [], ([], []), [], {}
    integers = [a for a in arguments if type(a) is int]
    numbers = [a for a in arguments if type(a) is float]
    for a in arguments[: len(arguments) - len(integers) - len(numbers)]:
        if a is None:
            layouts.append(_ABSENT)
            continue
        if isinstance(a, Over):
            aliases[len(arrays)] = len(results)
        order = getattr(a, "order", None)
        a_order = order or tuple(range(len((a.array if isinstance(a, (Laid, Over)) else a).shape)))
        layouts.append(sum(d << 4 * i + 4 for i, d in enumerate(a_order)) | isinstance(a, Over) * _WRITTEN_OVER)
        if not isinstance(a, Place):
            arrays.append(a.array if isinstance(a, (Laid, Over)) else a)
            orders[0].append(order)
        if isinstance(a, (Place, Over)):
            like = a if isinstance(a, Place) else a.array
            results.append(jax.ShapeDtypeStruct(like.shape, like.dtype))
            orders[1].append(order)
    return jax.ffi.ffi_call(
        _TARGET,
        results,
        input_layouts=orders[0],
        output_layouts=orders[1],
        input_output_aliases=aliases,
        vmap_method="sequential",
    )(
        *arrays,
        kernel=kernel,
        layouts=np.array(layouts, np.int64),
        integers=np.array(integers, np.int64),
        numbers=np.array(numbers, np.float64),
    )
