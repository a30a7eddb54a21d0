"""Element by element: arithmetic, comparison, powers, exponentials."""

from __future__ import annotations

from ..autograd.op import differentiable as xp_, op
from ..tensor import Tensor
from .public import public

# -- arithmetic ------------------------------------------------------------------------------------------------------


@op(node="AddBackward0", promote="common", x=lambda xp, g: g, w=lambda xp, g: g)
def add(xp, x, w):
    return xp.add(x, w)


@op(node="SubBackward0", promote="common", x=lambda xp, g: g, w=lambda xp, g: -g)
def subtract(xp, x, w):
    return xp.subtract(x, w)


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


@op(node="NegBackward0", x=lambda xp, g: -g)
def negative(xp, x):
    return xp.negative(x)


@op(promote="float", x=lambda xp, g, y: g * xp.conj(y))
def exp(xp, x):
    return xp.exp(x)


@op(promote="float", x=lambda xp, g, x: g / xp.conj(x))
def log(xp, x):
    return xp.log(x)


@op(promote="float", x=lambda xp, g, y: g * (1.0 - xp.conj(y * y)))
def tanh(xp, x):
    return xp.tanh(x)


@op(promote="float", x=lambda xp, g, y: g * xp.conj(y * (1.0 - y)))
def sigmoid(xp, x):
    return xp.sigmoid(x)


@op(promote="float", x=lambda xp, g, y: g / (2.0 * xp.conj(y)))
def sqrt(xp, x):
    return xp.sqrt(x)


@op(x=lambda xp, g, y: g * xp.astype(y > 0, dtype=g.dtype))
def relu(xp, x):
    return xp.maximum(x, 0)


@op(
    promote="common",
    x=lambda xp, g, x, w: xp.where(w == 0, 0.0, g * w * xp.power(x, w - 1)),
    w=lambda xp, g, x, w, y: xp.where(x == 0, 0.0, g * y * xp.log(x)),
)
def power(xp, x, w):
    return xp.power(x, w)


@op(node="ConjPhysicalBackward0", x=lambda xp, g: xp.conj(g))
def conj(xp, x):
    return xp.conj(x)


@op(node="ToCopyBackward0", exact=True, x=lambda xp, g: g)
def astype(xp, x, *, dtype):
    return xp.astype(x, dtype=dtype)


@op(node="CloneBackward0", exact=True, x=lambda xp, g: g)
def clone(xp, x):
    return xp.asarray(x, copy=True)


@op(view=True, write=lambda xp, x, value: value, x=lambda xp, g: g)
def alias(xp, x):
    return xp.alias(x)
