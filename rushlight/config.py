"""Process-wide settings that ops read; each has a public setter elsewhere."""

from __future__ import annotations

import os
import sys

from .device import cpu, device

default_device: device = cpu  # set_default_device, ``with device(...)``
current_gpu = 0  # what device("cuda") means: cuda.set_device
warn_always = False  # set_warn_always


def cache_folder():
    """Where compiled programs are kept: ``RUSHLIGHT_CACHE``, else in the user's cache folder; None for nowhere."""
    from pathlib import Path

    named = os.environ.get("RUSHLIGHT_CACHE")
    if named == "0":
        return None
    try:
        return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rushlight")
    except RuntimeError:  # a user without a home
        return None


def set_default_device(d) -> None:
    """Where new tensors are made when no ``device=`` is given; None for the CPU."""
    global default_device
    default_device = cpu if d is None else device(d)


def get_default_device() -> device:
    """Where new tensors are made."""
    return default_device


def show() -> str:
    """What this installation runs on, for people: versions, threads, and whether the kernels in C are there.

    >>> print(rushlight.config.show().splitlines()[0])
    rushlight 0.1.0
    """
    import platform

    import numpy

    from . import version
    from .engine import native

    kernels = native.reason or f"in C, for {native.library.instructions}"
    return "\n".join(
        [
            f"rushlight {version.rushlight}",
            f"Python {platform.python_version()}, NumPy {numpy.__version__}, {platform.machine()}",
            f"threads: {get_num_threads()}",
            f"kernels: {kernels}",
        ]
    )


_cores = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _told() -> int:
    """How many threads the environment asks for, as in PyTorch: launchers do, whose processes share the cores."""
    for name in ("MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        number = os.environ.get(name, "").strip()
        if number.isdecimal() and int(number):
            return int(number)
    return _cores


# NumPy's element-wise loops use one thread; the number is for kernels, matrix products and what asks.
_threads, _interop_threads = min(_told(), _cores), _cores


def get_num_threads() -> int:
    """How many threads an operator may use."""
    return _threads


def set_num_threads(n: int) -> None:
    """How many threads one op may use; told to the kernels in C and to the BLAS library that came with NumPy."""
    global _threads
    _threads = _positive("set_num_threads", n)
    from .engine import native
    from .engine.numpy import blas

    blas.set_threads(n)
    if native.library is not None:
        native.library.set_threads(n)


def get_num_interop_threads() -> int:
    """How many operators may run at once."""
    return _interop_threads


def set_num_interop_threads(n: int) -> None:
    """Set how many operators may run at once."""
    global _interop_threads
    _interop_threads = _positive("set_num_interop_threads", n)


def _positive(name: str, n) -> int:
    if not isinstance(n, int) or isinstance(n, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return n


deterministic, deterministic_warn_only = False, False
_matmul_precision = "highest"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Kept for programs that ask: everything here is deterministic already."""
    global deterministic, deterministic_warn_only
    deterministic, deterministic_warn_only = bool(mode), bool(mode) and bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Are operators that are not repeatable refused?"""
    return deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Are operators that are not repeatable only warned about?"""
    return deterministic_warn_only


def get_float32_matmul_precision() -> str:
    """How precise products of float32 matrices are: 'highest', 'high' or 'medium'."""
    return _matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """``highest``, ``high`` or ``medium``: how exactly float32 matrix products are computed on accelerators."""
    global _matmul_precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high' or 'medium'")
    _matmul_precision = precision
    epoch.value += 1  # compiled code was made for another
    devices = sys.modules.get("rushlight.engine.xla.devices")
    if devices is not None:
        devices.use_matmul_precision(precision)


class Epoch:
    """Counts the changes that can make compiled code stale: hooks, flags, registered names, requires_grad.

    ``readers`` are told of every tensor whose values Python looks at, while compile watches a function; ``path`` is
    asked for the truths and whole numbers among them.
    """

    __slots__ = ("path", "readers", "value")

    def __init__(self):
        self.value, self.readers, self.path = 0, (), None

    def tell(self, tensor) -> None:
        for reader in self.readers:
            reader(tensor)


epoch = Epoch()
