"""Element by element: arithmetic, powers, exponentials, rounding, comparison, selection, bits.

Each section declares its primitives first (NumPy's names) and then what PyTorch calls them.
"""

from __future__ import annotations

import cmath
import math

import numpy as np

from .. import dtypes
from ..autograd.op import differentiable as xp_
from ..autograd.op import op, variant
from ..tensor import Tensor, wrap
from . import returns
from .public import PUBLIC, public

# -- shared by all sections --------------------------------------------------------------------------------------------


def unary(call, name=None, *, aliases=(), inplace=True):
    """Publish a one-argument op under PyTorch's name (and aliases)."""

    def function(input):
        return call(input)

    _named(function, call, name or call.__name__)
    return public(function, inplace=inplace, aliases=aliases)


def binary(call, name=None, *, aliases=(), inplace=True, scalar=None, tensors_only=False):
    """Publish a two-argument op; ``scalar`` is the variant for a second argument that is a Python number."""
    name = name or call.__name__

    def function(input, other):
        if not isinstance(other, Tensor):
            require_number(name, "other", 2, other, tensors_only)
            return (scalar or call)(input, other)
        return call(input, other)

    _named(function, call, name)
    return public(function, inplace=inplace, aliases=aliases)


def _named(function, call, name):
    call.op.label = function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = call.__doc__, __name__


def require_number(name, argument, position, value, tensors_only=False):
    """Raise PyTorch's TypeError unless ``value`` may stand where a Tensor or a number is wanted."""
    try:
        dtypes.of_scalar(value)
        wrong = tensors_only
    except TypeError:
        wrong = True
    if wrong:
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
        )


def dtype_of(*values):
    """The rushlight dtype of the first of ``values`` that is an array or a Tensor."""
    for v in values:
        found = getattr(v, "dtype", None)
        if found is not None:
            return found if isinstance(found, dtypes.dtype) else dtypes.of_numpy(found)
    return dtypes.of_scalar(values[0])


def is_complex(*values) -> bool:
    return dtype_of(*values).is_complex


def is_integral(*values) -> bool:
    d = dtype_of(*values)
    return not (d.is_floating_point or d.is_complex)


def type_word(d) -> str:
    """A dtype as PyTorch's messages write it: Float, Long, ComplexDouble …"""
    return d.char.removesuffix("Tensor")


def refuse(kernel, wrong, *values):
    """PyTorch's error for a dtype that a kernel lacks: ``wrong(dtype)`` tells which."""
    d = dtype_of(*values)
    if wrong(d):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_word(d)}'")


def _not_integral(d):
    return d.is_floating_point or d.is_complex


def _integral(d):
    return not _not_integral(d)


def _complex(d):
    return d.is_complex


def _bool(d):
    return d is dtypes.bool_


def no_gradient(what):
    """A rule for an argument that PyTorch has no derivative for either."""

    def rule(xp, g):
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return rule


def zero(xp, g):
    """The rule of a function that is flat almost everywhere."""
    return xp.zeros_like(g)


NUMPY_NUMBERS = (np.number, np.bool_)


def _is_number(value) -> bool:
    return isinstance(value, (int, float, complex))


@op(exact=True)
def zeros_like(xp, x):
    return xp.zeros_like(x)


@op(exact=True)
def ones_like(xp, x):
    return xp.ones_like(x)


# -- arithmetic --------------------------------------------------------------------------------------------------------


@op(node="AddBackward0", promote="common", x=lambda xp, g: g, w=lambda xp, g: g)
def add_(xp, x, w):
    return xp.add(x, w)


@op(node="AddBackward0", promote="common", x=lambda xp, g: g, w=lambda xp, g, alpha: g * alpha.conjugate())
def add_scaled(xp, x, w, *, alpha):
    return xp.add(x, _scaled(xp, w, alpha))


def _scaled(xp, w, alpha):
    """``w * alpha``; integers wrap around as PyTorch's do, where NumPy would refuse a negative alpha for uint8."""
    return xp.multiply(w, np.asarray(alpha).astype(dtype_of(w).numpy) if is_integral(w) else alpha)


def _check_subtract(x, w):
    kinds = [getattr(getattr(a, "dtype", None), "kind", None) for a in (x, w)]
    if kinds == ["b", "b"]:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if "b" in kinds:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )


@op(node="SubBackward0", promote="common", check=_check_subtract, x=lambda xp, g: g, w=lambda xp, g: -g)
def subtract(xp, x, w):
    return xp.subtract(x, w)


@op(
    node="SubBackward0",
    promote="common",
    check=_check_subtract,
    x=lambda xp, g: g,
    w=lambda xp, g, alpha: -g * alpha.conjugate(),
)
def subtract_scaled(xp, x, w, *, alpha):
    return xp.subtract(x, _scaled(xp, w, alpha))


@op(
    node="RsubBackward0",
    promote="common",
    check=_check_subtract,
    x=lambda xp, g, alpha: -g * alpha.conjugate(),
    w=lambda xp, g: g,
)
def rsub_(xp, x, w, *, alpha=1):
    return xp.subtract(w, x if alpha == 1 else _scaled(xp, x, alpha))


@op(
    node="MulBackward0",
    promote="common",
    x=lambda xp, g, w: g * xp.conj(w),
    w=lambda xp, g, x: g * xp.conj(x),
)
def multiply(xp, x, w):
    return xp.multiply(x, w)


