"""Activation functions: each one op, with PyTorch's derivative where it has a kink."""

from __future__ import annotations

import math

import numpy as np

from .. import dtypes
from ..autograd.op import differentiable, op
from ..tensor import Tensor
from .common import check_tensor, dtype_of, refuse, unary
from .public import public

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
_ROOT_HALF, _ROOT_2_PI = math.sqrt(0.5), math.sqrt(2 * math.pi)
_TANH_SCALE, _TANH_CUBE = math.sqrt(2 / math.pi), 0.044715


def floats_only(kernel):
    """A ``check`` that refuses, as PyTorch's CPU kernel of that name does, what is no floating point array."""
    return lambda x, *_: refuse(kernel, lambda d: not d.is_floating_point, x)


# -- sigmoid, relu: also methods of Tensor -----------------------------------------------------------------------------


@op(promote="float", x=lambda xp, g, y: g * xp.conj(y * (1.0 - y)))
def sigmoid(xp, x):
    """1 / (1 + exp(-x))."""
    return xp.sigmoid(x)


def _not_bool(x):
    if dtype_of(x) is dtypes.bool_:
        raise RuntimeError("Boolean inputs not supported for relu")
    if dtype_of(x).is_complex:
        raise NotImplementedError("clamp is not supported for complex types")


@op(check=_not_bool, x=lambda xp, g, y: xp.where(y <= 0, 0.0, g))
def relu(xp, x):
    """max(x, 0)."""
    return xp.maximum(x, 0)


def _logit_rule(xp, g, x, eps):
    slope = g / (x * (1 - x))
    if eps is None:
        return xp.where((x < 0) | (x > 1), math.nan, slope)
    return xp.where((x >= eps) & (x <= 1 - eps), slope, 0.0)


@op(promote="float", takes="real", x=_logit_rule)
def logit_(xp, x, *, eps):
    if eps is not None:  # the lower bound first, also where it is the larger one
        x = xp.where(x < eps, eps, xp.where(x > 1 - eps, 1 - eps, x))
    return xp.log(x / (1 - x))


unary(sigmoid)
unary(relu)


@public(inplace=True)
def logit(input, eps=None):
    """``log(input / (1 - input))``, the inverse of sigmoid; input clamped to [eps, 1 - eps] if eps is given."""
    return logit_(input, eps=eps)


# -- linear pieces -----------------------------------------------------------------------------------------------------


@op(
    check=floats_only("leaky_relu_cpu"),
    x=lambda xp, g, x, negative_slope: xp.where(x > 0, g, g * negative_slope),
)
def leaky_relu(xp, x, *, negative_slope):
    return xp.where(x > 0, x, x * negative_slope)


@op(
    node="PreluKernelBackward0",
    check=floats_only("prelu_cpu"),
    x=lambda xp, g, x, w: xp.where(x > 0, g, g * w),
    w=lambda xp, g, x: xp.where(x > 0, 0.0, g * x),
)
def prelu_kernel(xp, x, w):
    return xp.where(x > 0, x, x * w)


@op(
    node="RreluWithNoiseBackward0",
    check=floats_only("rrelu_with_noise_out_cpu"),
    x=lambda xp, g, noise: g * noise,
)
def rrelu_with_noise(xp, x, noise):
    """``x * noise``; noise is 1 where x is positive."""
    return x * noise


def _check_hardtanh(x):
    d = dtype_of(x)
    if d.name == "bool":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if d.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")


@op(
    check=_check_hardtanh,
    x=lambda xp, g, x, low, high: xp.where((x <= low) | (x >= high), 0.0, g),
)
def hardtanh(xp, x, *, low, high):
    return xp.minimum(xp.maximum(x, low), high)


@op(
    check=floats_only("hardsigmoid_cpu"),
    x=lambda xp, g, x: xp.where((x > -3) & (x < 3), g / 6, 0.0),
)
def hardsigmoid(xp, x):
    return xp.minimum(xp.maximum(x + 3, 0), 6) / 6


@op(
    check=floats_only("hardswish_cpu"),
    x=lambda xp, g, x: xp.where(x <= -3, 0.0, xp.where(x < 3, g * (x / 3 + 0.5), g)),
)
def hardswish(xp, x):
    return x * xp.minimum(xp.maximum(x + 3, 0), 6) / 6


@op(
    check=floats_only("hardshrink_cpu"),
    x=lambda xp, g, x, lambd: xp.where((x >= -lambd) & (x <= lambd), 0.0, g),
)
def _hardshrink(xp, x, *, lambd):
    return xp.where((x >= -lambd) & (x <= lambd), 0.0, x)


@op(
    check=floats_only("softshrink_check"),
    x=lambda xp, g, x, lambd: xp.where((x >= -lambd) & (x <= lambd), 0.0, g),
)
def softshrink(xp, x, *, lambd):
    # x * 0 keeps NaN and the sign of zero, as PyTorch's does.
    return xp.where(x > lambd, x - lambd, xp.where(x < -lambd, x + lambd, x * 0.0))


def _check_threshold(x):
    refuse("threshold_cpu", lambda d: d.is_complex or d.name == "bool", x)


