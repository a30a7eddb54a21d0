"""What in-place updates share: kernels over many parameters, or scratch memory and blocks for NumPy's passes."""

from __future__ import annotations

import functools
import threading

import numpy as np

from ..engine import native
from ..engine.numpy import blas
from ..engine.numpy import namespace as numpy_engine
from ..engine.numpy.kernels import chains, parallel

BLOCK = 1 << 18  # elements worked on at a time: scratch memory is no larger
WORTH = 1 << 18  # elements that are worth waking another thread for, if there is as much to do as in Adam
SMALL = 1 << 12  # below, the calls are the cost: a fresh temporary is cheaper than looking up scratch
FEW = 6  # small parameters for which following a formula takes longer than NumPy's calls
ONE_PASS = 1 << 15  # from here on, the pass over memory that BLAS saves is worth more than its call


@functools.lru_cache(maxsize=256)
def constant(value: float, dtype) -> np.ndarray:
    """A number as a 0-dimensional array: a ufunc takes it in half the time it needs for a Python float."""
    return np.asarray(value, dtype)


class Update:
    """A formula that goes element by element over arrays: by NumPy, or (``numbers`` are for it) by a kernel in C.

    The kernel is one by its name, or a function of lists of arrays.
    """

    __slots__ = ("plain", "kernel", "numbers")

    def __init__(self, plain, kernel="", numbers: tuple = ()):
        self.plain, self.numbers = plain, numbers
        self.kernel = getattr(native.library, kernel, None) if isinstance(kernel, str) else kernel

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


def by_formula(update, option: dict):
    """The same for any pure update: it is followed once, and then done to all parameters in one pass.

    Parts of the state that are numbers, such as the count of steps, are computed then; parameters that have the same
    ones, as all have as a rule, share what was followed.
    """
    params = option["params"]
    if native.library is None or (len(params) < FEW and all(p._array.size < SMALL for p in params)):
        return None
    known: dict = {}

    def job(p, g, state, later):
        arrays = {name: value._array for name, value in state.items() if value is not None}
        parts = [name for name, a in arrays.items() if a.ndim]
        if not p.ndim:
            return False
        numbers = {name: a for name, a in arrays.items() if not a.ndim}
        key = (p.dtype.char, *parts, *[(name, a.item()) for name, a in numbers.items()])
        if key not in known:
            known[key] = _followed(update, option, p.dtype, parts, numbers)
        found = known[key]
        if found is None:
            return False
        formula, counted = found
        for name, number in counted.items():
            numbers[name][...] = number
        later.append((formula, (p, g, *[arrays[name] for name in parts])))
        return True

    return job


def _followed(update, option, dtype, parts, numbers):
    """(the update for arrays of a dtype and state, the new numbers of that state), or None if it cannot be followed."""

    def new(xp, arrays):
        p, state = update(xp, arrays.pop("p"), arrays.pop("g"), {**numbers, **arrays}, option)
        return {"p": p, **state}

    found = chains.together(new, numpy_engine, dtype, ["p", "g", *parts])
    if found is None or not {*found[1]} <= {*numbers}:  # a part of the state that there was not
        return None
    return Update(None, found[0]), found[1]


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
