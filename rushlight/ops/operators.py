"""Python's operators on Tensors."""

from __future__ import annotations

from ..autograd.op import differentiable as xp
from ..tensor import Tensor


def _reflected(operator):
    return lambda self, other: operator(other, self)


Tensor.__add__ = Tensor.__radd__ = xp.add
Tensor.__sub__ = xp.subtract
Tensor.__rsub__ = _reflected(xp.subtract)
Tensor.__mul__ = Tensor.__rmul__ = xp.multiply
Tensor.__truediv__ = xp.divide
Tensor.__rtruediv__ = _reflected(xp.divide)
Tensor.__neg__ = xp.negative
Tensor.__pow__ = xp.power
