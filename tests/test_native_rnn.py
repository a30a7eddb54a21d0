"""Recurrent layers in C: equal to the steps on NumPy in double precision, packed and in reverse, both ways."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.engine import native
from rushlight.engine.numpy.kernels import rnn as kernels

pytestmark = pytest.mark.skipif(native.library is None, reason=f"the kernels in C are not there: {native.reason}")

GATES = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape) * 0.5


def problem(kind, sizes, steps=5, batch=19, features=7, size=21, biases=True):
    rows = GATES[kind] * size
    x = numbers(sum(sizes), features) if sizes else numbers(steps, batch, features)
    batch = sizes[0] if sizes else batch
    h, c = numbers(batch, size, seed=1), numbers(batch, size, seed=2) if kind == "lstm" else None
    w_ih, w_hh = (
        numbers(rows, features, seed=3),
        0.3 * numbers(rows, size, seed=4),
    )  # small: errors do not grow by steps
    b_ih, b_hh = (numbers(rows, seed=5), numbers(rows, seed=6)) if biases else (None, None)
    return [x, h, c, w_ih, w_hh, b_ih, b_hh, None]


def both_ways(arrays, kind, sizes, reverse, dtype):
    arrays = [None if a is None else a.astype(dtype) for a in arrays]
    static = dict(kind=kind, sizes=sizes, reverse=reverse)
    outputs, aux = kernels.recurrent(255, *arrays, **static)
    names = ("x", "h", "c", "w_ih", "w_hh", "b_ih", "b_hh", "w_hr")
    g = [numbers(*o.shape, seed=7 + i).astype(dtype) for i, o in enumerate(outputs)]
    edges = [None if a is None else 0 for a in arrays]
    gradients = kernels.recurrent_backward(g, edges, {**dict(zip(names, arrays)), **static, "aux": aux})
    return [*outputs, *[a for a, e in zip(gradients, edges) if e is not None]]


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(kernels, "WORTH", 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", [None, (20, 17, 17, 3, 1)], ids=["padded", "packed"])
@pytest.mark.parametrize("kind", GATES)
def test_steps_are_those_on_numpy(kind, sizes, reverse, dtype, monkeypatch):
    arrays = problem(kind, sizes)
    found = both_ways(arrays, kind, sizes, reverse, dtype)
    monkeypatch.setattr(kernels, "library", None)
    expected = both_ways(arrays, kind, sizes, reverse, np.float64)
    tolerance = 3e-6 if dtype == np.float32 else 1e-13
    assert len(found) == len(expected)
    for mine, truth in zip(found, expected):
        assert mine.dtype == dtype
        np.testing.assert_allclose(mine, truth, rtol=tolerance, atol=tolerance * max(1, np.abs(truth).max()))


def test_without_biases(monkeypatch):
    for kind in GATES:
        arrays = problem(kind, None, biases=False)
        found = both_ways(arrays, kind, None, False, np.float64)
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "library", None)
            expected = both_ways(arrays, kind, None, False, np.float64)
        for mine, truth in zip(found, expected):
            np.testing.assert_allclose(mine, truth, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", GATES)
def test_the_number_of_threads_does_not_change_a_bit(kind):
    arrays, before, results = problem(kind, None, batch=70, size=50), rushlight.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            rushlight.set_num_threads(threads)
            results.append(both_ways(arrays, kind, None, False, np.float32))
    finally:
        rushlight.set_num_threads(before)
    for other in results[1:]:
        assert all(np.array_equal(mine, same) for mine, same in zip(results[0], other))


def test_a_sequence_with_nan_does_not_touch_the_others():
    arrays = problem("lstm", None)
    arrays[0][2, 3, 1] = np.nan
    y = both_ways(arrays, "lstm", None, False, np.float32)[0]
    assert np.isnan(y[2:, 3]).all() and np.isnan(y).sum() == y[2:, 3].size
