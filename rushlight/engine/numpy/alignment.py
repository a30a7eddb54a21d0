"""Arrays that begin where XLA wants them to: it takes those as they are, and copies all others."""

from __future__ import annotations

import numpy as np

__all__ = ["aligned", "aligned_copy", "is_aligned", "is_same_memory"]

_BYTES = 64


def aligned(count: int, dtype) -> np.ndarray:
    """``count`` zeros."""
    size = count * np.dtype(dtype).itemsize
    memory = np.zeros(size + _BYTES, np.uint8)
    start = -_address(memory) % _BYTES
    return memory[start : start + size].view(dtype)


def aligned_copy(x: np.ndarray) -> np.ndarray:
    memory = np.empty(x.nbytes + _BYTES, np.uint8)
    start = -_address(memory) % _BYTES
    copy = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    np.copyto(copy, x)
    return copy


def is_aligned(x: np.ndarray) -> bool:
    return _address(x) % _BYTES == 0


def is_same_memory(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two contiguous arrays begin at the same address and are equally long."""
    return _address(x) == _address(y) and x.nbytes == y.nbytes


def _address(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]
