"""Reductions keep their digits: within a few units in the last place times log2 n of the sum in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rushlight
from rushlight.engine.numpy.kernels import sums

EPS = 2.0**-24  # half a unit in the last place of a float32
FACTOR = 4  # how many of these for each doubling of the count

# Positive numbers of one size: where adding one by one goes wrong the most, all errors to the same side.
SHAPES = [
    ((100_000,), (None, 0)),
    ((100_000, 2), (None, 0, 1)),
    ((30_000, 7), (None, 0, 1)),
    ((2_000, 130), (None, 0, 1)),
    ((700, 600), (None, 0, 1)),
    ((40, 900, 3), (None, 0, 1, 2, (0, 1), (0, 2), (1, 2))),
    ((3, 5, 70, 90), (None, 0, 2, (0, 2), (0, 2, 3), (1, 3), (0, 1, 2))),
]
LAYOUTS = ["as it is", "transposed", "every second", "backwards"]

OPERATORS = {
    "sum": (lambda x, dim: x.sum(dim), lambda x, axis: x.sum(axis)),
    "mean": (lambda x, dim: x.mean(dim), lambda x, axis: x.mean(axis)),
    "nansum": (lambda x, dim: x.nansum(dim), lambda x, axis: x.sum(axis)),
    "var": (lambda x, dim: x.var(dim), lambda x, axis: x.var(axis, ddof=1)),
    "std": (lambda x, dim: x.std(dim), lambda x, axis: x.std(axis, ddof=1)),
    "norm": (lambda x, dim: rushlight.linalg.vector_norm(x, dim=dim), lambda x, axis: np.sqrt((x * x).sum(axis))),
    "norm 1": (lambda x, dim: rushlight.linalg.vector_norm(x, 1, dim=dim), lambda x, axis: x.sum(axis)),
    "norm 3": (lambda x, dim: rushlight.linalg.vector_norm(x, 3, dim=dim), lambda x, axis: np.cbrt((x**3).sum(axis))),
    "logsumexp": (
        lambda x, dim: rushlight.logsumexp(x, tuple(range(x.ndim)) if dim is None else dim),
        lambda x, axis: np.log(np.exp(x).sum(axis)),
    ),
}


def numbers(shape, kind="near", layout="as it is"):
    generator = np.random.default_rng(len(shape))
    if layout == "transposed":
        return numbers(shape[::-1], kind).T
    if layout == "every second":
        return numbers((*shape[:-1], 2 * shape[-1]), kind)[..., ::2]
    if layout == "backwards":
        return numbers(shape, kind)[::-1]
    if kind == "equal":
        return np.full(shape, 0.1, np.float32)
    return (0.1 + 0.01 * generator.random(shape)).astype(np.float32)


def assert_close(have, true, count, condition=1.0):
    have = have.numpy() if isinstance(have, rushlight.Tensor) else have
    assert have.dtype == np.float32 and have.shape == np.shape(true)
    limit = condition * FACTOR * EPS * max(1.0, math.log2(count))
    assert (abs(have - true) <= limit * abs(true)).all(), f"{(abs(have / true - 1)).max():.1e}, not {limit:.1e}"


def count_of(shape, axis):
    return math.prod(shape if axis is None else np.take(shape, axis).reshape(-1).tolist())


CASES = [(shape, axis) for shape, axes in SHAPES for axis in axes]


@pytest.mark.parametrize("kind", ["near", "equal"])
@pytest.mark.parametrize("name", OPERATORS)
def test_reductions_over_every_axis_keep_their_digits(name, kind):
    ours, truth = OPERATORS[name]
    for shape, axis in CASES:
        x, count, condition = numbers(shape, kind), count_of(shape, axis), 1.0
        if name in ("var", "std"):
            # It comes from what is left of the numbers without their mean: of many here 1/40, of equal ones nothing.
            condition = 40.0
            if count < 40 or kind == "equal":
                continue
        assert_close(ours(rushlight.from_numpy(x), axis), truth(x.astype(np.float64), axis), count, condition)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_of_any_layout_keep_their_digits(layout):
    for shape, axis in CASES:
        x = numbers(shape, layout=layout)
        for keepdims in (False, True):
            true = x.sum(axis, dtype=np.float64, keepdims=keepdims)
            assert_close(np.asarray(sums.reduce(x, axis, keepdims=keepdims)), true, count_of(x.shape, axis))


@pytest.mark.parametrize("dtype", ["float64", "complex64", "complex128", "int64", "bool", "float16"])
def test_sums_of_other_dtypes(dtype):
    x = np.random.default_rng(0).integers(0, 2, (3000, 7)).astype(dtype)
    assert np.array_equal(sums.reduce(x, 0), np.add.reduce(x, axis=0))
    assert sums.reduce(x, 0).dtype == np.add.reduce(x, axis=0).dtype


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,), (2000, 0), (1, 2000), (2000, 1), (65, 64), (4097,)])
def test_sums_of_odd_shapes(shape):
    x = np.ones(shape, np.float32)
    for axis in (None, *range(len(shape))):
        assert np.array_equal(sums.reduce(x, axis), x.sum(axis))
    if len(shape) == 2:
        assert np.array_equal(sums.rows(x), x.sum(0))


def test_infinities_and_nan_stay_in_their_columns():
    x = np.ones((5000, 3), np.float32)
    x[700, 0], x[4000, 1], x[10, 2], x[11, 2] = np.inf, np.nan, np.inf, -np.inf
    assert np.array_equal(sums.rows(x), [np.inf, np.nan, np.nan], equal_nan=True)


@pytest.mark.parametrize("shape", [(1_000_000, 3), (300_000, 1), (5000, 200), (400, 300, 2)])
def test_gradients_of_what_was_broadcast_keep_their_digits(shape):
    x, w = rushlight.from_numpy(numbers(shape)), rushlight.ones(shape[-1], requires_grad=True)
    (x * w).sum().backward()
    true = x.numpy().astype(np.float64).reshape(-1, shape[-1]).sum(0)
    assert_close(w.grad, true, x.numel() // shape[-1])
    b = rushlight.zeros((), requires_grad=True)
    ((x + b) * x).sum().backward()
    assert_close(b.grad, true.sum(), x.numel())


@pytest.mark.parametrize("rows", [10, 200_000])
def test_bias_gradients_keep_their_digits(rows):
    x, layer = rushlight.from_numpy(numbers((rows, 5))), rushlight.nn.Linear(5, 5)
    (layer(x) * x).sum().backward()
    assert_close(layer.bias.grad, x.numpy().sum(0, dtype=np.float64), rows)


@pytest.mark.parametrize("shape", [(300_000,), (100_000, 2), (2, 100_000), (40, 900, 3)])
def test_running_sums_keep_their_digits(shape):
    x = numbers(shape, "equal")
    for axis in range(len(shape)):
        true = np.cumsum(x, axis, dtype=np.float64)
        assert np.array_equal(rushlight.from_numpy(x).cumsum(axis).numpy(), true.astype(np.float32))
        grown = rushlight.from_numpy(1 + x / 1000).cumprod(axis)
        true = np.cumprod((1 + x / 1000).astype(np.float64), axis)
        assert np.array_equal(grown.numpy(), true.astype(np.float32))


def test_a_count_of_twenty_million():
    assert rushlight.ones(20_000_000).cumsum(0)[-1] == 20_000_000
    assert rushlight.ones(20_000_000, 1).expand(-1, 1).mean(0) == 1


@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "smooth_l1_loss"])
@pytest.mark.parametrize("kind", ["near", "equal"])
def test_losses_of_many_elements_keep_their_digits(loss, kind):
    x = numbers((3_000_000,), kind)
    true = {"mse_loss": lambda d: d * d, "l1_loss": abs, "smooth_l1_loss": lambda d: d * d / 2}[loss]
    zero = rushlight.zeros(3_000_000)
    have = getattr(rushlight.nn.functional, loss)(rushlight.from_numpy(x), zero)
    assert_close(have, true(x.astype(np.float64)).mean(), x.size)


@pytest.mark.parametrize("norm", ["batch", "layer", "group"])
def test_statistics_of_norms_keep_their_digits(norm):
    x = numbers((2, 3, 200_000) if norm != "layer" else (3, 400_000))
    t, true = rushlight.from_numpy(x), x.astype(np.float64)
    if norm == "batch":
        mean, scale, _ = (s.numpy().ravel() for s in rushlight.ops.norm.batch_norm_stats(t, None, None, 0.0)[1:])
        axes = (0, 2)
    elif norm == "layer":
        mean, scale = (
            s.numpy()[:, 0] for s in rushlight.ops.norm.layer_norm_stats(t, t.shape[1:], None, None, 0.0)[1:3]
        )
        axes = (1,)
    else:
        mean, scale = (s.numpy().reshape(2, 3) for s in rushlight.ops.norm.group_norm_stats(t, 3, None, None, 0.0)[1:3])
        axes = (2,)
    count = count_of(x.shape, axes)
    assert_close(mean, true.mean(axes), count)
    assert_close(scale, 1 / true.std(axes), count, 40.0)


def test_the_deviation_of_numbers_whose_squares_are_too_large():
    x = rushlight.tensor([1e30, -1e30, 1e38, 0.0])
    assert x.var() == float("inf")
    assert_close(x.std(), np.float64(x.numpy().astype(np.float64).std(ddof=1)), 4)
    assert_close(rushlight.std_mean(x)[0], np.float64(x.numpy().astype(np.float64).std(ddof=1)), 4)


def test_matrix_exp_of_a_batch_with_a_huge_and_a_broken_matrix():
    small = rushlight.tensor([[0.1, 0.2], [0.3, 0.4]])
    huge, broken = rushlight.full((2, 2), 1e30), rushlight.full((2, 2), float("nan"))
    batch = rushlight.matrix_exp(rushlight.stack([small, huge, broken, small]))
    alone = rushlight.matrix_exp(small)
    assert rushlight.equal(batch[0], alone) and rushlight.equal(batch[3], alone)
    assert not batch[1:3].isfinite().any()
