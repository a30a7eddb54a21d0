"""A checkpoint as a folder: a file of data for each process, and ``.metadata``, which says what lies where.

``.metadata`` is written last, and whole. Data for a folder that has one already goes into files with new names; the
old ones are deleted afterwards. So a save that is interrupted leaves the checkpoint that was there.
"""

from __future__ import annotations

import dataclasses
import io
import os
import re
import uuid
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError

from ... import serialization
from ...compat import missing as _missing
from ...errors import warn_user
from ...futures import Future
from ...io import loading, saving
from ...io.atomic import replacing
from ...tensor import Tensor
from . import metadata as _metadata
from .metadata import Metadata, MetadataIndex, StorageMeta, _FromFile
from .planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystemReader", "FileSystemWriter"]

__getattr__ = _missing(__name__)
_NAME = ".metadata"
_DATA = re.compile(r"__(\d+)_(\d+)\.distcp")
CURRENT_DCP_VERSION = "1.0.0"


@dataclass
class _StorageInfo(_FromFile):
    """Where something lies: a file of the folder, and the bytes in it."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: list | None = None

    _kinds = {
        "relative_path": (str,), "offset": (int,), "length": (int,), "transform_descriptors": (list, type(None)),
    }  # fmt: skip


@dataclass
class _StoragePrefix(_FromFile):
    """How the names of a process's files begin."""

    prefix: str

    _kinds = {"prefix": (str,)}


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint into the folder ``path``. Options of how files are written are accepted, without effect."""

    def __init__(
        self, path, single_file_per_rank: bool = True, sync_files: bool = True, thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False, overwrite: bool = True,
        _extensions=None, serialization_format=None,
    ):  # fmt: skip
        self.single_file_per_rank, self.overwrite = single_file_per_rank, overwrite
        self.reset(path)

    def reset(self, checkpoint_id=None) -> None:
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)
        self.save_id, self.rank = str(uuid.uuid4()), 0

    @property
    def checkpoint_id(self) -> Path:
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id) -> bool:
        """Whether it could be a folder's name."""
        return isinstance(checkpoint_id, os.PathLike) or "://" not in str(checkpoint_id)

    def storage_meta(self) -> StorageMeta:
        return StorageMeta(str(self.path), self.save_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args, **kwargs) -> None:
        self.rank = kwargs.get("rank") or 0

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / _NAME).exists():
            if not self.overwrite:
                raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
            warn_user(
                f"Detected an existing checkpoint in {self.path / _NAME}, overwriting since {self.overwrite=}. "
                "Past version 2.5 of PyTorch, `overwrite` will default to False. Set this variable to True to maintain "
                "this functionality or False to raise when an existing checkpoint is found."
            )
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return [dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_")) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future:
        """Write this process's items: into one file, or each into its own."""
        items = sorted(plan.items, key=lambda item: item.type is not WriteItemType.BYTE_IO)
        buckets = [items] if self.single_file_per_rank else [[item] for item in items]
        first, prefix = _unused(self.path), plan.storage_data.prefix
        results: list[WriteResult] = []
        for n, bucket in enumerate(buckets, first):
            if bucket:
                results += _write_file(self.path, f"{prefix}{n}.distcp", bucket, planner)
        return _done(results)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """The data is there: write what says so, and delete what nothing names any more."""
        places = {result.index: result.storage_data for of_one in results for result in of_one}
        metadata = dataclasses.replace(
            metadata, storage_data=places, storage_meta=self.storage_meta(), version=CURRENT_DCP_VERSION
        )
        with replacing(self.path / _NAME) as file:
            file.write(saving.pickled(metadata))
        named = {place.relative_path for place in places.values()}
        for entry in list(self.path.iterdir()):
            if _DATA.fullmatch(entry.name) and entry.name not in named:
                entry.unlink(missing_ok=True)


def _unused(folder: Path) -> int:
    """The first number that no file of data has, if there is a checkpoint whose files must stay."""
    if not (folder / _NAME).exists():
        return 0
    found = [_DATA.fullmatch(entry.name) for entry in folder.iterdir()]
    return max([int(match[2]) + 1 for match in found if match], default=0)


def _write_file(folder: Path, name: str, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
    results = []
    with replacing(folder / name) as file:
        for item in items:
            start, data = file.tell(), planner.resolve_data(item)
            if isinstance(data, Tensor):
                serialization.save(_compact(data.detach()), file)
            else:
                _write_all(file, data.getbuffer())
            length = file.tell() - start
            results.append(WriteResult(item.index, length, _StorageInfo(name, start, length)))
    return results


def _compact(t: Tensor) -> Tensor:
    """Without the rest of a storage of which it is a part."""
    t = t.cpu()
    return t if t.untyped_storage().nbytes() == t.numel() * t.itemsize else t.clone()


def _write_all(file, data: memoryview) -> None:
    while data:
        data = data[file.write(data) :]


def _done(value) -> Future:
    future: Future = Future()
    future.set_result(value)
    return future


# -- reading -----------------------------------------------------------------------------------------------------------


class FileSystemReader(StorageReader):
    """Reads a checkpoint from the folder ``path``, whoever wrote it; nothing in its files is run."""

    def __init__(self, path, _extension_registry=None):
        self.reset(path)

    def reset(self, checkpoint_id=None) -> None:
        self.storage_data: dict = {}
        if checkpoint_id is not None:
            self.path = Path(checkpoint_id)

    @property
    def checkpoint_id(self) -> Path:
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id) -> bool:
        """Whether it could be a folder's name."""
        return FileSystemWriter.validate_checkpoint_id(checkpoint_id)

    def read_metadata(self, *args, **kwargs) -> Metadata:
        try:
            data = (self.path / _NAME).read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(
                f"'{self.path}' is not a checkpoint, or one that was never finished: it has no file {_NAME}"
            ) from None
        found = read_metadata(data)
        _check_room(found, self.path)
        return found

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args, **kwargs) -> None:
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        """Read the items, file by file, each chunk once."""
        by_chunk: dict = defaultdict(list)
        for item in plan.items:
            by_chunk[item.storage_index].append(item)
        by_file: dict = defaultdict(list)
        for index, items in by_chunk.items():
            if index not in self.storage_data:
                raise RuntimeError(f"the checkpoint is damaged: it does not say where a chunk of {index.fqn} lies")
            place = self.storage_data[index]
            by_file[place.relative_path].append((place, items))
        for name, found in by_file.items():
            with open(self.path / name, "rb") as file:
                for place, items in sorted(found, key=lambda pair: pair[0].offset):
                    _read_chunk(_bytes_at(file, place), items, planner)
        return _done(None)


