"""The planners that ``save`` and ``load`` use: each piece is written once, and read by whoever has a part of it."""

from __future__ import annotations

import dataclasses
import io
from collections import defaultdict

import numpy as np

from ... import serialization
from ...tensor import Size, Tensor, wrap
from ..tensor.dtensor import DTensor
from .flat import flattened, named_paths, put
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan",
    "create_default_local_load_plan", "create_default_local_save_plan",
]  # fmt: skip


class DefaultSavePlanner(SavePlanner):
    """Of what several processes have, the one with the least to write writes it."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, dedup_replicated_tensors=None,
        dedup_save_to_lowest_rank: bool = False, enable_plan_caching: bool = False,
    ):  # fmt: skip
        self.flatten_state_dict, self.dedup_save_to_lowest_rank = flatten_state_dict, dedup_save_to_lowest_rank

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False) -> None:
        self.is_coordinator, self.mappings = is_coordinator, {}
        if self.flatten_state_dict:
            flat, paths = flattened(state_dict)
            self.mappings = named_paths(state_dict, paths)
            state_dict = flat
        self.state_dict = state_dict

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        self.plan = dataclasses.replace(plan, planner_data=self.mappings)
        return self.plan

    def create_global_plan(self, all_plans):
        plans = _without_doubles(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(plans)
        merged = {name: path for plan in all_plans for name, path in (plan.planner_data or {}).items()}
        return plans, dataclasses.replace(metadata, planner_data=merged)

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        value = self.lookup_object(write_item.index)
        return self.transform_object(write_item, value)

    def lookup_object(self, index: MetadataIndex):
        """The object, or the piece of a tensor that begins at the index's offset."""
        value = self.state_dict[index.fqn]
        if not isinstance(value, DTensor):
            return value
        return next(wrap(piece) for offset, piece in _owned(value) if offset == tuple(index.offset or ()))

    def transform_object(self, write_item: WriteItem, object):
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        data = io.BytesIO()
        serialization.save(object, data)
        return data


def create_default_local_save_plan(state_dict: dict, is_coordinator: bool) -> SavePlan:
    """What this process has: its pieces of tensors over a mesh, and all else."""
    items = []
    for name, value in state_dict.items():
        if isinstance(value, DTensor):
            chunks = [(offset, piece.shape) for offset, piece in _owned(value)]
            items += [_tensor_item(name, value, *chunk, WriteItemType.SHARD) for chunk in chunks]
        elif isinstance(value, Tensor):
            items.append(_tensor_item(name, value, (0,) * value.ndim, value.shape, WriteItemType.TENSOR))
        else:
            items.append(WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO))
    return SavePlan(items)


def _tensor_item(name: str, value: Tensor, offset, sizes, kind: WriteItemType) -> WriteItem:
    chunk = ChunkStorageMetadata(Size(offset), Size(sizes))
    data = TensorWriteData(chunk, TensorProperties.create_from_tensor(value), Size(value.shape))
    return WriteItem(MetadataIndex(name, offset), kind, tensor_data=data)


def _without_doubles(plans: list[SavePlan], lowest: bool) -> list[SavePlan]:
    """Plans in which each thing is written by one process: the one with the least to write, or the first."""
    owners = defaultdict(list)
    for rank, plan in enumerate(plans):
        for item in plan.items:
            owners[item.index].append((rank, item))
    kept: list[set] = [set() for _ in plans]
    load = [0] * len(plans)
    for index, found in owners.items():
        rank, item = found[0] if lowest else min(found, key=lambda pair: load[pair[0]])
        kept[rank].add(index)
        load[rank] += item.tensor_storage_size() or 1
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if item.index in mine])
        for plan, mine in zip(plans, kept)
    ]


def create_default_global_save_plan(all_plans: list[SavePlan], rewrite_index_hints: bool = True):
    """(the plans, what the checkpoint will have): chunks get their places in the lists of their tensors."""
    found: dict = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name, data = item.index.fqn, item.tensor_data
            if data is None:
                if name in found:
                    raise AssertionError(f"{name} is to be written twice")
                found[name] = BytesStorageMetadata()
            else:
                entry = found.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
                if rewrite_index_hints:
                    place = dataclasses.replace(item.index, index=len(entry.chunks))
                    item = dataclasses.replace(item, index=place)
                entry.chunks.append(data.chunk)
            items.append(item)
        plans.append(dataclasses.replace(plan, items=items))
    for name, entry in found.items():
        if isinstance(entry, TensorStorageMetadata):
            _check_whole(name, entry)
    return plans, Metadata(found)


def _check_whole(name: str, entry: TensorStorageMetadata) -> None:
    """Chunks lie inside their tensor, do not overlap, and leave nothing out."""
    for chunk in entry.chunks:
        if any(o + n > size for o, n, size in zip(chunk.offsets, chunk.sizes, entry.size)):
            raise ValueError(f"Failed to validate global plan: a chunk of {name} lies outside of {entry.size}")
    if sum(chunk.sizes.numel() for chunk in entry.chunks) != entry.size.numel():
        raise ValueError(f"Failed to validate global plan: the chunks of {name} do not make up {entry.size}")
    ordered = sorted(entry.chunks, key=lambda chunk: chunk.offsets)
    for i, a in enumerate(ordered):
        for b in ordered[i + 1 :]:
            if entry.size and b.offsets[0] >= a.offsets[0] + a.sizes[0]:
                break
            if _overlap(a, b) is not None:
                raise ValueError(f"Failed to validate global plan: chunks of {name} overlap")


# -- loading -----------------------------------------------------------------------------------------------------------


