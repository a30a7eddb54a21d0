"""Activation functions, softmax and its kin."""

from __future__ import annotations

import math

from ...autograd import views
from ...autograd.op import differentiable as xp
from ...autograd.op import variant
from ...errors import warn_user
from ...ops import activation as _ops
from ...ops.common import as_number, check_tensor, refuse_complex_gradient
from ...ops.data import fill_value
from ...ops.dims import wrap_dim
from ...ops.public import PUBLIC
from ...ops.random import rrelu_noise
from ...tensor import Tensor

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6",
    "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink",
    "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
]  # fmt: skip

hardshrink, prelu, sigmoid, tanh = (PUBLIC[name] for name in ("hardshrink", "prelu", "sigmoid", "tanh"))
_celu = variant(xp.elu, "CeluBackward0")
_rrelu_eval = variant(xp.leaky_relu, "RreluWithNoiseBackward0")

# PyTorch gives these nodes another name when they were applied in place.
_IN_PLACE = {
    xp.leaky_relu: variant(xp.leaky_relu, "LeakyReluBackward1"),
    xp.elu: variant(xp.elu, "EluBackward1"),
    _celu: variant(xp.elu, "CeluBackward1"),
    xp.threshold: variant(xp.threshold, "ThresholdBackward1"),
    xp.rrelu_with_noise: variant(xp.rrelu_with_noise, "RreluWithNoiseBackward1"),
    _rrelu_eval: variant(xp.leaky_relu, "RreluWithNoiseBackward1"),
}


def _apply(function, inplace, input, *args, **static):
    if inplace:
        return views.inplace(input, _IN_PLACE.get(function, function), *args, **static)
    return function(input, *args, **static)


def _in_place(function):
    """``function`` as PyTorch's ``name_``."""

    def called(input, *args, **kwargs):
        return function(input, *args, **kwargs, inplace=True)

    called.__name__ = called.__qualname__ = function.__name__ + "_"
    called.__doc__ = f"``{function.__name__}``, in place."
    return called


# -- linear pieces -----------------------------------------------------------------------------------------------------


def relu(input, inplace=False):
    """max(0, x)."""
    return views.inplace(input, xp.relu) if inplace else xp.relu(input)


