"""What a storage must offer: how plans become files, and files what was planned."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

from ...futures import Future
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """Where something was written."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes a checkpoint: ``write_data`` in every process, then ``finish`` in the first."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None) -> None: ...

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args, **kwargs) -> None: ...

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan: ...

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]: ...

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future: ...

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None: ...

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id) -> bool:
        raise NotImplementedError

    def storage_meta(self) -> StorageMeta | None:
        return None


class StorageReader(abc.ABC):
    """Reads a checkpoint: ``read_metadata`` and ``read_data``, in every process."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None) -> None: ...

    @abc.abstractmethod
    def read_metadata(self, *args, **kwargs) -> Metadata: ...

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args, **kwargs) -> None: ...

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan: ...

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]: ...

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future: ...

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id) -> bool:
        raise NotImplementedError
