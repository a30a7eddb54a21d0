"""Fused NumPy bodies of activations, softmax and norms: equal to the plain rules, in pieces of any size, on threads.

Where the kernels in C are there, they are what is tested; ``RUSHLIGHT_KERNELS=0`` leaves NumPy's bodies.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.engine import native, special
from rushlight.engine.numpy import namespace as engine
from rushlight.engine.numpy.kernels import activations, parallel, softmax
from rushlight.nn import functional as F
from rushlight.ops import activation as ops

TOLERANCE = {"float32": {"rtol": 3e-6, "atol": 1e-6}, "float64": {"rtol": 1e-12, "atol": 1e-14}}
ACTIVATIONS = {
    "relu": (ops.relu, {}),
    "sigmoid": (ops.sigmoid, {}),
    "silu": (ops.silu, {}),
    "gelu": (ops.gelu, {"approximate": "none"}),
    "gelu, tanh": (ops.gelu, {"approximate": "tanh"}),
    "leaky_relu": (ops.leaky_relu, {"negative_slope": 0.1}),
    "hardtanh": (ops.hardtanh, {"low": -1.5, "high": 2}),
    "hardsigmoid": (ops.hardsigmoid, {}),
    "hardswish": (ops.hardswish, {}),
    "elu": (ops.elu, {"alpha": 1.3, "scale": 1.1, "input_scale": 0.7}),
    "elu, growing": (ops.elu, {"alpha": -2.0, "scale": 1.0, "input_scale": -0.5}),
    "softplus": (ops.softplus, {"beta": 2.0, "threshold": 5.0}),
    "log_sigmoid": (ops.log_sigmoid, {}),
    "mish": (ops.mish, {}),
}
SHAPES = [(7, 30), (0, 3), (), (211,)]


@pytest.fixture(params=[None, 1 << 17, 50, 1])  # as it is; all at once; several pieces; each element or row by itself
def block(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(parallel, "BLOCK", request.param)
        monkeypatch.setattr(softmax, "_FEW", 0)


def _values(shape, dtype="float64", seed=0, scale=3.0):
    return np.asarray(np.random.default_rng(seed).normal(0, scale, shape)).astype(dtype)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
def test_activations_equal_their_rules(name, dtype, shape, block):
    function, static = ACTIVATIONS[name]
    array, g = _values(shape, dtype), _values(shape, dtype, 1)
    x = rushlight.tensor(array).requires_grad_()
    y = function(x, **static)
    y.backward(rushlight.tensor(g))
    if native.library is not None:  # which are closer to the truth than the rule in float32
        array, g = array.astype(np.float64), g.astype(np.float64)
    expected = function.op.forward(_Plain, array, **static)
    np.testing.assert_allclose(y.detach().numpy(), expected, **TOLERANCE[dtype])
    rule = function.op.rules["x"]
    known = {"x": array, "y": expected, **static}
    slope = rule.function(_Plain, g, *[known[name] for name in rule.needs])
    np.testing.assert_allclose(x.grad.numpy(), slope, **TOLERANCE[dtype])


class _Plain:
    """NumPy as it is, with what it lacks in the precision of float64."""

    maximum, minimum, where, exp, tanh, conj = np.maximum, np.minimum, np.where, np.exp, np.tanh, np.conj
    abs, expm1, log1p, logaddexp = np.abs, np.expm1, np.log1p, np.logaddexp

    @staticmethod
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    @staticmethod
    def erf(x):
        return special.erf(np.asarray(x, np.float64)).astype(x.dtype)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_arrays_that_do_not_lie_in_order(name, monkeypatch):
    monkeypatch.setattr(parallel, "BLOCK", 16)
    function, static = ACTIVATIONS[name]
    results = []
    for order in (lambda t: t.contiguous(), lambda t: t):
        x = order(rushlight.tensor(_values((9, 8))).T).detach().requires_grad_()
        y = function(x, **static)
        y.backward(order(rushlight.tensor(_values((9, 8), seed=1)).T))
        results.append((y.tolist(), x.grad.tolist()))
        assert name == "log_sigmoid" or y.stride() == x.stride()  # PyTorch's is in order, too
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["silu", "sigmoid"])
def test_complex_activations_have_conjugate_slopes(name, block):
    x = (rushlight.randn(40, dtype=rushlight.complex128) * 2).requires_grad_()
    assert rushlight.autograd.gradcheck(ACTIVATIONS[name][0], [x])


def test_activations_far_out():
    x = rushlight.tensor([-1e30, -200.0, -10.0, 0.0, 200.0, 1e30, float("inf"), float("nan")], requires_grad=True)
    y = F.gelu(x)
    y[:-2].sum().backward()
    np.testing.assert_allclose(y.tolist(), [0, 0, 0, 0, 200, np.float32(1e30), np.inf, np.nan], atol=1e-20)
    np.testing.assert_allclose(x.grad[:6].tolist(), [0, 0, 0, 0.5, 1, 1], atol=1e-20)
    x = x.detach().requires_grad_()
    F.silu(x)[:-2].sum().backward()
    np.testing.assert_allclose(x.grad[:6].tolist(), [0, 0, -4.085e-4, 0.5, 1, 1], rtol=1e-3)


@pytest.mark.parametrize("size", [8, 1000])
def test_relu_keeps_nan_and_does_not_multiply_by_zero(size, monkeypatch):
    monkeypatch.setattr(parallel, "BLOCK", 100)
    x = rushlight.full((size,), -1.0)
    x[:4] = rushlight.tensor([float("nan"), float("inf"), -float("inf"), 2.0])
    x.requires_grad_()
    y = rushlight.relu(x)
    y.backward(rushlight.full((size,), float("inf")))
    np.testing.assert_array_equal(y[:5].tolist(), [np.nan, np.inf, 0, 2, 0])
    assert x.grad[:5].tolist() == [np.inf, np.inf, 0, np.inf, 0]


def test_single_precision_erf_and_gelu_are_accurate():
    x = np.linspace(-6, 6, 100_001).astype(np.float32)
    wide = x.astype(np.float64)
    assert np.abs(special.erf(x) / np.where(x == 0, 1, special.erf(wide)) - (x != 0)).max() < 4e-7
    normal = 0.5 * wide * (1 + special.erf(wide * np.sqrt(0.5)))
    assert np.abs(engine.BODIES["gelu"](engine, x, approximate="none") - normal).max() < 1e-6


@pytest.mark.parametrize("mask_shape", [(6, 5, 4), (6, 5, 1)])
def test_dropout_in_pieces(mask_shape, block):
    x, mask = _values((6, 5, 4)), np.random.default_rng(1).random(mask_shape) < 0.5
    y = engine.BODIES["native_dropped"](engine, x, mask, scale=2.0)
    np.testing.assert_array_equal(y, x * mask * 2)
    (gx, _) = engine.BACKWARD["native_dropped"](x, None, {"mask": mask, "scale": 2.0})
    np.testing.assert_array_equal(gx, y)


# -- softmax -----------------------------------------------------------------------------------------------------------


def _plain_softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("shape, axis", [((6, 7), 1), ((6, 7), 0), ((3, 5, 4), 1), ((3, 5, 4), -1), ((9,), 0), ((), 0)])
@pytest.mark.parametrize("shift", [0.0, 500.0, -500.0])  # where exp alone would do, and where it would not
def test_softmax_equals_the_formula(shape, axis, shift, block):
    x, g = _values(shape) + shift, _values(shape, seed=1)
    x, g = np.asarray(x), np.asarray(g)
    axis_ = axis if shape else None
    y = _plain_softmax(x, axis_)
    close = {"rtol": 1e-11, "atol": 1e-13}
    np.testing.assert_allclose(softmax.softmax(x, axis), y, **close)
    np.testing.assert_allclose(softmax.log_softmax(x, axis), np.log(y), **close)
    np.testing.assert_allclose(
        softmax.softmax_backward_data(g, y, axis), y * (g - (g * y).sum(axis_, keepdims=True)), **close
    )
    np.testing.assert_allclose(
        softmax.log_softmax_backward_data(g, np.log(y), axis), g - y * g.sum(axis_, keepdims=True), **close
    )


def test_softmax_of_masked_and_of_very_different_rows(block):
    inf = np.inf
    x = np.array([[0.0, -inf, 1.0], [-1e4, -1e4, -1e4 + 1], [90.0, 0.0, 90.0], [-inf, -inf, -inf], [np.nan, 0, 1]])
    got = softmax.softmax(x.astype(np.float32), 1)
    np.testing.assert_allclose(got[:3], _plain_softmax(x[:3], 1), rtol=1e-6, atol=1e-30)
    assert np.isnan(got[3:]).all()


def test_softmax_of_a_number():
    x = rushlight.tensor(3.0, requires_grad=True)
    assert F.softmax(x, 0).item() == 1
    F.log_softmax(x, 0).backward()
    assert x.grad.item() == 0


@pytest.mark.parametrize("shape, axis", [((0, 3), 1), ((3, 0), 1), ((2, 0, 3), 2), ((2, 0, 3), 1)])
def test_softmax_of_nothing(shape, axis):
    for function in (softmax.softmax, softmax.log_softmax):
        assert function(np.zeros(shape), axis).shape == shape


# -- threads -----------------------------------------------------------------------------------------------------------

LAYERS = {
    "layer norm": (nn.LayerNorm(40), (64, 40)),
    "group norm": (nn.GroupNorm(2, 6), (16, 6, 5, 5)),
    "batch norm": (nn.BatchNorm2d(6), (16, 6, 5, 5)),
    "rms norm": (nn.RMSNorm(40), (64, 40)),
    "gelu": (nn.GELU(), (64, 40)),
    "softmax": (nn.Softmax(1), (64, 40)),
    "depthwise": (nn.Conv2d(6, 6, 3, groups=6), (16, 6, 5, 5)),
}


def _step(layer, shape):
    x = rushlight.tensor(_values(shape, "float32")).requires_grad_()
    y = layer(x)
    leaves = [x, *layer.parameters()]
    return [y.detach(), *rushlight.autograd.grad(y, leaves, rushlight.tensor(_values(y.shape, "float32", 1)))]


@pytest.mark.parametrize("name", LAYERS)
def test_the_number_of_threads_changes_nothing(name, monkeypatch):
    monkeypatch.setattr(parallel, "BLOCK", 200)
    layer, shape = LAYERS[name]
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(parallel, "_threads", lambda threads=threads: threads)
        results.append([t.tolist() for t in _step(layer, shape)])
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["layer norm", "batch norm", "softmax"])
def test_layers_called_from_several_threads(name, monkeypatch):
    monkeypatch.setattr(parallel, "BLOCK", 200)
    monkeypatch.setattr(parallel, "_threads", lambda: 2)
    layer, shape = LAYERS[name]
    expected, found = [t.tolist() for t in _step(layer, shape)], []
    workers = [
        threading.Thread(target=lambda: found.append([t.tolist() for t in _step(layer, shape)])) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [expected] * 4


@pytest.mark.parametrize("offset", [0.0, 1e4, -3e5])
@pytest.mark.parametrize("name", ["layer norm", "group norm", "batch norm"])
def test_norms_of_numbers_far_from_zero(name, offset, monkeypatch):
    """Variances are not differences of large numbers."""
    monkeypatch.setattr(parallel, "BLOCK", 200)
    layer, shape = LAYERS[name]
    x = (np.random.default_rng(0).integers(-8, 9, shape) + offset).astype(np.float32)  # exact at every offset
    got = layer(rushlight.tensor(x)).detach().numpy()
    centred = layer.double()(rushlight.tensor((x - np.float32(offset)).astype(np.float64))).detach().numpy()
    layer.float()
    np.testing.assert_allclose(got, centred, rtol=1e-3, atol=0.01 if offset else 1e-5)


@pytest.mark.parametrize("count, size", [(1, 1), (7, 3), (100, 1), (5, 1000), (0, 4), (4, 0)])
def test_pieces_cover_everything_once(count, size, block):
    seen = np.zeros(count, int)

    def work(start, stop):
        seen[start:stop] += 1

    parallel.rows(count, size, work)
    assert (seen == 1).all()


def test_buffers_are_put_back():
    before = np.getbufsize()
    with pytest.raises(RuntimeError), parallel.direct():
        raise RuntimeError
    assert np.getbufsize() == before


def test_every_fused_backward_belongs_to_an_op():
    names = {**activations.BACKWARD, **engine.BACKWARD}
    assert all(hasattr(ops.op.__globals__["differentiable"], name) for name in names)
