"""``Work``: a collective under way, and the threads that carry them.

XLA's call returns when the collective is done, so a thread makes these calls, in the order in which they were asked
for. Whoever waits does so with a timeout, and can be interrupted.
"""

from __future__ import annotations

import datetime
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from ..futures import Future
from .errors import DistBackendError

__all__ = ["Lane", "Work"]


class Work:
    """A collective that was started. Its results are where they belong after ``wait``."""

    def __init__(self, what: str, run: Callable, commit: Callable, outputs: list, timeout: float, before=None):
        self.what, self._run, self._commit, self._timeout = what, run, commit, timeout
        self._outputs, self._before = outputs, before
        self._started = time.monotonic()
        self._open = threading.Lock()  # held until it has run
        self._open.acquire()
        self._writing = threading.RLock()  # held while results are written: others who wait go on after that
        self._found: Any = None
        self._error: BaseException | None = None
        self._future: Future | None = None
        self._source = -1

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Until it is done; an error of it is raised here."""
        if timeout is not None and not isinstance(timeout, datetime.timedelta):
            raise TypeError(f"wait(): timeout must be a datetime.timedelta, got {timeout!r}")
        if self._commit is not None or self._error is not None:
            if timeout:
                self._finish(timeout.total_seconds(), time.monotonic())
                return True
            try:
                self._finish(self._timeout, self._started)
            except DistBackendError:
                from . import world  # which imports this

                world._world.failed = True  # whoever leaves now does not wait for the others
                raise
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        if self._has_run():
            self._finish_quietly()
        return self._commit is None

    def is_success(self) -> bool:
        return self._commit is None and self._error is None

    def exception(self):
        return self._error

    def result(self) -> list:
        self.wait()
        return self._outputs

    def source_rank(self) -> int:
        if self._source < 0:
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        return self._source

    def get_future(self) -> Future:
        """A future of the list of output tensors."""
        with self._writing:  # two threads that ask have the same one
            if self._future is None:
                future: Future = Future()
                future._fetch, future._has_come = self._settle, self._has_run
                self._future = future
        if self._commit is None:
            self._settle()
        return self._future

    def _settle(self) -> None:
        """Finish, and let the future know how it went."""
        future: Any = self._future
        try:
            self.wait()
        except Exception as error:  # but an interrupt is of whoever waits, who may wait again
            future._finish(None, error, or_is_done=True)
            return
        future._finish(self._outputs, None, or_is_done=True)

    def _has_run(self) -> bool:
        return not self._open.locked()

    def carry(self) -> None:
        """Run it, in the thread that carries it."""
        try:
            self._found = self._run()
        except BaseException as error:
            self._error = error
        finally:
            self._run = None  # type: ignore[assignment]
            self._open.release()

    def _finish(self, seconds: float, since: float) -> None:
        """Wait so long, and write. If that was not enough, somebody may wait again."""
        if not self._open.acquire(timeout=max(since + seconds - time.monotonic(), 0.001)):
            raise DistBackendError(
                f"{self.what}: timed out after {int(seconds * 1000)}ms. A process did not take part: it is stopped, "
                "busy with something else, or cannot be reached."
            )
        self._open.release()
        earlier, work = [], self._before  # they have run too: results appear in the order in which things were started
        while work is not None and work._commit is not None:
            earlier.append(work)
            work = work._before
        for work in reversed(earlier):
            work._finish_quietly()
        self._before = None
        with self._writing:
            if self._commit is not None and self._error is None:
                self._commit(self._found)  # interrupted, it is called again by whoever waits next
            self._commit = self._found = None  # type: ignore[assignment]
        if self._error is not None:
            raise self._error
        if self._future is not None:
            self._future._finish(self._outputs, None, or_is_done=True)

    def _finish_quietly(self) -> None:
        if self._commit is not None:
            try:
                self._finish(self._timeout, self._started)
            except Exception as error:
                if self._has_run():
                    self._error, self._commit = error, None  # type: ignore[assignment]  # its own wait() raises it


class _Several(Work):
    def __init__(self, works: list[Work]):
        outputs = [t for work in works for t in work._outputs]
        super().__init__("", lambda: None, lambda found: None, outputs, 0.0)
        self._open.release()
        self._works = works

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        limit = timeout or (datetime.timedelta(seconds=self._timeout) if self._timeout else None)
        for work in self._works:
            work.wait(limit)
        return super().wait()

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def _has_run(self) -> bool:
        return all(work._has_run() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def exception(self):
        return next((work._error for work in self._works if work._error is not None), None)


class Lane:
    """A thread that runs the collectives of all groups, in the order in which they were started.

    XLA tells collectives apart by their processes only: two that are under way at once would get each other's numbers,
    or wait for each other.
    """

    def __init__(self):
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._last: Work | None = None
        self._starting = threading.RLock()  # also for what a signal's handler starts meanwhile
        self.busy = False

    def start(self, what: str, run: Callable, commit: Callable, outputs: list, timeout: float) -> Work:
        """Have ``run()`` called, and what it finds given to ``commit`` when somebody waits."""
        with self._starting:
            before = self._last if self._last is not None and self._last._commit is not None else None
            work = self._last = Work(what, run, commit, outputs, timeout, before)
            if self._thread is None:
                self._thread = threading.Thread(target=self._carry, name="collectives", daemon=True)
                self._thread.start()
            self._queue.put(work)
        return work

    @property
    def thread(self) -> int:
        return self._thread.ident or 0 if self._thread is not None else 0

    def settle(self) -> None:
        """Wait for all that was started, before a program of another kind goes over processes."""
        if self._last is not None and threading.get_ident() != self.thread:
            self._last._finish_quietly()

    def close(self) -> None:
        self._queue.put(None)

    def _carry(self) -> None:
        while (work := self._queue.get()) is not None:
            self.busy = True
            work.carry()
            self.busy = False
            work = None  # a thread that waits for the next must not keep the last one's arrays


def apart(what: str, run: Callable, commit: Callable, outputs: list, timeout: float) -> Work:
    """A ``Work`` in a thread of its own: what others' order must not hold up, such as receiving."""
    work = Work(what, run, commit, outputs, timeout)
    threading.Thread(target=work.carry, name=what, daemon=True).start()
    return work


def done(outputs: list) -> Work:
    """A ``Work`` with nothing to do."""
    work = Work("", lambda: None, None, outputs, 0.0)  # type: ignore[arg-type]
    work._open.release()
    return work


def several(works: list[Work]) -> Work:
    """A ``Work`` that is done when all of them are; its outputs are theirs."""
    return _Several(works)
