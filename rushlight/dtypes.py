"""The element types, and PyTorch's rules for mixing them."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["dtype", "finfo", "get_default_dtype", "iinfo", "set_default_dtype"]


class dtype:
    """An element type, e.g. ``rushlight.float32``; prints as PyTorch prints it."""

    __slots__ = ("char", "is_complex", "is_floating_point", "is_signed", "itemsize", "name", "numpy", "rank")

    def __init__(self, name: str, numpy: np.dtype, rank: int, char: str):
        self.name = name
        self.numpy = numpy  # the NumPy (or ml_dtypes) dtype that stores it
        self.rank = rank  # its place in the promotion lattice, see promote_types
        self.char = char  # the tensor-type word, as in ``torch.FloatTensor``
        self.is_complex = rank >= _COMPLEX
        self.is_floating_point = _FLOAT8 <= rank < _COMPLEX
        self.is_signed = name not in ("bool", "float8_e8m0fnu") and not name.startswith("uint")
        self.itemsize = numpy.itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return _named, (self.name,)

    def to_complex(self) -> dtype:
        """The complex dtype with parts of this one."""
        if self.is_complex:
            return self
        if not self.is_floating_point:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.word}")
        return {float64: complex128, float16: complex32}.get(self, complex64)

    def to_real(self) -> dtype:
        return _REAL_PARTS[self] if self.is_complex else self

    @property
    def word(self) -> str:
        """PyTorch's short word for it in messages: ``Float``, ``Long``."""
        return self.char.removesuffix("Tensor")


_INTEGER, _FLOAT8, _FLOAT, _COMPLEX = 10, 19, 20, 30

bool_ = dtype("bool", np.dtype(np.bool_), 0, "BoolTensor")
uint8 = dtype("uint8", np.dtype(np.uint8), 10, "ByteTensor")
int8 = dtype("int8", np.dtype(np.int8), 10, "CharTensor")
int16 = dtype("int16", np.dtype(np.int16), 11, "ShortTensor")
int32 = dtype("int32", np.dtype(np.int32), 12, "IntTensor")
int64 = dtype("int64", np.dtype(np.int64), 13, "LongTensor")
uint16 = dtype("uint16", np.dtype(np.uint16), 11, "UInt16Tensor")
uint32 = dtype("uint32", np.dtype(np.uint32), 12, "UInt32Tensor")
uint64 = dtype("uint64", np.dtype(np.uint64), 13, "UInt64Tensor")
float8_e4m3fn = dtype("float8_e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn), _FLOAT8, "Float8_e4m3fnTensor")
float8_e5m2 = dtype("float8_e5m2", np.dtype(ml_dtypes.float8_e5m2), _FLOAT8, "Float8_e5m2Tensor")
float8_e4m3fnuz = dtype("float8_e4m3fnuz", np.dtype(ml_dtypes.float8_e4m3fnuz), _FLOAT8, "Float8_e4m3fnuzTensor")
float8_e5m2fnuz = dtype("float8_e5m2fnuz", np.dtype(ml_dtypes.float8_e5m2fnuz), _FLOAT8, "Float8_e5m2fnuzTensor")
float8_e8m0fnu = dtype("float8_e8m0fnu", np.dtype(ml_dtypes.float8_e8m0fnu), _FLOAT8, "Float8_e8m0fnuTensor")
float16 = dtype("float16", np.dtype(np.float16), 20, "HalfTensor")
bfloat16 = dtype("bfloat16", np.dtype(ml_dtypes.bfloat16), 20, "BFloat16Tensor")
float32 = dtype("float32", np.dtype(np.float32), 21, "FloatTensor")
float64 = dtype("float64", np.dtype(np.float64), 22, "DoubleTensor")
complex32 = dtype("complex32", np.dtype(ml_dtypes.complex32), 30, "ComplexHalfTensor")
complex64 = dtype("complex64", np.dtype(np.complex64), 31, "ComplexFloatTensor")
complex128 = dtype("complex128", np.dtype(np.complex128), 32, "ComplexDoubleTensor")

ALL = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex32, complex64, complex128,
    float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu,
)  # fmt: skip
# Codes of quantized tensors (``quantized/``); no plain tensor has them.
qint8 = dtype("qint8", np.dtype(np.int8), 10, "QInt8Tensor")
quint8 = dtype("quint8", np.dtype(np.uint8), 10, "QUInt8Tensor")
qint32 = dtype("qint32", np.dtype(np.int32), 12, "QInt32Tensor")
QUANTIZED = (qint8, quint8, qint32)
ALIASES = {
    "half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
    "chalf": complex32, "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip

_REAL_PARTS = {complex32: float16, complex64: float32, complex128: float64}
_OF_NUMPY = {d.numpy: d for d in ALL}
_OF_PYTHON = {float: float64, int: int64, bool: bool_, complex: complex128}
_BARE_UNSIGNED = (uint16, uint32, uint64)  # storage types: PyTorch promotes them to floating point only
_HALF = (float16, bfloat16)
_default = float32


def of_numpy(numpy_dtype: np.dtype) -> dtype:
    """The dtype that stands for a NumPy dtype; TypeError for one PyTorch has no name for."""
    try:
        return _OF_NUMPY[numpy_dtype]
    except KeyError:
        native = np.dtype(numpy_dtype).newbyteorder("=")
        if native in _OF_NUMPY and native != numpy_dtype:
            raise ValueError(
                "given numpy array has byte order different from the native byte order. "
                "Conversion between byte orders is currently not supported."
            ) from None
        supported = (
            "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
            "uint8, and bool"
        )
        kind = f"numpy.{np.dtype(numpy_dtype).type.__name__}"
        raise TypeError(
            f"can't convert np.ndarray of type {kind}. The only supported types are: {supported}."
        ) from None


def get_default_dtype() -> dtype:
    """The dtype of new floating-point tensors."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """The dtype that ``tensor(0.5)`` and ``zeros(3)`` get; float32 unless changed."""
    global _default
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _default = d


def argument(value, function: str) -> dtype | None:
    """Check a ``dtype=`` argument; Python's number types stand for the widest dtype of their kind."""
    if value is None or isinstance(value, dtype):
        return value
    if isinstance(value, type) and value in _OF_PYTHON:
        return _OF_PYTHON[value]
    raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type(value).__name__}")


