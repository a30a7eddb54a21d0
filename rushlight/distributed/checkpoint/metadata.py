"""What a checkpoint says about itself, in PyTorch's classes: its tensors, their chunks, and where these lie.

Files name these classes, so a file from anybody sets their fields; ``__setstate__`` takes only what belongs there.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from pickle import UnpicklingError
from typing import Any

from ... import dtypes
from ...layout import channels_last as _channels_last
from ...layout import contiguous_format, layout, memory_format, preserve_format, strided
from ...tensor import Size, Tensor

__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
    "TensorStorageMetadata",
]  # fmt: skip


class _FromFile:
    """Fields that come from a file are of the types that ``_kinds`` names."""

    _kinds: dict[str, tuple] = {}

    def __setstate__(self, state) -> None:
        if not isinstance(state, dict) or not set(state) <= set(self._kinds):
            raise UnpicklingError(f"the checkpoint is corrupted: a {type(self).__name__} with other fields")
        for name, value in state.items():
            if not isinstance(value, self._kinds[name]) or (isinstance(value, tuple) and not _is_sizes(value)):
                raise UnpicklingError(f"the checkpoint is corrupted: {name} of {type(self).__name__} is no such thing")
        self.__dict__.update(state)


def _is_sizes(value: tuple) -> bool:
    return len(value) <= 64 and all(type(n) is int and 0 <= n < 1 << 60 for n in value)


@dataclass(frozen=True)
class ChunkStorageMetadata(_FromFile):
    """A part of a tensor: where it begins, and its shape."""

    offsets: Size
    sizes: Size

    _kinds = {"offsets": (tuple,), "sizes": (tuple,)}


class _MEM_FORMAT_ENCODING(enum.Enum):
    """How files write a memory format."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = dict(zip(_MEM_FORMAT_ENCODING, (contiguous_format, _channels_last, preserve_format)))


@dataclass
class TensorProperties:
    """What a tensor is beside its shape."""

    dtype: dtypes.dtype = field(default_factory=dtypes.get_default_dtype)
    layout: layout = strided
    requires_grad: bool = False
    memory_format: memory_format = contiguous_format
    pin_memory: bool = False

    def __getstate__(self):
        form = next((name for name, value in _FORMATS.items() if value == self.memory_format), None)
        if form is None:
            raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")
        return self.dtype, self.layout, self.requires_grad, form, self.pin_memory

    def __setstate__(self, state) -> None:
        kinds = (dtypes.dtype, layout, bool, _MEM_FORMAT_ENCODING, bool)
        if not isinstance(state, tuple) or len(state) != 5 or not all(map(isinstance, state, kinds)):
            raise UnpicklingError("the checkpoint is corrupted: properties of a tensor that are no such thing")
        self.dtype, self.layout, self.requires_grad, form, self.pin_memory = state
        self.memory_format = _FORMATS[form]

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad)


@dataclass
class TensorStorageMetadata(_FromFile):
    """A saved tensor: its shape, and the chunks that it was saved in."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]

    _kinds = {"properties": (TensorProperties,), "size": (tuple,), "chunks": (list,)}


@dataclass
class BytesStorageMetadata(_FromFile):
    """A saved object that is no tensor."""


@dataclass(frozen=True)
class MetadataIndex(_FromFile):
    """Names a saved object, or the chunk of a tensor that begins at ``offset``; ``index`` is a hint where it stands."""

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    _kinds = {"fqn": (str,), "offset": (tuple, type(None)), "index": (int, type(None))}

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None):
        offset = None if offset is None else Size(offset)
        self.__dict__.update(fqn=fqn, offset=offset, index=index)  # as a frozen dataclass may not


@dataclass
class StorageMeta(_FromFile):
    """Which save this was."""

    checkpoint_id: Any = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)

    _kinds = {**dict.fromkeys(("checkpoint_id", "save_id", "load_id"), (str, type(None))), "modules": (list,)}


@dataclass
class Metadata(_FromFile):
    """All of it: what is saved, and where."""

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None

    _kinds = {
        "state_dict_metadata": (dict,), "planner_data": (dict, type(None)), "storage_data": (dict, type(None)),
        "storage_meta": (StorageMeta, type(None)), "version": (str, type(None)),
    }  # fmt: skip
