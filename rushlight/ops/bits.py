"""Bitwise operations, shifts, gcd and lcm."""

from __future__ import annotations

from ..autograd.op import differentiable as xp_
from ..autograd.op import op
from .common import binary, dtype_of, not_integral_dtype, refuse, unary


def _bitwise(name, doc, kernel=None):
    def bitwise(xp, x, w):
        refuse(kernel or name + "_cpu", not_integral_dtype, x, w)
        return getattr(xp, name)(x, w)

    bitwise.__name__, bitwise.__doc__ = name, doc
    return op(promote="common")(bitwise)


bitwise_and = _bitwise("bitwise_and", "The bits that both have.")
bitwise_or = _bitwise("bitwise_or", "The bits that one of them has.")
bitwise_xor = _bitwise("bitwise_xor", "The bits that exactly one of them has.")
left_shift = _bitwise("left_shift", "The bits of x, y places to the left.", "lshift_cpu")
right_shift = _bitwise("right_shift", "The bits of x, y places to the right.", "rshift_cpu")
gcd = _bitwise("gcd", "The greatest common divisor.")
lcm = _bitwise("lcm", "The least common multiple.")


@op
def invert(xp, x):
    """The bits of x turned over; of a bool, its opposite."""
    if not_integral_dtype(dtype_of(x)):
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return xp.invert(x)


for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    binary(getattr(xp_, _name))
binary(left_shift, "bitwise_left_shift")
binary(right_shift, "bitwise_right_shift")
binary(gcd, tensors_only=True)
binary(lcm, tensors_only=True)
unary(invert, "bitwise_not")
