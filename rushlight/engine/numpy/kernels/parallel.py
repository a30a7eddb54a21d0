"""A loop over pieces of an array on several threads: NumPy lets go of the interpreter while it computes.

Pieces are large enough for that: threads that ask for the interpreter every few microseconds wait for one another.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading

import numpy as np

from .... import config
from .. import blas

BLOCK = 1 << 17  # elements of one piece; with a quarter of that, two threads were no faster than one
_BUFFER = 512  # elements; see ``direct``

_one_loop = threading.Lock()  # a loop that finds another one running stays on its own thread


def like(fill, *arrays):
    """A new array like the first, filled by ``fill(out, *arrays)``, which goes element by element, in pieces."""
    out = np.empty(arrays[0].shape, arrays[0].dtype)
    if out.size <= BLOCK and out.ndim:  # operators make numbers of 0-dimensional arrays
        fill(out, *arrays)
        return out
    flat, sources = out.reshape(-1), [a.reshape(-1) for a in arrays]
    rows(flat.size, 1, lambda start, stop: fill(flat[start:stop], *[s[start:stop] for s in sources]))
    return out


def rows(count: int, size: int, work) -> None:
    """Call ``work(start, stop)`` for stretches of ``range(count)``, of rows that have ``size`` elements each.

    Where they begin does not depend on the number of threads, so neither does a sum over what they give.
    """
    if count * size <= BLOCK:
        if count:
            work(0, count)
        return
    step = -(-count // min(count, 2 * -(-count * size // (2 * BLOCK))))  # an even number of pieces, for two threads

    def some(first, last):
        with direct() if size > _BUFFER else contextlib.nullcontext():
            for start in range(first * step, last * step, step):
                work(start, min(start + step, count))

    over(-(-count // step), 1, lambda: some)


@contextlib.contextmanager
def direct():
    """Rows longer than NumPy's buffer meet a broadcast operand where it is, instead of copies of it in the buffer."""
    before = np.setbufsize(_BUFFER)
    try:
        yield
    finally:
        np.setbufsize(before)


def over(count: int, step: int, make) -> None:
    """Call ``make()(start, stop)`` for stretches of at most ``step`` of ``range(count)``.

    Each thread makes its own function, so that it can have buffers of its own. Inside, BLAS uses one thread.
    """
    if count > 1 and _one_loop.acquire(blocking=False):
        try:
            threads = _threads()
            if threads > 1:
                _share_out(count, max(1, min(step, -(-count // threads))), make, threads)
                return
        finally:
            _one_loop.release()
    work = make()
    for start in range(0, count, step):
        work(start, min(start + step, count))


def shares(count: int, worth: int, work) -> None:
    """``work(start, stop)`` for equal shares of ``range(count)``, one for each thread and none below ``worth``."""
    threads = min(config.get_num_threads(), count // worth)
    if threads < 2:
        work(0, count)
        return
    size = -(-count // threads)
    pool = _helpers(os.getpid())
    others = [pool.submit(work, start, min(start + size, count)) for start in range(size, count, size)]
    try:
        work(0, size)
    finally:
        for other in others:
            other.result()


def cycled(values, start, stop):
    """``values[i % len(values)]`` for i from start to stop."""
    return values.take(np.arange(start, stop), axis=0, mode="wrap")


def _share_out(count, step, make, threads) -> None:
    starts, lock = iter(range(0, count, step)), threading.Lock()

    def drain():
        work = make()
        while True:
            with lock:
                start = next(starts, None)
            if start is None:
                return
            work(start, min(start + step, count))

    before = blas.get_threads()
    blas.set_threads(1)
    try:
        others = [_helpers(os.getpid()).submit(drain) for _ in range(threads - 1)]
        try:
            drain()
        finally:
            for other in others:
                other.result()
    finally:
        if before is not None:
            blas.set_threads(before)


def _threads() -> int:
    """As many as ``set_num_threads`` says, but one where BLAS was told to use one or cannot be told."""
    return min(config.get_num_threads(), blas.get_threads() or 1)


@functools.lru_cache(1)
def _helpers(process: int):  # a forked process does not have its parent's threads
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), "rushlight")
