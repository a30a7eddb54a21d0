"""safetensors files: the functions of the safetensors library's PyTorch helper, for tensors of this package.

The format is in ``safetensors_format.py``; the library itself is not needed. The bytes of a tensor are read straight
into its memory, all from the one file that was opened: whoever replaces it meanwhile does not mix two of them.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections import defaultdict

import numpy as np

from ..device import device as Device
from ..nn.module import Module
from ..ops.creation import on_device
from ..tensor import Tensor, wrap
from .atomic import replacing
from .safetensors_format import Entry, dtype_of, read_header, written_header
from .zipformat import Record, fill_at, write_all

__all__ = ["load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model"]


# -- writing ---------------------------------------------------------------------------------------------------------


def save_file(tensors: dict[str, Tensor], filename, metadata: dict[str, str] | None = None) -> None:
    """Write named tensors; they must be contiguous and must not share memory. The file is replaced when whole."""
    arrays = _arrays(tensors)
    header, order = written_header(arrays, metadata)
    with replacing(filename) as file:
        write_all(file, header)
        for name in order:
            write_all(file, _bytes(arrays[name]))


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes that ``save_file`` would write."""
    arrays = _arrays(tensors)
    header, order = written_header(arrays, metadata)
    return b"".join([header, *(_bytes(arrays[name]) for name in order)])


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


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


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
        return file.get_tensors(file.offset_keys())


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of a file's bytes."""
    view, place = memoryview(data), 0

    def read(count):
        nonlocal place
        place += count
        return view[place - count : place]

    header, made = read_header(len(data), read), {}
    for name, entry in header.entries.items():
        array = np.empty(entry.shape, dtype_of(name, entry).numpy)
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8, array.nbytes, header.begin + entry.start)
        made[name] = wrap(array)
    return made


def load_model(model: Module, filename, strict: bool = True, device="cpu", *, backend: str = "mmap"):
    """Load a file into a model; returns the names (missing, unexpected)."""
    with safe_open(filename, "pt", device) as file:
        state, notes = file.get_tensors(file.offset_keys()), file.metadata() or {}
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
        self._file = open(filename, "rb", buffering=0)  # noqa: SIM115 - closed by the finalizer, also without ``with``
        self._close = weakref.finalize(self, self._file.close)
        try:
            self._header = read_header(os.fstat(self._file.fileno()).st_size, self._file.read)
        except BaseException:
            self._close()
            raise

    def keys(self) -> list[str]:
        return list(self._header.entries)

    def offset_keys(self) -> list[str]:
        """The names in the order of the file."""
        entries = self._header.entries
        return sorted(entries, key=lambda name: (entries[name].start, entries[name].end))

    def metadata(self) -> dict[str, str] | None:
        return self._header.metadata

    def get_tensor(self, name: str) -> Tensor:
        entry = self._entry(name)
        return wrap(on_device(self._rows(name, entry, 0, None), self.device))

    def get_tensors(self, names: list[str]) -> dict[str, Tensor]:
        return {name: self.get_tensor(name) for name in names}

    def get_slice(self, name: str) -> Slice:
        """The tensor, to take a part of: only the rows that has are read."""
        return Slice(self, name)

    def _entry(self, name: str) -> Entry:
        if name not in self._header.entries:
            raise KeyError(f"the file has no tensor '{name}'; its tensors are file.keys()")
        return self._header.entries[name]

    def _rows(self, name: str, entry: Entry, start: int, stop: int | None) -> np.ndarray:
        """The rows from ``start`` to ``stop`` of a tensor; all of one that may have none, without ``stop``."""
        shape = entry.shape if stop is None else (stop - start, *entry.shape[1:])
        array = np.empty(shape, dtype_of(name, entry).numpy)
        if array.size:
            place = self._header.begin + entry.start + (start * (array.nbytes // shape[0]) if stop is not None else 0)
            fill_at(self._file, Record(name, place, array.nbytes, None), array.reshape(-1).view(np.uint8))
        return array

    def __exit__(self, *_):
        self._close()


class Slice:
    """A tensor in a file: ``file.get_slice("weight")[:10]`` reads ten rows of it."""

    def __init__(self, file: safe_open, name: str):
        self.file, self.name, self.entry = file, name, file._entry(name)

    def get_shape(self) -> list[int]:
        return list(self.entry.shape)

    def get_dtype(self) -> str:
        """As safetensors files call it: ``F32``."""
        return self.entry.dtype

    def __getitem__(self, index) -> Tensor:
        first, *rest = index if isinstance(index, tuple) and index else (index,)
        if not isinstance(first, slice) or not self.entry.shape:
            whole = self.file._rows(self.name, self.entry, 0, None)
            return self._made(whole[index])
        start, stop, step = first.indices(self.entry.shape[0])
        rows = range(start, stop, step)
        low, high = (min(rows[0], rows[-1]), max(rows[0], rows[-1]) + 1) if rows else (0, 0)
        array = self.file._rows(self.name, self.entry, low, high)
        return self._made(array[(slice(None, None, step), *rest)])

    def _made(self, part) -> Tensor:
        return wrap(on_device(np.array(part), self.file.device))
