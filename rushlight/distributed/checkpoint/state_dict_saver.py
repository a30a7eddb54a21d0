"""``save`` and ``async_save``."""

from __future__ import annotations

import concurrent.futures
import enum
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import warn_user
from ...tensor import Tensor
from .. import world
from ..tensor.dtensor import DTensor
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .metadata import Metadata
from .planner import SavePlanner
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
) -> concurrent.futures.Future:  # fmt: skip
    """``save`` in the background: tensors are copied now, and written while training goes on.

    Differs from PyTorch: without ``process_group`` it speaks in a group of its own, so that it never meets the
    collectives of training.
    """
    writer = _writer(storage_writer, checkpoint_id)
    steps = Steps(_own_group() if process_group is None and not no_dist else process_group, alone=no_dist)
    staged = {key: _copied(value) for key, value in _states(state_dict).items()}
    return _background().submit(_save, staged, writer, planner, steps)


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


def _copied(value):
    """A copy that training does not change. Arrays over a mesh are never written into: theirs are shared."""
    if isinstance(value, DTensor):
        return value.detach()
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_copied(item) for item in value])
    return value


_kept: dict = {}  # the thread that saves, and the group in which it speaks


def _background() -> concurrent.futures.ThreadPoolExecutor:
    if "thread" not in _kept:
        _kept["thread"] = concurrent.futures.ThreadPoolExecutor(1, "checkpoint")
    return _kept["thread"]


def _own_group():
    if not world.is_initialized() or world.get_world_size() == 1:
        return None
    here = world.the(None)
    if _kept.get("world") is not here:
        _kept.update(world=here, group=world.new_group(list(range(world.get_world_size()))))
    return _kept["group"]
