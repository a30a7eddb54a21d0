"""What in-place NumPy updates share: scratch memory, scalars as arrays, and blocks that stay in the cache."""

from __future__ import annotations

import functools
import threading

import numpy as np

from ..engine import blas
from ..engine.kernels import parallel

# A block of each array (parameter, gradient, two moments, scratch) fits into a core's second-level cache.
BLOCK = 1 << 16
SMALL = 1 << 12  # below, the calls are the cost: a fresh temporary is cheaper than looking up scratch
ONE_PASS = 1 << 15  # from here on, the pass over memory that BLAS saves is worth more than its call


@functools.lru_cache(maxsize=256)
def constant(value: float, dtype) -> np.ndarray:
    """A number as a 0-dimensional array: a ufunc takes it in half the time it needs for a Python float."""
    return np.asarray(value, dtype)


def do(later: list, update, *arrays) -> bool:
    """``update(*arrays)``, element by element: now where that is little work, else put off for ``run``."""
    if arrays[0].size < SMALL:
        update(*arrays)
    else:
        later.append((update, arrays))
    return True


def run(jobs) -> None:
    """``update(*arrays)`` for all (update, arrays) of element-wise work, block by block, shared out to threads."""
    blocks = [(update, block) for update, arrays in jobs for block in _blocks(arrays)]
    if sum(arrays[0].size for _, arrays in jobs) < 2 * BLOCK:
        for update, block in blocks:
            update(*block)
        return

    def work(start, stop):
        for update, block in blocks[start:stop]:
            update(*block)

    parallel.over(len(blocks), 1, lambda: work)


def _blocks(arrays):
    """The arrays themselves where they are small, else matching flat slices of ``BLOCK`` elements."""
    size = arrays[0].size
    if size <= BLOCK:
        return (arrays,)
    flat = [a.reshape(-1) for a in arrays]
    return [tuple([a[start : start + BLOCK] for a in flat]) for start in range(0, size, BLOCK)]


def scratch(like: np.ndarray, which: int = 0) -> np.ndarray | None:
    """This thread's memory to compute in, with the shape of ``like`` (at most ``BLOCK`` elements); None for small ones.

    It is given to ufuncs as ``out``; with None they make an array themselves (but a scalar from 0-dimensional ones).
    """
    if like.size < SMALL and like.ndim:
        return None
    table = _memory.table
    key = (which, like.shape, like.dtype)
    found = table.get(key)
    if found is None:
        if len(table) > 512:
            table.clear()
        found = table[key] = np.empty(BLOCK, like.dtype)[: like.size].reshape(like.shape)
    return found


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
