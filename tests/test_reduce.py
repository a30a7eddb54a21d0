"""Reductions, scans, sorting and statistics: what holds of them without an oracle."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.tensor import wrap

ENGINES = ["numpy", "xla"]


def _tensor(data, engine="numpy", dtype=np.float64, requires_grad=False):
    array = np.array(data, dtype=dtype)
    if engine == "xla":
        from rushlight.engine.xla import namespace as xla

        array = xla.asarray(array)
    return wrap(array).requires_grad_(requires_grad)


def _gradient(function, data, engine):
    x = _tensor(data, engine, requires_grad=True)
    function(x).sum().backward()
    return np.asarray(x.grad._array)


# -- gradients -------------------------------------------------------------------------------------------------------

DIFFERENTIABLE = {
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean((0, 1)),
    "prod": lambda x: x.prod(1),
    "prod of all": lambda x: x.prod(),
    "amax": lambda x: x.amax(0),
    "max": lambda x: x.max(1).values,
    "std": lambda x: x.std(0),
    "var_mean": lambda x: torch.var_mean(x, 1),
    "logsumexp": lambda x: x.logsumexp((0, 1)),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(1),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "cummax": lambda x: x.cummax(1).values,
    "sort": lambda x: x.sort(0, descending=True).values,
    "topk": lambda x: x.topk(2).values,
    "kthvalue": lambda x: x.kthvalue(2).values,
    "median": lambda x: x.median(0).values,
    "norm": lambda x: x.norm(3, 1),
    "quantile": lambda x: x.quantile(0.3, 1),
    "cov": lambda x: x.cov(),
    "trapezoid": lambda x: torch.trapezoid(x, dx=0.5),
    "gradient": lambda x: torch.gradient(x, dim=1)[0],
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_first_and_second_gradients(name):
    x = _tensor([[0.3, -1.2, 2.1, 0.9], [1.7, 0.4, -0.6, -2.0], [0.2, 1.1, 1.4, -0.7]], requires_grad=True)
    assert gradcheck(DIFFERENTIABLE[name], (x,))
    assert gradgradcheck(DIFFERENTIABLE[name], (x,))


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_products_have_right_gradients_with_zeros(zeros):
    x = _tensor([2.0] + [0.0] * zeros + [-1.5, 3.0], requires_grad=True)
    for function in (torch.prod, lambda t: torch.cumprod(t, 0)):
        assert gradcheck(function, (x,))
        assert gradgradcheck(function, (x,))


def test_amax_shares_its_gradient_among_ties_and_max_picks_one():
    ties = [[1.0, 3.0, 3.0]]
    assert _gradient(lambda x: x.amax(1), ties, "numpy").tolist() == [[0, 0.5, 0.5]]
    assert _gradient(lambda x: x.max(), ties, "numpy").tolist() == [[0, 0.5, 0.5]]
    assert _gradient(lambda x: x.max(1).values, ties, "numpy").tolist() == [[0, 1, 0]]


@pytest.mark.parametrize("size", [50, 70_000])
@pytest.mark.parametrize("nans", [0, 3])
@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_all_that_have_the_value_share_the_gradient(name, nans, size):
    x = torch.randn(size).mul_(3).round_()
    x[:nans] = math.nan
    x.requires_grad_()
    y = getattr(x, name)()
    y.backward(torch.tensor(0.7))
    holders = x.isnan() if y.isnan() else x == y
    assert int(holders.sum()) == np.add.reduce(holders.numpy()) >= 1
    share = np.float32(0.7) / np.float32(np.add.reduce(holders.numpy()))
    np.testing.assert_array_equal(x.grad.numpy(), np.where(holders.numpy(), share, np.float32(0)))


# -- compiled --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_rules_trace(name):
    """Forward and backward have static shapes and no Python branch on values: they run under ``jax.jit``."""
    jax = pytest.importorskip("jax")
    data = np.array([[0.3, -1.2, 2.1, 0.0], [1.7, 0.0, -0.6, -2.0]])

    from rushlight.engine.xla import devices
    from rushlight.engine.xla import namespace as xla

    def step(array):
        with devices.tracing(torch.device("xla"), np.zeros(devices.KEY_WORDS, np.uint32)):
            x = wrap(array).requires_grad_()
            y = DIFFERENTIABLE[name](x)
            (y[0] if isinstance(y, tuple) else y).sum().backward()
            return x.grad._array

    np.testing.assert_allclose(jax.jit(step)(xla.asarray(data)), step(data), 1e-9, 1e-9)


def test_shapes_that_depend_on_values_cannot_be_traced():
    jax = pytest.importorskip("jax")
    for function in (torch.unique, torch.unique_consecutive):
        with pytest.raises(RuntimeError, match="depends on values"):
            jax.jit(lambda a, f=function: f(wrap(a))._array)(np.arange(3))


# -- order -----------------------------------------------------------------------------------------------------------

_floats = arrays.arrays(
    np.float32,
    st.sampled_from([(5,), (3, 4)]),  # few shapes: XLA compiles for each
    elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan]),
)


@given(_floats, st.booleans())
def test_sort_is_stable_and_puts_nan_above_all(array, descending):
    values, indices = wrap(array).sort(-1, descending)
    taken = np.take_along_axis(array, indices._array, -1)
    np.testing.assert_array_equal(values._array, taken)
    # Python's sort is stable too, also in reverse.
    rank = [(bool(np.isnan(v)), 0.0 if np.isnan(v) else float(v)) for v in array.reshape(-1)]
    table = np.arange(array.size).reshape(array.shape)
    expected = [sorted(row.tolist(), key=rank.__getitem__, reverse=descending) for row in np.atleast_2d(table)]
    found = np.take_along_axis(table, indices._array, -1)
    assert np.atleast_2d(found).tolist() == expected


@settings(max_examples=15, deadline=None)
@given(_floats)
def test_engines_agree_on_order(array):
    from rushlight.engine.xla import namespace as xla

    ours, theirs = wrap(array), wrap(xla.asarray(array))
    for f in (
        lambda t: t.sort(0, True),
        lambda t: t.median(0),
        lambda t: t.nanmedian(-1),
        lambda t: t.mode(),
        lambda t: t.cummax(0),
        lambda t: t.max(0),
        lambda t: t.unique(return_counts=True),
    ):
        for a, b in zip(f(ours), f(theirs)):
            assert a.dtype is b.dtype
            np.testing.assert_array_equal(a._array, np.asarray(b._array))


def test_mode_is_the_smallest_of_the_most_frequent_at_its_last_place():
    assert [t.item() for t in torch.tensor([5, 2, 5, 2]).mode()] == [2, 3]


# -- results ---------------------------------------------------------------------------------------------------------


def test_named_results_unpack_print_copy_and_pickle():
    result = torch.tensor([[1.0, 5.0], [7.0, 2.0]]).max(dim=1)
    values, indices = result
    assert values is result.values and indices is result.indices and isinstance(result, tuple)
    assert repr(result) == "torch.return_types.max(\nvalues=tensor([5., 7.]),\nindices=tensor([1, 0]))"
    assert type(copy.copy(result)) is type(result)
    assert pickle.loads(pickle.dumps(type(result)((1, 2)))) == (1, 2)


def test_out_is_written_and_returned():
    out = torch.zeros(2)
    assert torch.sum(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, out=out) is out
    assert out.tolist() == [3.0, 7.0]
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    result = torch.max(torch.tensor([[1.0, 2.0], [4.0, 3.0]]), 1, out=(values, indices))
    assert result.values is values and indices.tolist() == [1, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_softmax_neither_overflows_nor_changes_its_input(engine):
    x = _tensor([[1000.0, 1000.0], [-1000.0, 0.0]], engine, np.float32)
    before = np.array(x._array)
    np.testing.assert_allclose(np.asarray(x.softmax(1)._array), [[0.5, 0.5], [0, 1]])
    np.testing.assert_allclose(np.asarray(x.log_softmax(1)._array), [[-np.log(2)] * 2, [-1000, 0]], rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(x._array), before)


@given(arrays.arrays(np.int8, arrays.array_shapes(max_dims=3, max_side=4)))
def test_integers_add_up_in_int64(array):
    for name in ("sum", "prod"):
        got = getattr(wrap(array), name)()
        assert got.dtype is torch.int64
        assert got.item() == getattr(array.astype(np.int64), name)()
    assert wrap(array).cumsum(0).dtype is torch.int64


@pytest.mark.parametrize("engine", ENGINES)
def test_half_precision_is_summed_in_float32(engine):
    x = _tensor(np.full(4096, 0.1), engine, np.float16)
    assert x.sum().dtype is torch.float16
    assert abs(x.sum().item() - 409.5) < 0.5
    assert abs(x.mean().item() - 0.1) < 1e-3


def test_running_results_of_long_rows_have_all_digits_of_a_float32():
    """They are computed in double precision inside, as PyTorch's, and so is the gradient of a running product."""
    x = np.random.default_rng(0).standard_normal((3, 20000)).astype(np.float32)
    wide = np.logaddexp.accumulate(x.astype(np.float64), 1)
    np.testing.assert_allclose(torch.tensor(x).logcumsumexp(1).numpy(), wide, rtol=1e-7)
    g, slopes = np.random.default_rng(1).standard_normal(x.shape).astype(np.float32), []
    for dtype in (torch.float32, torch.float64):
        t = (1 + 1e-4 * torch.tensor(x)).to(dtype).requires_grad_()
        t.cumprod(1).backward(torch.tensor(g).to(dtype))
        slopes.append(t.grad.numpy())
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-6, atol=5e-7 * np.abs(slopes[1]).max())