@op(
    node="DivBackward0",
    promote="float",
    x=lambda xp, g, w: g / xp.conj(w),
    w=lambda xp, g, w, y: -g * xp.conj(y / w),
)
def divide(xp, x, w):
    return xp.divide(x, w)


@op(node="DivBackward2", promote="common", x=zero, w=zero)
def divide_rounded(xp, x, w, *, mode):
    if mode == "floor":
        return xp.floor_divide(x, w)
    if not is_integral(x, w):
        return xp.trunc(xp.divide(x, w))
    # The quotient rounded down is one too low where it is negative and inexact.
    quotient = xp.floor_divide(x, w)
    return quotient + xp.astype((quotient < 0) & (quotient * w != x), dtype=quotient.dtype)


@op(node="NotImplemented", promote="common", x=no_gradient("floor_divide"), w=no_gradient("floor_divide"))
def floor_divide_(xp, x, w):
    return xp.floor_divide(x, w)


@op(
    node="RemainderBackward1",
    promote="common",
    x=lambda xp, g: g,
    w=lambda xp, g, x, w: -g * xp.floor(xp.divide(x, w)),
)
def remainder(xp, x, w):
    refuse("remainder_cpu", _complex, x, w)
    return xp.remainder(x, w)


@op(node="FmodBackward1", promote="common", x=lambda xp, g: g, w=lambda xp, g, x, w: -g * xp.trunc(xp.divide(x, w)))
def fmod(xp, x, w):
    refuse("fmod_cpu", _complex, x, w)
    return xp.fmod(x, w)


def _check_negative(x):
    if dtype_of(x) is dtypes.bool_:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )


@op(node="NegBackward0", check=_check_negative, x=lambda xp, g: -g)
def negative(xp, x):
    return xp.negative(x)


@op(promote="float", x=lambda xp, g, y: -g * xp.conj(y * y))
def reciprocal(xp, x):
    return xp.reciprocal(x)


@op(
    promote="common",
    x=lambda xp, g: g,
    t1=lambda xp, g, t2, value: g * xp.conj(t2 * value),
    t2=lambda xp, g, t1, value: g * xp.conj(t1 * value),
)
def addcmul_(xp, x, t1, t2, *, value):
    return x + (t1 * t2 if value == 1 else _scaled(xp, t1, value) * t2)


@op(
    promote="common",
    x=lambda xp, g: g,
    t1=lambda xp, g, t2, value: g * xp.conj(value / t2),
    t2=lambda xp, g, t1, t2, value: -g * xp.conj(t1 * value / (t2 * t2)),
)
def addcdiv_(xp, x, t1, t2, *, value):
    return x + (t1 / t2 if value == 1 else t1 * value / t2)


def _interpolate(xp, start, end, weight):
    # From the nearer end, so that weight 1 gives exactly ``end``.
    if _is_number(weight):
        return start + weight * (end - start) if abs(weight) < 0.5 else end - (end - start) * (1 - weight)
    return xp.where(xp.abs(weight) < 0.5, start + weight * (end - start), end - (end - start) * (1 - weight))


@op(
    node="LerpBackward1",
    promote="common",
    start=lambda xp, g, weight: g * (1 - xp.conj(weight)),
    end=lambda xp, g, weight: g * xp.conj(weight),
    weight=lambda xp, g, start, end: g * xp.conj(end - start),
)
def lerp_(xp, start, end, weight):
    return _interpolate(xp, start, end, weight)


def _check_alpha(alpha, input, other):
    kinds = [dtype_of(t) for t in (input, other) if isinstance(t, Tensor)]
    if isinstance(alpha, complex) and not any(d.is_complex for d in kinds):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if isinstance(alpha, float) and all(_integral(d) for d in kinds) and not isinstance(other, float):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")


@public(inplace=True)
def add(input, other, *, alpha=1):
    """``input + alpha * other``.

    >>> rushlight.add(rushlight.tensor([1., 2.]), rushlight.tensor([10., 20.]), alpha=2)
    tensor([21., 42.])
    """
    if not isinstance(other, Tensor):
        require_number("add", "other", 2, other)
    if alpha is True or alpha == 1:
        return xp_.add(input, other)
    _check_alpha(alpha, input, other)
    return xp_.add_scaled(input, other, alpha=alpha)


@public(inplace=True, aliases=("subtract",))
def sub(input, other, *, alpha=1):
    """``input - alpha * other``."""
    if not isinstance(other, Tensor):
        require_number("sub", "other", 2, other)
    if alpha is True or alpha == 1:
        return subtract(input, other)
    _check_alpha(alpha, input, other)
    return subtract_scaled(input, other, alpha=alpha)


_rsub_number = variant(rsub_, "RsubBackward1")


@public(method=False)
def rsub(input, other, *, alpha=1):
    """``other - alpha * input``."""
    _check_alpha(alpha, input, other)
    return (rsub_ if isinstance(other, Tensor) else _rsub_number)(input, other, alpha=alpha)


binary(multiply, "mul", aliases=("multiply",))
unary(negative, "neg", aliases=("negative",))
unary(reciprocal)
_remainder_number, _fmod_number = variant(remainder, "RemainderBackward0"), variant(fmod, "FmodBackward0")
binary(remainder, scalar=_remainder_number)
binary(fmod, scalar=_fmod_number)
binary(floor_divide_, "floor_divide")


