"""``rushlight.accelerator``: PyTorch's names for a machine's accelerator, of whatever kind; here that is a GPU."""

from __future__ import annotations

from . import cuda
from .cuda import current_device as current_device_index
from .cuda import (
    current_stream,
    device_count,
    empty_cache,
    is_available,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
    set_stream,
    synchronize,
)
from .cuda import device as device_index
from .cuda import mem_get_info as get_memory_info
from .cuda import set_device as set_device_index
from .device import device

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def __dir__():
    return __all__


current_device_idx, set_device_idx = current_device_index, set_device_index


def current_accelerator(check_available: bool = False) -> device | None:
    """Its device, or ``None`` when there is none."""
    return device("cuda") if cuda.is_available() else None
