"""``y += a·x`` and ``y = b·y + a·x`` in one pass, by the BLAS library that NumPy brings along.

NumPy itself needs two or three passes and a temporary. Its wheels ship OpenBLAS as a shared library that is loaded
already; where there is none (another build of NumPy), ``available`` is False and callers stay with NumPy.
"""

from __future__ import annotations

import ctypes
import functools
import pathlib

import numpy as np

_NAMES = (
    ("scipy_cblas_{}64_", ctypes.c_int64),
    ("cblas_{}64_", ctypes.c_int64),
    ("scipy_cblas_{}", ctypes.c_int),
    ("cblas_{}", ctypes.c_int),
)
_REALS = {"s": ctypes.c_float, "d": ctypes.c_double}


def axpy(alpha: float, x: np.ndarray, y: np.ndarray) -> None:
    """``y += alpha · x``; contiguous float32 or float64 arrays of one size."""
    _function("axpy", y.dtype.char)(x.size, alpha, x.ctypes.data, 1, y.ctypes.data, 1)


def axpby(alpha: float, x: np.ndarray, beta: float, y: np.ndarray) -> None:
    """``y = beta · y + alpha · x``."""
    _function("axpby", y.dtype.char)(x.size, alpha, x.ctypes.data, 1, beta, y.ctypes.data, 1)


@functools.cache
def available() -> bool:
    return all(_function(name, char) is not None for name in ("axpy", "axpby") for char in "fd")


@functools.cache
def _function(name: str, char: str):
    letter = "s" if char == "f" else "d"
    real, pointer = _REALS[letter], ctypes.c_void_p
    for library in _libraries():
        for pattern, integer in _NAMES:
            found = getattr(library, pattern.format(letter + name), None)
            if found is not None:
                scalars = [real] if name == "axpy" else [real, pointer, integer, real]
                middle = [pointer, integer] if name == "axpy" else []
                found.argtypes = [integer, *scalars, *middle, pointer, integer]
                found.restype = None
                return found
    return None


@functools.cache
def _libraries():
    root = pathlib.Path(np.__file__).parent
    loaded = []
    for path in [*root.parent.glob("numpy.libs/*openblas*"), *root.glob(".dylibs/*openblas*")]:
        try:
            loaded.append(ctypes.CDLL(str(path)))
        except OSError:
            continue
    return loaded