@public(inplace=True, aliases=("divide",))
def div(input, other, *, rounding_mode=None):
    """``input / other``; ``rounding_mode`` is None, "trunc" or "floor".

    >>> rushlight.div(rushlight.tensor([-7, 7]), 2, rounding_mode="floor")
    tensor([-4,  3])
    """
    if not isinstance(other, Tensor):
        require_number("div", "other", 2, other)
    if rounding_mode is None:
        return xp_.divide(input, other)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return divide_rounded(input, other, mode=rounding_mode)


binary(divide, "true_divide")


@public
def positive(input):
    """``input`` itself."""
    if dtype_of(input) is dtypes.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@public(inplace=True)
def addcmul(input, tensor1, tensor2, *, value=1):
    """``input + value * tensor1 * tensor2``."""
    if isinstance(value, float) and is_integral(input):
        value = int(value)
    return addcmul_(input, tensor1, tensor2, value=value)


@public(inplace=True)
def addcdiv(input, tensor1, tensor2, *, value=1):
    """``input + value * tensor1 / tensor2``."""
    if is_integral(tensor1) and is_integral(tensor2):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )
    return addcdiv_(input, tensor1, tensor2, value=value)


_lerp_number = variant(lerp_, "LerpBackward0")


@public(inplace=True)
def lerp(input, end, weight):
    """Linear interpolation: ``input + weight * (end - input)``.

    >>> rushlight.lerp(rushlight.tensor([0., 10.]), rushlight.tensor([1., 20.]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    if not isinstance(end, Tensor):
        raise TypeError(f"lerp(): argument 'end' (position 2) must be Tensor, not {type(end).__name__}")
    tensors = [("end", end)] + ([("weight", weight)] if isinstance(weight, Tensor) else [])
    for name, t in tensors:
        if t.dtype is not input.dtype:
            raise RuntimeError(f"expected dtype {_word(input)} for `{name}` but got dtype {_word(t)}")
    return (lerp_ if isinstance(weight, Tensor) else _lerp_number)(input, end, weight)


def _word(t) -> str:
    return {"float64": "double", "float32": "float", "float16": "c10::Half", "int64": "long int"}.get(
        t.dtype.name, t.dtype.name
    )


# -- powers, exponentials and logarithms -------------------------------------------------------------------------------


def _power_base(xp, g, x, w):
    if not _is_number(w):
        return xp.where(w == 0, 0.0, g * xp.conj(w * xp.power(x, w - 1)))
    if w == 0:
        return xp.zeros_like(g)
    if w == 2:
        return g * (2.0 * xp.conj(x))
    return g * xp.conj(w * xp.power(x, w - 1))


def _power_exponent(xp, g, x, w, y):
    if not _is_number(x):
        return xp.where((x == 0) & _not_negative(xp, w), 0.0, g * xp.conj(y * xp.log(x)))
    grad = g * xp.conj(y * _log(x))
    return xp.where(_not_negative(xp, w), 0.0, grad) if x == 0 else grad


def _not_negative(xp, w):
    if _is_number(w):
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
    return xp.exp(x)


@op(promote="float", x=lambda xp, g, y: g * xp.conj(y) * math.log(2))
def exp2(xp, x):
    return xp.exp2(x)


@op(promote="float", x=lambda xp, g, y: g * (xp.conj(y) + 1))
def expm1(xp, x):
    return xp.expm1(x)


@op(promote="float", x=lambda xp, g, x: g / xp.conj(x))
def log(xp, x):
    return xp.log(x)


@op(promote="float", x=lambda xp, g, x: g / (xp.conj(x) * math.log(2)))
def log2(xp, x):
    return xp.log2(x)


@op(promote="float", x=lambda xp, g, x: g / (xp.conj(x) * math.log(10)))
def log10(xp, x):
    return xp.log10(x)


@op(promote="float", x=lambda xp, g, x: g / (xp.conj(x) + 1))
def log1p(xp, x):
    return xp.log1p(x)


@op(promote="float", x=lambda xp, g, y: g / (2.0 * xp.conj(y)))
def sqrt(xp, x):
    return xp.sqrt(x)


@op(promote="float", x=lambda xp, g, y: -0.5 * g * xp.conj(y * y * y))
def rsqrt(xp, x):
    return xp.reciprocal(xp.sqrt(x))


@op(
    promote="float",
    x=lambda xp, g, x, w: g / (1 + xp.exp(xp.conj(w - x))),
    w=lambda xp, g, x, w: g / (1 + xp.exp(xp.conj(x - w))),
)
def logaddexp(xp, x, w):
    if is_complex(x, w):
        return _complex_logaddexp(xp, x, w)
    return xp.logaddexp(x, w)


def _complex_logaddexp(xp, x, w):
    larger = xp.real(x) >= xp.real(w)
    high, low = xp.where(larger, x, w), xp.where(larger, w, x)
    return high + xp.log1p(xp.exp(low - high))


@op(
    promote="float",
    x=lambda xp, g, x, w: g / (1 + xp.exp2(w - x)),
    w=lambda xp, g, x, w: g / (1 + xp.exp2(x - w)),
)
def logaddexp2(xp, x, w):
    return xp.logaddexp2(x, w)


@op(
    promote="float",
    x=lambda xp, g, x, w: xp.where((x == 0) & (w <= 0), 0.0, g * _log_of(xp, w)),
    w=lambda xp, g, x, w: g * x / w,
)
def xlogy_(xp, x, w):
    # 0 * log(w) is 0 for every w but nan.
    product = x * _log_of(xp, w)
    return xp.where((x == 0) & (w == w), 0.0, product)


def _log_of(xp, w):
    return _log(w) if _is_number(w) else xp.log(w)


@op(promote="float", x=lambda xp, g, w: g * xp.conj(xp.exp2(w)), w=lambda xp, g, y: g * xp.conj(y) * math.log(2))
def ldexp(xp, x, w):
    return x * xp.exp2(w)


def _frexp_rule(xp, g, y):
    return g[0] / xp.exp2(y[1])


@op(x=_frexp_rule)
def frexp_(xp, x):
    return xp.frexp(x)


for _name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"):
    unary(getattr(xp_, _name))
binary(logaddexp, inplace=False, tensors_only=True)
binary(logaddexp2, inplace=False, tensors_only=True)
binary(ldexp)

_power_number, _number_power = variant(power, "PowBackward0"), variant(power, "PowBackward2")


@public(inplace=True)
def pow(input, exponent):
    """``input ** exponent``; either may be a Python number.

    >>> rushlight.pow(rushlight.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    if not isinstance(input, Tensor):
        return _number_power(input, exponent)
    return (power if isinstance(exponent, Tensor) else _power_number)(input, exponent)


@public(inplace=True)
def square(input):
    """``input ** 2``."""
    return pow(input, 2)


@public(inplace=True)
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


# -- trigonometry ------------------------------------------------------------------------------------------------------


@op(promote="float", x=lambda xp, g, x: g * xp.conj(xp.cos(x)))
def sin(xp, x):
    return xp.sin(x)


@op(promote="float", x=lambda xp, g, x: -g * xp.conj(xp.sin(x)))
def cos(xp, x):
    return xp.cos(x)


@op(promote="float", x=lambda xp, g, y: g * xp.conj(1 + y * y))
def tan(xp, x):
    return xp.tan(x)


@op(node="AsinBackward0", promote="float", x=lambda xp, g, x: g / xp.conj(xp.sqrt(1 - x * x)))
def arcsin(xp, x):
    return xp.arcsin(x)


@op(node="AcosBackward0", promote="float", x=lambda xp, g, x: -g / xp.conj(xp.sqrt(1 - x * x)))
def arccos(xp, x):
    return xp.arccos(x)


@op(node="AtanBackward0", promote="float", x=lambda xp, g, x: g / xp.conj(1 + x * x))
def arctan(xp, x):
    return xp.arctan(x)


@op(promote="float", x=lambda xp, g, x: g * xp.conj(xp.cosh(x)))
def sinh(xp, x):
    return xp.sinh(x)


@op(promote="float", x=lambda xp, g, x: g * xp.conj(xp.sinh(x)))
def cosh(xp, x):
    return xp.cosh(x)


@op(promote="float", x=lambda xp, g, y: g * (1.0 - xp.conj(y * y)))
def tanh(xp, x):
    return xp.tanh(x)


@op(node="AsinhBackward0", promote="float", x=lambda xp, g, x: g / xp.conj(xp.sqrt(x * x + 1)))
def arcsinh(xp, x):
    return xp.arcsinh(x)


def _arccosh_slope(xp, x):
    # For complex x the two roots apart: their product is on the branch of arccosh, the root of the product is not.
    return xp.sqrt(x - 1) * xp.sqrt(x + 1) if is_complex(x) else xp.sqrt(x * x - 1)


@op(node="AcoshBackward0", promote="float", x=lambda xp, g, x: g / xp.conj(_arccosh_slope(xp, x)))
def arccosh(xp, x):
    return xp.arccosh(x)


@op(node="AtanhBackward0", promote="float", x=lambda xp, g, x: g / xp.conj(1 - x * x))
def arctanh(xp, x):
    return xp.arctanh(x)


@op(
    node="Atan2Backward0",
    promote="float",
    x=lambda xp, g, x, w: g * w / (x * x + w * w),
    w=lambda xp, g, x, w: -g * x / (x * x + w * w),
)
def arctan2(xp, x, w):
    return xp.arctan2(x, w)


@op(promote="float", x=lambda xp, g, x, y: g * (x / y), w=lambda xp, g, w, y: g * (w / y))
def hypot(xp, x, w):
    return xp.hypot(x, w)


def _sinc_slope(xp, g, x):
    # Where x is 0 the quotient is 0/0; PyTorch's gradients of every order are 0 there.
    at_zero = x == 0
    safe = xp.where(at_zero, 1.0, x)
    angle = math.pi * safe
    return xp.where(at_zero, 0.0, g * xp.conj((xp.cos(angle) * angle - xp.sin(angle)) / (angle * safe)))


@op(promote="float", x=_sinc_slope)
def sinc(xp, x):
    return xp.sinc(x)


@op(node="Deg2RadBackward0", promote="float", x=lambda xp, g: g * (math.pi / 180))
def deg2rad(xp, x):
    return x * (math.pi / 180)


@op(node="Rad2DegBackward0", promote="float", x=lambda xp, g: g * (180 / math.pi))
def rad2deg(xp, x):
    return x * (180 / math.pi)


for _name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "sinc", "deg2rad", "rad2deg"):
    unary(getattr(xp_, _name))
