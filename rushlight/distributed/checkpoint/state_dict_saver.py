"""``save`` and ``async_save``."""

from __future__ import annotations

import concurrent.futures
import enum
import functools
from dataclasses import dataclass

from ...errors import warn_user
from .. import world
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .metadata import Metadata
from .planner import SavePlanner
from .staging import AsyncStager, BlockingAsyncStager
from .stateful import Stateful
from .steps import Steps
from .storage import StorageWriter

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(enum.Enum):
    """Who writes while training goes on; a thread does here, whichever is asked for."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What ``async_save`` returns for a stager that copies in the background."""

    staging_completion: concurrent.futures.Future
    upload_completion: concurrent.futures.Future


def save(
    state_dict: dict, *, checkpoint_id=None, storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None, process_group=None, no_dist: bool = False, use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Save ``state_dict`` into a folder; every process of the group calls it, and writes what it has.

    The checkpoint is there when this returns, and not at all before: who looks meanwhile sees the one before.
    """
    if no_dist or not world.is_initialized():
        warn_user(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to save in a single "
            "process."
        )
    return _save(
        _states(state_dict), _writer(storage_writer, checkpoint_id), planner, Steps(process_group, alone=no_dist)
    )


def save_state_dict(
    state_dict, storage_writer, process_group=None, coordinator_rank=0, no_dist=False, planner=None
) -> Metadata:
    """``save`` by its older name."""
    return _save(state_dict, storage_writer, planner, Steps(process_group, alone=no_dist))


def async_save(
    state_dict: dict, *, checkpoint_id=None, storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None, process_group=None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD, async_stager=None,
    no_dist: bool = False, use_collectives: bool = True,
) -> concurrent.futures.Future | AsyncSaveResponse:  # fmt: skip
    """``save`` in the background: tensors are copied now, and written while training goes on.

    With an ``async_stager`` that copies in the background too, tensors may be written to when ``staging_completion``
    of what this returns is done.

    Differs from PyTorch: processes speak through their store, never by collectives, which those of training could meet.
    """
    writer = _writer(storage_writer, checkpoint_id)
    steps = Steps(process_group, alone=no_dist, beside=True)
    states = _states(state_dict)
    stager = async_stager or (writer if isinstance(writer, AsyncStager) else BlockingAsyncStager())
    staged = stager.stage(states)
    if not isinstance(staged, concurrent.futures.Future):
        if getattr(stager, "should_synchronize_after_execute", True):
            stager.synchronize_staging()
        return _background().submit(_save, staged, writer, planner, steps)
    written = _background().submit(lambda: _save(staged.result(), writer, planner, steps))
    ready: concurrent.futures.Future = concurrent.futures.Future()
    staged.add_done_callback(lambda done: _settle(ready, done))
    return AsyncSaveResponse(staging_completion=ready, upload_completion=written)


def _settle(ready: concurrent.futures.Future, done: concurrent.futures.Future) -> None:
    """The copy is there, or it failed."""
    if done.exception() is None:
        ready.set_result(None)
    else:
        ready.set_exception(done.exception())


def _save(state_dict: dict, writer: StorageWriter, planner: SavePlanner | None, steps: Steps) -> Metadata:
    planner, found = planner or DefaultSavePlanner(), {}

    def plan():
        planner.set_up_planner(state_dict, writer.storage_meta(), steps.is_coordinator)
        writer.set_up_storage_writer(steps.is_coordinator, rank=steps.rank)
        return writer.prepare_local_plan(planner.create_local_plan())

    plans = steps.everywhere("plan", plan)

    def plan_for_all():
        made, found["metadata"] = planner.create_global_plan(plans)
        return writer.prepare_global_plan(made)

    mine = steps.handed_out("plan", plan_for_all)
    results = steps.everywhere("write", lambda: writer.write_data(planner.finish_plan(mine), planner).wait())

    def finish():
        writer.finish(found["metadata"], results)
        return found["metadata"]

    return steps.first("write", finish)


def _writer(writer: StorageWriter | None, checkpoint_id) -> StorageWriter:
    if writer is None:
        if checkpoint_id is None:
            raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
        return FileSystemWriter(checkpoint_id, single_file_per_rank=True)
    writer.reset(checkpoint_id)
    return writer


def _states(state_dict: dict) -> dict:
    """Objects with a state by their state."""
    return {k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state_dict.items()}


@functools.cache
def _background() -> concurrent.futures.ThreadPoolExecutor:
    """The thread that saves."""
    return concurrent.futures.ThreadPoolExecutor(1, "checkpoint")
