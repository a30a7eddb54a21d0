"""``set_num_threads`` reaches the BLAS library that does the matrix products."""

from __future__ import annotations

import ctypes

import pytest

import rushlight
from rushlight.engine.numpy import blas


def blas_threads() -> int | None:
    for library in blas._libraries():
        for pattern in ("scipy_openblas_{}64_", "openblas_{}64_", "scipy_openblas_{}", "openblas_{}"):
            found = getattr(library, pattern.format("get_num_threads"), None)
            if found is not None:
                found.restype = ctypes.c_int
                return found()
    return None


def test_set_num_threads():
    if blas_threads() is None:
        pytest.skip("NumPy brought no OpenBLAS of its own")
    before = rushlight.get_num_threads()
    try:
        for n in (2, 1):
            rushlight.set_num_threads(n)
            assert rushlight.get_num_threads() == n == blas_threads()
    finally:
        rushlight.set_num_threads(before)
