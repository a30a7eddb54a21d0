"""Powers, exponentials and logarithms."""

from __future__ import annotations

import cmath
import math

from .. import dtypes
from ..autograd.op import differentiable as xp_
from ..autograd.op import op, variant
from ..tensor import Tensor
from . import returns
from .common import (
    binary,
    bool_dtype,
    complex_dtype,
    dtype_of,
    integral_dtype,
    is_complex,
    is_integral,
    is_number,
    refuse,
    unary,
)
from .public import PUBLIC, public


def _power_base(xp, g, x, w):
    if not is_number(w):
        return xp.where(w == 0, 0.0, g * xp.conj(w * xp.power(x, w - 1)))
    if w == 0:
        return xp.zeros_like(g)
    if w == 2:
        return g * (2.0 * xp.conj(x))
    return g * xp.conj(w * xp.power(x, w - 1))


def _power_exponent(xp, g, x, w, y):
    if not is_number(x):
        return g * xp.where((x == 0) & _not_negative(xp, w), 0.0, xp.conj(y * xp.log(x)))
    slope = xp.conj(y * _log(x))
    return g * (xp.where(_not_negative(xp, w), 0.0, slope) if x == 0 else slope)


def _not_negative(xp, w):
    if is_number(w):
        return w.imag == 0 and w.real >= 0
    return (xp.imag(w) == 0) & (xp.real(w) >= 0) if is_complex(w) else w >= 0


def _log(value):
    """log of a Python number as arrays compute it: -inf at 0, nan below."""
    if isinstance(value, complex):
        return cmath.log(value) if value != 0 else -math.inf
    return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan


def _check_power(x, w):
    if isinstance(w, int) and w < 0 and not isinstance(w, bool) and is_integral(x):
        raise RuntimeError("Integers to negative integer powers are not allowed.")


@op(node="PowBackward1", promote="common", check=_check_power, x=_power_base, w=_power_exponent)
def power(xp, x, w):
    return xp.power(x, w)


@op(promote="float", x=lambda xp, g, y: g * xp.conj(y))
def exp(xp, x):
    """e to the power of x."""
    return xp.exp(x)


@op(promote="float", x=lambda xp, g, y: g * xp.conj(y) * math.log(2))
def exp2(xp, x):
    """2 to the power of x."""
    return xp.exp2(x)


@op(promote="float", x=lambda xp, g, y: g * (xp.conj(y) + 1))
def expm1(xp, x):
    """exp(x) - 1, precise near 0."""
    return xp.expm1(x)


@op(promote="float", x=lambda xp, g, x: g / xp.conj(x))
def log(xp, x):
    """The natural logarithm."""
    return xp.log(x)


@op(promote="float", x=lambda xp, g, x: g / (xp.conj(x) * math.log(2)))
def log2(xp, x):
    """The logarithm to base 2."""
    return xp.log2(x)


@op(promote="float", x=lambda xp, g, x: g / (xp.conj(x) * math.log(10)))
def log10(xp, x):
    """The logarithm to base 10."""
    return xp.log10(x)


@op(node="Log1PBackward0", promote="float", x=lambda xp, g, x: g / (xp.conj(x) + 1))
def log1p(xp, x):
    """log(1 + x), precise near 0."""
    return xp.log1p(x)


@op(promote="float", x=lambda xp, g, y: g / (2.0 * xp.conj(y)))
def sqrt(xp, x):
    """√x."""
    return xp.sqrt(x)


@op(promote="float", x=lambda xp, g, y: -0.5 * g * xp.conj(y * y * y))
def rsqrt(xp, x):
    """1 / √x."""
    return xp.reciprocal(xp.sqrt(x))


@op(
    promote="common",
    x=lambda xp, g, x, w: g / (1 + xp.exp(xp.conj(w - x))),
    w=lambda xp, g, x, w: g / (1 + xp.exp(xp.conj(x - w))),
)
def logaddexp(xp, x, w):
    """log(exp(x) + exp(y)), without overflow."""
    refuse("logaddexp_cpu", integral_dtype, x, w)
    if is_complex(x, w):
        return _complex_logaddexp(xp, x, w)
    return xp.logaddexp(x, w)