for _name in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
    if hasattr(xp_, "arc" + _name):
        unary(getattr(xp_, "arc" + _name), "a" + _name, aliases=("arc" + _name,))
binary(arctan2, "atan2", aliases=("arctan2",), tensors_only=True)
binary(hypot, tensors_only=True)


# -- sign, size and rounding -------------------------------------------------------------------------------------------


@op(node="AbsBackward0", x=lambda xp, g, x: g * xp.sign(x))
def abs_(xp, x):
    refuse("abs_cpu", _bool, x)
    return xp.abs(x)


def _sign_rule(xp, g, x, y):
    """Flat for real numbers; for complex ones only the part of g along the circle counts."""
    if not is_complex(x):
        return xp.zeros_like(g)
    size = xp.abs(x)
    at_zero = size == 0
    along = g - xp.real(g * xp.conj(y)) * y
    return xp.where(at_zero, 0.0, along / xp.where(at_zero, 1.0, size))


@op(node="SgnBackward0", x=_sign_rule)
def sign_(xp, x):
    return xp.sign(x) if dtype_of(x) is not dtypes.bool_ else x


@op(x=zero)
def floor(xp, x):
    return x if is_integral(x) else xp.floor(x)


@op(x=zero)
def ceil(xp, x):
    return x if is_integral(x) else xp.ceil(x)