def relu6(input, inplace=False):
    """x between 0 and 6, those where it is outside."""
    return _apply(xp.hardtanh, inplace, input, low=0, high=6)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x where positive, ``negative_slope * x`` elsewhere.

    >>> F.leaky_relu(rushlight.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return _apply(xp.leaky_relu, inplace, input, negative_slope=negative_slope)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """``leaky_relu`` with slopes drawn from [lower, upper) in training, their mean otherwise."""
    check_tensor("rrelu", input)
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return _apply(_rrelu_eval, inplace, input, negative_slope=(lower + upper) / 2)
    return _apply(xp.rrelu_with_noise, inplace, input, rrelu_noise(input, lower, upper))


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x, but at least ``min_val`` and at most ``max_val``."""
    check_tensor("hardtanh", input)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if input._array.dtype == bool:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if min_val < 0 and not input.dtype.is_signed:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if not (input.is_floating_point() or input.is_complex()):
        min_val, max_val = int(min_val), int(max_val)
    return _apply(xp.hardtanh, inplace, input, low=min_val, high=max_val)


def hardsigmoid(input, inplace=False):
    """relu6(x + 3) / 6."""
    return _apply(xp.hardsigmoid, inplace, input)


def hardswish(input, inplace=False):
    """x · relu6(x + 3) / 6."""
    return _apply(xp.hardswish, inplace, input)


def softshrink(input, lambd=0.5):
    """x moved by ``lambd`` towards 0."""
    check_tensor("softshrink", input)
    if input.dtype.is_floating_point and not 0 <= lambd <= _largest(input):
        word = input.dtype.char.removesuffix("Tensor")
        raise RuntimeError(
            f"lambda must be in range [0, {_largest(input):g}] for input dtype {word}, but found {lambd:g}"
        )
    return xp.softshrink(input, lambd=lambd)


def _largest(t):
    from ...dtypes import finfo

    return finfo(t.dtype).max


def threshold(input, threshold, value, inplace=False):
    """x where it is above ``threshold``, ``value`` elsewhere."""
    limit, value = as_number("threshold", "threshold", 2, threshold), as_number("threshold", "value", 3, value)
    check_tensor("threshold", input)
    if input._array.dtype.kind in "iu":
        limit, value = (int(fill_value(v, input.dtype)) for v in (limit, value))
    return _apply(xp.threshold, inplace, input, limit=limit, value=value)


# -- exponentials ------------------------------------------------------------------------------------------------------


def elu(input, alpha=1.0, inplace=False):
    """x where positive, ``alpha · (exp(x) - 1)`` elsewhere."""
    return _apply(xp.elu, inplace, input, alpha=alpha)


def selu(input, inplace=False):
    """``elu`` with the scale and alpha that keep mean 0 and variance 1."""
    return _apply(xp.elu, inplace, input, alpha=_ops.SELU_ALPHA, scale=_ops.SELU_SCALE)


def celu(input, alpha=1.0, inplace=False):
    """x where positive, ``alpha · (exp(x / alpha) - 1)`` elsewhere."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _apply(_celu, inplace, input, alpha=alpha, input_scale=1.0 / alpha)


def gelu(input, approximate="none"):
    """x · Φ(x), Φ the normal distribution function; ``approximate="tanh"`` for the formula with tanh.

    >>> F.gelu(rushlight.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return xp.gelu(input, approximate=approximate)


def silu(input, inplace=False):
    """x · sigmoid(x)."""
    if input.__class__ is Tensor and input._array.dtype.kind == "c":
        refuse_complex_gradient("silu", input)
    return _apply(xp.silu, inplace, input)


def mish(input, inplace=False):
    """x · tanh(softplus(x))."""
    return _apply(xp.mish, inplace, input)


def softplus(input, beta=1, threshold=20):
    """log(1 + exp(beta · x)) / beta; x itself where ``beta · x`` is above ``threshold``."""
    return xp.softplus(input, beta=beta, threshold=threshold)


def logsigmoid(input):
    """log(sigmoid(x))."""
    return xp.log_sigmoid(input)


def tanhshrink(input):
    """x - tanh(x)."""
    return input - input.tanh()


def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def glu(input, dim=-1):
    """The first half along ``dim`` times the sigmoid of the second half."""
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    axis = wrap_dim(dim, input.ndim)
    if input.shape[axis] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {input.shape[axis]}")
    return xp.glu(input, axis=axis)


# -- softmax -----------------------------------------------------------------------------------------------------------


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) divided by its sum over ``dim``.

    >>> F.softmax(rushlight.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return PUBLIC["softmax"](input, _softmax_dim("softmax", input, dim), dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-x)."""
    return PUBLIC["softmax"](-input, _softmax_dim("softmin", input, dim), dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax(x)), without overflow."""
    return PUBLIC["log_softmax"](input, _softmax_dim("log_softmax", input, dim), dtype)


def _softmax_dim(name, input, dim):
    if dim is not None:
        return dim
    warn_user(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument."
    )
    return 0 if input.ndim in (0, 1, 3) else 1


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample from the Gumbel-softmax distribution; ``hard``: one-hot, with the gradient of the soft one."""
    if eps != 1e-10:
        warn_user("`eps` parameter is deprecated and has no effect.")
    gumbels = -PUBLIC["empty_like"](logits).exponential_().log()
    soft = softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    return PUBLIC["zeros_like"](logits).scatter(dim, index, 1.0) - soft.detach() + soft


relu_, leaky_relu_, rrelu_, hardtanh_ = map(_in_place, (relu, leaky_relu, rrelu, hardtanh))
threshold_, elu_, selu_, celu_ = map(_in_place, (threshold, elu, selu, celu))

for _function in (celu, celu_, relu_, rrelu, rrelu_, selu, selu_, threshold, threshold_):
    PUBLIC[_function.__name__] = _function
