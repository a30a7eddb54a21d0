"""Comparison, classification (isnan …) and the logic of booleans."""

from __future__ import annotations

import functools
import math

from .. import dtypes
from ..autograd import views
from ..autograd.op import differentiable as xp_
from ..autograd.op import op, variant
from ..engine.fallback import FORWARDS
from ..tensor import Tensor
from . import refusals
from .common import binary, complex_dtype, is_complex, is_integral, refuse, type_word, unary, zero
from .public import public


@op(promote="common")
def equal_(xp, x, w):
    """x = y, element by element."""
    return xp.equal(x, w)


@op(promote="common")
def not_equal(xp, x, w):
    """x ≠ y, element by element."""
    return xp.not_equal(x, w)


@op(promote="common")
def less(xp, x, w):
    """x < y, element by element."""
    refuse("lt_cpu", complex_dtype, x, w)
    return xp.less(x, w)


@op(promote="common")
def less_equal(xp, x, w):
    """x ≤ y, element by element."""
    refuse("le_cpu", complex_dtype, x, w)
    return xp.less_equal(x, w)


@op(promote="common")
def greater(xp, x, w):
    """x > y, element by element."""
    refuse("gt_cpu", complex_dtype, x, w)
    return xp.greater(x, w)


@op(promote="common")
def greater_equal(xp, x, w):
    """x ≥ y, element by element."""
    refuse("ge_cpu", complex_dtype, x, w)
    return xp.greater_equal(x, w)


@op
def isnan(xp, x):
    """Where an element is nan."""
    return xp.isnan(x)


@op
def isinf(xp, x):
    """Where an element is infinite."""
    return xp.isinf(x)


@op
def isfinite(xp, x):
    """Where an element is neither infinite nor nan."""
    return xp.isfinite(x)


@op
def isposinf(xp, x):
    """Where an element is +inf."""
    _refuse_complex("isposinf", x)
    return x == math.inf


@op
def isneginf(xp, x):
    """Where an element is -inf."""
    _refuse_complex("isneginf", x)
    return x == -math.inf


def _refuse_complex(name, x):
    if is_complex(x):
        raise RuntimeError(f"{name} does not support complex inputs.")


@op
def isreal(xp, x):
    """Where an element has no imaginary part."""
    return xp.imag(x) == 0 if is_complex(x) else xp.ones_like(x, dtype=bool)


def _not_of_complex_half(x, w):
    given = [(a.ndim, dtypes.of_numpy(a.dtype)) for a in (x, w) if hasattr(a, "dtype")]
    if dtypes.result_dtype([d for n, d in given if n], [d for n, d in given if not n], ()) is dtypes.complex32:
        raise NotImplementedError("\"logical_cpu\" not implemented for 'ComplexHalf'")


@op(check=_not_of_complex_half)
def logical_and(xp, x, w):
    """Where both are not zero."""
    return xp.logical_and(x, w)


@op(check=_not_of_complex_half)
def logical_or(xp, x, w):
    """Where one of them is not zero."""
    return xp.logical_or(x, w)


@op(check=_not_of_complex_half)
def logical_xor(xp, x, w):
    """Where exactly one of them is not zero."""
    return xp.logical_xor(x, w)


@op
def logical_not(xp, x):
    """Where an element is zero."""
    return xp.logical_not(x)


@op(promote="common", exact=True, x=zero, w=zero)
def compared(xp, x, w, *, how, dtype):
    """A comparison as numbers of ``dtype``: what an in-place one leaves, which is flat, not out of graph."""
    return xp.astype(FORWARDS[how](xp, x, w), dtype=dtype)


def _comparison(call, name, aliases=()):
    binary(call, name, aliases=aliases)
    plain, how = getattr(Tensor, name + "_"), call.__name__
    recorded = [variant(compared, f"{name.capitalize()}Backward{i}") for i in range(2)]

    def write(self, other):
        if self._node is None and getattr(other, "_node", None) is None:
            return plain(self, other)
        return views.inplace(self, recorded[isinstance(other, Tensor)], other, how=how, dtype=self._array.dtype)

    for each in (name, *aliases):
        setattr(Tensor, each + "_", _explained(write, each + "_", plain.__doc__))


def _explained(write, name, text):
    @functools.wraps(write)
    def method(self, *args, **kwargs):
        try:
            return write(self, *args, **kwargs)
        except Exception:
            refusals.explain(name, write, args, kwargs)
            raise

    method.__name__ = method.__qualname__ = name
    method.__doc__ = text
    return method


_comparison(equal_, "eq")
_comparison(not_equal, "ne", aliases=("not_equal",))
_comparison(less, "lt", aliases=("less",))
_comparison(less_equal, "le", aliases=("less_equal",))
_comparison(greater, "gt", aliases=("greater",))
_comparison(greater_equal, "ge", aliases=("greater_equal",))
for _name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal"):
    unary(getattr(xp_, _name), inplace=False)
for _name in ("logical_and", "logical_or", "logical_xor"):
    binary(getattr(xp_, _name), inplace="unrecorded", tensors_only=True)
unary(logical_not, inplace="unrecorded")


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
    if not (rtol >= 0 and atol >= 0):
        name, value = ("atol", atol) if rtol >= 0 else ("rtol", rtol)
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
