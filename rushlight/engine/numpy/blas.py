"""``y = b·y + a·x`` in one pass, by the BLAS library that NumPy brings along.

NumPy itself needs two or three passes and a temporary. Its wheels ship OpenBLAS as a shared library that is loaded
already; where there is none (another build of NumPy), ``available`` is False and callers stay with NumPy.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

_NAMES = (
    ("scipy_cblas_{}64_", ctypes.c_int64),
    ("cblas_{}64_", ctypes.c_int64),
    ("scipy_cblas_{}", ctypes.c_int),
    ("cblas_{}", ctypes.c_int),
)


def axpby(alpha: float, x: np.ndarray, beta: float, y: np.ndarray) -> None:
    """``y = beta · y + alpha · x``; contiguous float32 or float64 arrays of one size.

    With ``beta=1`` this is BLAS's ``axpy``, which OpenBLAS would split over threads that spin while they wait: a loss
    on a machine that has other work.
    """
    if x.size != y.size or x.dtype != y.dtype or not (x.flags.c_contiguous and y.flags.c_contiguous):
        raise ValueError(f"axpby: {x.dtype} of {x.size} elements and {y.dtype} of {y.size}")  # BLAS has only addresses
    _function(y.dtype.char)(x.size, alpha, _address(x), 1, beta, _address(y), 1)


def _address(x: Any) -> int:
    if x.flags.writeable:
        return ctypes.addressof(ctypes.c_char.from_buffer(x))  # a third of the time that ``x.ctypes`` takes
    return x.ctypes.data


@functools.cache
def available() -> bool:
    return all(_function(char) is not None for char in "fd")


@functools.cache
def _function(char: str):
    letter, real = ("s", ctypes.c_float) if char == "f" else ("d", ctypes.c_double)
    for library in _libraries():
        for pattern, integer in _NAMES:
            found = getattr(library, pattern.format(letter + "axpby"), None)
            if found is not None:
                found.argtypes = [integer, real, ctypes.c_void_p, integer, real, ctypes.c_void_p, integer]
                found.restype = None
                return found
    return None


def set_threads(n: int) -> None:
    """How many threads a matrix product may use."""
    for library in _libraries():
        for pattern in ("scipy_openblas_{}64_", "openblas_{}64_", "scipy_openblas_{}", "openblas_{}"):
            found = getattr(library, pattern.format("set_num_threads"), None)
            if found is not None:
                found(ctypes.c_int(n))
                break


def get_threads() -> int | None:
    """How many it uses; None where nobody can tell."""
    for library in _libraries():
        for pattern in ("scipy_openblas_{}64_", "openblas_{}64_", "scipy_openblas_{}", "openblas_{}"):
            found = getattr(library, pattern.format("get_num_threads"), None)
            if found is not None:
                return found()
    return None


@functools.cache
def _libraries():
    import pathlib

    root = pathlib.Path(np.__file__).parent
    loaded = []
    for path in [*root.parent.glob("numpy.libs/*openblas*"), *root.glob(".dylibs/*openblas*")]:
        try:
            loaded.append(ctypes.CDLL(str(path)))
        except OSError:
            continue
    return loaded
