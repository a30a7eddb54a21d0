"""Formulas, copies and indices along an axis by the kernels in C: equal to what NumPy's passes give, for any layout."""

from __future__ import annotations

import itertools
import os
import shutil

import ml_dtypes
import numpy as np
import pytest

import rushlight
from rushlight.engine import native
from rushlight.engine.fallback import FORWARDS
from rushlight.engine.numpy import namespace
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
    "erf": lambda x, y, b: x.erf(),
    "erfc": lambda x, y, b: x.erfc(),
    "every pair": lambda x, y, b: b[:, None] * b,
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(300, 301), (301,), (300, 1), ()], ids=str)
def test_truths_are_those_of_numpy(shape, dtype, threads):
    x, y = numbers(300, 301, dtype=dtype, special=True), numbers(*shape, dtype=dtype, seed=1, special=True)
    for name in ("equal", "not_equal", "less", "less_equal"):
        found = chains.evaluated(lambda xp, x, y, name=name: getattr(xp, name)(x, y), (x, y), {})
        expected = getattr(np, name)(x, y)
        assert found.dtype == bool and found.view(np.uint8).max() <= 1
        np.testing.assert_array_equal(found, expected)


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


BROADCAST = {  # with rows of less than a block of the library, of one, and more, and of nearly none
    "a row": lambda n: (numbers(90, n), numbers(n, seed=1)),
    "a column": lambda n: (numbers(90, n), numbers(90, 1, seed=1)),
    "both": lambda n: (numbers(90, 1), numbers(n, seed=1)),
    "channels": lambda n: (numbers(3, 30, 1, n), numbers(30, 1, 1, seed=1)),
    "gaps": lambda n: (numbers(90, n + 3)[:, 3:], numbers(90, n + 3)[:, :-3]),
    "every other": lambda n: (numbers(90, 2 * n)[:, ::2], numbers(90, n, seed=1)),
    "repeated pictures": lambda n: (numbers(9, 1, 10, n), numbers(3, 1, n, seed=1)),
}


@pytest.mark.parametrize("n", [2, 7, 255, 256, 1000, 1024, 1025, 2500])
@pytest.mark.parametrize("name", BROADCAST)
def test_rows_that_are_repeated_or_have_gaps(name, n, threads):
    x, y = BROADCAST[name](n)
    np.testing.assert_array_equal(served(lambda xp, x, y: x - y, x, y), x - y)
    np.testing.assert_array_equal(served(lambda xp, x, y: (x < y) & (x > 0), x, y), (x < y) & (x > 0))
    total = served(lambda xp, x, y: xp.sum(x * y), x, y)
    np.testing.assert_allclose(total, np.sum(x.astype(np.float64) * y), rtol=1e-4, atol=1e-2)
    found = rushlight.from_numpy(x) * rushlight.from_numpy(y)
    np.testing.assert_array_equal(found.numpy(), x * y)


