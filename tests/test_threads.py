"""How many threads there are: by the environment, and by ``set_num_threads``, which reaches the BLAS library too."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

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


CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, CORES),
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"OMP_NUM_THREADS": "1000"}, CORES),
        ({"OMP_NUM_THREADS": str(CORES), "MKL_NUM_THREADS": "1"}, 1),
        ({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "0"}, 1),
        ({"OMP_NUM_THREADS": "many"}, CORES),
        ({"OMP_NUM_THREADS": "-1"}, CORES),
    ],
    ids=str,
)
def test_the_environment_says_how_many(told, expected):
    env = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    code = """if True:
        import rushlight
        from rushlight.engine.native import library
        print(rushlight.get_num_threads(), library.get_threads() if library else None)"""
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, env={**env, **told}, capture_output=True, text=True, check=True).stdout.split()
    assert printed in ([str(expected)] * 2, [str(expected), "None"])
