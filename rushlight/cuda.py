"""``rushlight.cuda``: NVIDIA GPUs, seen through JAX. Asking whether there is one never fails."""

from __future__ import annotations

import contextlib
import functools

from .device import device as Device

__all__ = [
    "current_device",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
]  # fmt: skip

_current = 0


@functools.cache
def _gpus() -> tuple:
    try:
        import jax

        return tuple(jax.devices("gpu"))
    except (ImportError, RuntimeError):
        return ()


def is_available() -> bool:
    """Is there a GPU that tensors can be put on?"""
    return bool(_gpus())


def device_count() -> int:
    return len(_gpus())


def is_initialized() -> bool:
    return is_available()


def _gpu(device=None):
    index = _current if device is None else device if isinstance(device, int) else Device(device).index or 0
    if not _gpus():
        raise RuntimeError(
            "No CUDA GPUs are available: JAX sees no NVIDIA GPU. Install rushlight[cuda] where there is one."
        )
    if not 0 <= index < len(_gpus()):
        raise RuntimeError(f"CUDA error: invalid device ordinal {index}: there are {len(_gpus())} GPUs")
    return _gpus()[index]


def current_device() -> int:
    _gpu()
    return _current


def set_device(device) -> None:
    """Make ``device('cuda')`` mean this GPU."""
    global _current
    _current = _gpu(device).id


@contextlib.contextmanager
def device(index):
    """``with cuda.device(1):`` — that GPU is the current one inside."""
    global _current
    outer = _current
    set_device(index)
    try:
        yield
    finally:
        _current = outer


def get_device_name(device=None) -> str:
    return _gpu(device).device_kind


def get_device_capability(device=None) -> tuple[int, int]:
    major, _, minor = str(getattr(_gpu(device), "compute_capability", "0.0")).partition(".")
    return int(major), int(minor or 0)


class _Properties:
    def __init__(self, gpu):
        self.name = gpu.device_kind
        self.major, self.minor = get_device_capability(gpu.id)
        self.total_memory = (gpu.memory_stats() or {}).get("bytes_limit", 0)
        self.multi_processor_count = getattr(gpu, "core_count", 0)

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, multi_processor_count={self.multi_processor_count})"
        )


def get_device_properties(device=None) -> _Properties:
    return _Properties(_gpu(device))


def is_bf16_supported() -> bool:
    return is_available() and get_device_capability()[0] >= 8


def synchronize(device=None) -> None:
    """Wait until everything that was started on the GPU is done."""
    import jax

    # Work on one device runs in order, so waiting for a new, empty piece of work is waiting for all before it.
    jax.device_put(0.0, _gpu(device)).block_until_ready()


def _memory(field: str, device=None) -> int:
    return (_gpu(device).memory_stats() or {}).get(field, 0) if is_available() else 0


def memory_allocated(device=None) -> int:
    """Bytes in use by arrays on the GPU."""
    return _memory("bytes_in_use", device)


def max_memory_allocated(device=None) -> int:
    return _memory("peak_bytes_in_use", device)


def memory_reserved(device=None) -> int:
    return _memory("pool_bytes", device) or _memory("bytes_reserved", device)


def max_memory_reserved(device=None) -> int:
    return _memory("peak_pool_bytes", device) or memory_reserved(device)


def mem_get_info(device=None) -> tuple[int, int]:
    total = _memory("bytes_limit", device)
    return total - memory_allocated(device), total


def empty_cache() -> None:
    """XLA's allocator gives memory back by itself; here for programs that call it."""


def reset_peak_memory_stats(device=None) -> None:
    """JAX cannot reset its peak; here for programs that call it."""


def manual_seed(seed: int) -> None:
    from .random import default_generator

    default_generator.manual_seed(seed)


manual_seed_all = manual_seed


def __getattr__(name):
    if name == "amp":
        from . import amp

        return amp
    raise AttributeError(f"module 'rushlight.cuda' has no attribute '{name}'")
