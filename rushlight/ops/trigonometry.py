"""Circular and hyperbolic functions and their inverses; degrees and radians."""

from __future__ import annotations

import math

from ..autograd.op import differentiable as xp_
from ..autograd.op import op
from .common import binary, integral_dtype, is_complex, refuse, unary


@op(promote="float", x=lambda xp, g, x: g * xp.conj(xp.cos(x)))
def sin(xp, x):
    """The sine."""
    return xp.sin(x)


@op(promote="float", x=lambda xp, g, x: -g * xp.conj(xp.sin(x)))
def cos(xp, x):
    """The cosine."""
    return xp.cos(x)


@op(promote="float", x=lambda xp, g, y: g * xp.conj(1 + y * y))
def tan(xp, x):
    """The tangent."""
    return xp.tan(x)


@op(node="AsinBackward0", promote="float", x=lambda xp, g, x: g / xp.conj(xp.sqrt(1 - x * x)))
def arcsin(xp, x):
    """The angle whose sine is x."""
    return xp.arcsin(x)


@op(node="AcosBackward0", promote="float", x=lambda xp, g, x: -g / xp.conj(xp.sqrt(1 - x * x)))
def arccos(xp, x):
    """The angle whose cosine is x."""
    return xp.arccos(x)


@op(node="AtanBackward0", promote="float", x=lambda xp, g, x: g / xp.conj(1 + x * x))
def arctan(xp, x):
    """The angle whose tangent is x."""
    return xp.arctan(x)


@op(promote="float", x=lambda xp, g, x: g * xp.conj(xp.cosh(x)))
def sinh(xp, x):
    """The hyperbolic sine."""
    return xp.sinh(x)


@op(promote="float", x=lambda xp, g, x: g * xp.conj(xp.sinh(x)))
def cosh(xp, x):
    """The hyperbolic cosine."""
    return xp.cosh(x)


@op(promote="float", x=lambda xp, g, y: g * (1.0 - xp.conj(y * y)))
def tanh(xp, x):
    """The hyperbolic tangent."""
    return xp.tanh(x)


@op(node="AsinhBackward0", promote="float", x=lambda xp, g, x: g / xp.conj(xp.sqrt(x * x + 1)))
def arcsinh(xp, x):
    """The inverse of sinh."""
    return xp.arcsinh(x)


def _arccosh_slope(xp, x):
    # For complex x the two roots apart: their product is on the branch of arccosh, the root of the product is not.
    return xp.sqrt(x - 1) * xp.sqrt(x + 1) if is_complex(x) else xp.sqrt(x * x - 1)


@op(node="AcoshBackward0", promote="float", x=lambda xp, g, x: g / xp.conj(_arccosh_slope(xp, x)))
def arccosh(xp, x):
    """The inverse of cosh."""
    return xp.arccosh(x)


@op(node="AtanhBackward0", promote="float", x=lambda xp, g, x: g / xp.conj(1 - x * x))
def arctanh(xp, x):
    """The inverse of tanh."""
    return xp.arctanh(x)


def _inverse_square(xp, x, w):
    """1 / (x² + w²), but 0 where that is no number: at the origin atan2 is flat, as PyTorch has it."""
    square = x * x + w * w
    return xp.where(square == 0, 0.0, xp.reciprocal(square))


@op(
    node="Atan2Backward0",
    promote="float",
    x=lambda xp, g, x, w: g * w * _inverse_square(xp, x, w),
    w=lambda xp, g, x, w: -g * x * _inverse_square(xp, x, w),
)
def arctan2(xp, x, w):
    """The angle of the point (y, x), in its quadrant."""
    return xp.arctan2(x, w)


@op(promote="common", x=lambda xp, g, x, y: g * (x / y), w=lambda xp, g, w, y: g * (w / y))
def hypot(xp, x, w):
    """√(x² + y²)."""
    refuse("hypot_cpu", integral_dtype, x, w)
    return xp.hypot(x, w)


def _sinc_slope(xp, g, x):
    # Where the quotient is 0/0, at 0 and where x² is too small for a number, the slope is 0.
    angle = math.pi * x
    bottom = angle * x
    return xp.where(bottom == 0, 0.0, g * xp.conj((angle * xp.cos(angle) - xp.sin(angle)) / bottom))


@op(promote="float", x=_sinc_slope)
def sinc(xp, x):
    """sin(πx) / πx, 1 at 0."""
    return xp.sinc(x)


def _only_real(name):
    def check(x):
        if is_complex(x):
            raise RuntimeError(f"{name} is not supported for complex tensors.")

    return check


@op(node="Deg2RadBackward0", promote="float", check=_only_real("deg2rad"), x=lambda xp, g: g * (math.pi / 180))
def deg2rad(xp, x):
    """Degrees as radians."""
    return x * (math.pi / 180)


@op(node="Rad2DegBackward0", promote="float", check=_only_real("rad2deg"), x=lambda xp, g: g * (180 / math.pi))
def rad2deg(xp, x):
    """Radians as degrees."""
    return x * (180 / math.pi)


for _name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "sinc", "deg2rad", "rad2deg"):
    unary(getattr(xp_, _name))
for _name in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
    if hasattr(xp_, "arc" + _name):
        unary(getattr(xp_, "arc" + _name), "a" + _name, aliases=("arc" + _name,))
binary(arctan2, "atan2", aliases=("arctan2",), tensors_only=True)
binary(hypot, tensors_only=True)
