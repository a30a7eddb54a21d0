"""The kernels in C: equal to the plain rules, for any shape, any number of threads, and after a fork."""

from __future__ import annotations

import os
import shutil
import threading

import numpy as np
import pytest

import rushlight
from rushlight.engine import native

library = native.library
pytestmark = pytest.mark.skipif(
    os.environ.get("RUSHLIGHT_KERNELS") == "0" or not any(map(shutil.which, ("cc", "gcc", "clang"))),
    reason=f"the kernels in C are not there: {native.reason}",
)


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    before = rushlight.get_num_threads()
    rushlight.set_num_threads(request.param)
    yield request.param
    rushlight.set_num_threads(before)


def numbers(*shape, dtype=np.float32, seed=0, special=False):
    """Normal values; ``special`` puts zeros of both signs, infinities, NaN, and large and small ones among them."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    if special and values.size:
        odd = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 100, -100], dtype)
        places = values.reshape(-1)[:: max(1, values.size // 37)]
        places[:] = np.resize(odd, len(places))
    return values


# -- the binding -------------------------------------------------------------------------------------------------------


def test_the_library_is_there():
    """Where there is a compiler: an install builds it, and in a checkout the command that the reason names."""
    assert library is not None, native.reason


def test_show_says_whether_the_kernels_are_there():
    assert library.instructions in rushlight.config.show()


@pytest.mark.parametrize(
    "arguments, text",
    [
        ((np.zeros(3, "f"),), "takes 2 arguments, but got 1"),
        ((np.zeros(3, "f"), np.zeros(3, "f"), 1), "takes 2 arguments, but got 3"),
        ((np.zeros(3, "f"), np.zeros(3, "d")), "argument 2 is not of dtype float32 or float64, or not of the others'"),
        ((np.zeros(3, "i"), np.zeros(3, "i")), "argument 1 is not of dtype"),
        ((np.zeros(6, "f")[::2], np.zeros(3, "f")), "argument 1 is no array in C order"),
        ((np.zeros(3, "f"), np.broadcast_to(np.zeros(1, "f"), (3,))), "argument 2 is no writable array"),
        ((3, np.zeros(3, "f")), "argument 1 is no array"),
    ],
)
def test_a_wrong_argument_is_named(arguments, text):
    with pytest.raises(TypeError, match=text):
        library.relu(*arguments)


def test_set_num_threads_reaches_the_kernels(threads):
    assert library.get_threads() == threads


def test_two_python_threads_may_compute_at_once():
    x = numbers(1 << 20)
    expected, failed = np.maximum(x, 0), []

    def work():
        for _ in range(20):
            y = np.empty_like(x)
            library.relu(x, y)
            if not np.array_equal(y, expected):
                failed.append(y)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_computes(threads):
    x = numbers(1 << 20)
    y = np.empty_like(x)
    library.relu(x, y)  # now there are threads, which the child does not have
    child = os.fork()
    if child == 0:
        y[:] = 0
        library.relu(x, y)
        os._exit(0 if np.array_equal(y, np.maximum(x, 0)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
