"""What the families of operators share: publishing plain ones, questions about dtypes, PyTorch's complaints."""

from __future__ import annotations

import functools
from numbers import Real

import numpy as np

from .. import dtypes
from ..autograd.mode import state
from ..autograd.op import check_broadcast
from ..autograd.op import differentiable as xp
from ..engine import expect
from ..errors import type_name
from ..tensor import Tensor
from . import kinds, refusals
from .public import PUBLIC, public


def unary(call, name=None, *, aliases=(), inplace=True):
    """Publish a one-argument op under PyTorch's name (and aliases)."""

    def function(input):
        return call(input)

    _named(function, call, name or call.__name__)
    function.call = call
    return public(function, inplace=inplace, aliases=aliases)


def binary(call, name=None, *, aliases=(), inplace=True, scalar=None, tensors_only=False):
    """Publish a two-argument op; ``scalar`` is the variant for a second argument that is a Python number."""
    name = name or call.__name__
    number_first = name in _NUMBER_FIRST

    def function(input, other):
        if input.__class__ is not Tensor and not (number_first and isinstance(input, (int, float, complex))):
            check_tensor(name, input)
        if not isinstance(other, Tensor):
            require_number(name, "other", 2, other, tensors_only)
            if input.__class__ is not Tensor and name in _OF_NUMBERS:
                input = of_number(input)
            return (scalar or call)(input, other)
        return call(input, other)

    def method(input, other=_NOTHING, *wrong):
        if not wrong and isinstance(other, Tensor):
            return call(input, other)
        given = wrong if other is _NOTHING else (other, *wrong)
        try:
            return function(input, *given)
        except Exception:
            refusals.explain(name, function, given, {})
            raise

    _named(function, call, name)
    function.method = functools.wraps(function)(method)
    return public(function, inplace=inplace, aliases=aliases)


_NOTHING = object()


# Whose first operand may be a Python number, if the second is a tensor.
_NUMBER_FIRST = {
    "mul", "remainder", "floor_divide", "true_divide", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
    "bitwise_right_shift",
}  # fmt: skip


_OF_NUMBERS = {"mul", "floor_divide", "true_divide"}  # which take two Python numbers as well


def of_number(value):
    """A Python number as a tensor, where two may be given; what is one stays."""
    return PUBLIC["tensor"](value) if isinstance(value, (int, float, complex)) else value


def _named(function, call, name):
    call.op.label = function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = call.__doc__, call.__module__


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


def c_name(value) -> str:
    """The dtype of a tensor or array as other messages of PyTorch's write it: float, long int, c10::Half …"""
    return kinds.c_name(dtype_of(value))


def check_tensor(function, value, argument="input", position=1):
    """PyTorch's error for anything but a tensor, where the next thing done with it would be some AttributeError."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {type_name(value)}"
        ) from None


def as_number(function, argument, position, value):
    """A Python number from one, or from a tensor of no dimensions, which PyTorch takes for one."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise TypeError(f"{function}(): argument '{argument}' (position {position}) must be Number, not Tensor")
        return value.item()
    return value


def as_double(function, argument, position, value) -> float:
    """A Python float from a real number, or from a tensor of no dimensions that holds one."""
    if isinstance(value, Tensor) and not value.ndim:
        number = complex(value.item())
        if number.imag:
            raise RuntimeError("value cannot be converted to type double without overflow")
        return number.real
    if not isinstance(value, Real):
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be float, not {type_name(value)}"
        )
    return float(value)


def own(t):
    """A view of memory that nobody else has: to its user it is no view."""
    t._view = None
    return t


def number_of(t, shape=()):
    """What has one element, and nobody else has, as a 0-dim tensor; in the graph it stays what it is.

    So a node that keeps its output notices when it is written in place.
    """
    result = own(xp.reshape(t, shape=shape))
    if result._node is not None:
        result._node = t._node
    return result


def refuse(kernel, wrong, *values):
    """PyTorch's error for a dtype that a kernel lacks: ``wrong(dtype)`` tells which; shapes are looked at before."""
    d = dtype_of(*values)
    if wrong(d):
        check_broadcast(values)
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_word(d)}'")


def refuse_complex_gradient(name, input, other=None):
    """PyTorch's error for a function of ``input`` and ``other`` of which it has no gradient in complex numbers."""
    if input._array.dtype.kind not in "cW":
        return
    wanted = input.requires_grad or (isinstance(other, Tensor) and other.requires_grad)
    if wanted and state.grad:
        raise RuntimeError(f"{name} does not support automatic differentiation for outputs with complex dtype.")


def not_integral_dtype(d):
    return d.is_floating_point or d.is_complex


def integral_dtype(d):
    return not not_integral_dtype(d)


def not_floating_dtype(d):
    return not d.is_floating_point


def complex_dtype(d):
    return d.is_complex


def bool_dtype(d):
    return d is dtypes.bool_


def no_gradient(what):
    """A rule for an argument that PyTorch has no derivative for either."""

    def rule(xp, g):
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return rule


def zero(xp, g):
    """The rule of a function that is flat almost everywhere."""
    return xp.zeros_like(g)


def known_values(t, holds=None):
    """The values of a tensor as a NumPy array, where looking at them costs nothing; else None.

    ``holds(array)`` is what the caller looks for; a compiled program has to do that itself.
    """
    t._sync()
    if t._array.__class__ is np.ndarray:
        return t._array
    if holds is not None:
        expect(t._array, holds)
    return None


_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def are_below(values: np.ndarray, bound: int) -> bool:
    """Are all whole numbers among 0, 1, … ``bound - 1``? One pass: read without a sign, negative ones are large."""
    return not values.size or int(np.maximum.reduce(values.view(_UNSIGNED[values.itemsize]), None)) < bound


NUMPY_NUMBERS = (np.number, np.bool_)


def is_number(value) -> bool:
    return isinstance(value, (int, float, complex))