@op(x=zero)
def trunc(xp, x):
    return x if is_integral(x) else xp.trunc(x)


@op(x=lambda xp, g: g)
def frac(xp, x):
    refuse("frac_cpu", _integral, x)
    return x - xp.trunc(x)


@op(x=zero)
def round_(xp, x, *, decimals=0):
    if decimals == 0:
        return x if is_integral(x) else xp.round(x)
    refuse("round_cpu", _integral, x)
    scale = 10.0 ** abs(decimals)
    return xp.round(x * scale) / scale if decimals > 0 else xp.round(x / scale) * scale


def _copysign_rule(xp, g, x, y):
    at_zero = x == 0
    return xp.where(at_zero, 0.0, g * (y / xp.where(at_zero, 1.0, x)))


@op(promote="float", x=_copysign_rule, w=zero)
def copysign(xp, x, w):
    return xp.copysign(x, w)


@op(
    promote="common",
    x=lambda xp, g, x, w: xp.where(x == w, 0.0, g),
    w=zero,
)
def nextafter(xp, x, w):
    refuse("nextafter_cpu", _integral, x, w)
    return xp.nextafter(x, w)


@op(node="NotImplemented", promote="common", x=no_gradient("heaviside"), w=no_gradient("heaviside"))
def heaviside(xp, x, w):
    return xp.where(x == 0, w, xp.astype(x > 0, dtype=x.dtype))


@op
def signbit(xp, x):
    return x < 0 if is_integral(x) else xp.signbit(x)


@op(x=lambda xp, g, x: xp.where(xp.isfinite(x), g, 0.0))
def nan_to_num_(xp, x, *, nan, posinf, neginf):
    return xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


unary(abs_, "abs", aliases=("absolute",))
unary(sign_, "sgn")
unary(floor)
unary(ceil)
unary(trunc, aliases=("fix",))
unary(frac)
unary(signbit, inplace=False)
binary(copysign, scalar=variant(copysign, "CopysignBackward1"))
binary(nextafter, tensors_only=True)
binary(heaviside, tensors_only=True)

_sign, _round_decimals = variant(sign_, "SignBackward0"), variant(round_, "RoundBackward1")


@public(inplace=True)
def sign(input):
    """-1, 0 or 1 for each element."""
    if is_complex(input):
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    return _sign(input)


@public(inplace=True)
def round(input, *, decimals=None):
    """To the nearest integer (or to ``decimals`` places), halves to even.

    >>> rushlight.round(rushlight.tensor([0.5, 1.5, 2.5]))
    tensor([0., 2., 2.])
    """
    return round_(input) if decimals is None else _round_decimals(input, decimals=decimals)


@public(inplace=True)
def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    """nan, inf and -inf replaced; by 0 and the dtype's largest and smallest numbers unless given."""
    if is_integral(input):
        return xp_.clone(input)
    limits = dtypes.finfo(input.dtype)
    return nan_to_num_(
        input,
        nan=0.0 if nan is None else nan,
        posinf=limits.max if posinf is None else posinf,
        neginf=limits.min if neginf is None else neginf,
    )


# -- sigmoids ----------------------------------------------------------------------------------------------------------


@op(promote="float", x=lambda xp, g, y: g * xp.conj(y * (1.0 - y)))
def sigmoid(xp, x):
    return xp.sigmoid(x)


@op(x=lambda xp, g, y: xp.where(y <= 0, 0.0, g))
def relu(xp, x):
    if dtype_of(x) is dtypes.bool_:
        raise RuntimeError("Boolean inputs not supported for relu")
    return xp.maximum(x, 0)


def _logit_rule(xp, g, x, eps):
    slope = g / (x * (1 - x))
    if eps is None:
        return xp.where((x >= 0) & (x <= 1), slope, math.nan)
    return xp.where((x >= eps) & (x <= 1 - eps), slope, 0.0)


@op(promote="float", x=_logit_rule)
def logit_(xp, x, *, eps):
    if eps is not None:
        x = xp.minimum(xp.maximum(x, eps), 1 - eps)
    return xp.log(x / (1 - x))


unary(sigmoid)
unary(relu)


@public(inplace=True)
def logit(input, eps=None):
    """``log(input / (1 - input))``, the inverse of sigmoid; input clamped to [eps, 1 - eps] if eps is given."""
    return logit_(input, eps=eps)


