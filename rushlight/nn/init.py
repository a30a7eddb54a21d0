"""Initializers: they fill a tensor in place, outside the graph, by PyTorch's formulas and random streams."""

from __future__ import annotations

import functools
import math

from ..autograd.mode import no_grad
from ..autograd.op import differentiable
from ..autograd.overriding import asking
from ..errors import warn_user
from ..ops import PUBLIC as ops

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]


def __dir__():
    return __all__


_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
_GAINS = dict.fromkeys((*_LINEAR, "sigmoid"), 1) | {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


def calculate_gain(nonlinearity, param=None):
    """By how much weights before ``nonlinearity`` must be larger to keep the variance of activations.

    >>> rushlight.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        if isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2 / (1 + param**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


# -- plain fillings --------------------------------------------------------------------------------------------------


@no_grad()
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fill with uniform numbers from [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill with normal numbers."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill with normal numbers of which only those within [a, b] are taken."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warn_user(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."
        )
    if tensor.is_meta:
        return tensor
    low, high = (a - mean) / std, (b - mean) / std
    if _normal_cdf(high) - _normal_cdf(low) >= 0.3:
        _reject_from_normal(tensor, mean, std, a, b, generator)
    else:
        _reject_from_uniform(tensor, mean, std, a, b, min(max(0.0, low), high), generator)
    return tensor


def _normal_cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _reject_from_normal(tensor, mean, std, a, b, generator) -> None:
    """Draw the whole tensor again for those that fell outside, until none did."""
    tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (tensor < a) | (tensor > b)
        if not outside.any():
            return
        again = ops["empty_like"](tensor).normal_(mean, std, generator=generator)
        tensor.copy_(ops["where"](outside, again, tensor))


def _reject_from_uniform(tensor, mean, std, a, b, peak, generator) -> None:
    """Where few normal numbers would do: uniform ones, kept with the density relative to its ``peak`` in [a, b]."""
    missing = ops["ones_like"](tensor, dtype=ops["isnan"](tensor).dtype)
    while missing.any():
        drawn = ops["empty_like"](tensor).uniform_(a, b, generator=generator)
        z = (drawn - mean) / std
        kept = ops["empty_like"](tensor).uniform_(generator=generator) <= ops["exp"]((peak**2 - z * z) / 2)
        tensor.copy_(ops["where"](missing & kept, drawn, tensor))
        missing = missing & ~kept


@no_grad()
def constant_(tensor, val):
    """Fill with ``val``."""
    return tensor.fill_(val)


@no_grad()
def ones_(tensor):
    """Fill with ones."""
    return tensor.fill_(1.0)


@no_grad()
def zeros_(tensor):
    """Fill with zeros."""
    return tensor.zero_()


@no_grad()
def eye_(tensor):
    """Make a matrix the identity, as far as it is square."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(ops["eye"](*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@no_grad()
def dirac_(tensor, groups=1):
    """Make a convolution's weight pass its input channels through, as many as it has."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    if tensor.is_meta:
        return tensor
    channels = tensor.shape[0] // groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    tensor.zero_()
    for group in range(groups):
        for d in range(min(channels, tensor.shape[1])):
            tensor[(group * channels + d, d, *centre)] = 1
    return tensor


# -- scaled to a layer's size ----------------------------------------------------------------------------------------


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor, mode):
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode.lower()} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform in ±gain·√(6 / (fan_in + fan_out)): Glorot & Bengio, 2010."""
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal with std gain·√(2 / (fan_in + fan_out)): Glorot & Bengio, 2010."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor, gain) -> float:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return gain * math.sqrt(2.0 / float(fan_in + fan_out))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform in ±gain·√(3 / fan): He et al., 2015."""
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal with std gain / √fan: He et al., 2015."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _kaiming_std(tensor, a, mode, nonlinearity) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _is_empty(tensor) -> bool:
    if 0 in tensor.shape:
        warn_user("Initializing zero-element tensors is a no-op")
        return True
    return False


# -- matrices --------------------------------------------------------------------------------------------------------


@no_grad()
def orthogonal_(tensor, gain=1, generator=None):
    """Orthonormal rows or columns (of the tensor flattened to a matrix), times ``gain``: Saxe et al., 2013."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    noise = ops["empty"](rows, columns, dtype=tensor.dtype, device=tensor.device).normal_(0, 1, generator=generator)
    q, r = differentiable.qr(noise.T if rows < columns else noise, mode="reduced")
    q = q * ops["sign"](ops["diagonal"](r))  # makes the decomposition unique, and q uniform
    q = q.T if rows < columns else q
    return tensor.copy_(q.reshape(tensor.shape)).mul_(gain)


@no_grad()
def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal numbers, a share of ``sparsity`` in each column set to zero: Martens, 2010."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[ops["randperm"](rows)[:zeros], column] = 0
    return tensor


# -- names from before the underscore --------------------------------------------------------------------------------


def _deprecated(f):
    new, old = f.__name__, f.__name__[:-1]

    @functools.wraps(f)
    def called(*args, **kwargs):
        warn_user(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning)
        return f(*args, **kwargs)

    called.__name__ = called.__qualname__ = old
    return called


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)


for _name in __all__:
    globals()[_name] = asking(globals()[_name])
