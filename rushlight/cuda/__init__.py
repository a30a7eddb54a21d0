"""``rushlight.cuda``: NVIDIA GPUs, seen through JAX. Asking whether there is one never fails."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import os

from .. import config
from ..compat import missing as _missing
from ..device import device as Device
from ..engine import collect as _collect
from ..engine import landed as _landed
from ..errors import OutOfMemoryError
from . import amp, nvtx, profiler
from .streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream

__all__ = [
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "nvtx",
    "profiler",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]


def __dir__():
    return __all__


@functools.cache
def _gpus() -> tuple:
    if not _has_plugins():
        return ()
    try:
        import jax

        return tuple(jax.local_devices(backend="gpu"))
    except (ImportError, RuntimeError):
        return ()


def _has_plugins() -> bool:
    """Can JAX have more than the CPU? Looking for its plugins takes milliseconds; to load JAX, more than a second."""
    return (
        "PJRT_NAMES_AND_LIBRARY_PATHS" in os.environ
        or importlib.util.find_spec("jax_plugins") is not None
        or bool(importlib.metadata.entry_points(group="jax_plugins"))
    )


def is_available() -> bool:
    """Is there a GPU that tensors can be put on?"""
    return bool(_gpus())


def device_count() -> int:
    """How many devices there are."""
    return len(_gpus())


def is_initialized() -> bool:
    """Was a device used yet?"""
    return is_available()


def init() -> None:
    """Raises if there is no GPU; there is nothing else to prepare."""
    _gpu()


def _index(device=None) -> int:
    index = device if device is None or isinstance(device, int) else Device(device).index
    return config.current_gpu if index is None else index


def _gpu(device=None):
    index = _index(device)
    if not _gpus():
        raise RuntimeError(
            "No CUDA GPUs are available: JAX sees no NVIDIA GPU. Install rushlight[cuda] where there is one."
        )
    if not 0 <= index < len(_gpus()):
        raise RuntimeError(f"CUDA error: invalid device ordinal {index}: there are {len(_gpus())} GPUs")
    return _gpus()[index]


def current_device() -> int:
    """The index of the current device."""
    _gpu()
    return config.current_gpu


def set_device(device) -> None:
    """Make ``device('cuda')`` mean this GPU; a negative number changes nothing."""
    if _index(device) >= 0:
        _gpu(device)
        config.current_gpu = _index(device)


class device(contextlib.ContextDecorator):
    """``with cuda.device(1):`` — that GPU is the current one inside; ``None`` or a negative number changes nothing."""

    def __init__(self, device):
        self.idx, self.prev_idx = -1 if device is None else _index(device), -1

    def __enter__(self):
        self.prev_idx = config.current_gpu
        set_device(self.idx)

    def __exit__(self, *_):
        config.current_gpu = self.prev_idx


class device_of(device):
    """The GPU of a tensor is the current one inside."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else None)


def can_device_access_peer(device, peer_device) -> bool:
    """Can one GPU read another's memory? XLA copies between any two."""
    _gpu(device), _gpu(peer_device)
    return _index(device) != _index(peer_device)


def get_device_name(device=None) -> str:
    """The device's name."""
    return _gpu(device).device_kind


def get_device_capability(device=None) -> tuple[int, int]:
    """The device's compute capability as (major, minor)."""
    return _capability(_gpu(device))


def _capability(gpu) -> tuple[int, int]:
    major, _, minor = str(getattr(gpu, "compute_capability", "0.0")).partition(".")
    return int(major), int(minor or 0)


class _CudaDeviceProperties:
    def __init__(self, gpu):
        self.name = gpu.device_kind
        self.major, self.minor = _capability(gpu)
        self.total_memory = (gpu.memory_stats() or {}).get("bytes_limit", 0)
        self.multi_processor_count = getattr(gpu, "core_count", 0)

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, multi_processor_count={self.multi_processor_count})"
        )


def get_device_properties(device=None) -> _CudaDeviceProperties:
    """Name, memory and compute capability of a device."""
    return _CudaDeviceProperties(_gpu(device))