class DefaultLoadPlanner(LoadPlanner):
    """Tensors are filled in place, by whatever chunks they were saved in; all else is replaced."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ):
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False) -> None:
        self.metadata, self.is_coordinator = metadata, is_coordinator
        self.original_state_dict, self.mappings = state_dict, {}
        if self.flatten_state_dict:
            state_dict, self.mappings = flattened(state_dict)
        self.state_dict = state_dict
        self._parts: dict = {}  # of tensors over a mesh, until all of it was read
        self._left: dict = defaultdict(int)  # how many items of each are still to come

    def create_local_plan(self) -> LoadPlan:
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        for item in central_plan.items:
            self._left[item.dest_index.fqn] += 1
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        name = read_item.dest_index.fqn
        loaded = serialization.load(value, weights_only=True)
        self.state_dict[name] = loaded
        if self.flatten_state_dict:
            put(self.original_state_dict, self.mappings[name], loaded)

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The part of the tensor that the item fills."""
        target = self.lookup_tensor(read_item.dest_index)
        for dim, (start, length) in enumerate(zip(read_item.dest_offsets, read_item.lengths)):
            target = target.narrow(dim, start, length)
        return target

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        value = self.state_dict[index.fqn]
        if not isinstance(value, DTensor):
            return value.detach()
        if index.fqn not in self._parts:
            from ... import ops

            self._parts[index.fqn] = {offset: ops.empty(sizes, dtype=value.dtype) for offset, sizes in _extents(value)}
        return self._parts[index.fqn][tuple(index.offset or ())]

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        name = read_item.dest_index.fqn
        self._left[name] -= 1
        if self._left[name] == 0 and name in self._parts:
            _fill(self.state_dict[name], self._parts.pop(name))


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads all that is there, or what ``keys`` begin with, into an empty dict."""

    def __init__(self, keys: set[str] | None = None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.keys = keys

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False) -> None:
        from ... import ops

        if state_dict:
            raise AssertionError("the state dict to load into must be empty")
        for name, entry in metadata.state_dict_metadata.items():
            path = (metadata.planner_data or {}).get(name, (name,))
            if self.keys is not None and name not in self.keys and path[0] not in self.keys:
                continue
            is_tensor = isinstance(entry, TensorStorageMetadata)
            put(state_dict, path, ops.empty(entry.size, dtype=entry.properties.dtype) if is_tensor else None)
        super().set_up_planner(state_dict, metadata, is_coordinator)


def create_default_local_load_plan(state_dict: dict, metadata: Metadata, strict: bool = True) -> LoadPlan:
    """The parts of saved chunks that this process needs."""
    items: list[ReadItem] = []
    for name, value in state_dict.items():
        entry = metadata.state_dict_metadata.get(name)
        if entry is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        if isinstance(entry, BytesStorageMetadata):
            nothing = Size((0,))
            index = MetadataIndex(name)
            items.append(ReadItem(LoadItemType.BYTE_IO, index, nothing, index, nothing, nothing))
        elif not isinstance(value, Tensor):
            raise ValueError(
                f"Invalid checkpoint metadata for {name}, expected BytesStorageMetadata but found {type(entry)}"
            )
        elif tuple(entry.size) != tuple(value.shape):
            raise ValueError(f"Size mismatch between saved {entry.size} and current: {value.shape} for {name}")
        else:
            items += _tensor_items(name, entry, _extents(value))
    return LoadPlan(items)


def _tensor_items(name: str, entry: TensorStorageMetadata, extents) -> list[ReadItem]:
    items = []
    for offset, sizes in extents:
        target = ChunkStorageMetadata(Size(offset), Size(sizes))
        for i, chunk in enumerate(entry.chunks):
            both = _overlap(target, chunk)
            if both is None:
                continue
            start, lengths = both
            items.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(name, offset),
                    Size(a - b for a, b in zip(start, target.offsets)),
                    MetadataIndex(name, chunk.offsets, i),
                    Size(a - b for a, b in zip(start, chunk.offsets)),
                    Size(lengths),
                )
            )
    return items


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    return all_plans


# -- pieces ------------------------------------------------------------------------------------------------------------


def _overlap(a: ChunkStorageMetadata, b: ChunkStorageMetadata):
    """(where what two chunks share begins, its shape); None if they share nothing."""
    start = [max(m, n) for m, n in zip(a.offsets, b.offsets)]
    lengths = [min(m, n) - begin for m, n, begin in zip(_ends(a), _ends(b), start)]
    return (start, lengths) if all(n > 0 for n in lengths) else None


def _ends(chunk: ChunkStorageMetadata) -> list[int]:
    return [start + length for start, length in zip(chunk.offsets, chunk.sizes)]


def _owned(value: Tensor) -> list:
    from ...engine.spread import pieces

    value._sync()
    return [(o, piece) for o, piece in pieces.owned(value._array) if piece.size or not value.numel()]


def _extents(value: Tensor) -> list[tuple[tuple, tuple]]:
    """(offset, shape) of each different piece that this process has."""
    if not isinstance(value, DTensor):
        return [((0,) * value.ndim, tuple(value.shape))]
    from ...engine.spread import pieces

    return pieces.extents(value._array)


def _fill(value: Tensor, parts: dict) -> None:
    """Write a tensor over a mesh from its pieces."""
    from ... import no_grad
    from ...engine.spread import pieces

    def read(cut):
        part = parts.get(tuple(c.start for c in cut))
        return part.numpy() if part is not None else np.zeros([c.stop - c.start for c in cut], value._array.dtype)

    with no_grad():
        value.detach().copy_(wrap(pieces.filled(value._array, read)))
