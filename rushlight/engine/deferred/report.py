"""What was compiled, when and why: the counter behind ``rushlight.compiler.explain()``."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
import types

from ...errors import warn_user

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
_OFTEN = 16  # programs from one line before it is told


@dataclasses.dataclass
class Compilation:
    """One program that was made."""

    when: float  # seconds since the engine was loaded
    calls: int
    line: str  # of the user's program, that asked for a value
    reason: str


compilations: list[Compilation] = []
_started = time.perf_counter()
_told: set[str] = set()


def compiled(count: int, variant: bool) -> str:
    """Note that a recording of ``count`` calls met no program; returns the line that asked for it."""
    line = _users_line()
    before = [c for c in compilations if c.line == line]
    if variant:
        reason = "the same calls, but other results are still wanted"
    elif any(c.calls == count for c in before):
        reason = "as many calls as before, but other shapes or other constants"
    else:
        reason = "other calls than before" if before else "first time"
    compilations.append(Compilation(time.perf_counter() - _started, count, line, reason))
    if len(before) + 1 == _OFTEN and line not in _told:
        _told.add(line)
        warn_user(
            f"{_OFTEN} programs were compiled for what was recorded before {line}: most recently because of {reason}. "
            "Sizes or Python integers that change at every turn do this; see rushlight.compiler.explain()."
        )
    return line


def explain() -> str:
    """A table of what was compiled."""
    rows = [f"{c.when:9.2f} s  {c.calls:6d} calls  {c.line}: {c.reason}" for c in compilations]
    return "\n".join([f"{len(rows)} programs compiled", *rows])


def _users_line() -> str:
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_ROOT):
        frame = frame.f_back
    return (
        "the end of the program" if frame is None else f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    )