@pytest.mark.parametrize(
    "shapes", [((90, 1), (1, 700)), ((90, 700), (90, 1)), ((3, 30, 1), (30, 2500)), ((90, 1), (90, 1))]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_with_one_number_on_either_side(shapes, dtype, threads):
    x, y = (numbers(*shape, dtype=dtype, seed=i, special=True) for i, shape in enumerate(shapes))
    with np.errstate(all="ignore"):
        for a, b in ((x, y), (y, x), (np.broadcast_to(x, (3, *x.shape)), y)):
            np.testing.assert_array_equal(served(lambda xp, a, b: a + b, a, b), a + b)
            np.testing.assert_array_equal(served(lambda xp, a, b: a - b, a, b), a - b)
            np.testing.assert_array_equal(served(lambda xp, a, b: a * b, a, b), a * b)
            np.testing.assert_array_equal(served(lambda xp, a, b: a / b, a, b), a / b)


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
    for parts in (arrays, [a[:, ::-1, 1::2] for a in arrays], [a.T for a in arrays]):
        found, expected = copies.joined(parts, axis), np.concatenate(parts, axis)
        np.testing.assert_array_equal(found, expected)
        assert found.strides == expected.strides


_KINDS = [np.float32, np.float64, np.int64, np.uint8, bool]


@pytest.mark.parametrize(
    "from_, to", [pair for pair in itertools.permutations(_KINDS, 2) if np.dtype(pair[1]).kind in "fi"]
)
def test_conversions(from_, to, threads, monkeypatch):
    monkeypatch.setattr(copies, "_WORTH", 1)
    for shape in ((0,), (1,), (77777,), (3, 41, 5)):
        x = abs(100 * numbers(*shape, dtype=np.float64) % 200).astype(from_)
        found = copies.converted(x, np.dtype(to))
        assert found.dtype == to and (not x.size or not np.shares_memory(found, x))
        np.testing.assert_array_equal(found, x.astype(to))
    np.testing.assert_array_equal(copies.converted(x.T, np.dtype(to)), x.T.astype(to))


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_conversions_of_odd_numbers(real, monkeypatch):
    monkeypatch.setattr(copies, "_WORTH", 1)
    odd = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 2.0**62, -(2.0**63), 1e-40, 1.5, -1.5] * 9, real)
    wide = np.array([2**53 + 1, -(2**63), 2**63 - 1, 2**24 + 1, -1] * 9)
    other = np.float64 if real is np.float32 else np.float32
    with np.errstate(all="ignore"):
        for x, to in ((odd, other), (odd, np.int64), (wide, real)):
            np.testing.assert_array_equal(copies.converted(x, np.dtype(to)), x.astype(to))
    assert np.signbit(copies.converted(odd, np.dtype(other))[1])
    apart = np.frombuffer(bytes(1) + odd.tobytes(), np.uint8)[1:].view(real)  # at no multiple of its size
    for x in (apart, odd.astype(odd.dtype.newbyteorder())):
        np.testing.assert_array_equal(copies.converted(x, np.dtype(other)), x.astype(other))


@pytest.mark.parametrize("real", [rushlight.float32, rushlight.float64])
def test_bytes_seen_as_truths_may_be_any(real, threads):
    seen = rushlight.tensor([0, 1, 2, 255] * 20000, dtype=rushlight.uint8).view(rushlight.bool)
    expected = np.array([0, 1, 1, 1] * 20000)
    np.testing.assert_array_equal(seen.to(real), expected)
    np.testing.assert_array_equal(seen * rushlight.ones(80000, dtype=real), expected)
    np.testing.assert_array_equal(seen[:, None] + rushlight.zeros(2, dtype=real), np.stack([expected] * 2, 1))
    for n in (40, 4000, 80000):
        ones = rushlight.ones(n, dtype=real)
        for chosen in (
            rushlight.where(seen[:n], ones, 0.0),
            ones.masked_fill(~seen[:n], 0),
            ones - ones.masked_fill(seen[:n], 0),
        ):
            np.testing.assert_array_equal(chosen, expected[:n])


