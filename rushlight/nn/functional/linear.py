"""Products with a weight."""

from __future__ import annotations

from ... import dtypes
from ...autograd.mode import state
from ...ops.common import c_name, check_tensor, type_word
from ...ops.linalg import linear
from ...ops.public import PUBLIC

__all__ = ["bilinear", "grouped_mm", "linear"]


def bilinear(input1, input2, weight, bias=None):
    """``y[o] = x1 · weight[o] · x2 + bias[o]``."""
    check_tensor("bilinear", input1, "input1")
    _check_bilinear(input1, input2, weight, bias)
    dtypes_agree = input1.dtype is input2.dtype is weight.dtype and (bias is None or bias.dtype is weight.dtype)
    if not dtypes_agree and not state.casting:
        names = f"input1: {c_name(input1)}, input2: {c_name(input2)}, weight: {c_name(weight)}"
        names += "" if bias is None else f", bias: {c_name(bias)}"
        raise RuntimeError(f"All tensors must have the same dtype, got {names}")
    if state.casting is not None:
        return state.casting.without(_bilinear, input1, input2, weight, bias)
    return _bilinear(input1, input2, weight, bias)


def _bilinear(input1, input2, weight, bias):
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


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """A matrix product for each group: of stacked matrices, or of the parts of a matrix that end at ``offs``.

    >>> tokens, experts = rushlight.ones(5, 2), rushlight.ones(2, 2, 3)  # the first 4 tokens go to the first expert
    >>> F.grouped_mm(tokens, experts, offs=rushlight.tensor([4, 5], dtype=rushlight.int32)).shape
    torch.Size([5, 3])
    """
    _check_grouped(mat_a, mat_b, offs, bias)
    if offs is None:
        result = mat_a @ mat_b
    else:
        ends = offs.tolist()
        result = _grouped(mat_a, mat_b, list(zip([0, *ends], ends)))
    return result if out_dtype is None else result.to(out_dtype)


def _grouped(a, b, spans):
    if a.ndim == b.ndim == 2:
        return PUBLIC["stack"]([a[:, low:high] @ b[low:high] for low, high in spans])
    if a.ndim == 3:
        parts = [a[i] @ b[:, low:high] for i, (low, high) in enumerate(spans)]
        rest, axis = a.new_zeros(a.shape[1], b.shape[1] - spans[-1][1]), 1
    else:
        parts = [a[low:high] @ b[i] for i, (low, high) in enumerate(spans)]
        rest, axis = a.new_zeros(a.shape[0] - spans[-1][1], b.shape[2]), 0
    return PUBLIC["cat"]([*parts, rest], axis)


def _check_grouped(a, b, offs, bias):
    for name, t in (("mat_a", a), ("mat_b", b)):
        if t.dtype not in (dtypes.float32, dtypes.bfloat16, dtypes.float16):
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {type_word(t.dtype)}")
        if t.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if (offs is None) != (a.ndim == b.ndim == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is not None and offs.dtype is not dtypes.int32:
        raise RuntimeError("Offsets have to be int32")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    groups = {t.shape[0] for t in (a, b) if t.ndim == 3} | ({len(offs)} if offs is not None else set())
    if len(groups) > 1:
        raise RuntimeError(f"grouped_mm(): expected one group for each matrix and offset, but got {sorted(groups)}")


PUBLIC["bilinear"] = bilinear
