"""Dtypes around a call: PyTorch's promotion before it, and half precision's detour over float32 and back."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..engine import LOW_PRECISION, WIDER
from ..tensor import Tensor

_F32, _F16 = np.dtype(np.float32), np.dtype(np.float16)
# The operators that PyTorch's CPU code computes in complex32, beside those that only move elements; and those that
# refuse all complex numbers by themselves.
IN_COMPLEX_HALF = frozenset({
    "abs", "add", "add_at", "add_scaled", "addcmul", "all", "any", "astype", "clone", "conj", "conv", "conv_input",
    "conv_weight", "copied", "dist", "equal", "fmax", "fmin", "index_add", "invert", "isclose", "isfinite", "isinf",
    "isnan", "isreal", "masked_fill", "maximum", "minimum", "multiply", "negative", "not_equal", "resample", "rsub",
    "sign", "std", "std_mean", "subtract", "subtract_scaled", "var", "var_mean", "vector_norm", "where",
})  # fmt: skip
# The same of eight bits, which are there to be stored: what compares, moves or multiplies them.
FLOAT8 = frozenset(d.numpy for d in dtypes.ALL if d.name.startswith("float8"))
IN_FLOAT8 = frozenset({
    "abs", "add_matmul", "all", "any", "astype", "bitcast", "block_diag", "broadcast_to", "cat", "clone", "conj",
    "copied", "diagonal_copy", "embedding", "equal", "flip", "index_at", "isfinite", "isinf", "isnan", "linear",
    "masked_select", "matmul", "multiply", "not_equal", "pad_constant", "put_at", "repeat", "roll", "split_sizes",
    "stack", "strided", "take_slices", "unbind", "where", "windows",
})  # fmt: skip
_C64, COMPLEX_HALF = np.dtype(np.complex64), dtypes.complex32.numpy


def decide(args, arrays, promote, keep, detour):
    """What PyTorch would cast before computing: (the dtype that arrays are brought to, None: as they are; the half
    precision whose ``detour`` over float32 must end in it, None: no detour)."""
    target = final = None
    if promote is not None:
        with_dim, zero_dim, scalars = [], [], []
        for i, (a, array) in enumerate(zip(args, arrays)):
            if i in keep:
                continue
            if isinstance(a, Tensor):
                (with_dim if array.ndim else zero_dim).append(dtypes.of_numpy(array.dtype))
            elif a is not None:
                scalars.append(dtypes.of_scalar(a))
        target = dtypes.result_dtype(with_dim, zero_dim, scalars)
        if promote == "float" and not (target.is_floating_point or target.is_complex):
            target = dtypes.get_default_dtype()
    if detour:
        low = next((a.dtype for a in arrays if getattr(a, "dtype", None) in LOW_PRECISION), None)
        low = low if target is None else target.numpy
        final = low if low in LOW_PRECISION else None
    return target, final


# PyTorch's CPU code rounds numbers that meet half precision, unless they are this operand of one of these ops.
_IN_SINGLE = {"multiply": 1, "divide": 1, "divide_rounded": 1, "floor_divide": 1, "lerp": 2}


def rounded(name, operands, final) -> list:
    """The operands of an op that are Python numbers as they meet half precision."""
    half, exact = np.float16 if final == COMPLEX_HALF else final.type, _IN_SINGLE.get(name)
    return [float(half(a)) if a.__class__ is float and i != exact else a for i, a in enumerate(operands)]


def convert(xp, o, arrays, target, final):
    """The arrays of op ``o`` as ``decide`` has decided."""
    if target is not None:
        exact, keep = None if final is None else _IN_SINGLE.get(o.name), o.keep
        arrays = [
            _converted(xp, a, WIDER[final] if i == exact and not getattr(a, "ndim", 0) else target.numpy, i in keep)
            for i, a in enumerate(arrays)
        ]
    if final is not None:
        arrays = [cast(xp, a, WIDER[a.dtype]) if getattr(a, "dtype", None) in LOW_PRECISION else a for a in arrays]
    return arrays


def computed_in(target, final):
    """The dtype that arrays are brought to, None: as they were."""
    return WIDER[final] if final is not None else None if target is None else target.numpy


def _converted(xp, value, target, kept):
    """An array in dtype ``target``, or a Python number that will meet some: integers wrap around as PyTorch's do."""
    if kept or value is None:
        return value
    if hasattr(value, "dtype"):
        return cast(xp, value, target)
    return np.asarray(value).astype(target) if target.kind in "biu" else value


def cast(xp, array, numpy_dtype):
    return array if array.dtype == numpy_dtype else xp.astype(array, dtype=numpy_dtype)


def cast_back(xp, out, final, wide):
    """What was computed in single precision in half again; of several outputs of a ``wide`` op only the first."""
    if out.__class__ is tuple:
        return tuple([cast_back(xp, a, final, wide) if i == 0 or not wide else a for i, a in enumerate(out)])
    if out.dtype == _F32:
        return xp.astype(out, dtype=_F16 if final == COMPLEX_HALF else final)
    return xp.astype(out, dtype=COMPLEX_HALF) if out.dtype == _C64 and final in (_F16, COMPLEX_HALF) else out


def type_name_of(numpy_dtype) -> str:
    return "torch." + dtypes.of_numpy(numpy_dtype).char if numpy_dtype is not None else "torch.Tensor"
