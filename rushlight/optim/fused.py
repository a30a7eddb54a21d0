"""What in-place updates share: kernels over many parameters, or scratch memory and blocks for NumPy's passes."""

from __future__ import annotations

import functools
import threading

import numpy as np

from ..engine import native
from ..engine.numpy import blas
from ..engine.numpy.kernels import parallel

BLOCK = 1 << 18  # elements worked on at a time: scratch memory is no larger
WORTH = 1 << 18  # elements that are worth waking another thread for, if there is as much to do as in Adam
SMALL = 1 << 12  # below, the calls are the cost: a fresh temporary is cheaper than looking up scratch
ONE_PASS = 1 << 15  # from here on, the pass over memory that BLAS saves is worth more than its call


@functools.lru_cache(maxsize=256)
def constant(value: float, dtype) -> np.ndarray:
    """A number as a 0-dimensional array: a ufunc takes it in half the time it needs for a Python float."""
    return np.asarray(value, dtype)


class Update:
    """A formula that goes element by element over arrays: by NumPy, or (``numbers`` are for it) by a kernel in C."""

    __slots__ = ("plain", "kernel", "numbers")

    def __init__(self, plain, kernel: str = "", numbers: tuple = ()):
        self.plain, self.kernel, self.numbers = plain, getattr(native.library, kernel, None), numbers

    def __call__(self, *arrays) -> None:
        """All of a parameter, or, with lists, of many; a kernel takes only what lies in memory in order."""
        if self.kernel is None:
            self.plain(*arrays)
            return
        ordered = [np.ascontiguousarray(a) for a in arrays]
        self.kernel(*[[a] for a in ordered], *self.numbers)
        for array, computed in zip(arrays, ordered):
            if computed is not array and array.flags.writeable:
                array[...] = computed


def do(later: list, update: Update, *arrays, worth: int = SMALL) -> bool:
    """``update(*arrays)``: now for less than ``worth`` elements, else, and always for a kernel, put off for ``run``."""
    if update.kernel is None and arrays[0].size < worth:
        update.plain(*arrays)
    else:
        later.append((update, arrays))
    return True


def by_kernel(kernel: str, parts: tuple, numbers):
    """What ``PureOptimizer.fused`` returns where only a kernel has the formula; None where there are no kernels."""
    if native.library is None:
        return None
    updates: dict = {}

    def job(p, g, state, later):
        count = state["step"]._array
        step = count.item() + 1
        count[...] = step
        update = updates.get(step)
        if update is None:
            update = updates[step] = Update(None, kernel, numbers(step))
        return do(later, update, p, g, *[state[name]._array for name in parts])

    return job


def run(jobs) -> None:
    """All (update, arrays): one call of a kernel for many parameters, or in equal shares for threads."""
    rest, calls = [], {}
    for update, arrays in jobs:
        if update.kernel is None:
            rest.append((update.plain, arrays))
        else:
            calls.setdefault((update, arrays[0].dtype.char), []).append(arrays)
    for (update, _), many in calls.items():
        try:
            update.kernel(*[list(part) for part in zip(*many)], *update.numbers)
        except TypeError:  # before anything was computed: something does not lie in memory in order
            for arrays in many:
                update(*arrays)
    if rest:
        _share_out(rest)


def _share_out(jobs) -> None:
    """NumPy's updates; each thread gets one equal share of the elements."""
    flat = [(update, [a.reshape(-1) for a in arrays]) for update, arrays in jobs]
    total = sum(arrays[0].size for _, arrays in flat)
    parallel.shares(total, WORTH, lambda start, stop: _part(flat, start, stop))


def _part(jobs, start: int, stop: int) -> None:
    """The elements from ``start`` to ``stop`` of all jobs' arrays, put one after the other; block by block."""
    for update, arrays in jobs:
        size = arrays[0].size
        for first in range(max(start, 0), min(stop, size), BLOCK):
            last = min(first + BLOCK, stop, size)
            update(*[a[first:last] for a in arrays])
        start, stop = start - size, stop - size
        if stop <= 0:
            return


def scratch(like: np.ndarray, which: int = 0) -> np.ndarray | None:
    """This thread's memory to compute in, with the shape of ``like``; None for those below SMALL or above BLOCK.

    It is given to ufuncs as ``out``; with None they make an array themselves (but a scalar from 0-dimensional ones).
    """
    if (like.size < SMALL and like.ndim) or like.size > BLOCK:
        return None
    table, key = _memory.table, (which, like.dtype)
    if key not in table:
        table[key] = np.empty(BLOCK, like.dtype)
    return table[key][: like.size].reshape(like.shape)


def add_scaled(y, x, factor: float) -> None:
    """``y += factor · x``"""
    if y.size < SMALL:
        np.add(y, np.multiply(x, constant(factor, y.dtype)), y)
    elif y.size >= ONE_PASS and blas.available():
        blas.axpby(factor, x, 1.0, y)
    else:
        np.add(y, np.multiply(x, constant(factor, y.dtype), scratch(y)), y)


def blend(y, x, keep: float, new: float) -> None:
    """``y = keep · y + new · x``"""
    if y.size < SMALL:
        np.multiply(y, constant(keep, y.dtype), y)
        np.add(y, x if new == 1 else np.multiply(x, constant(new, y.dtype)), y)
    elif y.size >= ONE_PASS and blas.available():
        blas.axpby(new, x, keep, y)
    else:
        np.multiply(y, constant(keep, y.dtype), y)
        np.add(y, np.multiply(x, constant(new, y.dtype), scratch(y)), y)


class _Memory(threading.local):
    def __init__(self):
        self.table: dict = {}


_memory = _Memory()