# -- larger, smaller, between ------------------------------------------------------------------------------------------


def _shared(xp, g, x, w, loses):
    """The gradient of ``maximum`` or ``minimum`` for x: all, none where it loses, half where both are equal."""
    return xp.where(x == w, g / 2, xp.where(loses, 0.0, g))


def _refuse_complex(name, *values):
    if is_complex(*values):
        raise RuntimeError(f"{name} not implemented for complex tensors.")


@op(
    promote="common",
    x=lambda xp, g, x, w: _shared(xp, g, x, w, x < w),
    w=lambda xp, g, x, w: _shared(xp, g, x, w, w < x),
)
def maximum(xp, x, w):
    _refuse_complex("maximum", x, w)
    return xp.maximum(x, w)


@op(
    promote="common",
    x=lambda xp, g, x, w: _shared(xp, g, x, w, x > w),
    w=lambda xp, g, x, w: _shared(xp, g, x, w, w > x),
)
def minimum(xp, x, w):
    _refuse_complex("minimum", x, w)
    return xp.minimum(x, w)


@op(
    promote="common",
    x=lambda xp, g, x, w: xp.where((x >= w) | xp.isnan(w), g, 0.0),
    w=lambda xp, g, x, w: xp.where((x >= w) | xp.isnan(w), 0.0, g),
)
def fmax(xp, x, w):
    return xp.fmax(x, w)


@op(
    promote="common",
    x=lambda xp, g, x, w: xp.where((x <= w) | xp.isnan(w), g, 0.0),
    w=lambda xp, g, x, w: xp.where((x <= w) | xp.isnan(w), 0.0, g),
)
def fmin(xp, x, w):
    return xp.fmin(x, w)


def _clip_rule(xp, g, x, low, high):
    if low is None or high is None:
        inside = x <= high if low is None else x >= low
    else:
        inside = (x >= low) & (x <= high)
    return xp.where(inside, g, 0.0)


def _clip_low_rule(xp, g, x, low, high):
    below = x < low
    return xp.where(below if high is None else below & (low < high), g, 0.0)


def _clip_high_rule(xp, g, x, low, high):
    above = x > high
    return xp.where(above if low is None else above | (high < low), g, 0.0)


@op(node="ClampBackward0", promote="common", x=_clip_rule, low=_clip_low_rule, high=_clip_high_rule)
def clip(xp, x, low, high):
    refuse("clamp_scalar_cpu", _complex, x)
    if low is not None:
        x = xp.maximum(x, low)
    return x if high is None else xp.minimum(x, high)


binary(maximum, inplace=False, tensors_only=True)
binary(minimum, inplace=False, tensors_only=True)
binary(fmax, inplace=False, tensors_only=True)
binary(fmin, inplace=False, tensors_only=True)

_clip_numbers = variant(clip, "ClampBackward1")
_clip_min, _clip_min_number = variant(clip, "ClampMinBackward1"), variant(clip, "ClampMinBackward0")
_clip_max, _clip_max_number = variant(clip, "ClampMaxBackward1"), variant(clip, "ClampMaxBackward0")


@public(inplace=True, aliases=("clip",))
def clamp(input, min=None, max=None):
    """Each element, but at least ``min`` and at most ``max``: numbers, or tensors that broadcast.

    >>> rushlight.clamp(rushlight.tensor([-2., 0.5, 3.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    kinds = {isinstance(bound, Tensor) for bound in (min, max) if bound is not None}
    if len(kinds) == 2:
        raise TypeError(
            f"clamp() received an invalid combination of arguments - got (min={type(min).__name__}, "
            f"max={type(max).__name__}): give two numbers or two Tensors"
        )
    return (clip if True in kinds else _clip_numbers)(input, min, max)


@public(inplace=True)
def clamp_min(input, min):
    """Each element, but at least ``min``."""
    return (_clip_min if isinstance(min, Tensor) else _clip_min_number)(input, min, None)


@public(inplace=True)
def clamp_max(input, max):
    """Each element, but at most ``max``."""
    return (_clip_max if isinstance(max, Tensor) else _clip_max_number)(input, None, max)


# -- comparison and classification -------------------------------------------------------------------------------------


@op(promote="common")
def equal_(xp, x, w):
    return xp.equal(x, w)


@op(promote="common")
def not_equal(xp, x, w):
    return xp.not_equal(x, w)


@op(promote="common")
def less(xp, x, w):
    refuse("lt_cpu", _complex, x, w)
    return xp.less(x, w)


@op(promote="common")
def less_equal(xp, x, w):
    refuse("le_cpu", _complex, x, w)
    return xp.less_equal(x, w)


@op(promote="common")
def greater(xp, x, w):
    refuse("gt_cpu", _complex, x, w)
    return xp.greater(x, w)


@op(promote="common")
def greater_equal(xp, x, w):
    refuse("ge_cpu", _complex, x, w)
    return xp.greater_equal(x, w)


@op
def isnan(xp, x):
    return xp.isnan(x)


@op
def isinf(xp, x):
    return xp.isinf(x)


@op
def isfinite(xp, x):
    return xp.isfinite(x)


@op
def isposinf(xp, x):
    return x == math.inf


@op
def isneginf(xp, x):
    return x == -math.inf


@op
def isreal(xp, x):
    return xp.imag(x) == 0 if is_complex(x) else xp.ones_like(x, dtype=bool)


@op
def logical_and(xp, x, w):
    return xp.logical_and(x, w)


@op
def logical_or(xp, x, w):
    return xp.logical_or(x, w)


@op
def logical_xor(xp, x, w):
    return xp.logical_xor(x, w)


@op
def logical_not(xp, x):
    return xp.logical_not(x)


binary(equal_, "eq")
binary(not_equal, "ne", aliases=("not_equal",))
binary(less, "lt", aliases=("less",))
binary(less_equal, "le", aliases=("less_equal",))
binary(greater, "gt", aliases=("greater",))
binary(greater_equal, "ge", aliases=("greater_equal",))
for _name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal"):
    unary(getattr(xp_, _name), inplace=False)
for _name in ("logical_and", "logical_or", "logical_xor"):
    binary(getattr(xp_, _name), tensors_only=True)
unary(logical_not)


@op
def isclose_(xp, x, w, *, rtol, atol, equal_nan):
    close = x == w
    if not is_integral(x) or rtol != 0 or atol != 0:
        difference = xp.abs(xp.subtract(x, w))
        close = close | (xp.isfinite(difference) & (difference <= atol + xp.abs(rtol * w)))
    return close | ((x != x) & (w != w)) if equal_nan else close


@public(out=False)
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Where ``|input - other| <= atol + rtol * |other|``."""
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{type_word(input.dtype)} did not match {type_word(other.dtype)}")
    if rtol < 0 or atol < 0:
        name, value = ("rtol", rtol) if rtol < 0 else ("atol", atol)
        raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    if input.dtype is dtypes.bool_:
        return equal_(input, other)
    return isclose_(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


@public(out=False)
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close; a Python bool."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


@public(out=False)
def equal(input, other):
    """Whether both tensors have one shape and the same elements; a Python bool."""
    return input.shape == other.shape and bool(equal_(input, other)._array.all())


# -- selection ---------------------------------------------------------------------------------------------------------


def _check_condition(condition):
    d = dtype_of(condition)
    if d is not dtypes.bool_ and d is not dtypes.uint8:
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {type_word(d)}"
        )


