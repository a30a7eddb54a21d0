"""What in-place NumPy updates share: scratch memory, scalars as arrays, and blocks that stay in the cache."""

from __future__ import annotations

import functools
import os
import threading

import numpy as np

from ..config import get_num_threads
from ..engine import blas

# A block of each array (parameter, gradient, two moments, scratch) fits into a core's second-level cache.
BLOCK = 1 << 16
SMALL = 1 << 12  # below, the calls are the cost: fresh temporaries are cheaper than looking up scratch, NumPy than BLAS


@functools.lru_cache(maxsize=256)
def constant(value: float, dtype) -> np.ndarray:
    """A number as a 0-dimensional array: a ufunc takes it in half the time it needs for a Python float."""
    return np.asarray(value, dtype)


def blocks(*arrays):
    """The arrays themselves where they are small, else matching flat slices of ``BLOCK`` elements."""
    size = arrays[0].size
    if size <= BLOCK:
        return (arrays,)
    return _slices(size, [a.reshape(-1) for a in arrays])


def on_blocks(update, *arrays) -> None:
    """``update(*block)`` for all blocks; those of a large array are shared out to threads."""
    if arrays[0].size <= BLOCK:
        update(*arrays)
        return
    todo = list(blocks(*arrays))
    threads = min(get_num_threads(), len(todo) // 2)  # below two blocks each, handing them out costs more than it saves
    if threads < 2:
        _all(update, todo)
        return
    helpers = _helpers(threads - 1, os.getpid())  # a forked process does not have its parent's threads
    others = [helpers.submit(_all, update, todo[i::threads]) for i in range(1, threads)]
    _all(update, todo[::threads])
    for other in others:
        other.result()


def _all(update, todo) -> None:
    for block in todo:
        update(*block)


@functools.cache
def _helpers(count: int, process: int):
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(count, "rushlight-optim")


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


def add_scaled(y, x, factor: float, t) -> None:
    """``y += factor · x``, with ``t`` to compute in."""
    if t is not None and blas.available():
        blas.axpby(factor, x, 1.0, y)
    else:
        np.add(y, np.multiply(x, constant(factor, y.dtype), t), y)


def blend(y, x, keep: float, new: float, t) -> None:
    """``y = keep · y + new · x``, with ``t`` to compute in."""
    if t is not None and blas.available():
        blas.axpby(new, x, keep, y)
    else:
        np.multiply(y, constant(keep, y.dtype), y)
        np.add(y, np.multiply(x, constant(new, y.dtype), t), y)


def _slices(size, arrays):
    for start in range(0, size, BLOCK):
        yield tuple(a[start : start + BLOCK] for a in arrays)


class _Memory(threading.local):
    def __init__(self):
        self.table: dict = {}


_memory = _Memory()
