"""Choosing by a mask: where, masked_fill."""

from __future__ import annotations

import math

import numpy as np

from .. import dtypes
from ..autograd.op import op, variant
from ..errors import type_name, warn_once
from ..tensor import Tensor, wrap
from .common import dtype_of, is_complex, known_values, type_word
from .data import fill_value
from .public import PUBLIC, public


def _check_condition(condition):
    d = dtype_of(condition)
    if d is dtypes.bool_:
        return
    if d is dtypes.uint8:
        warn_once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead."
        )
    else:
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
    exact=True,
    x=lambda xp, g, mask: xp.where(mask, 0.0, g),
    value=lambda xp, g, mask: xp.where(mask, g, 0.0),
)
def masked_fill_(xp, x, mask, value):
    return xp.where(mask, xp.asarray(value, dtype=x.dtype), x)


@public(method=False)
def where(condition, input=None, other=None):
    """``input`` where ``condition`` holds, ``other`` elsewhere; with a condition only, the indices where it holds.

    >>> x = rushlight.tensor([-1., 2.])
    >>> rushlight.where(x > 0, x, 0.)
    tensor([0., 2.])
    """
    if input is None and other is None:
        return PUBLIC["nonzero"](condition, as_tuple=True)
    if not hasattr(condition, "dtype"):
        got = ", ".join(type_name(a) for a in (condition, input, other))
        raise TypeError(f"where() received an invalid combination of arguments - got ({got})")
    _check_condition(condition)
    if not (isinstance(input, Tensor) or isinstance(other, Tensor)):
        dtype = dtypes.promote_types(dtypes.of_scalar(input), dtypes.of_scalar(other))
        input = wrap(np.asarray(input, dtype.numpy))
    for tensor, number in ((input, other), (other, input)):
        if number is None:
            got = ", ".join(type_name(a) for a in (condition, input, other))
            raise TypeError(f"where() received an invalid combination of arguments - got ({got})")
        if number.__class__ is int and tensor._array.dtype.kind in "iu":
            fill_value(number, tensor.dtype)
    return where_(condition, input, other)


def _where_method(self, condition, other):
    """``self`` where ``condition`` holds, ``other`` elsewhere."""
    return where(condition, self, other)


Tensor.where = _where_method
_masked_fill_number = variant(masked_fill_, "MaskedFillBackward0")


@public(inplace="one value")
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
        if is_complex(value) and not is_complex(input):
            known = known_values(value)
            if known is not None and known.imag:
                raise RuntimeError("value cannot be converted to type float without overflow")
            value = value.real
        return masked_fill_(input, mask, value)
    if not (value.__class__ is float and math.isinf(value) and input.is_floating_point()):  # as attention does
        fill_value(value, input.dtype)
    return _masked_fill_number(input, mask, value)
