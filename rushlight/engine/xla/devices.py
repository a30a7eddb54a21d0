"""XLA's devices, and the random keys of compiled and accelerated code.

Importing this module imports JAX and changes two of its settings for the whole process: 64-bit types are on (without
them JAX would make int32 where PyTorch has int64), and float32 matrix products are as exact as
``set_float32_matmul_precision`` says, by default fully, as in PyTorch; JAX would use TF32 on NVIDIA GPUs.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import threading

import jax
import jax.numpy as jnp
import numpy as np

from ... import config
from ...device import device
from ...errors import OutOfMemoryError, ValuesNeeded

# What JAX, and the engine itself, raise in a trace where a value is needed.
NEEDS_VALUE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
    ValuesNeeded,
)

jax.config.update("jax_enable_x64", True)
# A program for the CPU runs on the thread that calls it. To hand it to another one takes longer than a small program,
# and the caller, who prepares the next call meanwhile, takes a core from it.
jax.config.update("jax_cpu_enable_async_dispatch", False)


traced_for_precision: list = []  # called when programs traced so far are no longer what is asked for


def use_matmul_precision(precision: str) -> None:
    jax.config.update(
        "jax_default_matmul_precision", {"high": "tensorfloat32", "medium": "bfloat16"}.get(precision, precision)
    )
    for forget in traced_for_precision:
        forget()


use_matmul_precision(config.get_float32_matmul_precision())

_PLATFORM = {"cpu": "cpu", "xla": "cpu", "cuda": "gpu", "tpu": "tpu"}  # rushlight's device type -> JAX's platform
_TYPE = {"cpu": "xla", "gpu": "cuda", "cuda": "cuda", "tpu": "tpu"}
_KEY_IMPL = "rbg"  # XLA's own generator: several times faster than threefry on accelerators, and no slower on CPUs
KEY_WORDS = 4  # uint32 words in such a key


class _Trace(threading.local):
    """While compile traces in this thread: the device that traced tensors name, and where random keys come from."""

    device: device | None = None
    key: list | None = None  # [a traced key's data, how many keys were derived from it]
    portable: bool = False  # shall the program run elsewhere, or JAX differentiate it?
    checks: list | None = None  # what must be true of the values, if the program is to look


_trace = _Trace()


def place_of(d: device) -> jax.Device:
    """The JAX device behind a rushlight device; XLA's CPU for ``cpu`` and ``xla``."""
    try:
        index = d.index if d.index is not None else config.current_gpu if d.type == "cuda" else 0
        return jax.local_devices(backend=_PLATFORM[d.type])[index]  # of this process: a world has more
    except (RuntimeError, IndexError):
        raise RuntimeError(_missing(d)) from None


def _missing(d: device) -> str:
    have = ", ".join(dict.fromkeys(str(device_at(p)) for p in jax.local_devices()))
    if d.type == "cuda":
        return (
            f"device '{d}' was asked for, but no such NVIDIA GPU is visible to JAX, which finds: {have}. "
            "Install rushlight[cuda] on a machine with an NVIDIA driver, or use device='cpu'."
        )
    return f"device '{d}' was asked for, but JAX finds only: {have}."


def local_count(kind: str) -> int:
    """How many devices of a kind this process has."""
    return len(jax.local_devices(backend=_PLATFORM[kind]))


def device_of(array) -> device:
    """The rushlight device an array lives on; while compiling, the device that is compiled for."""
    if isinstance(array, jax.core.Tracer):
        return _trace.device or device("xla", 0)
    return device_at(next(iter(array.sharding.device_set)))


@functools.cache
def device_at(place) -> device:
    here = jax.local_devices(backend=place.platform)  # a world numbers its devices anew
    return device(_TYPE.get(place.platform, place.platform), here.index(place) if place in here else place.id)


def check_same_device(arrays) -> None:
    """Raise PyTorch's error unless all arrays with dimensions are in one place. Tracers may meet constants."""
    if _trace.key is not None:
        return
    places = {}
    for array in arrays:
        if isinstance(array, jax.core.Tracer):
            return
        if getattr(array, "ndim", 0):
            place = "cpu" if isinstance(array, np.ndarray) else next(iter(array.devices()))
            places.setdefault(place, array)
    if len(places) > 1:
        names = [p if p == "cpu" else str(device_at(p)) for p in places]
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{names[0]} and {names[1]}! Move one with .to(device)."
        )


def to_device(array, d: device):
    """``array`` (NumPy's or XLA's) as an XLA array on ``d``; a tracer stays what it is."""
    if isinstance(array, jax.core.Tracer):
        return array
    place = place_of(d)
    if isinstance(array, np.ndarray):
        array = np.array(array)  # device_put may keep NumPy's memory, which eager code goes on writing to
    with explained(place):
        return jax.device_put(array, place)


def to_numpy(array) -> np.ndarray:
    """A writable NumPy copy of an XLA array."""
    return np.array(fetched(array))


def fetched(array) -> np.ndarray:
    """The values, when they are there; what was started may fail only now that somebody waits for it."""
    try:
        return np.asarray(array)
    except jax.errors.JaxRuntimeError:
        with explained(next(iter(array.sharding.device_set))):
            raise
    except jax.errors.TracerArrayConversionError:
        if _trace.device is not None:  # traced just now: whoever traces may look for another way
            raise
        raise RuntimeError(_LEFT_BEHIND) from None


