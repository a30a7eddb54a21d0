"""safetensors files, by the ``safetensors`` library: the functions of its PyTorch helper, for tensors of this package.

The library checks and writes files; the bytes of a tensor are read straight into its memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections import defaultdict

import numpy as np

from .. import dtypes
from ..device import device as Device
from ..nn.module import Module
from ..ops.creation import on_device
from ..storage import pointer
from ..tensor import Tensor, wrap
from .atomic import replacing
from .zipformat import Record, fill

__all__ = ["load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model"]

_DTYPES = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "I8": dtypes.int8, "I16": dtypes.int16, "U16": dtypes.uint16,
    "I32": dtypes.int32, "U32": dtypes.uint32, "I64": dtypes.int64, "U64": dtypes.uint64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "C64": dtypes.complex64,
}  # fmt: skip


# -- writing ---------------------------------------------------------------------------------------------------------


def save_file(tensors: dict[str, Tensor], filename, metadata: dict[str, str] | None = None) -> None:
    """Write named tensors; they must be contiguous and must not share memory. The file is replaced when whole."""
    arrays = _arrays(tensors)
    with replacing(filename) as file:
        _library().serialize_file(_specs(arrays), file.name, metadata=metadata)


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes that ``save_file`` would write."""
    arrays = _arrays(tensors)  # the library has only their addresses
    return bytes(_library().serialize(_specs(arrays), metadata=metadata))


def save_model(model: Module, filename, metadata: dict[str, str] | None = None, force_contiguous: bool = True) -> None:
    """Write a model's state; of tensors that share memory one is kept, and the file notes the names of the others."""
    state, notes = model.state_dict(), dict(metadata or {})
    for kept, names in _duplicates(state).items():
        for name in names:
            notes[name] = kept
            del state[name]
    if force_contiguous:
        state = {name: t.contiguous() for name, t in state.items()}
    save_file(state, filename, notes or None)


def _arrays(tensors) -> dict[str, np.ndarray]:
    """The values of tensors that a file can hold."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(t)}")
        if not t.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. Call `.contiguous()` "
                "on it to pack it before saving; of tensors that are parts of each other save only the whole."
            )
    shared = [names for names in _sharing(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(
            "Some tensors share memory, this will lead to duplicate memory on disk and potential differences when "
            f"loading them again: {[set(names) for names in shared]}. A potential way to correctly save your model is "
            "to use `save_model`."
        )
    arrays = {name: np.ascontiguousarray(t.detach().cpu()._array).reshape(t.shape) for name, t in tensors.items()}
    for name, array in arrays.items():
        if array.dtype == np.complex128:
            raise KeyError(
                f"safetensors files have no complex128: tensor `{name}`; save it as complex64, or its real and "
                "imaginary parts"
            )
    return arrays


def _specs(arrays: dict[str, np.ndarray]) -> dict:
    """What the library wants to know of each array."""
    kind = _library().TensorSpec
    return {
        name: kind(dtype=a.dtype.name, shape=a.shape, data_ptr=pointer(a), data_len=a.nbytes)
        for name, a in arrays.items()
    }


# -- sharing ---------------------------------------------------------------------------------------------------------


def _sharing(tensors) -> list[list[str]]:
    """Names grouped by the memory their tensors lie in; parts of one storage that do not overlap count apart."""
    groups: dict[int, list] = defaultdict(list)
    for name, t in tensors.items():
        start, end = _extent(t)
        if end > start:
            place = t.untyped_storage().data_ptr() if isinstance(t._array, np.ndarray) else start
            groups[place].append((start, end, name))
    found = []
    for parts in groups.values():
        parts.sort()
        reach = -1
        for start, end, name in parts:
            if start < reach:
                found[-1].append(name)
            else:
                found.append([name])
            reach = max(reach, end)
    return found


def _extent(t: Tensor) -> tuple[int, int]:
    t._sync()
    if not isinstance(t._array, np.ndarray):
        return t.data_ptr(), t.data_ptr() + t.nbytes
    return np.lib.array_utils.byte_bounds(t._array) if t.numel() else (0, 0)


def _duplicates(state) -> dict[str, list[str]]:
    """Of each group that shares memory: the one name to keep (it covers all), and those to leave out."""
    result = {}
    for names in _sharing(state):
        if len(names) == 1:
            continue
        whole = [n for n in sorted(names) if state[n].nbytes == state[n].untyped_storage().nbytes()]
        if not whole:
            raise RuntimeError(
                "Error while trying to find names to remove to save state dict, but found no suitable name to keep for "
                f"saving amongst: {set(names)}. None is covering the entire storage. Refusing to save/load the model "
                "since you could be storing much more memory than needed."
            )
        result[whole[0]] = sorted(n for n in names if n != whole[0])
    return result


# -- reading ---------------------------------------------------------------------------------------------------------


def load_file(filename, device="cpu", *, backend: str = "mmap") -> dict[str, Tensor]:
    """All tensors of a file, by name."""
    with safe_open(filename, "pt", device) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of a file's bytes."""
    _library().deserialize(data)  # checks
    entries, begin = _header(data[:8], lambda n: data[8 : 8 + n])
    made = {}
    for name, entry in entries.items():
        array = np.empty(entry["shape"], _dtype(name, entry).numpy)
        start, end = entry["data_offsets"]
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8, end - start, begin + start)
        made[name] = wrap(array)
    return made


