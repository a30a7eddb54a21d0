"""How many floating-point operations a row of a profile stands for: those that PyTorch counts, by its formulas."""

from __future__ import annotations

import math

__all__ = ["in_backward", "in_forward"]

_PRODUCTS = {"matmul": 0, "linear": 0, "add_matmul": 1, "multiply": 0}  # the first of the two that are multiplied
_COUNTED = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")


def in_forward(name: str, operator: str, args, result) -> int:
    """Two for each product that is summed up; one for each element of a sum or product of tensors; else 0."""
    if name in _COUNTED:
        return 2 * math.prod(result.shape) * args[_PRODUCTS[operator]].shape[-1]
    if name == "aten::conv2d":
        return 2 * math.prod(result.shape) * math.prod(args[1].shape[1:])
    if name in ("aten::add", "aten::mul"):
        return math.prod(next(a for a in args if hasattr(a, "shape")).shape)
    return 0


def in_backward(operator: str, forward: int, grads) -> int:
    """As many again for each gradient of a product; those of a convolution are not counted, as in PyTorch."""
    if operator not in _PRODUCTS:
        return 0
    first = _PRODUCTS[operator]
    return forward * sum(g is not None for g in grads[first : first + 2])
