"""``rushlight.accelerator``: PyTorch's names for a machine's accelerator, of whatever kind; here that is a GPU."""

from __future__ import annotations

from . import cuda
from .device import device

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "device_count",
    "is_available",
    "set_device_idx",
    "set_device_index",
    "synchronize",
]


def is_available() -> bool:
    """Is there an accelerator that tensors can be put on?"""
    return cuda.is_available()


def current_accelerator(check_available: bool = False) -> device | None:
    """Its device, or ``None`` when there is none."""
    return device("cuda") if cuda.is_available() else None


def device_count() -> int:
    return cuda.device_count()


def current_device_index() -> int:
    return cuda.current_device()


def set_device_index(device, /) -> None:
    cuda.set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


def synchronize(device=None, /) -> None:
    """Wait until everything that was started on the accelerator is done."""
    cuda.synchronize(device)