def get_arch_list() -> list[str]:
    """The architectures there are GPUs of: XLA compiles for the one at hand."""
    return sorted({"sm_{}{}".format(*_capability(gpu)) for gpu in _gpus()})


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Can the device compute in bfloat16?"""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Can the device compute in TF32?"""
    return is_available() and get_device_capability()[0] >= 8


def is_current_stream_capturing() -> bool:
    """False: there are no CUDA graphs here; ``rushlight.compile`` makes one program of a step."""
    return False


def synchronize(device=None) -> None:
    """Wait until everything that was started on the GPU is done."""
    import jax

    _landed()
    # Work on one device runs in order, so waiting for a new, empty piece of work is waiting for all before it.
    jax.device_put(0.0, _gpu(device)).block_until_ready()


def _memory(field: str, device=None) -> int:
    _landed()
    return (_gpu(device).memory_stats() or {}).get(field, 0) if is_available() else 0


def memory_allocated(device=None) -> int:
    """Bytes in use by arrays on the GPU."""
    return _memory("bytes_in_use", device)


def max_memory_allocated(device=None) -> int:
    """The most bytes that tensors held at one time."""
    return _memory("peak_bytes_in_use", device)


def memory_reserved(device=None) -> int:
    """The bytes that are reserved on the device."""
    return _memory("pool_bytes", device) or _memory("bytes_reserved", device)


def max_memory_reserved(device=None) -> int:
    """The most bytes that were reserved at one time."""
    return _memory("peak_pool_bytes", device) or memory_reserved(device)


def mem_get_info(device=None) -> tuple[int, int]:
    """(free, all) bytes of the memory that JAX may use."""
    _gpu(device)
    total = _memory("bytes_limit", device)
    return total - memory_allocated(device), total


def memory_stats(device=None) -> dict:
    """What JAX counts, under its names and, for the current and largest use, PyTorch's."""
    if not is_available():
        return {}
    stats = dict(_gpu(device).memory_stats() or {})
    for kind, current, peak in (("allocated", memory_allocated, max_memory_allocated),
                                ("reserved", memory_reserved, max_memory_reserved)):  # fmt: skip
        stats[f"{kind}_bytes.all.current"], stats[f"{kind}_bytes.all.peak"] = current(device), peak(device)
    return stats


def memory_summary(device=None, abbreviated: bool = False) -> str:
    """``memory_stats`` as a table."""
    stats = memory_stats(device)
    return "\n".join([f"memory of {get_device_name(device)}", *(f"{k:40} {v:>20,}" for k, v in stats.items())])


def empty_cache() -> None:
    """Free what only reference cycles hold; XLA's allocator gives memory back by itself."""
    _collect()


def ipc_collect() -> None:
    """Nothing is shared with other processes; here for programs that call it."""


def reset_peak_memory_stats(device=None) -> None:
    """JAX cannot reset its peak; here for programs that call it."""


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


# -- random numbers: those of GPUs are derived from the one default generator ----------------------------------------


def manual_seed(seed: int) -> None:
    """Seeds the generator that GPUs' numbers are derived from; without a GPU nothing, as in PyTorch."""
    if is_available():
        _generator().manual_seed(seed)


def seed() -> None:
    """A seed from the operating system."""
    if is_available():
        _generator().seed()


manual_seed_all, seed_all = manual_seed, seed


def initial_seed() -> int:
    """The seed of the current device's generator."""
    _gpu()
    return _generator().initial_seed()


def get_rng_state(device="cuda"):
    """The random state of a device, as a tensor."""
    _gpu(device)
    return _generator().get_state()


def get_rng_state_all() -> list:
    """The random states of all devices."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state, device="cuda") -> None:
    """Set the random state of a device."""
    _gpu(device)
    _generator().set_state(new_state)


def set_rng_state_all(new_states) -> None:
    """Set the random states of all devices."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def _generator():
    from ..random import default_generator

    return default_generator


def _find(name: str):
    """PyTorch's flag that a device was used, and the old constructors of tensors there."""
    if name.endswith("Tensor"):
        from ..ops.creation import CUDA_TYPES

        return CUDA_TYPES.get(name)
    return is_initialized() if name == "_initialized" else None


__getattr__ = _missing(__name__, _find)