def load_model(model: Module, filename, strict: bool = True, device="cpu", *, backend: str = "mmap"):
    """Load a file into a model; returns the names (missing, unexpected)."""
    state = load_file(filename, device)
    with safe_open(filename, "pt") as file:
        notes = file.metadata() or {}
    own = model.state_dict()
    shared = {name: kept for kept, names in _duplicates(own).items() for name in names}
    incompatible = model.load_state_dict(state, strict=False)
    missing, unexpected = set(incompatible.missing_keys), list(incompatible.unexpected_keys)
    for name in list(missing):
        others = {shared.get(name), notes.get(name), *(n for n, kept in shared.items() if kept == name)}
        if others & state.keys():
            missing.discard(name)
    if strict and (missing or unexpected):
        lines = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
        for title, names in (("Missing", sorted(missing)), ("Unexpected", sorted(unexpected))):
            if names:
                lines.append(f"    {title} key(s) in state_dict: " + ", ".join(f'"{n}"' for n in names))
        raise RuntimeError("\n".join(lines))
    return missing, unexpected


class safe_open(contextlib.AbstractContextManager):
    """A file whose tensors are read when asked for.

    with safe_open("model.safetensors", framework="pt") as file:
        weight = file.get_tensor("weight")
    """

    def __init__(self, filename, framework: str = "pt", device="cpu", *, backend: str = "mmap"):
        self.device = Device(device)
        self._checked = _library().safe_open(os.fspath(filename), framework="np")  # refuses a damaged header
        self._path = os.fspath(filename)
        with open(self._path, "rb", buffering=0) as file:
            self._entries, self._begin = _header(file.read(8), file.read)

    def keys(self) -> list[str]:
        return list(self._checked.keys())

    def offset_keys(self) -> list[str]:
        """The names in the order of the file."""
        return sorted(self._entries, key=lambda name: self._entries[name]["data_offsets"])

    def metadata(self) -> dict[str, str] | None:
        return self._checked.metadata()

    def get_tensor(self, name: str) -> Tensor:
        dtype, shape, place = self._entry(name)
        array = np.empty(shape, dtype.numpy)
        with open(self._path, "rb", buffering=0) as file:
            file.seek(place)
            fill(array.reshape(-1).view(np.uint8).data, Record(name, place, array.nbytes, None), file.readinto)
        return wrap(on_device(array, self.device))

    def get_tensors(self, names: list[str]) -> dict[str, Tensor]:
        return {name: self.get_tensor(name) for name in names}

    def get_slice(self, name: str) -> Slice:
        """The tensor, to take a part of: only that is read."""
        return Slice(self, name)

    def _entry(self, name: str) -> tuple[dtypes.dtype, list[int], int]:
        if name not in self._entries:
            raise KeyError(f"the file has no tensor '{name}'; its tensors are file.keys()")
        entry = self._entries[name]
        return _dtype(name, entry), entry["shape"], self._begin + entry["data_offsets"][0]

    def __exit__(self, *_):
        self._checked = None


class Slice:
    """A tensor in a file: ``file.get_slice("weight")[:10]`` reads ten rows of it."""

    def __init__(self, file: safe_open, name: str):
        self.file, self.name = file, name
        self.dtype, self.shape, self.place = file._entry(name)

    def get_shape(self) -> list[int]:
        return list(self.shape)

    def get_dtype(self) -> str:
        """As safetensors files call it: ``F32``."""
        return self.file._entries[self.name]["dtype"]

    def __getitem__(self, index) -> Tensor:
        if 0 in self.shape:  # nothing to map
            return self.file.get_tensor(self.name)[index]
        mapped = np.memmap(self.file._path, self.dtype.numpy, "r", self.place, tuple(self.shape))
        return wrap(on_device(np.array(mapped[index]), self.file.device))


def _header(length: bytes, read):
    size = struct.unpack("<Q", length)[0]
    entries = json.loads(bytes(read(size)))
    entries.pop("__metadata__", None)
    return entries, 8 + size


def _dtype(name: str, entry: dict) -> dtypes.dtype:
    if entry["dtype"] not in _DTYPES:
        raise TypeError(f"tensor '{name}' is of type {entry['dtype']}, which rushlight does not have")
    return _DTYPES[entry["dtype"]]


def _library():
    try:
        import safetensors
    except ImportError:
        raise ImportError(
            "safetensors files need the safetensors library: pip install 'rushlight[safetensors]'"
        ) from None
    return safetensors
