"""Python's and NumPy's values as arrays: the inference and the checks behind ``tensor(...)``."""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import dtypes
from ..tensor import Tensor

_PLAIN = frozenset({int, float, bool, complex})
_C_NAMES = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def as_array(data, dtype=None) -> np.ndarray:
    """Numbers, nested sequences, NumPy values and tensors on the CPU as an array that may share ``data``'s memory."""
    if isinstance(data, (np.ndarray, np.generic)):
        array = of_ndarray(np.asarray(data))
        return array if dtype is None else array.astype(dtype.numpy, copy=False)
    if type(data) in _PLAIN:
        return _cast([data], (), {type(data)}, dtype)
    if hasattr(data, "__array__") and not isinstance(data, Tensor):
        return as_array(np.asarray(data), dtype)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    shape = _shape(data)
    leaves: list = []
    if dtype is None:
        _check_inferable(data)
    if 0 in shape:  # nothing to read: PyTorch does not look whether the rest fits
        return np.empty(shape, (dtype or _inferred(_kinds(data))).numpy)
    _flatten(data, shape, 0, leaves)
    return _cast(leaves, shape, set(map(type, leaves)), dtype)


def of_ndarray(array: np.ndarray) -> np.ndarray:
    """The array itself as a plain ndarray, if PyTorch could hold it; a copy of one that is not aligned."""
    if array.dtype.kind in "biufc" and any(s % array.itemsize for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate "
            "the memory."
        )
    dtypes.of_numpy(array.dtype)
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    array = array if type(array) is np.ndarray else array.view(np.ndarray)
    return array if array.flags.aligned else array.copy()


def fill_value(value, dtype: dtypes.dtype):
    """A number that ``dtype`` can hold, as a NumPy scalar; RuntimeError if it would overflow."""
    bad = False
    if dtype.is_complex:
        number = complex(value)
        limit = _largest(dtype)
        bad = any(math.isfinite(part) and abs(part) > limit for part in (number.real, number.imag))
    elif dtype is dtypes.bool_:
        number = bool(value)
    else:
        number, bad = value, isinstance(value, complex) and value.imag != 0
        number = value.real if isinstance(value, complex) else value
        if dtype.is_floating_point:
            number = float(number)
            bad = bad or (math.isfinite(number) and abs(number) > _largest(dtype))
        elif not bad:
            bad = not _fits(number, number, dtype) or (number < 0 and isinstance(number, float) and not dtype.is_signed)
            number = number if bad else int(number)
    if bad:
        raise RuntimeError(f"value cannot be converted to type {_C_NAMES[dtype.name]} without overflow")
    return np.asarray(number).astype(dtype.numpy)[()]


@functools.cache
def _largest(dtype) -> float:
    return dtypes.finfo(dtype).max


def _fits(low, high, dtype) -> bool:
    """Negative numbers may wrap around into an unsigned type, as in PyTorch, but only once."""
    info = np.iinfo(dtype.numpy)
    return high <= info.max and low >= (info.min or -int(info.max))


def _is_sequence(value) -> bool:
    if isinstance(value, (Tensor, dict, set, frozenset)):
        return False
    return isinstance(value, (list, tuple, str, bytes)) or (hasattr(value, "__getitem__") and hasattr(value, "__len__"))


def _shape(data) -> tuple[int, ...]:
    shape: list[int] = []
    while _is_sequence(data) and not isinstance(data, np.generic):
        if isinstance(data, (str, bytes)):
            _invalid(data)
        shape.append(len(data))
        if len(shape) > 128:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if not shape[-1]:
            break
        data = data[0]
    return tuple(shape)


def _invalid(data):
    if isinstance(data, str):
        raise ValueError("too many dimensions 'str'")
    raise TypeError(f"new(): invalid data type '{type(data).__name__}'")


