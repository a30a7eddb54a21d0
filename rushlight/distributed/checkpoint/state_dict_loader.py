"""``load``: what a checkpoint has, into tensors that are there."""

from __future__ import annotations

from ...errors import warn_user
from .. import world
from .default_planner import DefaultLoadPlanner
from .filesystem import FileSystemReader
from .planner import LoadPlanner
from .stateful import Stateful
from .steps import Steps
from .storage import StorageReader

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict, *, checkpoint_id=None, storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None, process_group=None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Fill ``state_dict`` from a checkpoint; every process of the group calls it, and reads what it has.

    Tensors are written in place, however they lie and however they lay when they were saved; other values are
    replaced; objects with ``load_state_dict`` are given theirs.
    """
    if no_dist or not world.is_initialized():
        warn_user(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to load in a single "
            "process."
        )
    reader = _reader(storage_reader, checkpoint_id)
    states = {k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state_dict.items()}
    _load_state_dict(states, reader, process_group, no_dist=no_dist, planner=planner)
    for key, value in list(state_dict.items()):
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]
    for key in states.keys() - state_dict.keys():
        state_dict[key] = states[key]  # what a planner added


def load_state_dict(
    state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None
) -> None:
    """``load`` by its older name."""
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(
    state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None
) -> None:
    steps, reader = Steps(process_group, alone=no_dist), storage_reader
    planner = planner or DefaultLoadPlanner()

    def plan():
        metadata = reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, steps.is_coordinator)
        reader.set_up_storage_reader(metadata, steps.is_coordinator, rank=steps.rank)
        return reader.prepare_local_plan(planner.create_local_plan())

    plans = steps.everywhere("plan", plan)
    mine = steps.handed_out("plan", lambda: reader.prepare_global_plan(planner.create_global_plan(plans)))
    steps.everywhere("read", lambda: reader.read_data(planner.finish_plan(mine), planner).wait())


def _reader(reader: StorageReader | None, checkpoint_id) -> StorageReader:
    if reader is None:
        if checkpoint_id is None:
            raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
        return FileSystemReader(checkpoint_id)
    reader.reset(checkpoint_id)
    return reader
