"""Element-wise operators and special functions, without PyTorch: gradients of two orders, both engines, accuracy."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

import rushlight
from rushlight.autograd import gradcheck, gradgradcheck

UNARY = {
    # name: (low, high) of arguments where the function is smooth
    "abs": (0.2, 2),
    "acos": (-0.9, 0.9),
    "acosh": (1.2, 3),
    "angle": (0.2, 2),
    "asin": (-0.9, 0.9),
    "asinh": (-2, 2),
    "atan": (-2, 2),
    "atanh": (-0.9, 0.9),
    "cos": (-2, 2),
    "cosh": (-2, 2),
    "deg2rad": (-2, 2),
    "digamma": (0.5, 4),
    "erf": (-2, 2),
    "erfc": (-2, 2),
    "erfinv": (-0.9, 0.9),
    "exp": (-2, 2),
    "exp2": (-2, 2),
    "expm1": (-2, 2),
    "frac": (0.1, 0.9),
    "i0": (-2, 2),
    "lgamma": (0.5, 4),
    "log": (0.2, 3),
    "log10": (0.2, 3),
    "log1p": (0.2, 3),
    "log2": (0.2, 3),
    "logit": (0.1, 0.9),
    "nan_to_num": (-2, 2),
    "neg": (-2, 2),
    "rad2deg": (-2, 2),
    "reciprocal": (0.3, 2),
    "rsqrt": (0.3, 2),
    "sigmoid": (-3, 3),
    "sin": (-2, 2),
    "sinc": (0.2, 2),
    "sinh": (-2, 2),
    "sqrt": (0.3, 2),
    "square": (-2, 2),
    "tan": (-1, 1),
    "tanh": (-2, 2),
    "special.entr": (0.2, 2),
    "special.erfcx": (-1, 2),
    "special.i0e": (0.2, 2),
    "special.i1": (0.2, 2),
    "special.i1e": (0.2, 2),
    "special.log_ndtr": (-2, 2),
    "special.ndtr": (-0.9, 2),
    "special.ndtri": (0.1, 0.9),
}
BINARY = [
    "add",
    "atan2",
    "copysign",
    "div",
    "float_power",
    "fmax",
    "fmin",
    "fmod",
    "hypot",
    "ldexp",
    "logaddexp",
    "logaddexp2",
    "maximum",
    "minimum",
    "mul",
    "pow",
    "remainder",
    "rsub",
    "sub",
    "xlogy",
    "special.xlog1py",
]
COMPLEX = [
    "abs",
    "acos",
    "acosh",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "conj_physical",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "rsqrt",
    "sgn",
    "sigmoid",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "view_as_real",
]


def function(name):
    owner = rushlight
    for part in name.split("."):
        owner = getattr(owner, part)
    return owner


def leaf(low, high, seed=0, shape=(2, 3)):
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return rushlight.tensor(values, requires_grad=True)


@pytest.mark.parametrize("name", UNARY)
def test_unary_gradients_of_two_orders(name):
    x = leaf(*UNARY[name])
    assert gradcheck(function(name), (x,))
    assert gradgradcheck(function(name), (x,))


@pytest.mark.parametrize("name", BINARY)
def test_binary_gradients_of_two_orders(name):
    x, w = leaf(0.5, 2), leaf(0.5, 2, seed=1, shape=(3,))
    assert gradcheck(function(name), (x, w))
    assert gradgradcheck(function(name), (x, w))


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_gradients_of_two_orders(name):
    rng = np.random.default_rng(0)
    z = rushlight.tensor(rng.uniform(0.2, 0.8, (2, 2)) + 1j * rng.uniform(0.2, 0.8, (2, 2)), requires_grad=True)
    assert gradcheck(function(name), (z,))
    assert gradgradcheck(function(name), (z,))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w, v: rushlight.addcmul(x, w, v, value=2.5),
        lambda x, w, v: rushlight.addcdiv(x, w, v, value=2.5),
        rushlight.lerp,
        lambda x, w, v: rushlight.clamp(x, w, v),
        lambda x, w, v: rushlight.where(x > w, w, v) + x,
        lambda x, w, v: rushlight.polar(x, w) * v,
        lambda x, w, v: rushlight.complex(x, w).imag * v,
        lambda x, w, v: x.masked_fill(w > 1, 3.0) * v,
    ],
)
def test_ternary_gradients_of_two_orders(f):
    arguments = leaf(0.5, 2), leaf(0.5, 2, seed=1), leaf(0.5, 2, seed=2)
    assert gradcheck(f, arguments)
    assert gradgradcheck(f, arguments)


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_xla_agrees_with_numpy(name):
    jnp = pytest.importorskip("jax.numpy")
    importlib.import_module("rushlight.engine.xla.namespace")  # switches JAX's 64-bit types on
    low, high = UNARY.get(name, (0.5, 2))
    arguments = [leaf(low, high, seed).detach() for seed in range(1 if name in UNARY else 2)]
    found = []
    for on in (np.asarray, jnp.asarray):
        xs = _placed(arguments, on)
        y = function(name)(*xs)
        (g, *_) = rushlight.autograd.grad(y.sum(), xs, create_graph=True)
        second = rushlight.autograd.grad(g.sum(), xs, allow_unused=True)[0] if g.requires_grad else g
        found.append([np.asarray(t._array) for t in (y, g) + (() if second is None else (second,))])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def _placed(arguments, on):
    from rushlight.tensor import wrap

    return [wrap(on(a._array)).requires_grad_() for a in arguments]


def test_equal_elements_share_the_gradient_of_maximum():
    x, y = rushlight.tensor([1.0, 2.0, 3.0], requires_grad=True), rushlight.tensor([1.0, 5.0, 0.0], requires_grad=True)
    rushlight.maximum(x, y).sum().backward()
    assert x.grad.tolist() == [0.5, 0.0, 1.0]
    assert y.grad.tolist() == [0.5, 1.0, 0.0]


def test_gradients_at_corners():
    x = rushlight.tensor([0.0, -2.0, 2.0], requires_grad=True)
    assert rushlight.autograd.grad(x.abs().sum(), x)[0].tolist() == [0.0, -1.0, 1.0]
    assert rushlight.autograd.grad((x**0).sum(), x)[0].tolist() == [0.0, 0.0, 0.0]
    assert rushlight.autograd.grad((x**2).sum(), x)[0].tolist() == [0.0, -4.0, 4.0]
    assert rushlight.autograd.grad(x.clamp(-1, 2).sum(), x)[0].tolist() == [1.0, 0.0, 1.0]
    w = rushlight.tensor([2.0, 0.0], requires_grad=True)
    zero = rushlight.tensor([0.0, 0.0])
    assert rushlight.autograd.grad((zero**w).sum(), w)[0].tolist() == [0.0, 0.0]


def test_a_failed_operation_changes_nothing():
    x = rushlight.tensor([1, 2, 3])
    with pytest.raises(RuntimeError, match="result type Float can't be cast"):
        x.add_(0.5)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x.floor_divide_(0)
    assert x.tolist() == [1, 2, 3] and x._version == 0


def test_real_and_imag_write_through():
    z = rushlight.tensor([1 + 2j, 3 + 4j])
    z.real[0] = 10.0
    z.imag = rushlight.tensor([5.0, 6.0])
    assert z.tolist() == [10 + 5j, 3 + 6j]
    assert rushlight.view_as_real(z).tolist() == [[10.0, 5.0], [3.0, 6.0]]


def test_sigmoid_keeps_its_tail():
    """A tanh-based sigmoid would round to 0 here."""
    assert rushlight.sigmoid(rushlight.tensor([-20.0])).item() == pytest.approx(2.0611537e-09, rel=1e-6)


# From mpmath, 60 digits: far tails and both sides of every switch between two series.
KNOWN = {
    "erfc": {
        5.0: 1.537459794428035e-12,
        25.0: 8.300172571196523e-274,
        -1.0: 1.8427007929497148,
        0.25: 0.7236736098317631,
        0.75: 0.28884436634648486,
    },
    "special.erfcx": {30.0: 0.01879588886141675, -3.0: 16205.988853999586, 0.0: 1.0},
    "erfinv": {1e-12: 8.86226925452758e-13, 0.999999999: 4.320005388105362, 0.5: 0.4769362762044699},
    "special.ndtri": {1e-300: -37.0470962993612, 0.975: 1.9599639845400538},
    "special.log_ndtr": {-40.0: -804.6084420137538, 0.0: -0.6931471805599453, 3.0: -0.0013508099647481938},
    "lgamma": {
        0.5: 0.5723649429247001,
        100.0: 359.1342053695754,
        -2.5: -0.056243716497674054,
        1e-05: 11.512919692895826,
    },
    "digamma": {1.0: -0.5772156649015329, 50.0: 3.901989673427892, -1.5: 0.7031566406452432},
    "special.bessel_j0": {7.875: 0.19978864744709898, 8.25: 0.10920747150610137, 30.0: -0.08636798358104021},
    "special.bessel_y1": {0.5: -1.471472392670243, 8.25: -0.0939944870646345},
    "special.modified_bessel_k0": {2.0: 0.11389387274953344, 0.125: 2.20786908674497, 2.25: 0.08404311197465811},
    "special.airy_ai": {
        0.0: 0.3550280538878172,
        2.25: 0.023654658557747447,
        -5.25: 0.21900944784501322,
        10.0: 1.1047532552898686e-10,
    },
    "i0": {7.5: 268.16131151518937, 20.0: 43558282.559553534},
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_values(name):
    for x, expected in KNOWN[name].items():
        double = function(name)(rushlight.tensor([x], dtype=rushlight.float64))
        assert double.item() == pytest.approx(expected, rel=5e-14), x
        if abs(expected) > 1e-30 and x == float(np.float32(x)):
            single = function(name)(rushlight.tensor([x]))
            assert single.dtype is rushlight.float32
            assert single.item() == pytest.approx(expected, rel=1e-6), x


def test_special_functions_on_many_blocks_and_broadcasts():
    x = rushlight.linspace(0.1, 5, 10007, dtype=rushlight.float64)
    whole = rushlight.lgamma(x)
    assert whole[::1000].tolist() == rushlight.lgamma(x[::1000]).tolist()
    a = rushlight.tensor([[0.5], [2.0]], dtype=rushlight.float64)
    total = rushlight.igamma(a, x) + rushlight.igammac(a, x)
    assert total.shape == (2, 10007) and rushlight.allclose(total, rushlight.ones_like(total), rtol=1e-13)


@pytest.mark.parametrize("action", ["error", "always"])
def test_nobody_hears_numpy_of_what_is_computed_here(action):
    """Whatever filter the user sets, and whenever; of the user's own NumPy it hides nothing."""
    x = rushlight.tensor([2.0, float("inf")], requires_grad=True)
    with warnings.catch_warnings(record=True) as heard:
        warnings.resetwarnings()
        warnings.simplefilter(action)
        for f in (rushlight.asin, rushlight.sinc, rushlight.fft.fft, lambda t: t.outer(t).det(), lambda t: t - t):
            y = f(x)
            y.abs().sum().backward()
            assert not rushlight.isfinite(y.detach()).all()
        assert heard == []
        with pytest.raises(RuntimeWarning) if action == "error" else pytest.warns(RuntimeWarning, match="arcsin"):
            np.arcsin(np.float32(2))
