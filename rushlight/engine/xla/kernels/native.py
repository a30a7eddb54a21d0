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
ABSENT, WRITTEN_OVER = -1, 1  # see native/src/ffi.c


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


def call(kernel: str, *arguments, numbers=None):
    """The arrays that a kernel writes, in its own order; ``arguments`` are what it takes, lists of arrays among them.

    ``numbers`` are those that the program computes: a float64 array instead of floats.
    """
    integers = [a for a in arguments if type(a) is int]
    fixed = [a for a in arguments if type(a) is float]
    lists = [len(a) for a in arguments if type(a) is list]
    taken = _Taken()
    for argument in arguments[: len(arguments) - len(integers) - len(fixed)]:
        for a in argument if type(argument) is list else (argument,):
            taken.add(a)
    arrays, orders = taken.arrays, taken.orders
    if numbers is not None:
        arrays, orders = [*arrays, numbers], [*orders, None]
    return jax.ffi.ffi_call(
        _TARGET,
        taken.results,
        input_layouts=orders,
        output_layouts=taken.result_orders,
        input_output_aliases=taken.aliases,
        vmap_method="sequential",
    )(
        *arrays,
        kernel=kernel,
        layouts=np.array(taken.layouts, np.int64),
        integers=np.array(integers, np.int64),
        numbers=np.array(fixed, np.float64),
        lists=np.array(lists, np.int64),
    )


class _Taken:
    """The arrays of a call, sorted into what XLA wants to know of them."""

    def __init__(self):
        self.arrays, self.orders, self.results, self.result_orders = [], [], [], []
        self.layouts, self.aliases = [], {}

    def add(self, a) -> None:
        if a is None:
            self.layouts.append(ABSENT)
            return
        over, array = isinstance(a, Over), a.array if isinstance(a, (Laid, Over)) else a
        order = getattr(a, "order", None)
        dimensions = enumerate(order or range(len(array.shape)))
        self.layouts.append(sum(d << 4 * i + 4 for i, d in dimensions) | over * WRITTEN_OVER)
        if over:
            self.aliases[len(self.arrays)] = len(self.results)
        if not isinstance(a, Place):
            self.arrays.append(array)
            self.orders.append(order)
        if over or isinstance(a, Place):
            self.results.append(jax.ShapeDtypeStruct(array.shape, array.dtype))
            self.result_orders.append(order)
