"""Formulas, copies and indices along an axis by the kernels in C: equal to what NumPy's passes give, for any layout."""

from __future__ import annotations

import itertools
import os
import shutil

import numpy as np
import pytest

import rushlight
from rushlight.engine import native
from rushlight.engine.numpy.kernels import along, chains, copies, sums, windows
from rushlight.nn import functional as F

pytestmark = pytest.mark.skipif(
    os.environ.get("RUSHLIGHT_KERNELS") == "0" or not any(map(shutil.which, ("cc", "gcc", "clang"))),
    reason=f"the kernels in C are not there: {native.reason}",
)
BEFORE = rushlight.get_num_threads()


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    rushlight.set_num_threads(request.param)
    yield request.param
    rushlight.set_num_threads(BEFORE)


def numbers(*shape, dtype=np.float32, seed=0, special=False):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(dtype)
    if special and values.size:
        odd = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 1e-40, 100, -100, 1, -1, 1e30], dtype)
        places = values.reshape(-1)[:: max(1, values.size // 37)]
        places[:] = np.resize(odd, len(places))
    return values


# -- formulas ----------------------------------------------------------------------------------------------------------

FORMULAS = {
    "add": lambda x, y, b: x + y,
    "difference": lambda x, y, b: 1 - x,
    "product of a row": lambda x, y, b: x * b,
    "quotient by a column": lambda x, y, b: x / b[:, None],
    "chain": lambda x, y, b: x * y + x,
    "repeated": lambda x, y, b: x * b.expand(300, 300),
    "every second column": lambda x, y, b: x[:, ::2] * y[:, 1::2],
    "transposed": lambda x, y, b: x.T * y.T + x.T,
    "mixed orders": lambda x, y, b: x.T * y,
    "exp": lambda x, y, b: x.exp(),
    "log": lambda x, y, b: x.abs().log(),
    "log1p": lambda x, y, b: x.abs().log1p(),
    "expm1": lambda x, y, b: x.expm1(),
    "sqrt": lambda x, y, b: x.abs().sqrt(),
    "rsqrt": lambda x, y, b: (x.abs() + 1e-3).rsqrt(),
    "reciprocal": lambda x, y, b: x.reciprocal(),
    "powers": lambda x, y, b: x**2 + x**3 + x.abs() ** 0.5,
    "clamp": lambda x, y, b: x.clamp(-0.5, 1),
    "maximum": lambda x, y, b: rushlight.maximum(x, y),
    "minimum": lambda x, y, b: rushlight.minimum(x, b),
    "where": lambda x, y, b: rushlight.where(x > y, x, b),
    "masked_fill": lambda x, y, b: x.masked_fill(y > 0, float("-inf")),
    "lerp": lambda x, y, b: rushlight.lerp(x, y, 0.3),
    "addcmul": lambda x, y, b: rushlight.addcmul(x, y, b, value=0.5),
    "xlogy": lambda x, y, b: rushlight.xlogy(x, y.abs()),
    "prelu": lambda x, y, b: F.prelu(x, b),
    "softshrink": lambda x, y, b: F.softshrink(x),
    "hardshrink": lambda x, y, b: F.hardshrink(x),
    "threshold": lambda x, y, b: F.threshold(x, 0.1, -1),
    "smooth_l1": lambda x, y, b: F.smooth_l1_loss(x, y, beta=0.7),
    "huber, sum": lambda x, y, b: F.huber_loss(x, y, reduction="sum"),
    "bce of logits": lambda x, y, b: F.binary_cross_entropy_with_logits(x, y.sigmoid()),
    "bce": lambda x, y, b: F.binary_cross_entropy(x.nan_to_num().sigmoid(), y.nan_to_num().sigmoid(), reduction="none"),
}


def results(formula, arrays):
    tensors = [rushlight.tensor(a).requires_grad_() for a in arrays]
    out = formula(*tensors)
    g = numbers(*out.shape, dtype=arrays[0].dtype, seed=9)
    with np.errstate(all="ignore"):
        out.backward(rushlight.tensor(g))
    return [out.detach().numpy(), *[t.grad.numpy() for t in tensors if t.grad is not None]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_those_of_numpy(name, dtype, special, threads, monkeypatch):
    arrays = [
        numbers(*shape, dtype=dtype, seed=i, special=special) for i, shape in enumerate(((300, 300),) * 2 + ((300,),))
    ]
    with np.errstate(all="ignore"):
        found = results(FORMULAS[name], arrays)
        for module in (chains, copies, sums):
            monkeypatch.setattr(module, "library", None)
        expected = results(FORMULAS[name], arrays)
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert (a.dtype, a.shape, a.strides) == (b.dtype, b.shape, b.strides)
        finite = np.abs(b[np.isfinite(b)])
        size = max(finite.max(), 1) if i and finite.size and a.ndim < 2 else 1  # sums are in another order
        few = 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(a, b, rtol=few, atol=few * size, err_msg=f"result {i}")


@pytest.mark.parametrize("name", FORMULAS)
def test_the_number_of_threads_changes_no_bit(name):
    arrays = [numbers(*shape, seed=i) for i, shape in enumerate(((300, 300), (300, 300), (300,)))]
    runs = set()
    for count in (1, 2, 3):
        rushlight.set_num_threads(count)
        runs.add(tuple(a.tobytes() for a in results(FORMULAS[name], arrays)))
    rushlight.set_num_threads(BEFORE)
    assert len(runs) == 1


def served(function, *values, **static):
    return chains.evaluated(function, values, static)


@pytest.mark.parametrize(
    "function",
    [
        lambda xp, x, y: xp.sin(x),
        lambda xp, x, y: x,
        lambda xp, x, y: x if x else y,
        lambda xp, x, y: xp.matmul(x, y),
        lambda xp, x, y: (x > 0) + (y > 0),
        lambda xp, x, y: x * (y > 0),
        lambda xp, x, y: x + "1",
        lambda xp, x, y: xp.zeros_like(x),
        lambda xp, x, y: (x + y, y),
    ],
)
def test_what_is_no_formula_is_left_to_numpy(function):
    assert served(function, numbers(4, 4), numbers(4, 4)) is None


@pytest.mark.parametrize(
    "x, y",
    [
        (numbers(4, 4).astype(np.int64), numbers(4, 4).astype(np.int64)),
        (numbers(4, 4), numbers(4, 4, dtype=np.float64)),
        (numbers(4, 4).T, numbers(4, 4)),
        (numbers(4, 4)[::-1], numbers(4, 4)),
        (numbers(4, 4), numbers(3, 4)),
        (numbers(4, 4), None),
        (numbers(4, 4), 1j),
    ],
)
def test_arrays_that_the_library_does_not_take_are_left_to_numpy(x, y):
    assert served(lambda xp, x, y: x + y, x, y) is None


@pytest.mark.parametrize("shapes", [((0, 3), (3,)), ((), ()), ((1,), (5, 1, 3)), ((2, 1, 4), (3, 1)), ((1, 1), (1,))])
def test_shapes_broadcast(shapes):
    x, y = (numbers(*shape, seed=i) for i, shape in enumerate(shapes))
    found = served(lambda xp, x, y: x * 2 - y, x, y)
    np.testing.assert_array_equal(found, np.asarray(x * 2 - y))
    np.testing.assert_array_equal(served(lambda xp, x, y: x <= y, x, y), np.asarray(x <= y))


def test_numbers_of_one_value_and_either_sign_are_told_apart():
    x = numbers(50)
    assert np.signbit(served(lambda xp, x: xp.where(x > 0, 0.0, -0.0), x)).tolist() == (~(x > 0)).tolist()
    ones = rushlight.ones(1 << 17).requires_grad_()
    for zero, is_negative in ((0.0, False), (-0.0, True), (0.0, False)):
        made = ones * zero
        (slope,) = rushlight.autograd.grad(made.sum(), ones)
        filled = F.threshold(ones, 2.0, zero)
        assert all((np.signbit(t.detach().numpy()) == is_negative).all() for t in (made, slope, filled))


# -- copies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint8, np.complex64])
@pytest.mark.parametrize("shape", [(7,), (40000,), (33, 70), (3, 5, 7), (2, 17, 33, 5), (4, 0, 3), ()])
def test_copies_of_any_order(shape, dtype, threads, monkeypatch):
    monkeypatch.setattr(copies, "_WORTH", 1)
    x = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    for order in itertools.permutations(range(x.ndim)):
        turned = x.transpose(order)
        seen = [turned, turned[::-1], turned[..., ::2], np.broadcast_to(turned, (3, *turned.shape))] if x.ndim else [x]
        for view in seen:
            copy = copies.copied(view)
            assert copy.flags.c_contiguous and not np.shares_memory(copy, x)
            np.testing.assert_array_equal(copy, view)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_joined_arrays(axis, dtype, threads, monkeypatch):
    monkeypatch.setattr(copies, "_WORTH", 1)
    arrays = [numbers(*[n + 2 if d == axis % 3 else n for d, n in enumerate((5, 7, 30))], seed=n) > 0 for n in range(3)]
    arrays = [a.astype(dtype) for a in arrays]
    np.testing.assert_array_equal(copies.joined(arrays, axis), np.concatenate(arrays, axis))


# -- along an axis -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape, axis, k", [((40, 50), 1, 7), ((40, 50), 0, 90), ((3, 50, 600), 1, 4), ((2000,), 0, 5000)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reading_and_adding_along_an_axis(shape, axis, k, dtype, threads, monkeypatch):
    monkeypatch.setattr(along, "_WORTH", 1)
    x = numbers(*shape, dtype=dtype)
    index = np.random.default_rng(1).integers(0, shape[axis], [k if d == axis else n for d, n in enumerate(shape)])
    np.testing.assert_array_equal(along.take(x, index, axis), np.take_along_axis(x, index, axis))
    value, places = numbers(*index.shape, dtype=dtype, seed=2), list(np.ogrid[tuple(map(slice, index.shape))])
    places[axis] = index
    expected = x.astype(np.float64)
    np.add.at(expected, tuple(places), value)
    few = 64 * np.finfo(dtype).eps
    np.testing.assert_allclose(along.add(x.copy(), value, index, axis), expected, rtol=few, atol=few)
    one, expected = index[tuple(slice(None) if d == axis else 0 for d in range(x.ndim))].copy(), x.astype(np.float64)
    np.add.at(expected, (slice(None),) * axis + (one,), value)
    np.testing.assert_allclose(along.add_slices(x.copy(), value, one, axis), expected, rtol=few, atol=few)


@pytest.mark.parametrize("wrong", [-1, 50])
def test_an_index_out_of_range_is_left_to_numpy(wrong):
    x, index = numbers(40, 50), np.full((40, 50), wrong)
    assert along.take(x, index, 1) is None
    assert along.add(x.copy(), x, index, 1) is None
    assert along.add_slices(x.copy(), x, index[0], 1) is None


@pytest.mark.parametrize("shape, axis", [((40, 33), 1), ((40, 33), 0), ((3, 20, 300), 1), ((2, 3, 1), 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_running_products_and_recurrences(shape, axis, dtype, threads, monkeypatch):
    x = 1 + numbers(*shape, dtype=dtype) / 4
    y = x.copy()
    y[..., shape[-1] // 2] = 0

    def both(x):
        t = rushlight.tensor(x).requires_grad_()
        out = t.cumprod(axis)
        out.backward(rushlight.tensor(numbers(*shape, dtype=dtype, seed=3)))
        return out.detach().numpy(), t.grad.numpy()

    found = [*both(x), *both(y)]
    monkeypatch.setattr(sums, "library", None)
    few = 256 * np.finfo(dtype).eps
    for a, b in zip(found, [*both(x), *both(y)], strict=True):
        np.testing.assert_allclose(a, b, rtol=few, atol=few * np.abs(b).max())


@pytest.mark.parametrize("n", [1, 15, 16, 17, 333])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("special", [False, True])
def test_extremes_of_rows(n, dtype, special, threads):
    x = np.round(numbers(40000 // n + 1, n, dtype=dtype, special=special))
    if special:
        x[3] = -np.inf
        x[4] = np.inf
    t = rushlight.tensor(x)
    for found, place, value in ((t.max(1), np.argmax, np.max), (t.min(1), np.argmin, np.min)):
        np.testing.assert_array_equal(found.indices.numpy(), place(x, 1))
        np.testing.assert_array_equal(found.values.numpy(), value(x, 1))


@pytest.mark.parametrize(
    "shape, kernel", [((3, 5, 14, 21), (7, 7)), ((2, 3, 40, 40), (8, 5)), ((2, 2, 6, 6, 6), (3, 3, 3))]
)
def test_large_windows_side_by_side(shape, kernel, monkeypatch):
    x = numbers(*shape, dtype=np.float64)

    def both():
        t = rushlight.tensor(x).requires_grad_()
        y = {2: F.avg_pool2d, 3: F.avg_pool3d}[len(kernel)](t, kernel)
        y.backward(rushlight.tensor(numbers(*y.shape, dtype=np.float64, seed=1)))
        return y.detach().numpy(), t.grad.numpy()

    found = both()
    monkeypatch.setattr(windows, "_side_by_side", lambda *_: False)
    for a, b in zip(found, both(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [False, True])
def test_losses_of_images(reduction, ignored, monkeypatch):
    x, target = numbers(3, 5, 20, 30), np.random.default_rng(1).integers(0, 5, (3, 20, 30))
    target[0, 0, 0] = -100 if ignored else 0

    def both():
        t = rushlight.tensor(x).requires_grad_()
        loss = F.nll_loss(t, rushlight.tensor(target), reduction=reduction)
        loss.backward(rushlight.ones_like(loss))
        return loss.detach().numpy(), t.grad.numpy()

    found = both()
    monkeypatch.setattr(along, "library", None)
    for a, b in zip(found, both(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
