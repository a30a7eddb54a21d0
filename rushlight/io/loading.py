"""Reading what ``torch.save`` wrote: the zip format, and the one before it."""

from __future__ import annotations

import _compat_pickle
import contextlib
import functools
import io
import mmap as mapping
import os
import pickle
import re
import struct
import sys
from collections import OrderedDict
from typing import Any

import numpy as np

from ..device import cpu
from ..nn.parameter import Parameter
from ..storage import TypedStorage, UntypedStorage
from ..tensor import Tensor
from . import settings
from .locations import restore_function
from .names import ours
from .rebuild import LoadedStorage, StorageType, constructors, rebuild_functions, safe_globals, set_attributes
from .unpickler import Unpickler, UnpicklingError, brief
from .zipformat import Damaged, Reader, fill_at

__all__ = ["load", "unsafe_globals"]

MAGIC_NUMBER, PROTOCOL_VERSION = 0x1950A86A20F9469CFC6C, 1001  # how files of the older format begin
_PARALLEL = 1 << 20  # records from this size on are read by other threads
_DTYPE = re.compile(r"torch\.(q?u?int|float|complex|bits)\d\w*|torch\.Q\w+Storage")
_COUNTED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)
_BLOCKED = ("sys", "os", "posix", "nt", "subprocess", "shutil")


def load(source, map_location, unpickling, mmap: bool):
    """``unpickling`` is ``SafeUnpickling`` or ``FullUnpickling``; ``source`` a path or an open file."""
    restore = restore_function(map_location)
    if not isinstance(source, (str, os.PathLike)):
        return _load_file(source, restore, unpickling)
    with open(source, "r+b" if mmap and settings.writes_through() else "rb", buffering=0) as file:
        if not _is_zip(file):
            if mmap:
                raise RuntimeError(
                    "mmap can only be used with files saved with `torch.save("
                    f"{os.fspath(source)}, _use_new_zipfile_serialization=True), please torch.save your checkpoint "
                    "with this option in order to use mmap."
                )
            return _load_legacy(_mapped(file), restore, unpickling)[0]
        return _load_zip(file, restore, unpickling, mmap)


def _load_file(file, restore, unpickling):
    start = file.tell()
    if _is_zip(file):
        if start:
            file = io.BytesIO(file.read())
        return _load_zip(file, restore, unpickling, False)
    result, length = _load_legacy(file.read(), restore, unpickling)
    file.seek(start + length)  # the older format may have several objects one after the other
    return result


def _is_zip(file) -> bool:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if not head:
        raise EOFError("Ran out of input: the file is empty")
    return head == b"PK\3\4"


def _mapped(file):
    return mapping.mmap(file.fileno(), 0, access=mapping.ACCESS_READ)


# -- the zip format --------------------------------------------------------------------------------------------------


def _load_zip(file, restore, unpickling, mmap: bool):
    reader = Reader(file)
    if "constants.pkl" in reader:
        raise RuntimeError(
            "the file looks like a TorchScript archive: rushlight cannot run those; rushlight.jit.load() reads its "
            "modules and weights"
        )
    storages = ZipStorages(reader, restore, mmap)
    try:
        result = unpickling.load(reader.read("data.pkl"), storages)
        storages.wait()
        return result
    finally:
        storages.close()