_LEFT_BEHIND = (
    "this tensor was made while a function was compiled, and kept: it has no values. A compiled function runs its "
    "Python only once; return the tensor from it."
)


@contextlib.contextmanager
def explained(place=None, holding: str = ""):
    """Turns XLA's word for exhausted memory into PyTorch's exception; ``holding`` says what the caller knows."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if not re.search("RESOURCE_EXHAUSTED|[Oo]ut of memory", str(error)):
            raise
        raise out_of_memory(place or jax.local_devices()[0], _asked_for(str(error)), holding) from error


def _asked_for(said: str) -> str:
    asked = re.search(r"allocat\w* ([\d.]+) ?(\w+)", said)
    if asked is None:
        return "more than there is"
    return size_text(int(asked[1])) if asked[2] == "bytes" else f"{asked[1]} {asked[2]}"


def check_room(place, size: int, holding: str = "", wait_for=()) -> None:
    """Raise before something is started that needs more memory than ``place`` has left.

    A device's work is started long before it is done: when it fails for lack of memory, what was to be written is
    already lost. ``wait_for`` is what may still be under way and free memory when it is done.
    """
    in_use, limit = memory(place)
    if size > _all_memory(place):
        raise out_of_memory(place, size_text(size), holding)
    if limit and size > limit - in_use:
        jax.block_until_ready(wait_for)
        in_use, limit = memory(place)
        if size > limit - in_use:
            raise out_of_memory(place, size_text(size), holding)


def _all_memory(place) -> float:
    """All the memory that a device has; of the CPU, that of the machine."""
    limit = memory(place)[1]
    if limit or place.platform != "cpu" or not hasattr(os, "sysconf"):
        return limit or math.inf
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory(place) -> tuple[int, int]:
    """(bytes in use, all bytes) of a device; of the CPU only what arrays hold is known."""
    stats = place.memory_stats()
    if stats is None:
        return sum(a.nbytes for a in jax.live_arrays() if place in a.devices()), 0
    return stats.get("bytes_in_use", 0), stats.get("bytes_limit", 0)


def out_of_memory(place, asked: str, holding: str = "") -> OutOfMemoryError:
    in_use, limit = memory(place)
    name = "CUDA" if place.platform in ("gpu", "cuda") else str(device_at(place))
    return OutOfMemoryError(
        f"{name} out of memory. Tried to allocate {asked}. {place.device_kind} has {size_text(in_use)}"
        f"{f' of {size_text(limit)}' if limit else ''} in use. {holding}Use a smaller batch, checkpoint activations, "
        "or delete tensors that are not needed any more."
    )


def size_text(size: float) -> str:
    """``1536`` as ``1.5 KiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.0f} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} PiB"


@contextlib.contextmanager
def tracing(d: device, key_data):
    """While a function is traced: its tensors name device ``d``, its random ops draw from ``key_data``."""
    outer = _trace.device, _trace.key
    _trace.device, _trace.key = d, [key_data, 0]
    try:
        yield
    finally:
        _trace.device, _trace.key = outer


@contextlib.contextmanager
def checking():
    """While a function is traced: the list of what must be true of its values, see ``expect``."""
    outer, _trace.checks = _trace.checks, []
    try:
        yield _trace.checks
    finally:
        _trace.checks = outer


def expect(array, holds) -> bool:
    """The program that is being traced is to say whether ``holds(array)`` is true of all elements. Can it say so?"""
    checks, key = _trace.checks, _trace.key
    # What is traced inside (the body of a scan, say) cannot be looked at from outside.
    if checks is None or key is None or not isinstance(array, jax.core.Tracer) or array._trace is not key[0]._trace:
        return False
    checks.append(jnp.all(holds(array)))
    return True


@contextlib.contextmanager
def compiling_for(d: device):
    """While a part of a program is traced: ``device_of`` names ``d``."""
    outer = _trace.device
    _trace.device = d
    try:
        yield
    finally:
        _trace.device = outer


@contextlib.contextmanager
def portable():
    """While something is traced that is to be of XLA's own operations only."""
    outer = _trace.portable
    _trace.portable = True
    try:
        yield
    finally:
        _trace.portable = outer


def for_this_cpu() -> bool:
    """Is what is traced a program for the CPU of this machine, and no other?"""
    return _trace.device is not None and not _trace.portable and _PLATFORM.get(_trace.device.type) == "cpu"


def is_tracing() -> bool:
    return _trace.key is not None


def next_key(words):
    """A key for one random op: derived from the traced key, or made of ``words()``, fresh words of the generator."""
    key = _trace.key
    if key is None:
        return jax.random.wrap_key_data(np.asarray(words(), dtype=np.uint32), impl=_KEY_IMPL)
    key[1] += 1
    return jax.random.fold_in(jax.random.wrap_key_data(key[0], impl=_KEY_IMPL), key[1])


class Words:
    """Stands for a generator inside a program: its keys are derived from words that are the program's input."""

    def __init__(self, words):
        self._words, self._count = words, 0

    def next_key(self):
        self._count += 1
        key = jax.random.wrap_key_data(self._words, impl=_KEY_IMPL)
        return key if self._count == 1 else jax.random.fold_in(key, self._count)
