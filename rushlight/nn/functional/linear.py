"""Products with a weight."""

from __future__ import annotations

from ...autograd.mode import state
from ...ops.common import c_name, check_tensor
from ...ops.linalg import linear
from ...ops.public import PUBLIC

__all__ = ["bilinear", "linear"]


def bilinear(input1, input2, weight, bias=None):
    """``y[o] = x1 · weight[o] · x2 + bias[o]``."""
    check_tensor("bilinear", input1, "input1")
    _check_bilinear(input1, input2, weight, bias)
    if not (input1.dtype is input2.dtype is weight.dtype) and not state.casting:
        names = f"input1: {c_name(input1)}, input2: {c_name(input2)}, weight: {c_name(weight)}"
        raise RuntimeError(f"All tensors must have the same dtype, got {names}")
    y = PUBLIC["einsum"]("...i,oij,...j->...o", input1, weight, input2)
    return y if bias is None else y + bias


def _check_bilinear(input1, input2, weight, bias):
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for d, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1])):
        if a != b:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {d}: got {a} and {b}")
    for i, x in ((1, input1), (2, input2)):
        if x.shape[-1] != weight.shape[i]:
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got {x.shape[-1]} but expected "
                f"{weight.shape[i]}"
            )
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}"
        )


PUBLIC["bilinear"] = bilinear