@op(
    promote="common",
    keep=("condition",),
    x=lambda xp, g, condition: xp.where(condition, g, 0.0),
    w=lambda xp, g, condition: xp.where(condition, 0.0, g),
)
def where_(xp, condition, x, w):
    return xp.where(condition, x, w)


@op(
    node="MaskedFillBackward1",
    x=lambda xp, g, mask: xp.where(mask, 0.0, g),
    value=lambda xp, g, mask: xp.where(mask, g, 0.0),
)
def masked_fill_(xp, x, mask, value):
    return xp.astype(xp.where(mask, value, x), dtype=x.dtype)


@public(method=False)
def where(condition, input=None, other=None):
    """``input`` where ``condition`` holds, ``other`` elsewhere; with a condition only, the indices where it holds.

    >>> x = rushlight.tensor([-1., 2.])
    >>> rushlight.where(x > 0, x, 0.)
    tensor([0., 2.])
    """
    if input is None and other is None:
        return PUBLIC["nonzero"](condition, as_tuple=True)
    _check_condition(condition)
    if not (isinstance(input, Tensor) or isinstance(other, Tensor)):
        dtype = dtypes.promote_types(dtypes.of_scalar(input), dtypes.of_scalar(other))
        input = wrap(np.asarray(input, dtype.numpy))
    return where_(condition, input, other)


def _where_method(self, condition, other):
    """``self`` where ``condition`` holds, ``other`` elsewhere."""
    return where(condition, self, other)


Tensor.where = _where_method
_masked_fill_number = variant(masked_fill_, "MaskedFillBackward0")


@public(inplace=True)
def masked_fill(input, mask, value):
    """``input`` with ``value`` where ``mask`` is True."""
    if mask.dtype is not dtypes.bool_:
        kind = {"int64": "long int", "float32": "float", "float64": "double", "uint8": "unsigned char"}
        word = kind.get(mask.dtype.name, mask.dtype.name)
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {word}")
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s)."
            )
        return masked_fill_(input, mask, value)
    if isinstance(value, complex) and not is_complex(input):
        raise RuntimeError("value cannot be converted to type float without overflow")
    return _masked_fill_number(input, mask, value)


# -- bits and integers -------------------------------------------------------------------------------------------------


def _bitwise(name, kernel=None):
    def bitwise(xp, x, w):
        refuse(kernel or name + "_cpu", _not_integral, x, w)
        return getattr(xp, name)(x, w)

    bitwise.__name__ = name
    return op(promote="common")(bitwise)


bitwise_and, bitwise_or, bitwise_xor = _bitwise("bitwise_and"), _bitwise("bitwise_or"), _bitwise("bitwise_xor")
left_shift, right_shift = _bitwise("left_shift", "lshift_cpu"), _bitwise("right_shift", "rshift_cpu")
gcd, lcm = _bitwise("gcd"), _bitwise("lcm")


@op
def invert(xp, x):
    if _not_integral(dtype_of(x)):
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return xp.invert(x)


for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    binary(getattr(xp_, _name))
binary(left_shift, "bitwise_left_shift")
binary(right_shift, "bitwise_right_shift")
binary(gcd, tensors_only=True)
binary(lcm, tensors_only=True)
unary(invert, "bitwise_not")


# -- complex numbers ---------------------------------------------------------------------------------------------------


@op(node="ConjPhysicalBackward0", x=lambda xp, g: xp.conj(g))
def conj_(xp, x):
    return xp.conj(x)


