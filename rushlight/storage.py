"""The memory behind tensors, as far as PyTorch code looks at it: who shares with whom, how large, where."""

from __future__ import annotations

import functools
import math
import mmap
import os
import sys
import weakref

import numpy as np

from . import dtypes
from .device import cpu
from .device import device as Device
from .errors import warn_user

__all__ = ["TypedStorage", "UntypedStorage"]


def __dir__():
    return __all__


_LARGEST = 1 << 60  # elements: more could not be addressed, of any dtype


class UntypedStorage:
    """The bytes that a tensor and all views of it share: ``UntypedStorage(8)``, ``UntypedStorage([1, 2])``."""

    filename: str | None = None
    is_sparse = is_sparse_csr = False

    def __init__(self, data=0, device=cpu) -> None:
        """``data``: how many bytes, their values, or memory to share (a one-dimensional array of uint8)."""
        if isinstance(data, int):
            data = np.zeros(data, np.uint8)
        self._memory = data if isinstance(data, np.ndarray) else np.array(list(data), np.uint8)
        self.device = device if isinstance(device, Device) else Device(device)

    @classmethod
    def from_file(cls, filename, shared: bool = False, size: int = 0, nbytes: int | None = None) -> UntypedStorage:
        """The bytes of a file, mapped. ``shared``: writes go to the file, which is made or lengthened as needed."""
        wanted = size if nbytes is None else nbytes
        if shared:
            with open(filename, "ab") as file:
                if file.tell() < wanted:
                    file.truncate(wanted)
        have = os.path.getsize(filename)
        if wanted > have:
            raise RuntimeError(f"unable to mmap {wanted} bytes from file <{filename}>: it has {have} bytes")
        count = wanted or have
        memory = (
            np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(count,)) if count else np.empty(0, np.uint8)
        )
        made = cls(np.asarray(memory))
        made.filename = os.fspath(filename) if shared else None
        return made

    @classmethod
    def from_buffer(cls, buffer, byte_order: str = "native", offset: int = 0, count: int = -1, **_) -> UntypedStorage:
        """A copy of a buffer's bytes."""
        return cls(np.frombuffer(buffer, np.uint8, count, offset).copy())

    def data_ptr(self) -> int:
        return pointer(self._memory)

    def nbytes(self) -> int:
        return self._memory.size

    size = __len__ = nbytes

    def element_size(self) -> int:
        return 1

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def get_device(self) -> int:
        return -1 if self.device.type == "cpu" else self.device.index or 0

    def untyped(self) -> UntypedStorage:
        return self

    def tolist(self) -> list[int]:
        return self._memory.tolist()

    def __getitem__(self, index):
        part = self._memory[index]
        return int(part) if isinstance(part, np.generic) else UntypedStorage(part, self.device)

    def __setitem__(self, index, value) -> None:
        self._memory[index] = value._memory if isinstance(value, UntypedStorage) else value

    def __iter__(self):
        return iter(self.tolist())

    def __array__(self, dtype=None, copy=None):
        return self._memory if not copy else self._memory.copy()

    def is_shared(self) -> bool:
        """Do other processes see writes to it?"""
        base = owner(self._memory).base
        return self.filename is not None or isinstance(getattr(base, "obj", base), mmap.mmap)

    def share_memory_(self) -> UntypedStorage:
        """Move the bytes to where other processes see them. Differs from PyTorch: tensors made before keep theirs."""
        if not self.is_shared():
            from .multiprocessing import shared_copy

            self._memory = shared_copy(self._memory)
        return self

    def is_pinned(self, device="cuda") -> bool:
        return False

    def resizable(self) -> bool:
        return self._memory.flags.owndata

    def resize_(self, size: int) -> UntypedStorage:
        """So many bytes, the first of them kept. Differs from PyTorch: tensors made before keep the old memory."""
        grown = np.zeros(size, np.uint8)
        kept = min(size, self._memory.size)
        grown[:kept] = self._memory[:kept]
        self._memory = grown
        return self

    def copy_(self, src, non_blocking=None) -> UntypedStorage:
        if src.nbytes() != self.nbytes():
            raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {src.nbytes()} bytes")
        self._memory[:] = src.untyped()._memory
        return self

    def fill_(self, value: int) -> UntypedStorage:
        self._memory[:] = value
        return self

    def clone(self) -> UntypedStorage:
        return UntypedStorage(self._memory.copy(), self.device)

    def cpu(self) -> UntypedStorage:
        return self if self.device.type == "cpu" else UntypedStorage(self._memory, cpu)

    def to(self, *, device, non_blocking: bool = False) -> UntypedStorage:
        return UntypedStorage(self._memory, device)

    def new(self) -> UntypedStorage:
        return UntypedStorage(0, self.device)

    def type(self, dtype=None, non_blocking: bool = False) -> str:
        return "torch.storage.UntypedStorage"

    def _to(self, dtype: dtypes.dtype) -> TypedStorage:
        """The bytes' values as elements of another dtype."""
        return TypedStorage(UntypedStorage(self._memory.astype(dtype.numpy).view(np.uint8), self.device), dtype)

    def __eq__(self, other) -> bool:
        return isinstance(other, UntypedStorage) and self.data_ptr() == other.data_ptr()

    __hash__ = object.__hash__

    def __reduce__(self):
        return _of_bytes, (self._memory.tobytes(),)

    def __repr__(self) -> str:
        values = "".join(f" {v}\n" for v in self.tolist())
        return f"{values}[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