@pytest.mark.parametrize("shape, axis", [((300, 10), 0), ((300, 10), 1), ((3, 70, 400), (0, 2)), ((2, 70000), None)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_numbers_have_no_variance(shape, axis, dtype):
    """However their sum is rounded; the root's gradient would be a rounding error divided by another."""
    x = torch.full(shape, 0.1, dtype=torch.float32 if dtype == np.float32 else torch.float64, requires_grad=True)
    y = x.std(axis)
    y.sum().backward()
    assert not y.any() and not x.var(axis).any() and not x.grad.any()


@pytest.mark.parametrize("shape, axis", [((300, 10), 0), ((300, 10), 1), ((3, 70, 400), (0, 2)), ((2, 70000), None)])
@pytest.mark.parametrize("middle, size", [(1e4, 1e-2), (0, 1e-25), (0, 1e17), (1000, 1), (0, 1e-42)])
def test_a_variance_has_all_digits_of_a_float32(shape, axis, middle, size):
    """Far from 0, and where squares are too small, or their sum too large, for a float32."""
    x = (np.random.default_rng(0).standard_normal(shape) * size + middle).astype(np.float32)
    t, wide = torch.tensor(x), x.astype(np.float64)
    np.testing.assert_allclose(t.std(axis), wide.std(axis, ddof=1), rtol=2e-7, atol=1e-45)
    np.testing.assert_allclose(t.var(axis), wide.var(axis, ddof=1), rtol=2e-7, atol=1e-45)
    spread, mean = torch.var_mean(t, axis, correction=0, keepdim=True)
    np.testing.assert_allclose(spread, wide.var(axis, keepdims=True), rtol=2e-7, atol=1e-45)
    np.testing.assert_allclose(mean, wide.mean(axis, keepdims=True), rtol=2e-7, atol=1e-6 * size + 1e-45)


def test_too_few_elements_for_a_variance_warn():
    with pytest.warns(UserWarning, match=r"std\(\): degrees of freedom is <= 0"):
        assert np.isnan(torch.tensor([1.0]).std().item())


@pytest.mark.filterwarnings("ignore:.*degrees of freedom:UserWarning")
def test_gradients_of_variances_without_freedom():
    x = torch.tensor([[1.0, 3.0]], requires_grad=True)
    for correction, slope in ((2, [-math.inf, math.inf]), (3, [2.0, -2.0])):  # PyTorch's
        (found,) = torch.autograd.grad(x.var(1, correction=correction).sum(), x)
        assert found[0].tolist() == slope
    (found,) = torch.autograd.grad(x[:, :1].var(1).sum(), x)
    assert math.isnan(found[0, 0]) and found[0, 1] == 0
    for correction in (2, 3):
        (found,) = torch.autograd.grad(-x.var(correction=correction), x)
        assert found[0].tolist() == [-math.inf, -math.inf]
        (found,) = torch.autograd.grad(x.std(correction=correction), x)
        assert found.isnan().all()


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_keeps_order(right):
    edges, values = np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.5, 2.0, 3.0, 9.0])
    found = torch.bucketize(wrap(values), wrap(edges), right=right)
    assert found.tolist() == np.searchsorted(edges, values, "right" if right else "left").tolist()
