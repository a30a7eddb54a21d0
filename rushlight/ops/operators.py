"""Python's operators on Tensors; an operand of a foreign type makes Python raise its own TypeError."""

from __future__ import annotations

import numpy as np

from ..autograd import mode, views
from ..autograd.mode import state
from ..autograd.op import differentiable as xp
from ..autograd.op import operator
from ..autograd.overriding import Refused
from ..engine.numpy.kernels import chains
from ..tensor import Tensor
from . import common, exponential
from .public import PUBLIC


def _reflected(call):
    method = operator(call)

    def reflected(self, other):
        return method(other, self)

    return reflected


def _guarded(function):
    """A composite as an operator: what is neither Tensor nor number is left to the other operand."""

    def method(self, other):
        try:
            return function(self, other) if isinstance(other, _OPERANDS) else NotImplemented
        except Refused:
            return NotImplemented

    return method


def _in_place(function):
    def method(self, other):
        return views.inplace(self, function, other) if isinstance(other, _OPERANDS) else NotImplemented

    return method


def _in_place_ufunc(function, ufunc):
    """``_in_place``, with a short way for what optimizers written by hand do: plain arrays, nothing recorded."""
    general = _in_place(function)
    views.ONE_STEP.add(function)

    def method(self, other):
        a = self._array
        if state.grad or mode.active or self._view is not None or a.__class__ is not np.ndarray or a.dtype.kind != "f":
            return general(self, other)
        if a.size >= chains.ONE_STEP:  # on all threads
            return general(self, other)
        b = other
        if isinstance(other, Tensor):
            b = other._array
            if other._view is not None or b.__class__ is not np.ndarray or b.dtype is not a.dtype or b.shape != a.shape:
                return general(self, other)
        elif other.__class__ is not float:
            return general(self, other)
        storage = self._storage or self._counted()
        if storage.inference or not a.flags.writeable or a.dtype.itemsize < 4:
            return general(self, other)
        ufunc(a, b, out=a)
        storage.version += 1
        return self

    return method


_OPERANDS = (Tensor, int, float, complex, *common.NUMPY_NUMBERS)
_public = PUBLIC.__getitem__

# What training loops live on are ops themselves; where node names differ, PyTorch's functions choose among variants.
Tensor.__add__ = Tensor.__radd__ = operator(xp.add)
Tensor.__sub__ = operator(xp.subtract)
Tensor.__mul__ = Tensor.__rmul__ = operator(xp.multiply)
Tensor.__truediv__ = Tensor.__div__ = operator(xp.divide)
Tensor.__neg__ = xp.negative

Tensor.__rsub__ = _guarded(_public("rsub"))
Tensor.__rtruediv__ = Tensor.__rdiv__ = _guarded(lambda self, other: xp.reciprocal(self) * other)
Tensor.__pow__ = _guarded(_public("pow"))
Tensor.__rpow__ = _guarded(lambda self, other: exponential.pow(other, self))
Tensor.__mod__ = _guarded(_public("remainder"))
Tensor.__rmod__ = _reflected(xp.remainder)
Tensor.__floordiv__ = operator(xp.floor_divide)
Tensor.__rfloordiv__ = _reflected(xp.floor_divide)

Tensor.__pos__ = _public("positive")
Tensor.__abs__ = _public("abs")
Tensor.__invert__ = xp.invert
Tensor.__and__ = Tensor.__rand__ = operator(xp.bitwise_and)
Tensor.__or__ = Tensor.__ror__ = operator(xp.bitwise_or)
Tensor.__xor__ = Tensor.__rxor__ = operator(xp.bitwise_xor)
Tensor.__lshift__, Tensor.__rlshift__ = operator(xp.left_shift), _reflected(xp.left_shift)
Tensor.__rshift__, Tensor.__rrshift__ = operator(xp.right_shift), _reflected(xp.right_shift)

Tensor.__eq__ = _guarded(xp.equal)
Tensor.__ne__ = _guarded(xp.not_equal)
Tensor.__lt__ = _guarded(xp.less)
Tensor.__le__ = _guarded(xp.less_equal)
Tensor.__gt__ = _guarded(xp.greater)
Tensor.__ge__ = _guarded(xp.greater_equal)

Tensor.__iadd__ = _in_place_ufunc(xp.add, np.add)
Tensor.__isub__ = _in_place_ufunc(xp.subtract, np.subtract)
Tensor.__imul__ = _in_place_ufunc(xp.multiply, np.multiply)
Tensor.__itruediv__ = Tensor.__idiv__ = _in_place_ufunc(xp.divide, np.divide)
Tensor.__ipow__ = _in_place(_public("pow"))
Tensor.__imod__ = _in_place(_public("remainder"))
Tensor.__ifloordiv__ = _in_place(xp.floor_divide)
Tensor.__iand__ = _in_place(xp.bitwise_and)
Tensor.__ior__ = _in_place(xp.bitwise_or)
Tensor.__ixor__ = _in_place(xp.bitwise_xor)
Tensor.__ilshift__ = _in_place(xp.left_shift)
Tensor.__irshift__ = _in_place(xp.right_shift)

for _name, _made in list(vars(Tensor).items()):  # whoever overrides functions sees these names
    if _name[:2] == "__" and "<locals>" in getattr(_made, "__qualname__", "") and not hasattr(_made, "op"):
        _made.__name__, _made.__qualname__ = _name, f"Tensor.{_name}"