@pytest.mark.parametrize("half", [np.float16, ml_dtypes.bfloat16])
def test_conversions_of_halves(half, threads, monkeypatch):
    """All of them, and floats on all sides of each: what is too large, too small, halfway, no number."""
    monkeypatch.setattr(copies, "_WORTH", 1)
    every = np.arange(1 << 16, dtype=np.uint16).view(half)
    wide = every.astype(np.float32)
    found = copies.converted(every, np.dtype(np.float32))
    np.testing.assert_array_equal(found, wide)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wide))
    bits = wide.view(np.uint32)[:, None] + np.arange(-1, 2, dtype=np.int64)
    bits = np.concatenate([bits, bits + (1 << 12), bits + (1 << 15)], 1) % (1 << 32)
    floats = np.append(bits.ravel(), np.random.default_rng(0).integers(0, 1 << 32, 77777)).astype(np.uint32)
    for x in (floats.view(np.float32), floats[: 7 * 5000].view(np.float32).reshape(7, -1).T):
        with np.errstate(all="ignore"):
            expected = x.astype(half)
        found = copies.converted(x, np.dtype(half))
        assert found.dtype == half and found.strides == expected.strides
        np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))
        assert (np.isnan(expected) | (found.view(np.uint16) == expected.view(np.uint16))).all()
    for x in (wide.reshape(1, -1)[:, 1000:9000], wide[3000:3001, None], wide[5000:7000, None]):
        for repeated in (np.broadcast_to(x, (7, 8000)) if x.shape[1] > 1 else np.broadcast_to(x, (len(x), 600)),):
            found = copies.converted(repeated, np.dtype(half))
            np.testing.assert_array_equal(found, repeated.astype(half))
            found[...] = 0  # it is an array of its own


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_of_halves_that_meet_are_rounded_sums(dtype):
    """Each sum is rounded once to the half that NumPy, too, would make of it."""
    kind = getattr(rushlight, dtype)
    x = rushlight.tensor(numbers(70, 90)).to(kind).requires_grad_()
    g, h, k = (rushlight.tensor(numbers(70, 90, seed=i)).to(kind) for i in (1, 2, 3))
    ((x.clone() * g).sum() + (x.clone() * h).sum()).backward()
    np.testing.assert_array_equal(x.grad.float().numpy(), (g + h).float().numpy())
    (x * k).sum().backward()
    np.testing.assert_array_equal(x.grad.float().numpy(), (g + h + k).float().numpy())
    assert x.grad.dtype == kind


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_of_repeated_halves_are_added_in_single_precision(dtype):
    """A half of 256 to which small ones are added one by one stays what it is."""
    kind, n = getattr(rushlight, dtype), 5000
    x = rushlight.tensor(numbers(3, 1)).to(kind).requires_grad_()
    bias = rushlight.zeros(3, dtype=kind, requires_grad=True)
    g = (rushlight.tensor(numbers(n, 3)) + 1).to(kind)
    (x.expand(3, n) * g.T).sum().backward()
    ((rushlight.ones(n, 3, dtype=kind) + bias) * g).sum().backward()
    index = rushlight.zeros(n, dtype=rushlight.int64)
    row = rushlight.zeros(2, 3, dtype=kind, requires_grad=True)
    for took in (row[index], row.gather(0, index[:, None].expand(n, 3)), row[index, :], F.embedding(index, row)):
        row.grad = None
        (took * g).sum().backward()
        close(row.grad[0], g)
    close(x.grad[:, 0], g), close(bias.grad, g)
    close(row.detach().index_add(0, index, g)[0], g)


def close(total, g):
    exact = g.double().sum(0)
    assert ((total.double() - exact).abs() <= exact.abs() * (2**-10 if g.dtype is rushlight.float16 else 2**-7)).all()


def test_one_element_of_a_large_array_is_put():
    x = numbers(40000)
    for index in ((7,), 7, (slice(3, 5),), (slice(None),)):
        value = numbers(*np.shape(x[index]), seed=1)
        found, expected = namespace.index_put(x, np.asarray(value), index), x.copy()
        expected[index] = value
        np.testing.assert_array_equal(found, expected)


