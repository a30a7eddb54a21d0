"""Threads that compile what has been interpreted, while the program goes on."""

from __future__ import annotations

import atexit
import os
import queue
import threading

_THREADS = min(2, (os.cpu_count() or 1) // 2 or 1)  # more would keep the interpreter from the program itself
_jobs: queue.SimpleQueue = queue.SimpleQueue()
_workers: list[threading.Thread] = []
os.register_at_fork(after_in_child=_workers.clear)


class Job:
    """A call of ``make`` in one of the threads; ``result`` waits for it."""

    def __init__(self, make):
        self._make, self._result, self._error = make, None, None
        self._running = threading.Lock()
        self._running.acquire()
        _jobs.put(self)
        while len(_workers) < _THREADS:
            _workers.append(threading.Thread(target=_work, name="rushlight compiler", daemon=True))
            _workers[-1].start()

    def run(self) -> None:
        try:
            self._result = self._make()
        except BaseException as error:
            self._error = error
        self._make = None
        self._running.release()

    def result(self):
        with self._running:
            pass
        if self._error is not None:
            raise self._error
        return self._result


def _work() -> None:
    while (job := _jobs.get()) is not None:
        job.run()


@atexit.register
def _close() -> None:
    """What is waiting is not compiled any more; what is being compiled must end before Python does."""
    while not _jobs.empty():
        _jobs.get()
    for _ in _workers:
        _jobs.put(None)
    for worker in _workers:
        worker.join()