def _conj_of_anything(x):
    """For rules: numbers are conjugated as numbers, and real tensors are left alone."""
    if isinstance(x, Tensor):
        return conj_(x) if x._array.dtype.kind == "c" else x
    return x.conjugate()


xp_.conj = _conj_of_anything


@op(
    node="SelectBackward0",
    view=True,
    write=lambda xp, x, value: xp.make_complex(value, xp.imag(x)),
    x=lambda xp, g: g,
)
def real_(xp, x):
    return xp.real(x)


@op(
    node="SelectBackward0",
    view=True,
    write=lambda xp, x, value: xp.make_complex(xp.real(x), value),
    x=lambda xp, g: g * 1j,
)
def imag_(xp, x):
    return xp.imag(x)


@op(
    node="ComplexBackward0",
    x=lambda xp, g: xp.real(g),
    w=lambda xp, g: xp.imag(g),
)
def make_complex(xp, x, w):
    return xp.make_complex(x, w)


@op(
    view=True,
    write=lambda xp, x, value: xp.view_as_complex(value),
    x=lambda xp, g: xp.view_as_complex(g),
)
def view_as_real_(xp, x):
    return xp.view_as_real(x)


@op(
    view=True,
    write=lambda xp, x, value: xp.view_as_real(value),
    x=lambda xp, g: xp.view_as_real(g),
)
def view_as_complex_(xp, x):
    return xp.view_as_complex(x)


@op(
    node="PolarBackward0",
    x=lambda xp, g, w: xp.real(g) * xp.cos(w) + xp.imag(g) * xp.sin(w),
    w=lambda xp, g, x, w: x * (xp.imag(g) * xp.cos(w) - xp.real(g) * xp.sin(w)),
)
def polar_(xp, x, w):
    return xp.make_complex(x * xp.cos(w), x * xp.sin(w))


def _angle_rule(xp, g, x):
    if not is_complex(x):
        return xp.zeros_like(g)
    size = xp.real(x * xp.conj(x))
    at_zero = size == 0
    return xp.where(at_zero, 0.0, g * 1j * x / xp.where(at_zero, 1.0, size))


@op(promote="float", x=_angle_rule)
def angle(xp, x):
    if is_complex(x):
        return xp.arctan2(xp.imag(x), xp.real(x))
    return xp.where(x < 0, math.pi, xp.where(x != x, x, xp.zeros_like(x)))


unary(angle, inplace=False)
_conj_lazy = variant(conj_, "ConjBackward0")


@public(out=False)
def conj(input):
    """The complex conjugate; a real tensor is returned as it is."""
    return _conj_lazy(input) if is_complex(input) else input


@public(inplace=True)
def conj_physical(input):
    """The complex conjugate, written out in new memory."""
    return conj_(input) if is_complex(input) else input


@public(out=False, aliases=("resolve_neg",))
def resolve_conj(input):
    """``input``: conjugation and negation are never delayed here."""
    return input


@public(out=False, aliases=("is_neg",))
def is_conj(input):
    """False: conjugation and negation are never delayed here."""
    return False


@public(method=False, out=False)
def real(input):
    """The real parts, as a view."""
    return real_(input) if is_complex(input) else input


@public(method=False, out=False)
def imag(input):
    """The imaginary parts, as a view."""
    if not is_complex(input):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return imag_(input)


def _set_part(part):
    def write(self, value):
        part(self).copy_(value)

    return write


Tensor.real = property(real, _set_part(real))
Tensor.imag = property(imag, _set_part(imag))


@public(out=False)
def view_as_real(input):
    """A complex tensor as a real one with a last dimension of 2, sharing memory."""
    if not is_complex(input):
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return view_as_real_(input)


@public(out=False)
def view_as_complex(input):
    """A real tensor whose last dimension is 2 as a complex one, sharing memory."""
    if not dtype_of(input).is_floating_point:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{type_word(input.dtype)}"
        )
    if input.dtype.itemsize == 2:
        raise RuntimeError(
            "view_as_complex: rushlight has no half-precision complex dtype; convert with .float() first"
        )
    if not input.ndim or input.shape[-1] != 2:
        raise RuntimeError(
            "Tensor must have a last dimension of size 2"
            if input.ndim
            else "Input tensor must have one or more dimensions"
        )
    return view_as_complex_(input)


def _check_parts(real, imag):
    names = [type_word(d) for d in (real.dtype, imag.dtype)]
    if not (real.dtype.is_floating_point and imag.dtype.is_floating_point):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if real.dtype is not imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )


@public(method=False)
def complex_(real, imag):
    """A complex tensor from its parts."""
    _check_parts(real, imag)
    return make_complex(real, imag)


@public(method=False)
def polar(abs, angle):
    """A complex tensor from its absolute values and angles."""
    _check_parts(abs, angle)
    return polar_(abs, angle)


# -- copies ------------------------------------------------------------------------------------------------------------


@op(node="ToCopyBackward0", exact=True, x=lambda xp, g: g)
def astype(xp, x, *, dtype):
    return xp.astype(x, dtype=getattr(dtype, "numpy", dtype))


@op(node="CloneBackward0", exact=True, x=lambda xp, g: g)
def clone(xp, x):
    return xp.asarray(x, copy=True)


@op(view=True, write=lambda xp, x, value: value, x=lambda xp, g: g)
def alias(xp, x):
    return xp.alias(x)
