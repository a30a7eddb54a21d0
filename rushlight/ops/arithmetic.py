"""Sums, products, quotients, remainders, and the like of two or three tensors."""

from __future__ import annotations

import functools

import numpy as np

from .. import dtypes
from ..autograd.op import check_broadcast, op, variant
from ..autograd.op import differentiable as xp_
from ..engine import LOW_PRECISION
from ..tensor import Tensor
from .common import (
    binary,
    bool_dtype,
    check_tensor,
    complex_dtype,
    dtype_of,
    integral_dtype,
    is_integral,
    is_number,
    of_number,
    refuse,
    require_number,
    unary,
    zero,
)
from .data import fill_value
from .public import public


@op(node="AddBackward0", promote="common", x=lambda xp, g: g, w=lambda xp, g: g)
def add_(xp, x, w):
    return xp.add(x, w)


@op(node="AddBackward0", promote="common", exact=True, x=lambda xp, g: g, w=lambda xp, g, alpha: g * alpha.conjugate())
def add_scaled(xp, x, w, *, alpha):
    return xp.add(x, _scaled(xp, w, alpha))


def _scaled(xp, w, alpha):
    """``w * alpha`` in w's dtype: integers wrap around, half precision is rounded, as in PyTorch."""
    d = dtype_of(w)
    in_its_dtype = integral_dtype(d) or d.numpy in LOW_PRECISION
    return xp.multiply(w, np.asarray(alpha).astype(d.numpy) if in_its_dtype else alpha)


def _check_subtract(x, w):
    kinds = ["b" if a is True or a is False or dtype_of(a) is dtypes.bool_ else "" for a in (x, w)]
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
    exact=True,
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
    """x y."""
    return xp.multiply(x, w)


@op(
    node="DivBackward0",
    promote="float",
    x=lambda xp, g, w: g / xp.conj(w),
    w=lambda xp, g, x, w: -g * xp.conj(x / w / w),  # not from the quotient, which may be written to
)
def divide(xp, x, w):
    """x / y, never rounded."""
    return xp.divide(x, w)


def _check_not_bools(kernel, x, w) -> None:
    if dtype_of(x) is dtype_of(w) is dtypes.bool_:
        refuse(kernel, bool_dtype, x, w)


@op(node="DivBackward2", promote="common", x=zero, w=zero)
def divide_rounded(xp, x, w, *, mode):
    _check_not_bools(f"div_{mode}_cpu", x, w)
    if mode == "floor":
        return xp.floor_divide(x, w)
    if not is_integral(x, w):
        return xp.trunc(xp.divide(x, w))
    # The quotient rounded down is one too low where it is negative and inexact.
    quotient = xp.floor_divide(x, w)
    return quotient + xp.astype((quotient < 0) & (quotient * w != x), dtype=quotient.dtype)


def _no_slope(xp, g):
    raise RuntimeError("derivative for aten::floor_divide is not implemented")


@op(node="NotImplemented", promote="common", x=_no_slope, w=_no_slope)
def floor_divide_(xp, x, w):
    """x / y, rounded down."""
    _check_not_bools("div_floor_cpu", x, w)
    return xp.floor_divide(x, w)


def _check_divisible(kernel, x, w) -> None:
    refuse(kernel, complex_dtype, x, w)
    _check_not_bools(kernel, x, w)


@op(
    node="RemainderBackward1",
    promote="common",
    x=lambda xp, g: g,
    w=lambda xp, g, x, w: -g * xp.divide_rounded(x, w, mode="floor"),
)
def remainder(xp, x, w):
    """What is left of x / y rounded down; it has the sign of y."""
    _check_divisible("remainder_cpu", x, w)
    return xp.remainder(x, w)


@op(
    node="FmodBackward1",
    promote="common",
    x=lambda xp, g: g,
    w=lambda xp, g, x, w: -g * xp.divide_rounded(x, w, mode="trunc"),
)
def fmod(xp, x, w):
    """What is left of x / y rounded towards zero; it has the sign of x."""
    _check_divisible("fmod_cpu", x, w)
    return xp.fmod(x, w)


def _check_negative(x):
    if dtype_of(x) is dtypes.bool_:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )


@op(node="NegBackward0", check=_check_negative, x=lambda xp, g: -g)
def negative(xp, x):
    """-x."""
    return xp.negative(x)


@op(promote="float", x=lambda xp, g, y: -g * xp.conj(y * y))
def reciprocal(xp, x):
    """1 / x."""
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
    if is_number(weight):
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
    if alpha.__class__ is float and other.__class__ is Tensor and other.dtype.is_floating_point:
        return
    kinds = [dtype_of(t) for t in (input, other) if isinstance(t, Tensor)]
    if alpha.__class__ is bool and not all(d is dtypes.bool_ for d in kinds):
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and not any(d.is_complex for d in kinds):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if isinstance(alpha, float) and all(integral_dtype(d) for d in kinds) and not isinstance(other, float):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")