class ZipStorages:
    """The storages of a zip file, each made when the pickle first names it; large ones are read by other threads."""

    def __init__(self, reader: Reader, restore, mmap: bool):
        self.reader, self.restore = reader, restore
        self.made: dict[str, UntypedStorage] = {}
        self.map = settings.mapped(reader.file) if mmap else None
        self.swap = self._byte_order() != sys.byteorder
        self.pool: Any = None  # made for the first large storage
        self.pending: list = []
        self.allowance = 4 * reader.length + (1 << 20)  # bytes that may be computed or copied to a device on the way

    def __call__(self, identity):
        kind, key, location, count = _storage_identity(identity, 5)
        if key not in self.made:
            self.made[key] = self.restore(self._read(kind, key, count), location)
        return _typed(self.made[key], kind)

    def wait(self) -> None:
        for future in self.pending:
            future.result()
        self.pending.clear()

    def settle(self, nbytes: int) -> None:
        """Before bytes are computed with: have them all here, and count what is made of them."""
        self.wait()
        self.allowance -= nbytes
        if self.allowance < 0:
            raise UnpicklingError("the file makes far more of its bytes than it has: corrupted or malicious")

    def close(self) -> None:
        """Let go of everything: storages know this object and it knows them, and memory is not to wait for that."""
        pool, self.pool = self.pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)
        self.made.clear()
        self.pending.clear()

    def _read(self, kind: StorageType, key: str, count: int) -> LoadedStorage:
        record = self.reader.find(f"data/{key}")
        if count * kind.itemsize > record.size:
            raise Damaged(
                f"storage {brief(key)} has {record.size} bytes, but {count} elements of {kind.itemsize} bytes are "
                "expected: the file is corrupted"
            )
        if self.map is not None and record.size:
            memory = np.frombuffer(self.map, np.uint8, record.size, record.offset)
            if record.offset % kind.itemsize:  # no kernel reads elements there
                memory = memory.copy()
        else:
            memory = _blank(record.size)
            if not settings.skip_data:
                self._fill(record, memory)
        if self.swap and kind.dtype is not None and kind.itemsize > 1:
            self.wait()
            memory = memory[: count * kind.itemsize].view(kind.dtype.numpy).byteswap().view(np.uint8)
        return LoadedStorage(memory, cpu, self.settle)

    def _fill(self, record, memory: np.ndarray) -> None:
        file = self.reader.file
        if record.size < _PARALLEL or not isinstance(file, io.FileIO) or not hasattr(os, "preadv"):
            self.reader.read_into(record, memory.data)
            return
        if self.pool is None:
            from concurrent.futures import ThreadPoolExecutor  # takes longer to import than a small file to load

            self.pool = ThreadPoolExecutor(min(4, os.cpu_count() or 1))
        self.pending.append(self.pool.submit(fill_at, file, record, memory))

    def _byte_order(self) -> str:
        if "byteorder" in self.reader:
            order = self.reader.read("byteorder").decode("ascii", "replace")
            if order not in ("little", "big"):
                raise Damaged(f"the file's byte order is {order[:20]!r}: corrupted")
            return order
        return settings.assumed_byte_order()


