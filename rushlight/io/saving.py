"""Writing PyTorch's files: a pickle that names PyTorch's functions, and the storages it refers to."""

from __future__ import annotations

import enum
import functools
import io
import os
import pickle
import struct
import sys
import types
from collections import OrderedDict
from typing import Any

import numpy as np

from .. import dtypes
from ..device import device
from ..engine import namespace_of
from ..layout import dense_strides, layout, memory_format, qscheme
from ..nn.hooks import STATE_NAMES
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..storage import OLD, TypedStorage, UntypedStorage, memory_of, pointer
from ..tensor import Tensor
from . import rebuild, settings
from .atomic import replacing
from .loading import MAGIC_NUMBER, PROTOCOL_VERSION
from .locations import location_tag
from .names import theirs
from .rebuild import LoadedStorage
from .zipformat import Writer, write_all

__all__ = ["pickled", "save"]

_FUNCTIONS = {function: name.rpartition(".")[::2] for name, function in rebuild.rebuild_functions().items()}


def save(obj, f, pickle_module, protocol: int, zipped: bool, byte_order: bool) -> None:
    write = functools.partial(_write_zip, byte_order=byte_order) if zipped else _write_legacy
    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as file:
            write(obj, file, os.path.splitext(os.path.basename(os.fspath(f)))[0], pickle_module, protocol)
    elif hasattr(f, "write"):
        write(obj, f, "archive", pickle_module, protocol)
    else:
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")


def pickled(obj) -> bytes:
    """A pickle of values without tensors, with PyTorch's names for what it has too."""
    data = io.BytesIO()
    _dump(_pickler(pickle)(data, 4, Storages()), obj)
    return data.getvalue()


def _write_zip(obj, file, archive: str, pickle_module, protocol: int, byte_order: bool) -> None:
    storages = Storages()
    data = io.BytesIO()
    _dump(_pickler(pickle_module)(data, protocol, storages), obj)
    writer = Writer(file, archive or "archive", settings.checksums)
    writer.add("data.pkl", data.getbuffer())
    if byte_order:
        writer.add("byteorder", sys.byteorder.encode())
    named = {f"data/{key}": memory for key, memory in enumerate(storages.memories)}
    if settings.skip_data:
        for name, memory in named.items():
            writer.reserve(name, memory.size)
    else:
        writer.add_all(named)
    writer.add("version", b"3\n")
    writer.close()