@public(inplace="one step", old=("alpha",))
def add(input, other, *, alpha=1):
    """``input + alpha * other``.

    >>> rushlight.add(rushlight.tensor([1., 2.]), rushlight.tensor([10., 20.]), alpha=2)
    tensor([21., 42.])
    """
    if not isinstance(other, Tensor):
        require_number("add", "other", 2, other)
        input = of_number(input)
    if alpha.__class__ is not int:
        _check_alpha(alpha, input, other)
    if alpha == 1:
        return xp_.add(input, other)
    if not isinstance(other, Tensor):
        return xp_.add(input, other * alpha)
    return xp_.add_scaled(input, other, alpha=alpha)


@public(inplace="one step", aliases=("subtract",), old=("alpha",))
def sub(input, other, *, alpha=1):
    """``input - alpha * other``."""
    if not isinstance(other, Tensor):
        require_number("sub", "other", 2, other)
        input = of_number(input)
        _check_subtract(input, other)
    if alpha.__class__ is not int:
        _check_alpha(alpha, input, other)
    if alpha == 1:
        return subtract(input, other)
    if not isinstance(other, Tensor):
        return subtract(input, other * alpha)
    return subtract_scaled(input, other, alpha=alpha)


_rsub_number = variant(rsub_, "RsubBackward1")


@public(method=False)
def rsub(input, other, *, alpha=1):
    """``other - alpha * input``."""
    check_tensor("rsub", input)
    _check_subtract(input, other)
    _check_alpha(alpha, input, other)
    return (rsub_ if isinstance(other, Tensor) else _rsub_number)(input, other, alpha=alpha)


binary(multiply, "mul", aliases=("multiply",), inplace="one step")
unary(negative, "neg", aliases=("negative",), inplace="one step")
unary(reciprocal)
_remainder_number, _fmod_number = variant(remainder, "RemainderBackward0"), variant(fmod, "FmodBackward0")
binary(remainder, scalar=_remainder_number)
binary(fmod, scalar=_fmod_number)
binary(floor_divide_, "floor_divide")


@public(inplace="one step", aliases=("divide",))
def div(input, other, *, rounding_mode=None):
    """``input / other``; ``rounding_mode`` is None, "trunc" or "floor".

    >>> rushlight.div(rushlight.tensor([-7, 7]), 2, rounding_mode="floor")
    tensor([-4,  3])
    """
    if not isinstance(other, Tensor):
        require_number("div", "other", 2, other)
        input = of_number(input)
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
    check_tensor("positive", input)
    if dtype_of(input) is dtypes.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@public(inplace=True, old=("value",))
def addcmul(input, tensor1, tensor2, *, value=1):
    """``input + value * tensor1 * tensor2``."""
    check_tensor("addcmul", input)
    _check_tensors("addcmul", tensor1, tensor2)
    given = (input, tensor1, tensor2)
    refuse("addcmul_cpu_out", lambda _: all(dtype_of(t) is dtypes.bool_ for t in given), *given)
    if isinstance(value, float) and all(map(is_integral, given)):
        value = int(fill_value(value, functools.reduce(dtypes.promote_types, map(dtype_of, given))))
    return addcmul_(input, tensor1, tensor2, value=value)


@public(inplace=True, old=("value",))
def addcdiv(input, tensor1, tensor2, *, value=1):
    """``input + value * tensor1 / tensor2``."""
    check_tensor("addcdiv", input)
    _check_tensors("addcdiv", tensor1, tensor2)
    if is_integral(tensor1) and is_integral(tensor2):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )
    return addcdiv_(input, tensor1, tensor2, value=value)


def _check_tensors(function, tensor1, tensor2):
    check_tensor(function, tensor1, "tensor1", 2)
    check_tensor(function, tensor2, "tensor2", 3)


_lerp_number = variant(lerp_, "LerpBackward0")


@public(inplace=True)
def lerp(input, end, weight):
    """Linear interpolation: ``input + weight * (end - input)``.

    >>> rushlight.lerp(rushlight.tensor([0., 10.]), rushlight.tensor([1., 20.]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    if not isinstance(end, Tensor):
        raise TypeError(f"lerp(): argument 'end' (position 2) must be Tensor, not {type(end).__name__}")
    for name, t in (("end", end), ("weight", weight)):
        if isinstance(t, Tensor) and t._array.dtype is not input._array.dtype and t.dtype is not input.dtype:
            raise RuntimeError(f"expected dtype {_word(input)} for `{name}` but got dtype {_word(t)}")
    if input._array.dtype.kind in "biu":
        check_broadcast((input, end, weight))
        refuse("lerp_kernel_scalar", lambda d: True, input)
    return (lerp_ if isinstance(weight, Tensor) else _lerp_number)(input, end, weight)


def _word(t) -> str:
    return {"float64": "double", "float32": "float", "float16": "c10::Half", "int64": "long int"}.get(
        t.dtype.name, t.dtype.name
    )