# -- along an axis -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape, axis, k", [((40, 50), 1, 7), ((40, 50), 0, 90), ((3, 50, 600), 1, 4), ((2000,), 0, 5000)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reading_and_writing_along_an_axis(shape, axis, k, dtype, threads):
    x = numbers(*shape, dtype=dtype)
    index = np.random.default_rng(1).integers(0, shape[axis], [k if d == axis else n for d, n in enumerate(shape)])
    np.testing.assert_array_equal(along.take(x, index, axis), np.take_along_axis(x, index, axis))
    value, places = numbers(*index.shape, dtype=dtype, seed=2), list(np.ogrid[tuple(map(slice, index.shape))])
    places[axis] = index
    expected = x.astype(np.float64)
    np.add.at(expected, tuple(places), value)
    few = 64 * np.finfo(dtype).eps
    np.testing.assert_allclose(along.add(x.copy(), value, index, axis), expected, rtol=few, atol=few)
    for written in (value, 2.0):
        expected = x.copy()
        expected[tuple(places)] = written
        np.testing.assert_array_equal(along.put(x.copy(), written, index, axis), expected)
    one, expected = index[tuple(slice(None) if d == axis else 0 for d in range(x.ndim))].copy(), x.astype(np.float64)
    np.add.at(expected, (slice(None),) * axis + (one,), value)
    np.testing.assert_allclose(along.add_slices(x.copy(), value, one, axis), expected, rtol=few, atol=few)
    np.testing.assert_array_equal(along.take_slices(x, one, axis), np.take(x, one, axis))
    expected = np.zeros(shape)
    np.add.at(expected, (slice(None),) * axis + (one,), value)
    np.testing.assert_allclose(along.spread_slices(value, one, axis, shape), expected, rtol=few, atol=few)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float64, np.float32, np.uint8, np.complex64, bool])
def test_slices_of_any_kind_of_number(dtype, monkeypatch):
    monkeypatch.setattr(along, "_WORTH", 1)
    x = (100 * numbers(40, 50)).astype(dtype)
    for axis in (0, 1):
        found = along.take_slices(x, np.array([3, 3, 0, 39]), axis)
        if x.itemsize in copies.REALS:
            np.testing.assert_array_equal(found, np.take(x, [3, 3, 0, 39], axis))
            assert found.dtype == dtype
        else:
            assert found is None
    assert along.take_slices(x.T, np.array([3]), 0) is None


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.float32, bool])
@pytest.mark.parametrize("axis, count", [(0, 2), (0, 3), (1, 2), (2, 2)])
def test_indices_of_several_axes(axis, count, dtype, threads):
    shape, rng = (5, 6, 7, 8), np.random.default_rng(3)
    x = (9 * numbers(*shape, dtype=np.float64)).astype(dtype)
    rows = [rng.integers(0, n, 3000) for n in shape[axis : axis + count]]
    index = (slice(None),) * axis + tuple(rows)
    expected = x[index]
    np.testing.assert_array_equal(along.take_at(x, index), expected)
    value = numbers(*expected.shape).astype(np.float64)
    total, zeros = x.astype(np.float64), np.zeros(shape)
    np.add.at(total, index, value)
    np.add.at(zeros, index, value)
    if np.dtype(dtype).kind == "f":
        few, value = 200 * np.finfo(dtype).eps, value.astype(dtype)
        out = x.copy()
        assert along.add_at(out, value, index) is out
        np.testing.assert_allclose(out, total, rtol=few, atol=few)
        np.testing.assert_allclose(along.spread_at(value, index, shape), zeros, rtol=few, atol=few)
    for wrong in (-1, shape[axis]):  # NumPy counts from the end, or says what is wrong
        rows[0][17] = wrong
        assert along.take_at(x, index) is along.spread_at(value, index, shape) is None
        before = x.copy()
        assert along.add_at(x, value, index) is None and (x == before).all()
    assert along.merged((slice(1, None), *rows), shape) is along.merged((rows[0], slice(None), rows[1]), shape) is None