def _blank(size: int) -> np.ndarray:
    """Memory to read into: where there are large pages, of these, because a fault for each small one takes longer."""
    if size < _PARALLEL or not hasattr(mapping, "MADV_HUGEPAGE"):
        return np.empty(size, np.uint8)
    memory = mapping.mmap(-1, size, flags=mapping.MAP_PRIVATE | mapping.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without them
        memory.madvise(mapping.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


# -- the older format ------------------------------------------------------------------------------------------------


def _load_legacy(data, restore, unpickling):
    """Pickles (magic number, version, system, the object, keys of storages), then the storages' bytes."""
    if data[257:262] == b"ustar":
        raise RuntimeError(
            "the file is of the tar format that PyTorch wrote before version 0.2, which rushlight does not read: load "
            "it in PyTorch with weights_only=False, if you trust it, and save it again"
        )
    storages = LegacyStorages(restore, len(data))
    read = unpickling.sequence(data, storages)
    try:
        magic = read()
    except UnpicklingError as error:
        raise UnpicklingError(f"the file is no checkpoint of PyTorch's, or is corrupted: {error}") from None
    if magic != MAGIC_NUMBER:
        raise UnpicklingError(
            "the file is no checkpoint of PyTorch's: it begins neither as a zip file nor with the magic number"
        )
    if read() != PROTOCOL_VERSION:
        raise UnpicklingError("the file is corrupted, or of an unknown version")
    system = read()
    storages.swap = isinstance(system, dict) and system.get("little_endian", True) != (sys.byteorder == "little")
    start = read.place
    result = read()
    keys = read()
    end = storages.fill(keys, data, read.place)
    if storages.moving:  # values were needed before they had been read: make everything again
        read.place = start
        result = read()
    storages.close()
    return result, end


class LegacyStorages:
    """The storages of an old file: first only promised, then filled from what follows the pickles."""

    def __init__(self, restore, length: int):
        self.restore, self.allowance = restore, length
        self.copies = 8 * length + (1 << 20)  # bytes that may be computed or copied to a device, in both passes
        self.made: dict[str, tuple] = {}
        self.restored: dict[str, UntypedStorage] = {}
        self.swap = self.moving = False

    def __call__(self, identity):
        if isinstance(identity, tuple) and identity[:1] == ("module",) and len(identity) > 1:
            return identity[1]  # PyTorch saved the source code of the class beside it
        kind, key, location, count = _storage_identity(identity, 6)
        if key not in self.made:
            size = count * kind.itemsize
            self.allowance -= size
            if self.allowance < 0:
                raise UnpicklingError("the file is truncated or corrupted: its storages are larger than the file")
            self.made[key] = (kind, np.empty(size, np.uint8), location)
        if key not in self.restored:
            storage = LoadedStorage(self.made[key][1], cpu, self.settle)
            self.restored[key] = self.restore(storage, location)
        return _view(_typed(self.restored[key], kind), identity[5])

    def settle(self, nbytes: int) -> None:
        self.moving = True
        self.copies -= nbytes
        if self.copies < 0:
            raise UnpicklingError("the file makes far more of its bytes than it has: corrupted or malicious")

    def close(self) -> None:
        self.made.clear()
        self.restored.clear()

    def fill(self, keys, data, place: int) -> int:
        if not isinstance(keys, list) or len(keys) != len(self.made) or {*keys} != {*self.made}:
            raise UnpicklingError("the file is corrupted: the storages it has are not those it names")
        for key in keys:
            kind, memory, _ = self.made[key]
            if (
                place + 8 + memory.size > len(data)
                or struct.unpack("<q", data[place : place + 8])[0] * kind.itemsize != memory.size
            ):
                raise UnpicklingError(
                    f"the file is truncated or corrupted: storage {brief(key)} has another size than expected"
                )
            memory[:] = np.frombuffer(data, np.uint8, memory.size, place + 8)
            if self.swap and kind.itemsize > 1:
                memory.view(kind.dtype.numpy).byteswap(inplace=True)
            place += 8 + memory.size
        return place


def _view(storage, metadata):
    """A part of a storage, as very old files have it."""
    if metadata is None:
        return storage
    if not isinstance(metadata, tuple) or len(metadata) != 3:
        raise UnpicklingError("the file is corrupted: a view of a storage that is none")
    _, offset, size = metadata
    memory, item = storage.untyped()._memory, storage.element_size()
    if not (
        type(offset) is int
        and type(size) is int
        and offset >= 0
        and size >= 0
        and (offset + size) * item <= memory.size
    ):
        raise UnpicklingError("the file is corrupted: a view reaches beyond its storage")
    return _typed(storage.untyped()[offset * item : (offset + size) * item], StorageType(storage.dtype))


def _storage_identity(identity, length: int):
    if not isinstance(identity, tuple) or len(identity) != length or identity[0] not in ("storage", b"storage"):
        raise UnpicklingError("the file is corrupted: a persistent id that names no storage")
    _, kind, key, location, count = identity[:5]
    if kind is UntypedStorage:
        kind = StorageType(None)
    if not isinstance(kind, StorageType) or type(key) is not str or type(location) is not str:
        raise UnpicklingError("the file is corrupted: a storage without type, key or place")
    if type(count) is not int or not 0 <= count < 1 << 62:
        raise UnpicklingError("the file is corrupted: a storage of impossible size")
    return kind, key, location, count


def _typed(storage: UntypedStorage, kind: StorageType):
    if kind.dtype is None:
        return storage
    if isinstance(storage, TypedStorage):  # what a map_location function may return
        storage = storage.untyped()
    if not isinstance(storage, UntypedStorage):
        raise TypeError(f"map_location must return a storage or None, not {type(storage).__name__}")
    return TypedStorage(storage, kind.dtype)


# -- safely ----------------------------------------------------------------------------------------------------------


class SafeUnpickling:
    """Reads pickles by the allow-list."""

    def __init__(self, encoding: str = "utf-8"):
        self.encoding, self.allowed = encoding, settings.allowed()

    def load(self, data: bytes, persistent):
        return Unpickler(data, SafeBuilder(self.allowed, persistent, len(data)), encoding=self.encoding).load()

    def sequence(self, data, persistent):
        return _SafeSequence(self, data, persistent)


class _SafeSequence:
    """Reads one pickle per call from data that has several."""

    def __init__(self, unpickling: SafeUnpickling, data, persistent):
        self.unpickling, self.data, self.place = unpickling, data, 0
        self.builder = SafeBuilder(unpickling.allowed, persistent, len(data))

    def __call__(self):
        reader = Unpickler(self.data, self.builder, self.place, self.unpickling.encoding)
        result = reader.load()
        self.place = reader.place
        return result


class SafeBuilder:
    """What a weights-only file may name, call and build."""

    def __init__(self, allowed: dict[str, object], persistent, length: int):
        self.allowed, self.persistent = allowed, persistent
        self.callable = {*rebuild_functions().values(), *(function for _, function in constructors().values())}
        self.allowance = 2 * length + 1000  # parts of arguments of all calls together; each is in the file but once

    def find_global(self, module: str, name: str):
        module, name = _in_python3(module, name)
        full = f"{module}.{name}"
        if module.partition(".")[0] in _BLOCKED:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {full[:200]} whose module {module[:100]} is blocked."
            )
        found = self.allowed.get(full) or safe_globals().get(full)
        if found is None:
            raise UnpicklingError(_unsupported(full if len(full) <= 200 else full[:200] + "..."))
        return found

    def call(self, function, args: tuple):
        if self._is_allowed(function):
            return function(*args)
        if function is Parameter:
            return self.new(function, args, {})
        if not callable(function) or function not in self.callable:
            raise UnpicklingError(f"the file is corrupted or malicious: it calls {_describe(function)}")
        self._spend(args)
        return function(*args)

    def new(self, cls, args: tuple, kwargs: dict):
        if self._is_allowed(cls):
            return cls.__new__(cls, *args, **kwargs)
        if cls is Parameter and args and isinstance(args[0], Tensor) and not kwargs:
            return Parameter(args[0], *map(bool, args[1:2]))
        raise UnpicklingError(f"the file is corrupted or malicious: it makes an instance of {_describe(cls)}")

    def build(self, instance, state) -> None:
        self._spend((state,))
        if type(instance) is OrderedDict or isinstance(instance, Tensor):
            set_attributes(instance, state)
        elif not self._is_allowed(type(instance)):
            raise UnpicklingError(f"the file is corrupted or malicious: it sets the state of {_describe(instance)}")
        elif hasattr(instance, "__setstate__"):
            instance.__setstate__(state)
        else:
            _set_state(instance, state)

    def _spend(self, args: tuple) -> None:
        """Count what a call is given, and what its tuples hold: it may copy all of it, as often as the file says."""
        for arg in args:
            if isinstance(arg, _COUNTED):
                self.allowance -= len(arg)
                if isinstance(arg, tuple):
                    self.allowance -= sum([len(part) for part in arg if isinstance(part, _COUNTED)])
        if self.allowance < 0:
            raise UnpicklingError("the file is corrupted or malicious: it builds more than it contains")

    def _is_allowed(self, thing) -> bool:
        return any(thing is allowed for allowed in self.allowed.values())


def _set_state(instance, state) -> None:
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        set_attributes(instance, state)
    for name, value in (slots or {}).items():
        setattr(instance, name, value)


def _describe(thing) -> str:
    return f"{getattr(thing, '__qualname__', None) or type(thing).__qualname__}, which it may not"


def _unsupported(full: str) -> str:
    if full.startswith("torch._utils._rebuild_") or _DTYPE.fullmatch(full):  # allowing it would not help
        return (
            f"the file has tensors of a kind that rushlight does not have ({full}): convert them in PyTorch, to "
            "strided ones of a common dtype, and save them again"
        )
    return (
        f"WeightsUnpickler error: Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{full}])` or the `torch.serialization.safe_globals([{full}])` context "
        "manager to allowlist this global if you trust this class/function."
    )


def _in_python3(module: str, name: str) -> tuple[str, str]:
    """Files name what moved between Python 2 and 3 by its old place."""
    if (module, name) in _compat_pickle.NAME_MAPPING:
        return _compat_pickle.NAME_MAPPING[module, name]
    if module.startswith("numpy.core."):  # as NumPy 1 called it
        module = "numpy._core." + module.removeprefix("numpy.core.")
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


# -- trustingly ------------------------------------------------------------------------------------------------------


class FullUnpickling:
    """Reads any pickle: whatever a file names is imported and called."""

    def __init__(self, pickle_module=pickle, **arguments):
        self.arguments = arguments
        self.base = pickle_module.Unpickler

    def load(self, data: bytes, persistent):
        return self._unpickler(io.BytesIO(data), persistent).load()

    def sequence(self, data, persistent):
        return _FullSequence(self, data, persistent)

    def _unpickler(self, file, persistent):
        made = _unpickler_class(self.base)(file, **self.arguments)
        made.storages = persistent
        return made


class _FullSequence:
    def __init__(self, unpickling: FullUnpickling, data, persistent):
        self.unpickling, self.persistent = unpickling, persistent
        self.file = io.BytesIO(data) if isinstance(data, bytes) else data

    @property
    def place(self) -> int:
        return self.file.tell()

    @place.setter
    def place(self, value: int) -> None:
        self.file.seek(value)

    def __call__(self):
        return self.unpickling._unpickler(self.file, self.persistent).load()


@functools.cache
def _unpickler_class(base):
    class FullUnpickler(base):
        def find_class(self, module, name):
            module, name = _in_python3(module, name)
            full = f"{module}.{name}"
            if full in constructors() and constructors()[full][0] is not None:
                return constructors()[full][0]
            if full in safe_globals():
                return safe_globals()[full]
            if module.partition(".")[0] != "torch":
                return super().find_class(module, name)
            found = ours(module, name)
            if found is None:
                raise UnpicklingError(f"the file names PyTorch's {full}, which rushlight does not have")
            return found

        def persistent_load(self, identity):
            return self.storages(identity)

    return FullUnpickler


# -- looking without loading -----------------------------------------------------------------------------------------


def unsafe_globals(source) -> list[str]:
    """The names in a checkpoint that weights-only loading would refuse."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(source, "rb")) if isinstance(source, (str, os.PathLike)) else source
        if not _is_zip(file):
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save, of the zip format: files of the older "
                "format cannot be looked into without loading them"
            )
        data = Reader(file).read("data.pkl")
    known = {**safe_globals(), **settings.allowed()}
    return [name for name in dict.fromkeys(_named_globals(data)) if name not in known]


def _named_globals(data: bytes):
    """The full names in a pickle, without running it. Newer protocols have them as two strings, perhaps of the memo."""
    import pickletools

    pushed: list = []  # of each opcode that pushes something, the string it pushed or None
    memo: dict[object, str | None] = {}
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "GLOBAL":
                yield ".".join(_in_python3(*str(argument).split(" ", 1)))
            elif opcode.name == "STACK_GLOBAL":
                yield ".".join(_in_python3(*(part or "?" for part in pushed[-2:])))
            if "PUT" in opcode.name or opcode.name == "MEMOIZE":
                memo[len(memo) if argument is None else argument] = pushed[-1] if pushed else None
            elif "GET" in opcode.name:
                pushed.append(memo.get(argument))
            elif opcode.stack_after:
                pushed.append(argument if isinstance(argument, str) and opcode.name != "GLOBAL" else None)
    except (ValueError, TypeError) as error:
        raise UnpicklingError(f"the file is corrupted: its pickle makes no sense ({error})") from None
