"""Checkpoints as safetensors files, in the form that Hugging Face's libraries read and write.

A file of a process that has parts says in its header where each of them begins; so do PyTorch's.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from ...futures import Future
from ...io.atomic import replacing
from ...io.safetensors import safe_open, save_file
from ...io.safetensors_format import damaged, dtype_of
from ...tensor import Size
from ._consolidate_hf_safetensors import SHARDING, consolidate_safetensors_files, file_name, offsets_in
from .filesystem import FileSystemReader, FileSystemWriter, _done
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItemType
from .storage import WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


@dataclass
class _HFStorageInfo:
    """The file that has a chunk, and what it is of."""

    relative_path: str
    shape: Size
    dtype: object


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors into safetensors files: all by one process, or with ``save_distributed`` each what it has.

    ``fqn_to_index_mapping`` says in which file, from 1 on, each tensor goes. With ``enable_consolidation`` parts go to
    the folder ``sharded``, and the first process makes whole tensors of them.
    """

    def __init__(
        self, path, fqn_to_index_mapping: dict[str, int] | None = None, thread_count: int = 1,
        save_distributed: bool = False, enable_consolidation: bool = False, thread_count_consolidation: int = 1,
    ):  # fmt: skip
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed, self.enable_consolidation = save_distributed, enable_consolidation
        super().__init__(path)

    def reset(self, checkpoint_id=None) -> None:
        super().reset(checkpoint_id)
        if checkpoint_id is not None:
            self._whole = self.path
            if self.enable_consolidation:
                self.path = self.path / "sharded"

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        if not self.save_distributed and sum(bool(plan.items) for plan in plans) > 1:
            raise RuntimeError(
                "several processes have something to write, which would go into one file: use save_distributed=True, "
                "or save in one process with no_dist=True"
            )
        return [dataclasses.replace(plan, storage_data=rank) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future:
        """A file for each number among this process's items."""
        by_file, seen = defaultdict(list), Counter[str]()
        for item in plan.items:
            name = item.index.fqn
            if item.type is WriteItemType.BYTE_IO:
                raise ValueError(f"safetensors files have tensors only, and '{name}' is none")
            # A process with several devices has several parts of a tensor, and a file has one of a name.
            by_file[(self.fqn_to_index_mapping or {}).get(name, 1), seen[name]].append(item)
            seen[name] += 1
        count, results = max((self.fqn_to_index_mapping or {"": 1}).values()), []
        for (number, again), items in sorted(by_file.items()):
            name = file_name(number, count)
            if self.save_distributed:
                name = f"shard-{plan.storage_data + 1:05}-{f'{again + 1}-' if again else ''}{name}"
            elif again:
                raise ValueError(f"'{items[0].index.fqn}' is in parts: use save_distributed=True")
            tensors = {item.index.fqn: planner.resolve_data(item).detach().contiguous() for item in items}  # type: ignore[union-attr]
            begin = {item.index.fqn: {"saved_offsets": list(item.index.offset or ())} for item in items}
            notes = {"format": "pt", "DCP_VERSION": "1.0", SHARDING: json.dumps(begin)}
            save_file(tensors, self.path / name, notes)
            results += [WriteResult(item.index, tensors[item.index.fqn].nbytes, name) for item in items]
        return _done(results)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Whole tensors have an index; parts have none, and are made whole where that was asked for."""
        found = [result for of_one in results for result in of_one]
        if self.enable_consolidation:
            numbers = self.fqn_to_index_mapping or {r.index.fqn: 1 for r in found}
            consolidate_safetensors_files(self.path, self._whole, numbers)
        elif not self.save_distributed:
            names = {r.index.fqn: r.storage_data for r in found}
            write_index(self.path, sum(r.size_in_bytes for r in found), names)


def write_index(folder: Path, total: int, names: dict[str, str]) -> None:
    """The file that says which tensor is where."""
    with replacing(folder / "model.safetensors.index.json") as file:
        file.write(json.dumps({"metadata": {"total_size": total}, "weight_map": names}, indent=2).encode())


class HuggingFaceStorageReader(FileSystemReader):
    """Reads safetensors files of a folder, whole tensors or parts; each process only what it needs."""

    def __init__(self, path, thread_count: int = 1):
        super().__init__(path)

    def read_metadata(self, *args, **kwargs) -> Metadata:
        """What the headers of all files say."""
        files = sorted(self.path.glob("*.safetensors"))
        if not files:
            raise FileNotFoundError(f"'{self.path}' has no safetensors files")
        tensors: dict[str, TensorStorageMetadata] = {}
        places: dict[MetadataIndex, _HFStorageInfo] = {}
        for path in files:
            with safe_open(path) as file:
                for name, begin in offsets_in(file).items():
                    shape, dtype = Size(file._entry(name).shape), dtype_of(name, file._entry(name))
                    known = tensors.setdefault(name, TensorStorageMetadata(TensorProperties(dtype), Size(shape), []))
                    if len(known.size) != len(shape) or known.properties.dtype is not dtype:
                        raise damaged(f"parts of '{name}' are of different kinds")
                    known.size = Size([max(n, o + m) for n, o, m in zip(known.size, begin, shape)])
                    known.chunks.append(ChunkStorageMetadata(Size(begin), shape))
                    places[MetadataIndex(name, begin)] = _HFStorageInfo(str(path), shape, dtype)
        meta = StorageMeta(load_id=str(uuid.uuid4()))
        return Metadata(tensors, storage_data=places, storage_meta=meta)  # type: ignore[arg-type]

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        by_file = defaultdict(list)
        for item in plan.items:
            by_file[self.storage_data[item.storage_index].relative_path].append(item)
        for path, items in by_file.items():
            with safe_open(path) as file:
                for item in items:
                    places = tuple(slice(o, o + n) for o, n in zip(item.storage_offsets, item.lengths))
                    name = item.storage_index.fqn
                    part = file.get_slice(name)[places] if places else file.get_tensor(name)
                    target = planner.resolve_tensor(item).detach()
                    if target.shape != part.shape:
                        raise AssertionError(f"req {item.storage_index} mismatch sizes {target.shape} vs {part.shape}")
                    target.copy_(part)
                    planner.commit_tensor(item, target)
        return _done(None)