@pytest.mark.parametrize("shape", [(300, 200), (40, 50, 60), (1, 40000), (40000, 1)])
def test_where_masks_are_true(shape):
    for share in (0, 0.01, 0.5, 1):
        mask = np.random.default_rng(0).random(shape) < share
        for seen in (mask, mask.T, mask[::2]):
            for a, b in zip(namespace.nonzero(seen), np.nonzero(seen), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("wrong", [-1, 50, 1 << 40])
@pytest.mark.parametrize("places", [slice(None), 0, 17, -1])
def test_an_index_out_of_range_is_left_to_numpy(wrong, places):
    x, index = numbers(40, 50), np.zeros((40, 50), np.int64)
    index[:, places] = wrong
    assert along.take(x, index, 1) is None
    assert along.add(x.copy(), x, index, 1) is None
    assert along.put(x.copy(), x, index, 1) is None
    assert along.add_slices(x.copy(), x, index[0], 1) is None
    assert along.take_slices(x, index[0], 1) is None
    assert along.spread_slices(x, index[0], 1, x.shape) is None


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


# -- in place ----------------------------------------------------------------------------------------------------------

IN_PLACE = {
    "sum": (lambda x, y: x.add_(y), lambda x, y: x + y),
    "of a multiple": (lambda x, y: x.sub_(y, alpha=2), lambda x, y: x - 2 * y),
    "with itself": (lambda x, y: x.add_(x), lambda x, y: x + x),
    "with a row": (lambda x, y: x.div_(y[0]), lambda x, y: x / y[0]),
    "with its own column": (lambda x, y: x.mul_(x[:, :1]), lambda x, y: x * x[:, :1]),
    "with a number": (lambda x, y: x.mul_(0.5), lambda x, y: x * 0.5),
    "with a tensor of none": (lambda x, y: x.mul_(y[0, 0]), lambda x, y: x * y[0, 0]),
    "rounded": (lambda x, y: x.div_(y, rounding_mode="floor"), lambda x, y: rushlight.div(x, y, rounding_mode="floor")),
    "negative": (lambda x, y: x.neg_(), lambda x, y: -x),
    "operator": (lambda x, y: x.__isub__(y), lambda x, y: x - y),
    "zeros": (lambda x, y: x.zero_(), lambda x, y: x * 0),
    "copy of a row": (lambda x, y: x.copy_(y[0]), lambda x, y: y[0].expand_as(x)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", IN_PLACE)
def test_large_tensors_are_written_in_place(name, dtype, threads):
    write, compute = IN_PLACE[name]
    x, y = (rushlight.tensor(numbers(301, 257, dtype=dtype, seed=seed)) for seed in (1, 2))
    wanted, whole, place = compute(x.clone(), y), x.view(-1), x.data_ptr()
    with rushlight.no_grad():
        write(x, y)
    assert x.data_ptr() == place
    np.testing.assert_array_equal(x.numpy(), wanted.numpy())
    np.testing.assert_array_equal(whole.numpy(), wanted.reshape(-1).numpy())


def test_a_write_in_place_that_is_recorded_keeps_what_gradients_need():
    x = rushlight.randn(300, 300).requires_grad_()
    y = x * 1
    z = y * y
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    y = x * 1
    (y.mul_(3) * 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((300, 300), 6, np.float32))


@pytest.mark.parametrize("shape", [(300, 301), (7, 20_000)])
def test_gradients_of_leaves_are_copied_and_added_up(shape, threads):
    def gradients(x):
        x.sum().backward()
        x.sum(0).sum().backward()
        x.T.contiguous().mul(2).sum(1).sum().backward()
        return x.grad

    plain = rushlight.randn(*shape).requires_grad_()
    found = gradients(plain)
    assert found.stride() == plain.stride()
    np.testing.assert_array_equal(found.numpy(), np.full(shape, 4, np.float32))
    turned = rushlight.randn(*shape[::-1]).T.requires_grad_()  # lies the other way round
    found = gradients(turned)
    assert found.stride() == turned.stride()
    np.testing.assert_array_equal(found.numpy(), np.full(shape, 4, np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [1, 2, 3, np.inf])
def test_gradients_are_clipped_together(order, dtype, threads):
    arrays = [numbers(*shape, dtype=dtype, seed=len(shape)) for shape in ((300, 300), (5,), (), (200_001,))]

    def clipped(grads):
        params = [rushlight.zeros(g.shape, dtype=g.dtype).requires_grad_() for g in grads]
        for p, g in zip(params, grads):
            p.grad = g
        total = rushlight.nn.utils.clip_grad_norm_(params, 1.5, order)
        return total.item(), [p.grad.numpy() for p in params]

    total, found = clipped([rushlight.tensor(a) for a in arrays])
    wanted = np.linalg.norm(np.concatenate([a.reshape(-1).astype(np.float64) for a in arrays]), order)
    assert total == pytest.approx(wanted, rel=1e-6 if dtype == np.float32 else 1e-12)
    for a, b in zip(arrays, found):
        np.testing.assert_allclose(b, a * (1.5 / (wanted + 1e-6)), rtol=2e-6 if dtype == np.float32 else 1e-12)
    scattered = [rushlight.tensor(np.repeat(a[..., None], 2, -1))[..., 0] for a in arrays]  # views, with gaps
    for a, b in zip(found, clipped(scattered)[1]):
        np.testing.assert_allclose(a, b, rtol=2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axis"), [((40, 1000), 1), ((1000, 40), 0), ((33, 7, 300), 1), ((70_000,), 0)])
def test_products_of_all_others(shape, axis, dtype, threads):
    x = 1 + numbers(*shape, dtype=dtype) / 50
    x.reshape(-1)[::97] = 0
    leaf = rushlight.tensor(x).requires_grad_()
    out = leaf.prod(axis)
    out.backward(rushlight.ones_like(out))
    rows = np.moveaxis(x.astype(np.float64), axis, -1)
    before = np.cumprod(np.concatenate([np.ones((*rows.shape[:-1], 1)), rows[..., :-1]], -1), -1)
    after = np.cumprod(np.concatenate([np.ones((*rows.shape[:-1], 1)), rows[..., :0:-1]], -1), -1)[..., ::-1]
    wanted = np.moveaxis(before * after, -1, axis)
    np.testing.assert_allclose(leaf.grad.numpy(), wanted, rtol=5e-7 if dtype == np.float32 else 1e-12)


def test_copies_back_to_front(threads):
    x = numbers(300, 5, 77)
    for axes in ((0,), (2,), (1, 2), (0, 1, 2)):
        np.testing.assert_array_equal(rushlight.tensor(x).flip(axes).numpy(), np.flip(x, axes))
    pair = [rushlight.tensor(x), rushlight.tensor(x + 1)]
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(rushlight.stack(pair, axis).numpy(), np.stack([x, x + 1], axis))
    np.testing.assert_array_equal(pair[0].repeat_interleave(3, 1).numpy(), np.repeat(x, 3, 1))


@pytest.mark.parametrize("shape", [(1, 300, 1, 301), (300, 1, 301), (1, 1, 70_000)])
def test_sums_over_axes_of_one_element(shape, threads):
    x = numbers(*shape)
    for axis in (None, (0,), (0, 2), (1, 2), (0, 1), (2,)):
        for keepdims in (False, True):
            found = sums.reduce(x, axis, None, None, keepdims)
            wanted = x.astype(np.float64).sum(axis, keepdims=keepdims)
            assert np.shape(found) == np.shape(wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


# -- gradients of what was picked --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("axis, start, step", [(0, 3, 1), (1, 0, 2), (1, 7, 3)])
def test_zeros_with_a_slice_in_them(axis, start, step, dtype, threads):
    x = (9 * numbers(300, 170)).astype(dtype)
    static = dict(axis=axis, start=start, length=600, step=step)
    found, expected = [f(namespace, x, **static) for f in (namespace.BODIES["embed_slice"], FORWARDS["embed_slice"])]
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == dtype and found.strides == expected.strides


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_zeros_with_something_added_at_indices(rows, threads):
    shape, rng = (11, 12, 13), np.random.default_rng(0)
    indices = [rng.integers(0, n, 4000) for n in shape[:rows]]
    x = numbers(4000, *shape[rows:])
    found, expected = [
        f(namespace, x, *indices, shape=shape) for f in (namespace.BODIES["add_at_zeros"], FORWARDS["add_at_zeros"])
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def test_large_gradients_that_meet(threads):
    x = rushlight.tensor(numbers(400, 300), requires_grad=True)
    y = x * 2
    (y + y.exp() + y.sin() * 3).sum().backward()
    expected = 2 * (1 + np.exp(2 * x.detach().numpy()) + 3 * np.cos(2 * x.detach().numpy()))
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5, atol=1e-5)
