"""How much is checked and told of collectives: a level, which is kept and changes nothing here."""

from __future__ import annotations

import contextlib
import enum
import os

__all__ = ["DebugLevel", "breakpoint", "get_debug_level", "record_comm", "set_debug_level", "set_debug_level_from_env"]


class DebugLevel(enum.Enum):
    """How much is checked; accepted, and without effect here."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def get_debug_level() -> DebugLevel:
    """How much is checked and told: OFF, INFO or DETAIL."""
    return DebugLevel.__members__.get(os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper(), DebugLevel.OFF)


def set_debug_level(level: DebugLevel) -> None:
    """Set how much is checked and told."""
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = level.name


def set_debug_level_from_env() -> None:
    """The level is read from the environment whenever it is asked for."""


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int = 3600) -> None:
    """Python's debugger in process ``rank``, at the line of the call; the others wait for it, for so many seconds.

    The first ``skip`` calls do nothing.
    """
    import datetime
    import pdb
    import sys

    from . import collectives, world

    if skip > 0:
        passed = world._turn("breakpoint")
        if passed <= skip:
            return
    if world.get_rank() == rank:
        pdb.Pdb(nosigint=True).set_trace(sys._getframe(1))
    collectives.barrier(timeout=datetime.timedelta(seconds=timeout_s))


@contextlib.contextmanager
def record_comm(name: str):
    """Names collectives for PyTorch's profiler; accepted, and without effect here."""
    yield
