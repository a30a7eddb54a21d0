"""``torch.futures``: a value that comes later, and what is to be done with it then."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]


def __dir__():
    return __all__


T = TypeVar("T")
_log = logging.getLogger(__name__)


class Future(Generic[T]):
    """A value that comes later.

    >>> f = rushlight.futures.Future()
    >>> doubled = f.then(lambda done: done.value() * 2)
    >>> f.set_result(21)
    >>> doubled.wait()
    42
    """

    def __init__(self, *, devices=None):
        self._devices = devices
        self._done = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable] = []
        self._lock = threading.Lock()
        self._fetch: Callable | None = None  # what brings the value, where somebody has to ask for it
        self._has_come: Callable[[], bool] = lambda: False  # is it there to be fetched, without waiting?

    def done(self) -> bool:
        """Whether the value, or an error, is there."""
        if self._fetch is not None and not self._done.is_set() and self._has_come():
            self._fetch()
        return self._done.is_set()

    def wait(self) -> T:
        """The value, when it is there."""
        if self._fetch is not None and not self._done.is_set():
            self._fetch()
        self._done.wait()
        return self.value()

    def value(self) -> T:
        """The value of a future that is done."""
        if not self._done.is_set():
            raise RuntimeError("value() can only be called on a Future that has completed; call wait().")
        if self._error is not None:
            raise self._error
        return self._result

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future of ``callback(self)``, which is called when this one is done."""
        _check_callable(callback)
        after: Future = Future()

        def run(done: Future) -> None:
            try:
                result = callback(done)
            except BaseException as error:
                after._finish(None, _told(error))
                if not isinstance(error, Exception):
                    raise
            else:
                after._finish(result, None)

        if self._fetch is not None:
            after._fetch, after._has_come = self.wait_quietly, self.done
        self.add_done_callback(run)
        return after

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Have ``callback(self)`` called when this is done; at once if it is. What it raises is logged."""
        _check_callable(callback)
        with self._lock:
            if not self._done.is_set():
                self._callbacks.append(callback)
                return
        self._call(callback)

    def set_result(self, result: T) -> None:
        """Give the value; once."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give an error instead of a value."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def wait_quietly(self) -> None:
        """Until it is done; an error stays in it."""
        if self._fetch is not None and not self._done.is_set():
            self._fetch()
        self._done.wait()

    def _finish(self, result, error, or_is_done: bool = False) -> None:
        with self._lock:
            if self._done.is_set():
                if or_is_done:
                    return
                raise RuntimeError("Future can only be marked completed once.")
            self._result, self._error = result, error
            self._done.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback: Callable) -> None:
        try:
            callback(self)
        except Exception as error:
            _log.error("%s", _told(error), exc_info=error)


def _told(error: BaseException) -> BaseException:
    """What a callback raised, as PyTorch's kind of error."""
    if isinstance(error, RuntimeError) or not isinstance(error, Exception):
        return error
    told = RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")
    told.__cause__ = error
    return told


def _check_callable(callback) -> None:
    if not callable(callback):
        raise TypeError(f"a Future's callback must be callable, not {type(callback).__name__}")


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """A future that is done when all ``futures`` are; its value is that list, or the first error in it."""
    together: Future = Future()
    left = [len(futures)]
    lock = threading.Lock()

    def one_more(_) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            together._finish(futures, next((f._error for f in futures if f._error is not None), None))

    def fetch() -> None:
        for future in futures:
            future.wait_quietly()

    together._fetch = fetch if any(f._fetch is not None for f in futures) else None
    together._has_come = lambda: all(f.done() for f in futures)
    if not futures:
        together.set_result(futures)
    for future in futures:
        future.add_done_callback(one_more)
    return together


def wait_all(futures: list[Future]) -> list:
    """The values of all ``futures``."""
    return [future.wait() for future in collect_all(futures).wait()]