class TypedStorage:
    """An ``UntypedStorage`` read as elements of one dtype; deprecated in PyTorch."""

    is_sparse = False

    def __init__(self, data=0, dtype: dtypes.dtype | None = None, device=cpu, *, wrap_storage=None):
        """``data``: how many elements, their values, or the untyped storage to read (``wrap_storage`` by name)."""
        self.dtype = dtype or dtypes.get_default_dtype()
        data = data if wrap_storage is None else wrap_storage
        if isinstance(data, int):
            data = UntypedStorage(data * self.dtype.itemsize, device)
        elif not isinstance(data, UntypedStorage):
            data = UntypedStorage(np.array(data, self.dtype.numpy).view(np.uint8), device)
        self._untyped_storage = data

    @classmethod
    def from_file(cls, filename, shared: bool = False, size: int = 0, dtype: dtypes.dtype | None = None):
        """``size`` elements of a file, mapped."""
        kind = dtype or dtypes.get_default_dtype()
        return TypedStorage(UntypedStorage.from_file(filename, shared, size * kind.itemsize), kind)

    @classmethod
    def from_buffer(cls, buffer, byte_order=None, count: int = -1, offset: int = 0, dtype: dtypes.dtype | None = None):
        """A copy of ``count`` elements of some bytes; those of more than one byte need a ``byte_order``."""
        kind = dtype or dtypes.get_default_dtype()
        if kind.itemsize > 1 and byte_order not in ("native", "little", "big"):
            if byte_order is None:
                raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        layout = kind.numpy.newbyteorder(byte_order or "native")
        elements = np.frombuffer(buffer, layout, count, offset)
        return TypedStorage(elements.astype(kind.numpy), kind)

    @property
    def _elements(self) -> np.ndarray:
        return self._untyped_storage._memory.view(self.dtype.numpy)

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        return self._untyped_storage.is_cuda

    @property
    def filename(self) -> str | None:
        return self._untyped_storage.filename

    def untyped(self) -> UntypedStorage:
        return self._untyped_storage

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        return self._elements.size

    __len__ = size

    def element_size(self) -> int:
        return self.dtype.itemsize

    def tolist(self) -> list:
        return self._elements.tolist()

    def __getitem__(self, index):
        part = self._elements[index]
        return part.item() if isinstance(part, np.generic) else part.tolist()

    def __setitem__(self, index, value) -> None:
        self._elements[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    def resize_(self, size: int) -> TypedStorage:
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def copy_(self, source, non_blocking=None) -> TypedStorage:
        self._elements[:] = source._elements
        return self

    def fill_(self, value) -> TypedStorage:
        self._elements[:] = value
        return self

    def clone(self) -> TypedStorage:
        return TypedStorage(self._untyped_storage.clone(), self.dtype)

    def cpu(self) -> TypedStorage:
        return TypedStorage(self._untyped_storage.cpu(), self.dtype)

    def _to(self, dtype: dtypes.dtype) -> TypedStorage:
        return TypedStorage(UntypedStorage(self._elements.astype(dtype.numpy).view(np.uint8), self.device), dtype)

    def pickle_storage_type(self) -> str:
        return f"{self.dtype.word}Storage"

    def type(self, dtype=None, non_blocking: bool = False) -> str:
        return f"torch.{self.dtype.word}Storage"

    def __reduce__(self):
        return TypedStorage, (self._untyped_storage, self.dtype)

    def __repr__(self) -> str:
        values = "".join(f" {v}\n" for v in self.tolist())
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        return f"{values}[{kind} of size {len(self)}]"


class _OfOneDtype(type):
    """``isinstance(storage, FloatStorage)`` asks for its dtype."""

    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, TypedStorage) and value.dtype is cls._dtype  # type: ignore[attr-defined]

    def __call__(cls, *args, device=cpu, wrap_storage=None):
        data = args[0] if args else 0
        return TypedStorage(data, cls._dtype, device, wrap_storage=wrap_storage)  # type: ignore[attr-defined]


def _old(dtype: dtypes.dtype):
    """``FloatStorage`` and its kin: names for storages of one dtype."""
    name = f"{dtype.word}Storage"
    read = functools.partial(TypedStorage.from_buffer, dtype=dtype)
    members = {
        "_dtype": dtype,
        "dtype": dtype,
        "from_file": staticmethod(lambda f, shared=False, size=0: TypedStorage.from_file(f, shared, size, dtype)),
        "from_buffer": staticmethod(read),
        "_from_buffer": staticmethod(read),
    }
    return _OfOneDtype(
        name,
        (),
        {**members, "__module__": "torch", "__doc__": f"A storage of {dtype.name} elements, under its old name."},
    )