def promote_types(a: dtype, b: dtype) -> dtype:
    """The smallest dtype that both promote to, by PyTorch's table.

    >>> rushlight.promote_types(rushlight.uint8, rushlight.int8)
    torch.int16
    >>> rushlight.promote_types(rushlight.float16, rushlight.bfloat16)
    torch.float32
    """
    if a is b:
        return a
    low, high = (a, b) if a.rank <= b.rank else (b, a)
    if low.rank == _FLOAT8 or high.rank == _FLOAT8:
        raise RuntimeError(f"Promotion for Float8 Types is not supported, attempted to promote {a.word} and {b.word}")
    if not high.is_floating_point and (a in _BARE_UNSIGNED or b in _BARE_UNSIGNED):
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a.word} and {b.word}"
        )
    if low.rank < high.rank:
        if high.is_complex and low.is_floating_point:
            low = low.to_complex()
        return low if low.rank > high.rank else high
    return float32 if low in _HALF else int16  # equal rank: float16 with bfloat16, uint8 with int8


def of_scalar(value) -> dtype:
    """The dtype a Python number has when it meets tensors."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating)):
        return _default
    if isinstance(value, (complex, np.complexfloating)):
        return _default.to_complex()
    raise TypeError(f"expected a number or a Tensor, got {type(value).__name__}")


def result_dtype(arrays, zero_dim, scalars) -> dtype:
    """PyTorch's result type: tensors with dimensions outrank 0-dim tensors, which outrank Python numbers,
    unless the lower one is of a higher kind (bool < integer < float < complex)."""
    levels = []
    for level in (arrays, zero_dim, scalars):
        found = None
        for d in level:
            found = d if found is None else promote_types(found, d)
        levels.append(found)
    return _outrank(_outrank(levels[0], levels[1]), levels[2])


def _outrank(higher: dtype | None, lower: dtype | None) -> Any:
    if higher is None or lower is None:
        return higher or lower
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if higher is bool_ or lower.is_floating_point or lower.is_complex:
        return promote_types(higher, lower)
    return higher


class _Limits:
    """What ``finfo`` and ``iinfo`` share: equality and PyTorch's way of printing."""

    dtype: str
    _shown: tuple = ()

    def __eq__(self, other) -> bool:
        return type(self) is type(other) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name):g}" for name in self._shown)
        return f"{type(self).__name__}({values}, dtype={self.dtype})"


def _checked(name: str, type):
    if not isinstance(type, dtype):
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {type.__class__.__name__}")
    return type


class finfo(_Limits):
    """Limits of a floating-point dtype: ``finfo(float32).eps``."""

    _shown = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float

    def __init__(self, type: dtype | None = None):
        d = _checked("finfo", type or _default)
        if not (d.is_floating_point or d.is_complex):
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{d!r}'")
        vars(self).update(_limits(d.to_real()))


class iinfo(_Limits):
    """Limits of an integer dtype: ``iinfo(int8).max``."""

    _shown = ("min", "max")
    bits: int
    max: int
    min: int

    def __init__(self, type: dtype):
        if _checked("iinfo", type).is_floating_point or type.is_complex or type is bool_:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type!r}'")
        vars(self).update(_limits(type))


@functools.cache  # functions look at limits at every call
def _limits(d: dtype) -> dict[str, Any]:
    """What ``finfo`` or ``iinfo`` says of a real dtype."""
    if not d.is_floating_point:
        whole = np.iinfo(d.numpy)
        return {"dtype": d.name, "bits": whole.bits, "min": int(whole.min), "max": int(whole.max)}
    info = ml_dtypes.finfo(d.numpy)
    tiny, resolution = float(info.smallest_normal), 1.0 if d.rank == _FLOAT8 else 10.0**-info.precision
    return {
        "dtype": d.name, "bits": info.bits, "eps": float(info.eps), "max": float(info.max), "min": float(info.min),
        "tiny": tiny, "smallest_normal": tiny, "resolution": resolution,
    }  # fmt: skip


def _named(name: str) -> dtype:
    return next(d for d in (*ALL, *QUANTIZED) if d.name == name)
