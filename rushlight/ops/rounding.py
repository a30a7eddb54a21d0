"""Sign, size and rounding."""

from __future__ import annotations

import math

from .. import dtypes
from ..autograd import views
from ..autograd.op import differentiable as xp_
from ..autograd.op import op, variant
from ..tensor import Tensor
from .common import (
    as_number,
    binary,
    bool_dtype,
    dtype_of,
    integral_dtype,
    is_complex,
    is_integral,
    no_gradient,
    refuse,
    refuse_complex_gradient,
    unary,
    zero,
)
from .public import public


@op(node="AbsBackward0", x=lambda xp, g, x: g * xp.sign(x))
def abs_(xp, x):
    """|x|."""
    refuse("abs_cpu", bool_dtype, x)
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
    """The sign; of a complex number, the number on the unit circle in its direction."""
    return xp.sign(x) if dtype_of(x) is not dtypes.bool_ else x


@op(node="SignBackward0", x=lambda xp, g: xp.zeros_like(g))
def real_sign(xp, x):
    return xp.sign(x) if dtype_of(x) is not dtypes.bool_ else x


def _refuse(name, x) -> None:
    if is_complex(x):
        raise NotImplementedError(f"{name} is not supported for complex inputs")
    refuse(f"{name}_vml_cpu", bool_dtype, x)


@op(x=zero)
def floor(xp, x):
    """Rounded down."""
    _refuse("floor", x)
    return x if is_integral(x) else xp.floor(x)


@op(x=zero)
def ceil(xp, x):
    """Rounded up."""
    _refuse("ceil", x)
    return x if is_integral(x) else xp.ceil(x)


@op(x=zero)
def trunc(xp, x):
    """Rounded towards zero."""
    _refuse("trunc", x)
    return x if is_integral(x) else xp.trunc(x)


@op(x=lambda xp, g: g)
def frac(xp, x):
    """What is left of x rounded towards zero."""
    refuse("frac_cpu", integral_dtype, x)
    return x - xp.trunc(x)


@op(x=zero)
def round_(xp, x, *, decimals=0):
    refuse("round_vml_cpu", lambda d: d.is_complex or bool_dtype(d), x)
    if decimals == 0:
        return x if is_integral(x) else xp.round(x)
    refuse("round_cpu", integral_dtype, x)
    scale = 10.0 ** abs(decimals) if abs(decimals) < 309 else math.inf
    return xp.round(x * scale) / scale if decimals > 0 else xp.round(x / scale) * scale


@op(promote="float", x=lambda xp, g, x, y: g * xp.where(x == 0, 0.0, y / x), w=zero)
def copysign(xp, x, w):
    """The magnitude of x with the sign of y."""
    return xp.copysign(x, w)


@op(
    promote="common",
    x=lambda xp, g, x, w: xp.where(x == w, 0.0, g),
    w=zero,
)
def nextafter(xp, x, w):
    """The next number that the dtype has, from x towards y."""
    refuse("nextafter_cpu", integral_dtype, x, w)
    return xp.nextafter(x, w)


def _check_heaviside(x, w):
    kinds = [dtype_of(t) for t in (x, w)]
    if any(d.is_complex for d in kinds):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if kinds[0] is not kinds[1]:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


@op(
    node="NotImplemented",
    promote="common",
    check=_check_heaviside,
    x=no_gradient("heaviside"),
    w=no_gradient("heaviside"),
)
def heaviside(xp, x, w):
    """0 below zero, 1 above, y at zero."""
    return xp.where(x == 0, w, xp.astype(x > 0, dtype=x.dtype))


@op
def signbit(xp, x):
    """Where the sign is negative, that of -0.0 too."""
    return x < 0 if is_integral(x) else xp.signbit(x)


@op(x=lambda xp, g, x: xp.where(xp.isfinite(x), g, 0.0))
def nan_to_num_(xp, x, *, nan, posinf, neginf):
    return xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


unary(abs_, "abs", aliases=("absolute",), inplace="real")
unary(sign_, "sgn")
unary(floor)
unary(ceil)
unary(trunc, aliases=("fix",))
unary(frac)
unary(signbit, inplace=False)
binary(copysign, scalar=variant(copysign, "CopysignBackward1"))
binary(nextafter, tensors_only=True)
binary(heaviside, tensors_only=True)

_round_decimals = variant(round_, "RoundBackward1")


@public(inplace=True)
def sign(input):
    """-1, 0 or 1 for each element."""
    if is_complex(input):
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    return real_sign(input)


@public(inplace=True)
def round(input, *, decimals=None):
    """To the nearest integer (or to ``decimals`` places), halves to even.

    >>> rushlight.round(rushlight.tensor([0.5, 1.5, 2.5]))
    tensor([0., 2., 2.])
    """
    if decimals is not None:
        refuse("round_cpu" if decimals else "round_vml_cpu", integral_dtype, input)
    return round_(input) if decimals is None else _round_decimals(input, decimals=decimals)


def _real(value):
    return value.real if isinstance(value, complex) else value


@public(inplace=True)
def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    """nan, inf and -inf replaced; by 0 and the dtype's largest and smallest numbers unless given."""
    result = _with_numbers(input, nan, posinf, neginf)
    refuse_complex_gradient("nan_to_num", input)
    return result


def _with_numbers(input, nan=0.0, posinf=None, neginf=None):
    nan, posinf, neginf = (
        None if v is None else _real(as_number("nan_to_num", name, i, v))
        for i, (name, v) in enumerate([("nan", nan), ("posinf", posinf), ("neginf", neginf)], 2)
    )
    if is_integral(input):
        return xp_.clone(input)
    limits = dtypes.finfo(input.dtype)
    return nan_to_num_(
        input,
        nan=0.0 if nan is None else nan,
        posinf=limits.max if posinf is None else posinf,
        neginf=limits.min if neginf is None else neginf,
    )


def _in_place(name, plain, of_complex):
    """``name``, in place: of integers nothing is written, wherever they lie, and complex numbers have gradients."""

    def method(self, *args, **kwargs):
        if is_integral(self):
            self._counted().version += 1
            return self
        return views.inplace(self, of_complex, *args, **kwargs) if is_complex(self) else plain(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = plain.__doc__
    setattr(Tensor, name, method)


_in_place("nan_to_num_", Tensor.nan_to_num_, _with_numbers)  # type: ignore[attr-defined]
