"""Fused NumPy bodies of activations and dropout, a piece at a time."""

from __future__ import annotations

import math

import numpy as np

from ...special import erf
from ...special_tables import GELU_SINGLE
from . import chains, copies, parallel
from .select import BITS, choose, where

_ROOT_HALF, _DENSITY = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)
_TANH_SCALE, _TANH_CUBE = math.sqrt(2 / math.pi), 0.044715

BODIES: dict = {}
BACKWARD: dict = {}


def _constants(value):
    """``value`` as an array of each dtype: to a ufunc that is half the work of a Python number."""
    return {dtype: np.array(value, dtype) for dtype in map(np.dtype, "bBhHiIlLqQefdFD")}


_ZERO, _ONE = _constants(0), _constants(1)


# -- relu, sigmoid, silu -----------------------------------------------------------------------------------------------


def _relu(xp, x):
    if x.size <= parallel.BLOCK or x.dtype.kind != "f":
        return np.maximum(x, _ZERO[x.dtype])
    return parallel.like(lambda out, x: np.clip(x, 0, np.inf, out=out), x)  # a third of what maximum takes


def _relu_backward(g, edges, saved):
    y, bits = saved["y"], BITS.get(g.dtype.itemsize)
    if g.size <= parallel.BLOCK or bits is None or y.dtype != g.dtype:
        return (where(np.less_equal(y, 0), 0.0, g),)
    zero = np.zeros((), bits)
    return (parallel.like(lambda out, y, g: choose(out.view(bits), y <= 0, zero, g.view(bits)), y, g),)


def sigmoid(x):
    if x.size > parallel.BLOCK:
        return parallel.like(_sigmoid, x)
    return _of_negative(np.asarray(np.negative(x)))


def _sigmoid(out, x):
    _of_negative(np.negative(x, out))


def _of_negative(y):
    """1 / (1 + exp(y)) in place; exp may overflow to inf, which ends as 0."""
    np.exp(y, y)
    np.add(y, _ONE[y.dtype], y)
    return np.reciprocal(y, y)


def _sigmoid_slope(out, y, g):
    np.subtract(1, y, out=out)
    out *= y
    _times(out, g)


def _silu(out, x):
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += 1
    np.divide(x, out, out=out)


def _silu_slope(out, x, g):
    s = np.empty_like(x)
    _sigmoid(s, x)
    np.subtract(1, s, out=out)
    out *= x
    out += 1
    out *= s
    _times(out, g)


def _times(slope, g):
    if slope.dtype.kind == "c":
        np.conjugate(slope, out=slope)
    slope *= g


BODIES["relu"], BACKWARD["relu"] = _relu, _relu_backward
BODIES["silu"] = lambda xp, x: parallel.like(_silu, x)
BACKWARD["silu"] = lambda g, edges, saved: (parallel.like(_silu_slope, saved["x"], g),)
BACKWARD["sigmoid"] = lambda g, edges, saved: (parallel.like(_sigmoid_slope, saved["y"], g),)


# -- gelu --------------------------------------------------------------------------------------------------------------


def _gelu(xp, x, *, approximate):
    return parallel.like(_exact if approximate == "none" else _tanh, x)


def _exact(out, x):
    t = _exact_inner(x, x * x)
    t += 1
    t *= x
    np.multiply(t, 0.5, out=out)


def _tanh(out, x):
    np.multiply(_half_of_one_plus_tanh(x, x * x), x, out=out)


def _gelu_backward(g, edges, saved):
    slope = _exact_slope if saved["approximate"] == "none" else _tanh_slope
    return (parallel.like(slope, saved["x"], g),)


def _exact_slope(out, x, g):
    square = x * x
    t = _exact_inner(x, square)
    t += 1
    t *= 0.5
    square *= -0.5
    density = np.exp(square, out=square)
    density *= x
    density *= _DENSITY
    t += density
    np.multiply(t, g, out=out)


def _tanh_slope(out, x, g):
    square = x * x
    s = _half_of_one_plus_tanh(x, square)
    square *= 3 * _TANH_CUBE * (2 * _TANH_SCALE)
    square += 2 * _TANH_SCALE
    square *= x
    square *= s
    square *= 1 - s
    s += square
    np.multiply(s, g, out=out)


def _exact_inner(x, square):
    """erf(x / √2); in single precision tanh of x times a function of x², a fraction that is quick to compute."""
    if x.dtype != np.float32:
        return erf(x * _ROOT_HALF)
    a, b, c, d, e, f = GELU_SINGLE  # a + b x² + c / (x² + d + e / (x² + f))
    t = square + f
    np.divide(e, t, out=t)
    t += square
    t += d
    np.divide(c, t, out=t)
    t += square * b
    t += a
    t *= x
    return np.tanh(t, out=t)


def _half_of_one_plus_tanh(x, square):
    """The same as a sigmoid, which keeps its digits where tanh is near -1."""
    t = square * (-2 * _TANH_CUBE * _TANH_SCALE)
    t -= 2 * _TANH_SCALE
    t *= x
    return _of_negative(t)


BODIES["gelu"], BACKWARD["gelu"] = _gelu, _gelu_backward


# -- gates -------------------------------------------------------------------------------------------------------------


def _gate(xp, a, b):
    return a * xp.sigmoid(b)


def _gate_slope(xp, g, a, b):
    s = xp.sigmoid(b)
    return g * a * s * (1.0 - s)


def _glu_backward(g, edges, saved):
    """Both halves by the library; None where that does not serve."""
    a, b = np.split(saved["x"], 2, saved["axis"])
    parts = (
        [chains.evaluated(_gate, (g, b), {}), chains.evaluated(_gate_slope, (g, a, b), {})]
        if g.size >= chains.WORTH
        else [None]
    )
    return None if any(part is None for part in parts) else (copies.joined(parts, saved["axis"]),)


def _glu(xp, x, *, axis):
    a, b = np.split(x, 2, axis)
    found = chains.evaluated(_gate, (a, b), {}) if a.size >= chains.WORTH else None
    return a * xp.sigmoid(b) if found is None else found


BODIES["glu"], BACKWARD["glu"] = _glu, _glu_backward


# -- dropout -----------------------------------------------------------------------------------------------------------


def _dropped(x, mask, scale):
    def fill(out, x, mask):
        np.multiply(x, mask, out=out)
        out *= scale

    return parallel.like(fill, x, np.broadcast_to(mask, x.shape))


BODIES["native_dropped"] = lambda xp, x, mask, *, scale: _dropped(x, mask, scale)
BACKWARD["native_dropped"] = lambda g, edges, saved: (_dropped(g, saved["mask"], saved["scale"]), None)
