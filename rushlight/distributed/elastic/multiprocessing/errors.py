"""``record``: why a process failed, written where its launcher looks for it."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
import traceback

from ....compat import missing as _missing

__all__ = ["ErrorHandler", "get_error_handler", "record"]
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
        except Exception as error:
            handler.record_exception(error)
            raise

    return recorded