def _bytes_at(file, place: _StorageInfo) -> io.BytesIO:
    length = os.fstat(file.fileno()).st_size
    if place.offset + place.length > length or place.offset < 0 or place.length < 0:
        raise RuntimeError(f"the checkpoint is damaged: {place.relative_path} has {length} bytes, and should have more")
    file.seek(place.offset)
    return io.BytesIO(file.read(place.length))


def _read_chunk(data: io.BytesIO, items: list[ReadItem], planner: LoadPlanner) -> None:
    if items[0].type is LoadItemType.BYTE_IO:
        for item in items:
            data.seek(0)
            planner.load_bytes(item, data)
        return
    chunk = serialization.load(data, map_location="cpu", weights_only=True)
    for item in items:
        if not isinstance(chunk, Tensor) or any(
            o + n > m for o, n, m in zip(item.storage_offsets, item.lengths, chunk.shape)
        ):
            raise RuntimeError(f"the checkpoint is damaged: a chunk of {item.storage_index.fqn} is not what it says")
        part = chunk
        for dim, (start, length) in enumerate(zip(item.storage_offsets, item.lengths)):
            part = part.narrow(dim, start, length)
        target = planner.resolve_tensor(item).detach()
        if target.shape != part.shape:
            raise AssertionError(f"req {item.storage_index} mismatch sizes, {target.shape} vs {part.shape}")
        target.copy_(part)
        planner.commit_tensor(item, target)


