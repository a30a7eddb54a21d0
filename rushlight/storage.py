"""The memory behind tensors, as far as PyTorch code looks at it: who shares with whom, how large, where."""

from __future__ import annotations

import math
import warnings

import numpy as np

from . import dtypes

__all__ = ["TypedStorage", "UntypedStorage"]


def __dir__():
    return __all__


_LARGEST = 1 << 60  # elements: more could not be addressed, of any dtype


class UntypedStorage:
    """The bytes that a tensor and all views of it share."""

    def __init__(self, memory: np.ndarray, device):
        self._memory, self.device = memory, device  # memory: one-dimensional, uint8

    def data_ptr(self) -> int:
        return pointer(self._memory)

    def nbytes(self) -> int:
        return self._memory.size

    size = __len__ = nbytes

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    def tolist(self) -> list[int]:
        return self._memory.tolist()

    def __getitem__(self, index):
        part = self._memory[index]
        return int(part) if isinstance(part, np.generic) else UntypedStorage(part, self.device)

    def __setitem__(self, index, value) -> None:
        self._memory[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def is_shared(self) -> bool:
        return False

    def clone(self) -> UntypedStorage:
        return UntypedStorage(self._memory.copy(), self.device)

    def __repr__(self) -> str:
        values = "".join(f" {v}\n" for v in self.tolist())
        return f"{values}[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


class TypedStorage:
    """An ``UntypedStorage`` read as elements of one dtype; deprecated in PyTorch."""

    def __init__(self, untyped: UntypedStorage, dtype: dtypes.dtype):
        self._untyped_storage, self.dtype = untyped, dtype
        self._elements = untyped._memory.view(dtype.numpy)

    @property
    def device(self):
        return self._untyped_storage.device

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

    def __repr__(self) -> str:
        values = "".join(f" {v}\n" for v in self.tolist())
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        return f"{values}[{kind} of size {len(self)}]"


def warn_typed() -> None:
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only "
        "storage class. This should only matter to you if you are using storages directly.  To access "
        "UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()",
        UserWarning,
        stacklevel=3,
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


def extent(shape, strides) -> int:
    """How many elements of memory sizes and strides reach over."""
    return 0 if 0 in shape else 1 + sum([(n - 1) * s for n, s in zip(shape, strides)])
