"""``CheckpointException``: what went wrong in which process."""

from __future__ import annotations

import traceback

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """A save or load that failed; ``failures`` has the error and the stack of each process in which it did."""

    def __init__(self, msg: str, failures: dict[int, tuple]):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, tuple]:
        """Rank -> (the error, where it was raised)."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, stack) in self._failures.items():
            lines = [f"Traceback (most recent call last): (RANK {rank})\n", *traceback.format_list(stack or [])]
            text += "".join([*lines, *traceback.format_exception_only(type(error), value=error)])
        return text
