"""Sorting and selection by the kernels in C: what the ops' forwards give on NumPy's stable sort, to the last index."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

import rushlight
from rushlight.engine import native
from rushlight.engine.fallback import FORWARDS
from rushlight.engine.numpy import namespace as engine
from rushlight.engine.numpy.kernels import orders

pytestmark = pytest.mark.skipif(
    os.environ.get("RUSHLIGHT_KERNELS") == "0" or not any(map(shutil.which, ("cc", "gcc", "clang"))),
    reason=f"the kernels in C are not there: {native.reason}",
)
BEFORE = rushlight.get_num_threads()


@pytest.fixture(autouse=True)
def as_many_threads_as_before():
    yield
    rushlight.set_num_threads(BEFORE)


class Plain:
    """The engine with NumPy's own stable sort."""

    def __getattr__(self, name):
        return getattr(engine, name)

    def argsort(self, x, axis=-1):
        return np.argsort(x, axis=axis, kind="stable")


def values(kind, n, dtype):
    rng, rows = np.random.default_rng(n), 48 if n < 1000 else 12
    x = {
        "normal": lambda: 100 * rng.standard_normal((rows, n)),
        "equal": lambda: np.full((rows, n), 3.0),
        "ties": lambda: rng.integers(-3, 4, (rows, n)),
        "large": lambda: rng.integers(-(2**31), 2**31 - 1, (rows, n)),
        "special": lambda: rng.choice([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-40, -1e-40, 1, 2], (rows, n)),
    }[kind]()
    if kind == "special":
        x[0] = np.nan
        x[1, : n // 2] = np.nan
    return x.astype(dtype)


def cases(n):
    for flag in (False, True):
        yield "argsort", {"descending": flag}
        yield "sort_and_index", {"descending": flag}
        for k in sorted({1, min(5, n), (n + 1) // 2, n}):
            yield "topk", {"k": k, "largest": flag}
            yield "kthvalue", {"k": k, "keepdims": flag}
        yield "median_and_index", {"keepdims": flag}
        yield "nanmedian_and_index", {"keepdims": flag}


KINDS = [("normal", "fdil"), ("equal", "fdil"), ("ties", "fdil"), ("large", "dil"), ("special", "fd")]


@pytest.mark.parametrize("n", [1, 2, 31, 33, 64, 100, 257, 3000])
@pytest.mark.parametrize(("kind", "dtype"), [(kind, dtype) for kind, dtypes in KINDS for dtype in dtypes])
def test_orders_are_those_of_a_stable_sort(kind, dtype, n):
    rows = values(kind, n, dtype)
    for x, axis in ((rows, 1), (np.ascontiguousarray(rows.T), 0), (rows.T, 0), (rows[:, ::-1], 1)):
        for name, static in cases(n):
            wanted = FORWARDS[name](Plain(), x, axis=axis, **static)
            for threads in (1, 2, 3):
                rushlight.set_num_threads(threads)
                found = engine.BODIES[name](engine, x, axis=axis, **static)
                both = [each if isinstance(each, tuple) else (each,) for each in (found, wanted)]
                for a, b in zip(*both, strict=True):
                    assert (a.dtype, a.shape) == (b.dtype, b.shape)
                    np.testing.assert_array_equal(a, b, err_msg=f"{name} {static}")
                    if a.dtype.kind == "f":
                        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


@pytest.mark.parametrize("shape", [(0, 300), (300, 0), (3, 0, 200)])
def test_nothing_in_order(shape):
    x = rushlight.zeros(shape)
    found, place = x.sort(-1)
    assert found.shape == place.shape == shape and x.argsort(0).shape == shape
    assert x.topk(0, 1).values.shape == (shape[0], 0, *shape[2:])


def test_gradients_go_to_where_elements_came_from():
    x = rushlight.randn(40, 300, dtype=rushlight.float64)
    for function in ("sort", "topk", "kthvalue", "median", "nanmedian", "mode", "max", "min"):
        leaf = x.clone().requires_grad_()
        arguments = (5, 1) if function in ("topk", "kthvalue") else (1,)
        out = getattr(leaf, function)(*arguments)[0]
        out.backward(out.detach())
        kept = leaf.grad != 0
        assert kept.sum() == out.numel()
        np.testing.assert_array_equal(leaf.grad[kept].numpy(), x[kept].numpy())


def test_ops_with_several_outputs_are_computed_once(monkeypatch):
    class Counting:
        calls = 0

        def __getattr__(self, name):
            Counting.calls += 1
            return getattr(native.library, name)

    x = rushlight.randn(20, 50).requires_grad_()
    x.sort(1)
    monkeypatch.setattr(orders, "library", Counting())
    x.sort(1)
    assert Counting.calls == 1