def _complex_logaddexp(xp, x, w):
    larger = xp.real(x) >= xp.real(w)
    high, low = xp.where(larger, x, w), xp.where(larger, w, x)
    return high + xp.log1p(xp.exp(low - high))


@op(
    promote="common",
    x=lambda xp, g, x, w: g / (1 + xp.exp2(w - x)),
    w=lambda xp, g, x, w: g / (1 + xp.exp2(x - w)),
)
def logaddexp2(xp, x, w):
    """log₂(2ˣ + 2ʸ), without overflow."""
    refuse("logaddexp2_cpu", integral_dtype, x, w)
    return xp.logaddexp2(x, w)


@op(
    promote="float",
    x=lambda xp, g, x, w: xp.where((x == 0) & (w <= 0), 0.0, g * _log_of(xp, w)),
    w=lambda xp, g, x, w: g * x / w,
)
def xlogy_(xp, x, w):
    refuse("xlogy_cpu", complex_dtype, x, w)
    # 0 * log(w) is 0 for every w but nan.
    product = x * _log_of(xp, w)
    return xp.where((x == 0) & (w == w), 0.0, product)


def _log_of(xp, w):
    return _log(w) if is_number(w) else xp.log(w)


@op(
    promote="float",
    check=lambda x, w: refuse("ldexp_cpu_exp", bool_dtype, w),
    x=lambda xp, g, w: g * xp.conj(xp.exp2(w)),
    w=lambda xp, g, y: g * xp.conj(y) * math.log(2),
)
def ldexp(xp, x, w):
    """x 2ʸ."""
    return x * xp.exp2(w)


def _frexp_rule(xp, g, y):
    return g[0] / xp.exp2(y[1])


@op(uses=(1,), x=_frexp_rule)
def frexp_(xp, x):
    return xp.frexp(x)


for _name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"):
    unary(getattr(xp_, _name))
binary(logaddexp, inplace=False, tensors_only=True)
binary(logaddexp2, inplace=False, tensors_only=True)
binary(ldexp, tensors_only=True)

_power_number, _number_power = variant(power, "PowBackward0"), variant(power, "PowBackward2")


@public(inplace=True)
def pow(input, exponent):
    """``input ** exponent``; either may be a Python number.

    >>> rushlight.pow(rushlight.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    if not isinstance(input, Tensor):
        if not is_number(input):
            raise TypeError(f"pow(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        if input == 1 and exponent.dtype is dtypes.complex32:  # which has no kernel for powers, and needs none here
            return exponent * 0 + 1
        return _number_power(input, exponent)
    if exponent is True or exponent is False:  # the only power of truth values that PyTorch knows
        return xp_.clone(input) if exponent else PUBLIC["ones_like"](input)
    return (power if isinstance(exponent, Tensor) else _power_number)(input, exponent)


@public(inplace=True)
def square(input):
    """``input ** 2``."""
    return pow(input, 2)


def _in_double(plain):
    def float_power_(self, exponent):
        wide = "ComplexDouble" if dtype_of(self).is_complex or dtype_of(exponent).is_complex else "Double"
        if (have := self.dtype.char.removesuffix("Tensor")) != wide:
            raise RuntimeError(
                f"the base given to float_power_ has dtype {have} but the operation's result requires dtype {wide}"
            )
        return plain(self, exponent)

    return float_power_


@public(inplace=True, around=_in_double)
def float_power(input, exponent):
    """``input ** exponent`` in double precision."""
    wide = dtypes.complex128 if dtype_of(input).is_complex or dtype_of(exponent).is_complex else dtypes.float64

    def widened(value):
        return xp_.astype(value, dtype=wide.numpy) if isinstance(value, Tensor) and value.dtype is not wide else value

    return pow(widened(input), widened(exponent))


_number_xlogy, _xlogy_number = variant(xlogy_, "XlogyBackward1"), variant(xlogy_, "XlogyBackward2")


@public(inplace=True)
def xlogy(input, other):
    """``input * log(other)``, 0 where input is 0."""
    if not isinstance(input, Tensor):
        return _number_xlogy(input, other)
    return (xlogy_ if isinstance(other, Tensor) else _xlogy_number)(input, other)


@public
def frexp(input):
    """Mantissa in [0.5, 1) and integer exponent of each element."""
    if not dtype_of(input).is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return returns.frexp(frexp_(input))