def _write_legacy(obj, file, archive: str, pickle_module, protocol: int) -> None:
    storages = Storages(legacy=True)
    sizes = {"short": 2, "int": 4, "long": 4}
    system = {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    data = io.BytesIO()
    for value in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        pickle.dump(value, data, protocol)
    _dump(_pickler(pickle_module)(data, protocol, storages), obj)
    pickle.dump([str(key) for key in range(len(storages.memories))], data, protocol)
    write_all(file, data.getbuffer())
    for memory, kind in zip(storages.memories, storages.kinds):
        write_all(file, struct.pack("<q", memory.size // (kind.itemsize if kind else 1)))
        write_all(file, memory)


def _dump(pickler, obj) -> None:
    """A pickler in Python takes several frames for each level of nesting: allow it more than Python's 1000."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 10_000))
    try:
        pickler.dump(obj)
    finally:
        sys.setrecursionlimit(limit)


# -- storages --------------------------------------------------------------------------------------------------------


class Storages:
    """The memories to save, each once, and the persistent ids that stand for them in the pickle."""

    def __init__(self, legacy: bool = False):
        self.memories: list[np.ndarray] = []
        self.kinds: list[dtypes.dtype | None] = []
        self.keys: dict[object, int] = {}
        self.kept: list = []  # alive until all is written: keys are addresses
        self.legacy = legacy

    def identity(self, memory: np.ndarray, kind: dtypes.dtype | None, place, mark, kept) -> tuple:
        """The persistent id of a storage; ``mark`` is equal for equal storages."""
        key = self.keys.get(mark)
        if key is None:
            key = self.keys[mark] = len(self.memories)
            self.memories.append(memory)
            self.kinds.append(kind)
            self.kept.append(kept)
        elif self.kinds[key] is not kind:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        count = memory.size // (kind.itemsize if kind else 1)
        identity = ("storage", StorageName(kind), str(key), location_tag(UntypedStorage(memory, place)), count)
        return (*identity, None) if self.legacy else identity

    def of_storage(self, storage: UntypedStorage, kind) -> tuple:
        memory = storage._memory
        return self.identity(memory, kind, storage.device, _mark(memory, storage), storage)


def _mark(memory: np.ndarray, holder):
    return (pointer(memory), memory.size) if memory.size else ("empty", id(holder))


class StorageName:
    """``torch.FloatStorage``, to be written as a global."""

    _made: dict = {}

    def __new__(cls, kind: dtypes.dtype | None):
        if kind not in cls._made:
            cls._made[kind] = object.__new__(cls)
            cls._made[kind].place = (
                ("torch.storage", "UntypedStorage") if kind is None else ("torch", f"{kind.word}Storage")
            )
        return cls._made[kind]


# PyTorch has no typed storages for them.
_UNTYPED = tuple(d for d in dtypes.ALL if f"{d.word}Storage" not in OLD)


def _tensor_parts(t: Tensor, storages: Storages):
    """The rebuild function of a plain tensor's values, and its arguments."""
    if t.is_meta:
        return rebuild.rebuild_meta_tensor, (t.dtype, tuple(t.shape), t.stride(), t.requires_grad)
    t._come_home()
    array, place, dtype = t._array, t.device, t.dtype
    turned = {name: True for name in ("conj", "neg") if getattr(t, f"is_{name}")()}
    if turned and isinstance(array, np.ndarray):
        array = t._strided_array()
    else:
        turned = {}
    item, start, mark = dtype.itemsize, 0, None
    kept: Any = t
    if not isinstance(array, np.ndarray):
        kept, mark = (t, array), ("device", id(array))
        whole = array = np.ascontiguousarray(namespace_of(array).to_numpy(array)).reshape(array.shape)
    else:
        whole = t._owner()
        if array is not whole and array.size:
            start = pointer(array) - pointer(whole)
        if start % item or any(s < 0 or s % item for s in array.strides):  # as no tensor of PyTorch's can lie
            whole = array = np.array(array)
            start = 0
    memory = memory_of(whole)
    kind = None if dtype in _UNTYPED else dtype
    identity = storages.identity(memory, kind, place, mark or _mark(memory, t), (kept, whole))
    strides = tuple(s // item for s in array.strides) if array.size else dense_strides(array.shape, range(array.ndim))
    args = (Persistent(identity), start // item, array.shape, strides, t.requires_grad, OrderedDict())
    if kind is None:
        return rebuild.rebuild_tensor_v3, (*args, dtype)
    return rebuild.rebuild_tensor_v2, (*args, turned) if turned else args


class Persistent:
    """Stands for a storage until the pickler writes its persistent id."""

    __slots__ = ("identity",)

    def __init__(self, identity: tuple):
        self.identity = identity


# -- the pickle ------------------------------------------------------------------------------------------------------


@functools.cache
def _pickler(pickle_module):
    """A pickler in Python: the one in C insists on importing what it writes the name of."""
    base = pickle_module.Pickler
    if not issubclass(base, pickle._Pickler):
        base = pickle._Pickler

    class Pickler(base):
        def __init__(self, file, protocol: int, storages: Storages):
            super().__init__(file, protocol)
            self.storages = storages

        def save(self, obj, save_persistent_id=True):
            write = _WRITERS.get(type(obj))
            if write is None:
                if isinstance(obj, Tensor) and type(obj).__reduce_ex__ in _OWN_REDUCE:
                    write = _write_tensor
                elif isinstance(obj, Tensor) and obj.is_quantized:
                    write = _write_quantized
                elif isinstance(obj, Module):
                    write = _write_module
                else:
                    super().save(obj, save_persistent_id)
                    return
            known = self.memo.get(id(obj))
            if known is not None:
                self.write(self.get(known[0]))
            elif write(self, obj) is NotImplemented:
                super().save(obj, save_persistent_id)

        def write_name(self, obj, module: str, name: str):
            """A class or function, by PyTorch's name for it."""
            if self.proto >= 4:
                self.save(module)
                self.save(name)
                self.write(pickle.STACK_GLOBAL)
            else:
                self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
            self.memoize(obj)

        def write_persistent(self, identity: tuple):
            self.save(identity)
            self.write(pickle.BINPERSID)

    return Pickler


def _write_tensor(pickler, t: Tensor):
    call: tuple
    if type(t) is Parameter:
        data = t.detach()
        if t.__dict__:
            call = rebuild.rebuild_parameter_with_state, (data, t.requires_grad, OrderedDict(), dict(t.__dict__))
        else:
            call = rebuild.rebuild_parameter, (data, t.requires_grad, OrderedDict())
    else:
        call = _tensor_parts(t, pickler.storages)
        if type(t) is Tensor and not t.__dict__ and pickler.proto >= 2 and not t.is_meta:
            return _write_call(pickler, t, *call)
        if type(t) is not Tensor or t.__dict__:
            call = rebuild.rebuild_from_type, (call[0], type(t), call[1], dict(t.__dict__))
    return pickler.save_reduce(*call, obj=t)


def _write_quantized(pickler, q):
    from ..quantized.tensor import quantizer

    _, (storage, offset, size, stride, *_) = _tensor_parts(q._codes, pickler.storages)
    word, _, *rest = storage.identity
    named = Persistent((word, StorageName(q.dtype), *rest))
    args = (named, offset, size, stride, quantizer(q), False, OrderedDict())
    return pickler.save_reduce(rebuild.rebuild_quantized, args, obj=q)


def _write_call(pickler, t: Tensor, function, args: tuple) -> None:
    """What ``save_reduce`` does, for arguments that need no memo: checkpoints have thousands of tensors."""
    write = pickler.write
    storage, offset, shape, stride, requires_grad, _, *dtype = args
    pickler.save(function)
    write(pickle.MARK + pickle.MARK)
    for part in storage.identity:
        write(_int(part)) if type(part) is int else pickler.save(part)
    write(pickle.TUPLE + pickle.BINPERSID + _int(offset) + _ints(shape) + _ints(stride))
    write(pickle.NEWTRUE if requires_grad else pickle.NEWFALSE)
    pickler.save(OrderedDict)
    write(pickle.EMPTY_TUPLE + pickle.REDUCE)
    for part in dtype:
        pickler.save(part)
    write(pickle.TUPLE + pickle.REDUCE)
    pickler.memoize(t)


def _int(n: int) -> bytes:
    if 0 <= n < 256:
        return b"K%c" % n
    if 0 <= n < 65536:
        return pickle.BININT2 + n.to_bytes(2, "little")
    if -(2**31) <= n < 2**31:
        return pickle.BININT + n.to_bytes(4, "little", signed=True)
    data = pickle.encode_long(n)
    return pickle.LONG1 + bytes([len(data)]) + data


def _ints(values: tuple) -> bytes:
    if not values:
        return pickle.EMPTY_TUPLE
    data = b"".join(map(_int, values))
    if len(values) <= 3:
        return data + (pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3)[len(values) - 1]
    return pickle.MARK + data + pickle.TUPLE


def _write_module(pickler, module: Module):
    """With every table of hooks: PyTorch's modules miss them otherwise."""
    reduced: Any = module.__reduce_ex__(2)
    if len(reduced) == 2:  # a class with its own way
        return pickler.save_reduce(*reduced, obj=module)
    function, args, state, *rest = reduced
    if isinstance(state, dict) and "_parameters" in state:
        tables = {name: OrderedDict() for name in sorted(STATE_NAMES)} | {"_is_full_backward_hook": None}
        state = tables | state
    return pickler.save_reduce(function, args, state, *rest, obj=module)


def _write_class(pickler, thing):
    place = _FUNCTIONS.get(thing) or theirs(thing)
    if place is None:
        return NotImplemented
    return pickler.write_name(thing, *place)


def _write_untyped(pickler, storage: UntypedStorage):
    pickler.write_persistent(pickler.storages.of_storage(storage, None))


def _write_typed(pickler, storage: TypedStorage):
    pickler.write_persistent(pickler.storages.of_storage(storage.untyped(), storage.dtype))


def _write_layout(pickler, value):
    pickler.save_reduce(_Name("torch.serialization", "_get_layout"), (repr(value),), obj=value)


class _Name:
    """A function that exists only in PyTorch."""

    def __init__(self, module: str, name: str):
        self.place = (module, name)

    def __call__(self):
        raise NotImplementedError


_OWN_REDUCE = (Tensor.__reduce_ex__, Parameter.__reduce_ex__)
_WRITERS = {
    Tensor: _write_tensor,
    Parameter: _write_tensor,
    Persistent: lambda pickler, p: pickler.write_persistent(p.identity),
    UntypedStorage: _write_untyped,
    TypedStorage: _write_typed,
    LoadedStorage: _write_untyped,
    _Name: lambda pickler, n: pickler.write_name(n, *n.place),
    StorageName: lambda pickler, n: pickler.write_name(n, *n.place),
    dtypes.dtype: lambda pickler, d: pickler.write_name(d, "torch", d.name),
    memory_format: lambda pickler, form: pickler.write_name(form, "torch", form.name),
    qscheme: lambda pickler, scheme: pickler.write_name(scheme, "torch", scheme.name),
    device: lambda pickler, d: pickler.save_reduce(device, (d.type,) if d.index is None else (d.type, d.index), obj=d),
    layout: _write_layout,
    type: _write_class,
    enum.EnumMeta: _write_class,
    types.FunctionType: _write_class,
}