@op(check=_check_threshold, x=lambda xp, g, x, limit: xp.where(x <= limit, 0.0, g))
def threshold(xp, x, *, limit, value):
    value = np.asarray(value.real if isinstance(value, complex) else value).astype(x.dtype)
    return xp.where(x <= limit, value, x)


# -- exponentials ------------------------------------------------------------------------------------------------------


def _elu_rule(xp, g, x, alpha, scale, input_scale):
    # exp of what is positive could overflow, and 0 times that is no number. Where x is 0 the slope has none itself.
    slope = (alpha * scale * input_scale) * xp.exp(xp.where(x < 0, x, 0.0) * input_scale)
    return xp.where(x <= 0, g * slope, g * scale)


@op(check=floats_only("elu_cpu"), x=_elu_rule)
def elu(xp, x, *, alpha, scale=1.0, input_scale=1.0):
    below = xp.expm1(xp.minimum(x, 0) * input_scale) * (alpha * scale)
    return xp.where(x > 0, x * scale, below)


def _softplus_rule(xp, g, x, beta, threshold):
    scaled = x * beta
    return xp.where(scaled > threshold, g, g * xp.sigmoid(scaled))


@op(check=floats_only("softplus_cpu"), x=_softplus_rule)
def softplus(xp, x, *, beta, threshold):
    scaled = x * beta
    soft = xp.log1p(xp.exp(xp.where(scaled > threshold, 0.0, scaled))) / beta
    return xp.where(scaled > threshold, x, soft)


@op(check=floats_only("log_sigmoid_cpu"), x=lambda xp, g, x: g * xp.sigmoid(-x))
def log_sigmoid(xp, x):
    return xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.abs(x)))


def _silu_rule(xp, g, x):
    s = xp.sigmoid(x)
    return g * xp.conj(s * (1 + x * (1 - s)))


@op(check=lambda x: refuse("silu_cpu", lambda d: not (d.is_floating_point or d.is_complex), x), x=_silu_rule)
def silu(xp, x):
    return x * xp.sigmoid(x)


def _mish_rule(xp, g, x):
    t = xp.tanh(xp.logaddexp(x, 0))
    return g * (t + x * xp.sigmoid(x) * (1 - t * t))


@op(check=floats_only("mish_cpu"), x=_mish_rule)
def mish(xp, x):
    return x * xp.tanh(xp.logaddexp(x, 0))


def _gelu_rule(xp, g, x, approximate):
    if approximate == "none":
        distribution = 0.5 * (1 + xp.erf(x * _ROOT_HALF))
        return g * (distribution + x * xp.exp(-0.5 * x * x) * (1 / _ROOT_2_PI))
    square = x * x
    s = xp.sigmoid(2 * _TANH_SCALE * x * (1 + _TANH_CUBE * square))  # (1 + tanh) / 2, exact where tanh is near -1
    return g * (s + 2 * _TANH_SCALE * x * s * (1 - s) * (1 + 3 * _TANH_CUBE * square))


@op(check=floats_only("GeluKernelImpl"), x=_gelu_rule)
def gelu(xp, x, *, approximate):
    if approximate == "none":
        return 0.5 * x * (1 + xp.erf(x * _ROOT_HALF))
    return x * xp.sigmoid(2 * _TANH_SCALE * x * (1 + _TANH_CUBE * x * x))


# -- gates -------------------------------------------------------------------------------------------------------------


def _halves(xp, x, axis):
    """The first and the second half along ``axis``."""
    size = x.shape[axis]
    return (
        xp.slice_part(x, axis=axis, start=0, size=size // 2),
        xp.slice_part(x, axis=axis, start=size // 2, size=size - size // 2),
    )


def _glu_rule(xp, g, x, axis):
    a, b = _halves(xp, x, axis)
    s = xp.sigmoid(b)
    return xp.concatenate((g * s, g * a * s * (1 - s)), axis=axis)


@op(check=floats_only("glu_cpu"), x=_glu_rule)
def glu(xp, x, *, axis):
    a, b = _halves(xp, x, axis)
    return a * xp.sigmoid(b)


# -- methods of Tensor too ---------------------------------------------------------------------------------------------


@public(out=False)
def prelu(input, weight):
    """``leaky_relu`` with a learned slope: one for all, or one for each channel (dimension 1)."""
    check_tensor("prelu", input)
    if not isinstance(weight, Tensor):
        raise TypeError(f"prelu(): argument 'weight' (position 2) must be Tensor, not {type(weight).__name__}")
    if input.dtype is not weight.dtype:
        names = " and ".join(t.dtype.char.removesuffix("Tensor") for t in (input, weight))
        raise RuntimeError(f"prelu: Type promoting not supported. Got {names}")
    if weight.numel() != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.numel() != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and "
                f"channel size = {channels}."
            )
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    slopes = differentiable.reshape(weight, shape=[-1 if d == min(1, input.ndim - 1) else 1 for d in range(input.ndim)])
    return prelu_kernel(input, slopes)


@public
def hardshrink(input, lambd=0.5):
    """x, but 0 within ``lambd`` of 0."""
    return differentiable.hardshrink(input, lambd=lambd)
