"""Values that processes share, and failures that all of them are told of.

A function that is given instead of a value is called, and if it raises, everybody raises. Without a group each process
is on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .objects import all_gather_object, broadcast_object_list
from .world import ProcessGroup

__all__ = ["SyncPayload", "all_gather", "all_gather_object_enforce_type", "broadcast"]

T = TypeVar("T")


@dataclass
class SyncPayload(Generic[T]):
    """What travels: at which stage, whether all went well, the value, and what was raised instead."""

    stage_name: str | None
    success: bool
    payload: T
    exception: Exception | None = None


def broadcast(
    data_or_fn: Any, *, success: bool = True, stage_name: str | None = None, rank: int = 0,
    pg: ProcessGroup | None = None,
) -> Any:  # fmt: skip
    """The value of process ``rank``, in all; with ``success=False`` an error in all."""
    if not success and data_or_fn is not None:
        raise AssertionError("Data or Function is expected to be None if not successful")
    mine = SyncPayload(stage_name, success, None)
    if (0 if pg is None else pg.rank()) == rank and success:
        mine = _tried(data_or_fn, stage_name)
    if pg is not None:
        sent = [mine]
        broadcast_object_list(sent, group_src=rank, group=pg)
        mine = sent[0]
    if not mine.success:
        why = "" if mine.exception is None else f": exception {mine.exception}"
        during = "" if mine.stage_name is None else f" in stage {mine.stage_name}"
        raise RuntimeError(f"Rank {rank} failed{during}{why}") from mine.exception
    return mine.payload


def all_gather(data_or_fn: Any, stage_name: str | None = None, pg: ProcessGroup | None = None) -> list:
    """The values of all processes, which have to be at the same stage.

    Differs from PyTorch: processes at different stages are an error, where PyTorch leaves values out.
    """
    found = [_tried(data_or_fn, stage_name)]
    if pg is not None:
        mine, found = found[0], found * pg.size()
        all_gather_object(found, mine, group=pg)
    for entry in found:
        if entry.exception is not None:
            raise RuntimeError(f"all_gather failed with exception {entry.exception}") from entry.exception
        if entry.stage_name != stage_name:
            raise RuntimeError(f"all_gather: this process is at stage {stage_name}, another at {entry.stage_name}")
    return [entry.payload for entry in found]


def all_gather_object_enforce_type(
    pg: ProcessGroup, object_list: list, obj: Any, type_checker: Callable = lambda x, y: type(x) is type(y)
) -> None:
    """``all_gather_object``, after which ``type_checker(first, each)`` has to hold."""
    all_gather_object(object_list, obj, group=pg)
    for i, one in enumerate(object_list):
        if not type_checker(object_list[0], one):
            raise TypeError(
                f"Object type at index {i} is {type(one)}, while first object type is {type(object_list[0])}"
            )


def _tried(data_or_fn: Any, stage_name: str | None) -> SyncPayload:
    """The value, or what the function that was to give it raised."""
    if not callable(data_or_fn):
        return SyncPayload(stage_name, True, data_or_fn)
    try:
        return SyncPayload(stage_name, True, data_or_fn())
    except Exception as error:
        return SyncPayload(stage_name, False, None, error)
