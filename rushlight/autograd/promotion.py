"""Dtypes around a call: PyTorch's promotion before it, and half precision's detour over float32 and back."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..engine import LOW_PRECISION
from ..tensor import Tensor

_F32 = np.dtype(np.float32)


def convert(args, arrays, promote, keep, detour, xp):
    """Cast arrays as PyTorch would before computing.

    Returns the arrays, the dtype they were brought to (None: as they were), and the dtype that half precision's
    ``detour`` over float32 must end in (None: no detour).
    """
    compute = final = None
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
        compute = target.numpy
        arrays = [
            a if i in keep else cast(xp, a, compute) if hasattr(a, "dtype") else _fit_scalar(a, target)
            for i, a in enumerate(arrays)
        ]
    if detour:
        low = compute or next((a.dtype for a in arrays if hasattr(a, "dtype") and a.dtype in LOW_PRECISION), None)
        if low in LOW_PRECISION:
            final, compute = low, _F32
            arrays = [cast(xp, a, _F32) if hasattr(a, "dtype") and a.dtype in LOW_PRECISION else a for a in arrays]
    return arrays, compute, final


def _fit_scalar(value, target):
    """A Python number that will meet arrays of dtype ``target``: integers wrap around as PyTorch's do."""
    if value is None or target.is_floating_point or target.is_complex:
        return value
    return np.asarray(value).astype(target.numpy)


def cast(xp, array, numpy_dtype):
    return array if array.dtype == numpy_dtype else xp.astype(array, dtype=numpy_dtype)


def cast_back(xp, array, compute, final):
    return xp.astype(array, dtype=final) if array.dtype == compute else array


def type_name_of(numpy_dtype) -> str:
    return "torch." + dtypes.of_numpy(numpy_dtype).char if numpy_dtype is not None else "torch.Tensor"