def _check_inferable(data) -> None:
    """Raise for a value, anywhere inside, that has no dtype; plain rows are passed over at C speed."""
    if isinstance(data, np.ndarray):
        dtypes.of_numpy(data.dtype)
    elif _is_sequence(data) and not isinstance(data, (str, bytes, np.generic)):
        for kind in set(map(type, data)) - _PLAIN:
            for value in data:
                if type(value) is kind:
                    _check_inferable(value)
    elif isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    elif type(data) not in _PLAIN and not isinstance(data, (Tensor, np.generic, int, float, complex)):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _kinds(data) -> set:
    """The Python types inside; an empty sequence counts as floats."""
    if not _is_sequence(data):
        return {type(data)}
    return set().union(*map(_kinds, data)) if len(data) else {float}


def _flatten(data, shape, depth, leaves) -> None:
    if depth == len(shape):
        leaves.append(data)
        return
    if not _is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    if depth == len(shape) - 1:
        leaves.extend(data)
        return
    for row in data:
        _flatten(row, shape, depth + 1, leaves)


def _cast(leaves, shape, kinds, dtype) -> np.ndarray:
    """The flat list of ``leaves`` as an array of ``shape``; ``kinds`` are the Python types that occur in it."""
    if not kinds <= _PLAIN:
        wanted = dtype or _inferred(kinds & _PLAIN)
        leaves, found = zip(*[_scalar(v, wanted) for v in leaves])
        inferred = found[0]
        for d in set(found[1:]):
            inferred = dtypes.promote_types(inferred, d)
        kinds = set(map(type, leaves))
    else:
        inferred = _inferred(kinds)
    target = dtype or inferred
    if complex in kinds and not target.is_complex and target is not dtypes.bool_:
        raise TypeError("must be real number, not complex")
    if target.is_floating_point or target.is_complex:
        wide = np.complex128 if target.is_complex else np.float64
        with np.errstate(over="ignore"):  # too large is inf, without a word
            return np.array(leaves, dtype=wide).astype(target.numpy).reshape(shape)
    if target is dtypes.bool_:
        return np.fromiter(map(bool, leaves), dtype=np.bool_, count=len(leaves)).reshape(shape)
    return _integers(leaves, kinds, target).reshape(shape)


def _integers(leaves, kinds, target) -> np.ndarray:
    if float in kinds and not all(math.isfinite(v) for v in leaves):
        raise RuntimeError(f"value cannot be converted to type {target.name} without overflow")
    values = [int(v) for v in leaves] if float in kinds else leaves
    if values:
        low, high = min(values), max(values)
        if target in (dtypes.int64, dtypes.uint64):
            info = np.iinfo(target.numpy)
            if float not in kinds and not info.min <= low <= high <= info.max:
                if target is dtypes.uint64:
                    raise OverflowError("int too big to convert")
                raise ValueError("Overflow when unpacking long long")
        if not _fits(low, high, target):
            raise RuntimeError(f"value cannot be converted to type {target.name} without overflow")
        if low < 0 and not target.is_signed:
            if float in kinds:
                raise RuntimeError(f"value cannot be converted to type {target.name} without overflow")
            return np.array(values, dtype=np.int64).astype(target.numpy)
    return np.array(values, dtype=target.numpy)


def _inferred(kinds) -> dtypes.dtype:
    if complex in kinds:
        return dtypes.get_default_dtype().to_complex()
    if float in kinds or not kinds:
        return dtypes.get_default_dtype()
    return dtypes.int64 if int in kinds else dtypes.bool_


def _scalar(value, wanted):
    """One leaf as a Python number and the dtype it counts as; ``wanted`` is what the error for a list speaks of."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return value._only(), value.dtype
    if isinstance(value, np.generic):
        return value.item(), dtypes.of_numpy(value.dtype)
    for kind in (bool, int, float, complex):
        if isinstance(value, kind):
            return kind(value), _inferred({kind})
    if _is_sequence(value):
        name = type(value).__name__
        if wanted.is_floating_point:
            raise TypeError(f"must be real number, not {name}")
        raise TypeError(f"'{name}' object cannot be interpreted as an integer")
    raise RuntimeError(f"Could not infer dtype of {type(value).__name__}")
