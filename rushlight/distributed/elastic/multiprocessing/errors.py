"""``record``: why a process failed, written where its launcher looks for it; and what the launcher makes of it."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass, field
from typing import Any

from ....compat import missing as _missing

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]
__getattr__ = _missing(__name__)


class ErrorHandler:
    """Writes errors to the file that the launcher names in ``TORCHELASTIC_ERROR_FILE``; without one, nowhere."""

    def initialize(self) -> None:
        """Nothing to prepare."""

    def record_exception(self, e: BaseException) -> None:
        """Write an error, in the form that torchrun reads."""
        path = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if not path:
            return
        stack = "".join(traceback.format_exception(type(e), e, e.__traceback__))
        more = {"py_callstack": stack, "timestamp": str(int(time.time()))}
        try:
            with open(path, "w") as file:
                json.dump({"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": more}}, file)
        except OSError as error:
            print(f"the error could not be written to {path}: {error}", file=sys.stderr)


@dataclass
class ProcessFailure:
    """A process that failed: what it wrote to its error file, if it did, and what its exit status says."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: Any = field(init=False)
    message: Any = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        self.error_file_data = found = _read(self.error_file)
        if found is None:
            traits = {"category": "system_terminated_error", "retryability": "False"}
            self.error_file_data = {"message": "<NONE>", "errorTraits": traits}
            self.error_file, self.timestamp = "<N/A>", int(time.time())
            self.message = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
            if self.exitcode < 0:
                self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
            return
        self.message = found["message"]
        told = self.message.get("extraInfo", {}) if isinstance(self.message, dict) else found
        self.timestamp = int(told.get("timestamp", 0))

    def signal_name(self) -> str:
        """The signal that ended it."""
        return signal.Signals(-self.exitcode).name if self.exitcode < 0 else "<N/A>"

    def timestamp_isoformat(self) -> str:
        return time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(self.timestamp))


def _read(path: str) -> dict | None:
    """What an error file says; None if nothing was written there."""
    try:
        with open(path) as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "message" in found else None


class ChildFailedError(Exception):
    """Processes failed: ``failures`` by their ranks. ``record`` hands on the error file of the first one."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]):
        if not failures:
            raise AssertionError("ChildFailedError needs at least one failure")
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """(its rank, the failure that came first)."""
        return min(self.failures.items(), key=lambda entry: entry[1].timestamp)

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """All failures as text, the first one last."""
        root = self.get_first_failure()[0]
        others = [rank for rank in sorted(self.failures) if rank != root]
        texts = [self._text(i, rank) for i, rank in enumerate(others, 1)] or ["  <NO_OTHER_FAILURES>"]
        title, between, around = f"{self.name} FAILED", section_delim * 60, boarder_delim * 60
        first = ["Root Cause (first observed failure):", self._text(0, root)]
        return "\n".join(["", around, title, between, "Failures:", *texts, between, *first, around])

    def _text(self, number: int, rank: int) -> str:
        failure = self.failures[rank]
        stack = failure.message
        if isinstance(stack, dict):
            stack = stack.get("extraInfo", {}).get("py_callstack", stack.get("message", "<N/A>"))
        rows = {
            "time": failure.timestamp_isoformat(),
            "host": socket.getfqdn(),
            "rank": f"{rank} (local_rank: {failure.local_rank})",
            "exitcode": f"{failure.exitcode} (pid: {failure.pid})",
            "error_file": failure.error_file,
            "traceback": str(stack).replace("\n", "\n  "),
        }
        return "\n".join([f"[{number}]:", *(f"  {name:10}: {value}" for name, value in rows.items())])


def get_error_handler() -> ErrorHandler:
    """What ``record`` uses if it is given nothing else."""
    return ErrorHandler()


def record(fn, error_handler: ErrorHandler | None = None):
    """``fn``, an error of which is written down before it is raised; for a program's main function.

    >>> @rushlight.distributed.elastic.multiprocessing.errors.record
    ... def main():
    ...     return 3
    >>> main()
    3
    """
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def recorded(*args, **kwargs):
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code == 0:
                return None
            raise
        except ChildFailedError as error:
            _hand_on(error)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return recorded


def _hand_on(error: ChildFailedError) -> None:
    """The first failure's file becomes this process's own, if a launcher asks for one."""
    source, target = error.get_first_failure()[1].error_file, os.environ.get("TORCHELASTIC_ERROR_FILE")
    if target and os.path.exists(source):
        shutil.copyfile(source, target)