_WITHOUT = ("UInt16", "UInt32", "UInt64", "ComplexHalf")
OLD = {f"{d.word}Storage": _old(d) for d in dtypes.ALL if d.word not in _WITHOUT and d.word[:6] != "Float8"}
globals().update(OLD)

_CONVERSIONS = {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "int": dtypes.int32, "long": dtypes.int64, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
    "bool": dtypes.bool_, "complex_float": dtypes.complex64, "complex_double": dtypes.complex128,
}  # fmt: skip
for _name, _dtype in _CONVERSIONS.items():
    for _kind in (UntypedStorage, TypedStorage):
        setattr(_kind, _name, lambda self, _dtype=_dtype: self._to(_dtype))


def _of_bytes(data: bytes) -> UntypedStorage:
    return UntypedStorage(np.frombuffer(data, np.uint8).copy())


_warned = False


def warn_typed() -> None:
    """Say that typed storages are deprecated, once in a process."""
    global _warned
    if _warned:
        return
    _warned = True
    warn_user(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only "
        "storage class. This should only matter to you if you are using storages directly.  To access "
        "UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()"
    )


def pointer(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def owner(array: np.ndarray) -> np.ndarray:
    """The array whose memory ``array`` is a view of."""
    while True:
        base = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # as_strided puts an object between an array and what it views
        if not isinstance(base, np.ndarray):
            return array
        array = base


def lend(array: np.ndarray) -> np.ndarray:
    """``array``, whose memory somebody outside will read and write without our knowing."""
    own = owner(array)
    key = id(own)
    known = _lent.get(key)
    if known is not None and known() is own:
        return array
    _lent[key] = weakref.ref(own, lambda _: _lent.pop(key, None))
    return array


def is_lent(tensor) -> bool:
    """May somebody outside have the memory of ``tensor``? Not if it was lent, but nobody else holds it any more."""
    if not _lent or tensor._array.__class__ is not np.ndarray:
        return False
    key = _key(tensor)
    if key is None:
        return False
    if _holders(tensor) == _ALONE[tensor._array.base is None]:
        del _lent[key]
        return False
    return True


def _key(tensor) -> int | None:
    """Where the memory of ``tensor`` is in ``_lent``, if it is there."""
    own = owner(tensor._array)
    known = _lent.get(id(own))
    return None if known is None or known() is not own else id(own)


def _holders(tensor) -> int:
    """How many hold the tensor's array or the one that it is a view of; -1 if the memory is not NumPy's own."""
    own = owner(tensor._array)
    return sys.getrefcount(tensor._array) + sys.getrefcount(own) if own.base is None else -1


class _Probe:
    """Something that holds an array as a tensor does."""

    def __init__(self, array) -> None:
        self._array = array


_lent: dict[int, weakref.ref] = {}  # id -> an array whose memory was given to somebody outside
# What ``_holders`` says if nobody else has it: of an array with memory of its own, and of a view.
_ALONE = {True: _holders(_Probe(np.zeros(1))), False: _holders(_Probe(np.zeros(2)[:1]))}


def memory_of(array: np.ndarray) -> np.ndarray:
    """All memory of an owning array, as bytes."""
    extent = 0 if 0 in array.shape else array.itemsize + sum((n - 1) * s for n, s in zip(array.shape, array.strides))
    if extent == 0:
        return np.empty(0, np.uint8)
    if array.flags.forc:
        return array.reshape(-1, order="A").view(np.uint8)
    count = extent // array.itemsize
    return np.lib.stride_tricks.as_strided(array, (count,), (array.itemsize,)).view(np.uint8)


def placed(memory: np.ndarray, dtype, shape, strides, offset: int) -> np.ndarray:
    """An array in ``memory`` (bytes) by numbers that anybody may have given; NumPy refuses what leaves it.

    Strides and offset are counted in elements.
    """
    if 0 in shape:
        return np.empty(shape, dtype)
    item = np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, memory, offset * item, tuple([s * item for s in strides]))


def check_layout(shape, strides, offset: int) -> None:
    """PyTorch's errors for sizes, strides and an offset that no memory has."""
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if len(shape) != len(strides):
        raise RuntimeError(
            f"mismatch in length of strides and shape: got {len(shape)} sizes and {len(strides)} strides"
        )
    if min(shape, default=0) < 0 or min(strides, default=0) < 0 or extent(shape, strides) >= _LARGEST:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}")
    if math.prod(shape) >= _LARGEST or offset >= _LARGEST:
        raise RuntimeError("numel: integer multiplication overflow")


def affordable(nbytes: int) -> None:
    """Refuse what no memory of this machine could hold, before work that leads to it begins."""
    if isinstance(nbytes, int) and nbytes > _machine():  # a size that a trace leaves open is no int
        raise RuntimeError(f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {nbytes} bytes.")


@functools.cache
def _machine() -> int:
    """Bytes of memory that the machine has, twice over: some of it may be on disk."""
    try:
        return 2 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return 1 << 42


def extent(shape, strides) -> int:
    """How many elements of memory sizes and strides reach over."""
    return 0 if 0 in shape else 1 + sum([(n - 1) * s for n, s in zip(shape, strides)])