def read_metadata(data: bytes) -> Metadata:
    """What ``.metadata`` says, read by the unpickler that runs nothing, and checked."""
    unpickling = loading.SafeUnpickling()
    unpickling.allowed = {**unpickling.allowed, **_ALLOWED}
    found = unpickling.load(data, _no_storages)
    if not isinstance(found, Metadata) or not isinstance(getattr(found, "storage_data", None), dict):
        raise UnpicklingError("the file is no checkpoint's .metadata")
    try:
        _check(found)
    except AttributeError as error:
        raise UnpicklingError(f"the checkpoint is corrupted: {error}") from None
    return found


def _no_storages(identity):
    raise UnpicklingError("the checkpoint is corrupted: .metadata has no tensors")


def _path(*parts) -> str:
    """In place of a path: its text."""
    if not all(isinstance(part, str) for part in parts):
        raise UnpicklingError("the checkpoint is corrupted: a path that is no text")
    return os.path.join(*parts) if parts else ""


def _check(found: Metadata) -> None:
    """What the classes themselves do not check: that there are no files but the folder's own."""
    for name, entry in found.state_dict_metadata.items():
        if isinstance(entry, _metadata.TensorStorageMetadata):
            ok = all(_is_chunk(chunk, entry.size) for chunk in entry.chunks)
        else:
            ok = isinstance(entry, _metadata.BytesStorageMetadata)
        if not ok or not isinstance(name, str):
            raise UnpicklingError("the checkpoint is corrupted: what it says of its tensors does not make sense")
    for index, place in found.storage_data.items():
        if not isinstance(index, MetadataIndex) or not isinstance(place, _StorageInfo):
            raise UnpicklingError("the checkpoint is corrupted: what it says of places does not make sense")
        if place.transform_descriptors:
            raise RuntimeError("the checkpoint was written with extensions (compression), which are not read here")
        if os.path.basename(place.relative_path) != place.relative_path or place.relative_path in ("", ".", ".."):
            raise UnpicklingError("the checkpoint is corrupted or malicious: it names files outside of its folder")
    for path in (found.planner_data or {}).values():
        if not isinstance(path, tuple) or not path or not all(isinstance(part, (str, int)) for part in path):
            raise UnpicklingError("the checkpoint is corrupted: a path in the state dict that is none")


def _check_room(found: Metadata, folder: Path) -> None:
    """What the files have is no less than what is said of them: nothing is made by a mere number."""
    taken: dict[str, int] = defaultdict(int)
    tensors = {n: e for n, e in found.state_dict_metadata.items() if isinstance(e, _metadata.TensorStorageMetadata)}
    bytes_of = {
        MetadataIndex(name, chunk.offsets): chunk.sizes.numel() * entry.properties.dtype.itemsize
        for name, entry in tensors.items()
        for chunk in entry.chunks
    }
    for index, place in found.storage_data.items():
        taken[place.relative_path] += place.length
        if index.fqn in tensors and bytes_of.get(index, place.length + 1) > place.length:
            raise UnpicklingError(f"the checkpoint is corrupted: a chunk of {index.fqn[:100]} does not fit its place")
    for name, length in taken.items():
        if (folder / name).exists() and length > (folder / name).stat().st_size:
            raise UnpicklingError(f"the checkpoint is damaged: {name[:100]} is shorter than .metadata says")


def _is_chunk(chunk, size: tuple) -> bool:
    if not isinstance(chunk, _metadata.ChunkStorageMetadata) or len(chunk.offsets) != len(size):
        return False
    return all(o + n <= m for o, n, m in zip(chunk.offsets, chunk.sizes, size)) and len(chunk.sizes) == len(size)


_METADATA_NAMES = (
    "BytesStorageMetadata ChunkStorageMetadata Metadata MetadataIndex StorageMeta TensorProperties "
    "TensorStorageMetadata _MEM_FORMAT_ENCODING"
)
_ALLOWED = {
    **{f"torch.distributed.checkpoint.metadata.{n}": getattr(_metadata, n) for n in _METADATA_NAMES.split()},
    "torch.distributed.checkpoint.filesystem._StorageInfo": _StorageInfo,
    **{
        f"{module}.{kind}Path": _path
        for module in ("pathlib", "pathlib._local")
        for kind in ("Posix", "Windows", "PurePosix")
    },
}
