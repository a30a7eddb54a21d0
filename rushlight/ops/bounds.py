"""The larger, the smaller, and what lies between: maximum, minimum, clamp."""

from __future__ import annotations

from ..autograd.op import op, variant
from ..tensor import Tensor
from .common import binary, bool_dtype, check_tensor, complex_dtype, is_complex, refuse
from .data import fill_value
from .public import public


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
    """The larger of each pair; nan wins."""
    _refuse_complex("maximum", x, w)
    return xp.maximum(x, w)


@op(
    promote="common",
    x=lambda xp, g, x, w: _shared(xp, g, x, w, x > w),
    w=lambda xp, g, x, w: _shared(xp, g, x, w, w > x),
)
def minimum(xp, x, w):
    """The smaller of each pair; nan wins."""
    _refuse_complex("minimum", x, w)
    return xp.minimum(x, w)


@op(
    promote="common",
    x=lambda xp, g, x, w: xp.where((x >= w) | xp.isnan(w), g, 0.0),
    w=lambda xp, g, x, w: xp.where((x >= w) | xp.isnan(w), 0.0, g),
)
def fmax(xp, x, w):
    """The larger of each pair; a number wins over nan."""
    if is_complex(x, w):
        raise RuntimeError("fmax not implemented for complex tensors.")
    return xp.fmax(x, w)


@op(
    promote="common",
    x=lambda xp, g, x, w: xp.where((x <= w) | xp.isnan(w), g, 0.0),
    w=lambda xp, g, x, w: xp.where((x <= w) | xp.isnan(w), 0.0, g),
)
def fmin(xp, x, w):
    """The smaller of each pair; a number wins over nan."""
    if is_complex(x, w):
        raise RuntimeError("fmin not implemented for complex tensors.")
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
    refuse("clamp_scalar_cpu", complex_dtype, x)
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
    check_tensor("clamp", input)
    tensors = isinstance(min, Tensor), isinstance(max, Tensor)
    if tensors[0] is not tensors[1] and min is not None and max is not None:
        raise TypeError(
            f"clamp() received an invalid combination of arguments - got (min={type(min).__name__}, "
            f"max={type(max).__name__}): give two numbers or two Tensors"
        )
    if input._array.dtype.kind in "cW":
        raise NotImplementedError("clamp is not supported for complex types")
    if True in tensors:
        return clip(input, min, max)
    _check_numbers(input, min, max)
    return _clip_numbers(input, min, max)


def _check_numbers(input, *bounds):
    """Truth values have no bounds that are truth values; integers none that their dtype cannot hold."""
    if not [bound for bound in bounds if bound is not None and not isinstance(bound, bool)]:
        refuse("clamp_scalar_cpu", bool_dtype, input)
    if input._array.dtype.kind in "iu":
        for bound in bounds:
            if bound.__class__ is int:
                fill_value(bound, input.dtype)


@public(inplace=True)
def clamp_min(input, min):
    """Each element, but at least ``min``."""
    check_tensor("clamp_min", input)
    _check_numbers(input, min)
    return (_clip_min if isinstance(min, Tensor) else _clip_min_number)(input, min, None)


@public(inplace=True)
def clamp_max(input, max):
    """Each element, but at most ``max``."""
    check_tensor("clamp_max", input)
    _check_numbers(input, max)
    return (_clip_max if isinstance(max, Tensor) else _clip_max_number)(input, None, max)
