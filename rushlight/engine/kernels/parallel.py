"""A loop over pieces of an array on several threads: NumPy lets go of the interpreter while it computes."""

from __future__ import annotations

import functools
import os
import threading

from ... import config
from .. import blas

_one_loop = threading.Lock()  # a loop that finds another one running stays on its own thread


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
