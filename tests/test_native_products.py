"""Matrix products in C: as exact as BLAS's, for any layout, the same bits for any number of threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rushlight
from rushlight.engine import native
from rushlight.engine.numpy.kernels import products

library = native.library
pytestmark = pytest.mark.skipif(library is None, reason=f"the kernels in C are not there: {native.reason}")

SHAPES = [(1, 300, 500), (7, 129, 257), (64, 784, 512), (33, 1, 400), (200, 1000, 3), (3, 1000, 200), (65, 385, 97)]
SHAPES += [(40, 1100, 1000)]  # packed in several parts
SHAPES += [(20, 400, 2900)]  # too large to be packed once for all blocks
SHAPES += [(120, 1601, 70)]  # sums that are cut in two where both have rows for them
EMPTY = [(0, 5, 7), (5, 0, 7), (5, 7, 0)]
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every second column": lambda a: np.repeat(a, 2, 1)[:, ::2],
    "backwards": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
}


def numbers(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def native_product(x, w, bias=None):
    y = np.full((x.shape[0], w.shape[1]), np.nan, x.dtype)
    library.product(x, w, bias, y)
    return y


def assert_exact(y, x, w, bias=0):
    """Within a few roundings of each of the sums, which grow like a random walk."""
    truth = x.astype(np.float64) @ w + bias
    size = np.sqrt((x.astype(np.float64) ** 2) @ (w.astype(np.float64) ** 2)) + np.abs(bias)
    steps = 2 + np.sqrt(x.shape[1])
    assert (np.abs(y - truth) <= 2 * steps * np.finfo(y.dtype).eps * size).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_a_product_is_exact(shape, layout, dtype):
    m, k, n = shape
    x, w, bias = (numbers(*s, dtype=dtype, seed=i) for i, s in enumerate([(m, k), (k, n), (n,)]))
    for other in LAYOUTS.values():
        assert_exact(native_product(LAYOUTS[layout](x), other(w), bias), x, w, bias)


def test_the_result_may_have_any_layout():
    x, w = numbers(40, 70), numbers(70, 90, seed=1)
    for y in (np.empty((40, 90), np.float32, order="F"), np.zeros((40, 180), np.float32)[:, ::2]):
        library.product(x, w, None, y)
        assert_exact(y, x, w)


@pytest.mark.parametrize("shape", [(64, 784, 512), (1000, 130, 300), (9, 2000, 700), (2500, 301, 203)], ids=str)
def test_the_number_of_threads_does_not_change_a_bit(shape):
    m, k, n = shape
    x, w = numbers(m, k), numbers(n, k, seed=1)
    before, results = rushlight.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            rushlight.set_num_threads(threads)
            results.append([native_product(x, w.T), native_product(x.T, x), native_product(w, x.T)])
    finally:
        rushlight.set_num_threads(before)
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other))


@pytest.mark.parametrize("sizes", [(2048, 100, 4), (5, 512, 512), (1024, 96, 16), (64, 2048, 7)], ids=str)
def test_few_rows_or_columns_have_the_same_bits_with_any_number_of_threads(sizes):
    """A last layer of a few classes, or a batch of a few rows: BLAS adds up otherwise on two threads."""
    rows, inside, outside = sizes

    def step(threads):
        rushlight.set_num_threads(threads)
        x, w = (rushlight.tensor(numbers(n, inside, seed=n), requires_grad=True) for n in (rows, outside))
        y = rushlight.nn.functional.linear(x, w)
        y.backward(rushlight.tensor(numbers(rows, outside)))
        return [t.detach().numpy().tobytes() for t in (y, x.grad, w.grad)]

    before = rushlight.get_num_threads()
    try:
        assert step(1) == step(2) == step(3)
    finally:
        rushlight.set_num_threads(before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex64])
@pytest.mark.parametrize("m, n", [(1, 1), (3, 5), (300, 500), (2, 3000), (0, 4), (4, 0)])
def test_a_column_times_a_row_is_every_product(m, n, dtype):
    x, w = numbers(m, 1).astype(dtype), numbers(1, n, seed=1).astype(dtype)
    x[::3], w[:, ::2] = -1, 0
    y, expected = products.product(x, w), x * w
    assert y.dtype == dtype and y.flags.c_contiguous
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(np.signbit(y.real), np.signbit(expected.real))
    np.testing.assert_array_equal(products.product(x.repeat(2, 1)[:, :1], w), expected)
    bias = numbers(n, seed=2).astype(dtype)
    np.testing.assert_allclose(products.product(x, w, bias), expected + bias, rtol=1e-6, atol=1e-6)


def test_nan_and_infinities_stay_in_their_rows_and_columns():
    x, w = numbers(30, 50), numbers(50, 70, seed=1)
    x[3, 4], w[7, 60] = np.nan, np.inf
    y = native_product(x, w)
    with np.errstate(invalid="ignore"):
        expected = x @ w
    assert np.array_equal(np.isnan(y), np.isnan(expected)) and np.array_equal(np.isinf(y), np.isinf(expected))
    assert np.isnan(y[3]).all() and np.isinf(y[:3, 60]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "left, right",
    [
        ((5, 40, 60), (5, 60, 50)),
        ((3, 4, 40, 60), (3, 4, 60, 50)),
        ((3, 1, 40, 60), (4, 60, 50)),
        ((2, 3, 4, 40, 60), (2, 3, 4, 60, 50)),
        ((3, 0, 40, 60), (1, 60, 50)),
        ((5, 40, 0), (5, 0, 50)),
    ],
    ids=str,
)
def test_a_batch_is_its_products(left, right, dtype):
    x, w = numbers(*left, dtype=dtype), numbers(*right, dtype=dtype, seed=1)
    tolerance = 1e-4 if dtype == np.float32 else 1e-12
    for a, b in ((x, w), (x.swapaxes(-1, -2).copy().swapaxes(-1, -2), w.swapaxes(-1, -2).copy().swapaxes(-1, -2))):
        np.testing.assert_allclose(products._batch(a, b), np.matmul(x, w), rtol=tolerance, atol=tolerance)


def test_heads_that_are_slices_of_one_array_are_read_where_they_lie():
    """As in attention: (batch, time, heads, size), of which (batch, heads, time, size) is a view."""
    both = numbers(3, 50, 2, 4, 20)
    q, k = both[:, :, 0].swapaxes(1, 2), both[:, :, 1].swapaxes(1, 2)
    np.testing.assert_allclose(
        products._batch(q, k.swapaxes(2, 3)), np.matmul(q, k.swapaxes(2, 3)), rtol=1e-4, atol=1e-4
    )


def test_a_linear_layer_uses_them_and_its_gradients_agree():
    x, w, b = numbers(6, 20, 300), numbers(400, 300, seed=1), numbers(400, seed=2)
    tensors = [rushlight.tensor(a, requires_grad=True) for a in (x, w, b)]
    y = rushlight.nn.functional.linear(*tensors)
    g = numbers(6, 20, 400, seed=3)
    y.backward(rushlight.tensor(g))
    rows, flat = x.reshape(-1, 300).astype(np.float64), g.reshape(-1, 400).astype(np.float64)
    expected = [rows @ w.T + b, flat @ w, flat.T @ rows, flat.sum(0)]
    for found, truth in zip([y.detach(), *[t.grad for t in tensors]], expected):
        np.testing.assert_allclose(found.numpy().reshape(truth.shape), truth, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "rows, inner, outer", [(1, 1, 1), (1, 2, 3), (3, 7, 5), (16, 9, 17), (17, 3, 4), (2, 65, 31), (1, 900, 4)]
)
@pytest.mark.parametrize("bias", [True, False])
def test_small_linear_layers_equal_their_rule(dtype, rows, inner, outer, bias):
    """By dot products where the arrays lie; gradients for whoever wants them."""
    draw = np.random.default_rng(0)
    x, w, b, g = (draw.standard_normal(s).astype(dtype) for s in ((rows, inner), (outer, inner), outer, (rows, outer)))
    b, close = b if bias else None, {"rtol": 1e-5, "atol": 1e-5 if dtype == np.float32 else 1e-13}
    for given in (x, np.asfortranarray(x)):
        y = products.linear(None, given, w, b)
        assert y.dtype == dtype
        np.testing.assert_allclose(y, x @ w.T + (0 if b is None else b), **close)
    expected = g @ w, g.T @ x, g.sum(0)
    for wanted in itertools.product((None, 1), repeat=3):
        saved = {name: a for name, a, i in (("w", w, 0), ("x", x, 1)) if wanted[i]}
        for e, found, want in zip(wanted, products.linear_backward(g, wanted, saved), expected):
            assert (found is None) == (e is None)
            if e is not None:
                np.testing.assert_allclose(found, want, **close)


def test_small_linear_layers_keep_nan_and_infinity():
    x = np.array([[1.0, np.nan], [np.inf, 0.0]], np.float32)
    w, b = np.ones((3, 2), np.float32), np.zeros(3, np.float32)
    y = products.linear(None, x, w, b)
    assert np.isnan(y[0]).all() and np.isposinf(y[1]).all()
    gx, gw, gb = products.linear_backward(np.zeros((2, 3), np.float32), (1, 1, 1), {"x": x, "w": w})
    assert not gx.any() and np.isnan(gw).all() and not gb.any()


@pytest.mark.parametrize("shape", [(3, 5), (4, 9), (1, 1)])
def test_a_weight_of_another_shape_than_in_forward_is_not_read_beyond_its_end(shape):
    w, x = rushlight.randn(4, 5, requires_grad=True), rushlight.randn(2, 5, requires_grad=True)
    y = rushlight.nn.functional.linear(x, w)
    w.data = rushlight.randn(shape)
    g = np.ones((2, 4), np.float32)
    assert products._thin_slopes(g, (1, 1, None), {"x": x._array, "w": w._array}) is None
    with pytest.raises((RuntimeError, ValueError)):
        y.sum().backward()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("inside, outside", [(1, 1), (64, 128), (100, 7), (33, 1000), (300, 300)])
def test_a_linear_layer_of_one_row_is_exact(inside, outside, dtype):
    """Its dot products are taken where the rows lie, up to a size."""
    x, w, bias = (numbers(*s, dtype=dtype, seed=i) for i, s in enumerate([(1, inside), (outside, inside), (outside,)]))
    assert_exact(products.linear(None, x, w, bias), x, w.T, bias)
    assert_exact(products.linear(None, x, w, None), x, w.T)
