"""Loops of played programs that are done together: the same numbers as JAX's, however they are cut and shared out."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight.engine.native import library, reason

jax = pytest.importorskip("jax")
if library is None:
    pytest.skip(f"there are no kernels: {reason}", allow_module_level=True)

import jax.numpy as jnp  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
from scores import check, played, some  # noqa: E402

from rushlight.compiler import places, score  # noqa: E402
from rushlight.compiler.groups import Group, grouped  # noqa: E402
from rushlight.compiler.score import Score  # noqa: E402
from rushlight.compiler.steps import RULES  # noqa: E402
from rushlight.compiler.values import Value  # noqa: E402

BEFORE = torch.get_num_threads()


@pytest.fixture(params=[1, 3])
def threads(request):
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(BEFORE)


@pytest.fixture(autouse=True)
def anything_is_played(monkeypatch):
    monkeypatch.setattr(score, "MOST", 1 << 40)


def groups_of(monkeypatch, function, *arrays) -> list[list[str]]:
    """The names of the steps of each group that ``function`` becomes."""
    found = []

    def noted(steps, where):
        done = grouped(steps, where)
        found.extend([step.kernel[0][1:] for step in g.steps] for g in done if isinstance(g, Group))
        return done

    monkeypatch.setattr(score, "grouped", noted)
    check(function, *arrays)
    return found


SHAPES = [(5000,), (3, 5000), (70, 67), (2, 3, 64, 33), (9, 1, 700), (4097, 2)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_chains(shape, dtype, threads):
    x, y = np.round(some(*shape)).astype(dtype), np.round(some(*shape)).astype(dtype) + 1  # no result is rounded
    check(lambda x, y: (jnp.maximum(x * y + x, y) - x, x * y), x, y)
    row, column = map(np.ascontiguousarray, (y[..., :1], y[:1]))
    check(lambda x, r, c: (z := x * r + c, jnp.where(z > x, z, -x).astype(np.float64), z < 0), x, row, column)
    check(lambda x, y: ((x + y).T * 2, (x - y).reshape(-1)[::-1] + 1), x, y)


def test_loops_over_the_same_elements_are_one_group(monkeypatch):
    x = some(64, 100)
    assert groups_of(monkeypatch, lambda x: jnp.exp(x * 2) + x, x) == [["mul", "exp", "add"]]
    # Seen in another shape it is still the same.
    assert groups_of(monkeypatch, lambda x: (x * 2).reshape(-1) + jnp.ones(6400, x.dtype), x) == [["mul", "add"]]
    # A transposed one is met elsewhere than it is made.
    square = some(64, 64)
    assert groups_of(monkeypatch, lambda x: (x * 2).T + x, square) == [["mul"], ["add"]]
    assert groups_of(monkeypatch, lambda x: (x * 2)[::-1] + x, square) == [["mul"], ["add"]]
    # What is asked of all elements divides them; what has nothing to do with them does not.
    assert groups_of(monkeypatch, lambda x: x * 2 - (x * 2).max(), x) == [["mul"], ["sub"]]
    assert groups_of(monkeypatch, lambda x, y: (x * 2 - 1 + (y + 1).max() * 0, y), x, some(3))[0][0] == "mul"
    assert not groups_of(monkeypatch, lambda x: x * 2 + 1, some(7, 9))


def test_what_only_a_group_uses_has_no_place(monkeypatch):
    """Neither room nor stage grow with it."""
    closed = jax.make_jaxpr(lambda x: jnp.exp(jnp.tanh(x * 2) + 1) * x)(some(300, 300))
    made = []
    settle = places.Places.share
    monkeypatch.setattr(places.Places, "share", lambda self, steps: (settle(self, steps), made.append(self))[0])
    Score(closed, [Value((300, 300), np.float32, 1)], RULES).played([Value((300, 300), np.float32, 2)], False, 2)
    assert made[0].stage == 0 and made[0].room < 1000


OPERATIONS = [
    lambda a, b, row, column: a + b,
    lambda a, b, row, column: jnp.clip(a * b, -64, 64),
    lambda a, b, row, column: jnp.maximum(a, b),
    lambda a, b, row, column: jnp.where(a > b, a, b - 1),
    lambda a, b, row, column: jnp.abs(a) - 1,
    lambda a, b, row, column: a - a.max(1, keepdims=True),
    lambda a, b, row, column: jnp.minimum(a * row, 64),
    lambda a, b, row, column: b + column,
    lambda a, b, row, column: a.T.reshape(a.shape) - b,
    lambda a, b, row, column: a[::-1] + b,
    lambda a, b, row, column: jnp.concatenate([a[1:], b[:1]]),
    lambda a, b, row, column: jnp.sign(a) + b.max(0),
    lambda a, b, row, column: (a > 0).astype(np.float32) - b,
    lambda a, b, row, column: a.at[:2].add(b[:2]),
    lambda a, b, row, column: (a.reshape(-1) * 0.5).reshape(a.shape),
]


def program(seed: int):
    """A function of three arrays that does anything with them."""

    def function(x, row, column):
        rng = np.random.default_rng(seed)
        values = [x, x * row, x + column]
        for _ in range(14):
            a, b = (values[rng.integers(len(values))] for _ in range(2))
            values.append(OPERATIONS[rng.integers(len(OPERATIONS))](a, b, row, column))
        picked = [values[i] for i in rng.integers(3, len(values), 4)]
        return (*picked, values[-1], picked[0][1:9], picked[1].max(0))

    return function


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed):
    torch.set_num_threads(1 + seed % 3)
    shape = [(60, 50), (37, 130), (2100, 3), (3, 2100)][seed % 4]
    x = np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)  # no result is rounded
    arrays = x, x[:1] + 1, x[:, :1] - 1
    try:
        found = played(program(seed), *arrays)
    finally:
        torch.set_num_threads(BEFORE)
    for made, expected in zip(found, program(seed)(*map(jnp.asarray, arrays)), strict=True):
        np.testing.assert_array_equal(made, expected)


def test_other_threads_run_beside_a_long_program(monkeypatch):
    """Two threads may play one program at once, and programs that share the stage."""
    monkeypatch.setattr(score, "_LONGEST", 0)

    def function(x, w):
        for _ in range(4):
            x = torch.tanh(x @ w) + x
        return x

    torch.manual_seed(0)
    w, inputs = torch.randn(128, 128) / 16, [torch.randn(n, 128) for n in (200, 300, 200, 300)]
    compiled = torch.compile(function)
    expected = [function(x, w) for x in inputs]
    for x in inputs:
        compiled(x, w)
    wrong: list = []

    def work(x, want):
        for _ in range(50):
            if not torch.allclose(compiled(x, w), want, atol=1e-5):
                wrong.append(x.shape)

    workers = [threading.Thread(target=work, args=each) for each in zip(inputs, expected)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_loops_of_many_dimensions():
    """Each is of a few when neighbours are joined; all of them together would be of more than there is room for."""
    x = np.arange(4096, dtype=np.float32).reshape((2,) * 12)
    first = np.ascontiguousarray(x[:, :1, :, :1, :, :1])  # of one element in every other dimension, of the first six
    second = np.ascontiguousarray(x[..., :1, :, :1, :, :1])
    check(lambda x, a, b: (x + a) - b, x, first, second)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (2, 1), (0, 1, 2)])
def test_sums_of_large_arrays(axes, dtype, threads):
    """Those over neighbouring axes are a kernel's; all are near those in double precision."""
    x = np.abs(some(40, 33, 50, dtype=dtype))
    (found,) = played(lambda x: jax.lax.reduce_sum_p.bind(x, axes=axes, out_sharding=None), x)
    tolerance = 16 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, x.astype(np.float64).sum(axes), rtol=tolerance)


def test_sums_of_numbers_that_are_none(threads):
    x = some(300, 200)
    x[1, 2], x[7, 3], x[9, :2] = np.nan, np.inf, [np.inf, -np.inf]
    check(lambda x: jnp.isnan(jax.lax.reduce_sum_p.bind(x, axes=(1,), out_sharding=None)), x)
    check(lambda x: jnp.isposinf(jax.lax.reduce_sum_p.bind(x, axes=(1,), out_sharding=None)), x)


@pytest.mark.parametrize("shape", SHAPES)
def test_choices_between_numbers_of_a_row(shape, threads):
    """The gradient of a mean of a relu: one number for all of a row, or 0."""
    check(lambda x, g: jnp.where(x > 0, g, 0), some(*shape), some(*shape[:-1], 1))
    check(lambda x, g: jnp.where(x > 0, 2, g) * x, some(*shape), some(*shape[:-1], 1))
