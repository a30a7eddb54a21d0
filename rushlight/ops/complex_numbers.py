"""Complex numbers: their parts, conjugates and angles, and views as pairs of reals."""

from __future__ import annotations

import math

from .. import dtypes
from ..autograd.mode import in_single_precision, state
from ..autograd.op import check_broadcast, op
from ..autograd.op import differentiable as xp_
from ..autograd.record import mirrored
from ..tensor import Tensor
from .common import bool_dtype, dtype_of, is_complex, refuse, type_word, unary
from .public import PUBLIC, public
from .reduce import tensor_argument


@op(node="ConjPhysicalBackward0", x=lambda xp, g: xp.conj(g))
def conj_(xp, x):
    return xp.conj(x)


def _conj_of_anything(x):
    """For rules: numbers are conjugated as numbers, and real tensors are left alone."""
    if isinstance(x, Tensor):
        return conj_(x) if x._array.dtype.kind in "cW" else x
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
    x=lambda xp, g, y: xp.real(g * xp.conj(xp.sign(y))),  # sizes below 0 are none, and count as their opposites
    w=lambda xp, g, y: xp.real(g * xp.conj(y * 1j)),
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
    """The angle of each complex number, in radians; π for negative real ones."""
    if is_complex(x):
        return xp.arctan2(xp.imag(x), xp.real(x))
    return xp.where(x < 0, math.pi, xp.where(x != x, x, xp.zeros_like(x)))


unary(angle, inplace=False)


@op(
    node="ConjBackward0",
    view=1,  # see ``mirrored``
    write=lambda xp, x, value: xp.conj(value),
    x=lambda xp, g: xp.conj(g),
)
def conj_view(xp, x):
    return xp.conj(x)


@op(
    node="NegViewBackward0",
    view=2,
    write=lambda xp, x, value: xp.negative(value),
    x=lambda xp, g: xp.negative(g),
)
def neg_view(xp, x):
    return xp.negative(x)


@public(out=False)
def conj(input):
    """The complex conjugate, as a view of the same memory; a real tensor is returned as it is."""
    tensor_argument(input, "conj")
    return conj_view(input) if is_complex(input) else input


def _neg_view(input):
    """``-input``, as a view of the same memory."""
    tensor_argument(input, "_neg_view")
    refuse("neg_cpu", bool_dtype, input)
    return neg_view(input)


PUBLIC["_neg_view"] = _neg_view


@public(inplace=True)
def conj_physical(input):
    """The complex conjugate, written out in new memory."""
    tensor_argument(input, "conj_physical")
    return conj_(input) if is_complex(input) else input


@public(out=False)
def resolve_conj(input):
    """The conjugates written out, where ``input`` only shows them; else itself."""
    return xp_.clone(input) if is_conj(input) else input


@public(out=False)
def resolve_neg(input):
    """The negatives written out, where ``input`` only shows them; else itself."""
    return xp_.clone(input) if is_neg(input) else input


@public(out=False)
def is_conj(input):
    """Does it show the conjugates of what lies in memory?"""
    view = tensor_argument(input, "is_conj")._view
    return view is not None and view.base is not None and bool(mirrored(view.path) & 1)


@public(out=False)
def is_neg(input):
    """Does it show the negatives of what lies in memory?"""
    view = tensor_argument(input, "is_neg")._view
    return view is not None and view.base is not None and bool(mirrored(view.path) & 2)


@public(method=False, out=False)
def real(input):
    """The real parts, as a view."""
    tensor_argument(input, "real")
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
    if is_conj(input):
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    return view_as_real_(input)


@public(out=False)
def view_as_complex(input):
    """A real tensor whose last dimension is 2 as a complex one, sharing memory."""
    if state.casting is not None:
        (input,) = state.casting.raise_(input)
    if not dtype_of(input).is_floating_point or input.dtype is dtypes.bfloat16:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{type_word(input.dtype)}"
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
    if not all(d.is_floating_point and d is not dtypes.bfloat16 for d in (real.dtype, imag.dtype)):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if real.dtype is not imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )
    check_broadcast((real._array, imag._array))


@public(method=False)
def complex_(real, imag):
    """A complex tensor from its parts."""
    _check_parts(real, imag)
    return make_complex(real, imag)


@public(method=False)
@in_single_precision
def polar(abs, angle):
    """A complex tensor from its absolute values and angles."""
    _check_parts(abs, angle)
    refuse("polar_cpu", lambda d: d is dtypes.float16, abs)
    return polar_(abs, angle)
