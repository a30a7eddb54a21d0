"""Tensors from nothing, from Python values and from other people's memory."""

from __future__ import annotations

import functools
import math
import operator
import os
import typing

import numpy as np

from .. import config, dtypes
from ..autograd import mode
from ..autograd.batching import beside
from ..autograd.mode import state
from ..device import device as Device
from ..engine import SPREAD, accelerated, meta, namespace_of
from ..engine.numpy import layouts
from ..engine.open_size import has_open, is_open
from ..errors import too_large, type_name, warn_user
from ..layout import contiguous_format, dense_strides, memory_order, preserve_format
from ..layout import layout as Layout
from ..storage import affordable, lend
from ..tensor import Size, Storage, Tensor, wrap
from .data import as_array, fill_value, of_ndarray
from .public import PUBLIC, public

# -- from values -----------------------------------------------------------------------------------------------------


@public(method=False, out=False)
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new tensor that copies ``data``: a number, nested sequences of numbers, a NumPy array or a tensor.

    >>> rushlight.tensor([[1, 2], [3, 4.5]])
    tensor([[1.0000, 2.0000],
            [3.0000, 4.5000]])
    """
    dtype = dtypes.argument(dtype, "tensor")
    if isinstance(data, Tensor):
        _warn_copy("torch.tensor")
        return _copied(data, dtype, device or data.device, requires_grad)
    array = as_array(data, dtype)
    if isinstance(data, np.ndarray) and np.may_share_memory(array, data):
        array = array.copy()
    elif isinstance(data, (list, tuple)) and data and isinstance(data[0], np.ndarray):
        _warn_slow_list()
    return finish(on_device(array, resolve(device, "tensor")), requires_grad)


@public(method=False, out=False)
def as_tensor(data, dtype=None, device=None):
    """``data`` as a tensor, sharing its memory and history where dtype and device allow."""
    dtype = dtypes.argument(dtype, "as_tensor")
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype)
    array = as_array(data, dtype)
    return finish(on_device(lend(array) if isinstance(data, np.ndarray) else array, resolve(device, "as_tensor")))


@public(method=False, out=False)
def from_numpy(ndarray):
    """A tensor that shares the memory of a NumPy array.

    Differs from PyTorch: an array that is not aligned is copied.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type_name(ndarray)})")
    array = of_ndarray(ndarray)
    if not array.flags.writeable:
        _warn_read_only()
    elif array.base is not None:
        array = np.asarray(_Borrowed(array)).view(array.dtype)
    return finish(lend(array))


class _Borrowed:
    """A NumPy array's memory without the chain to its base: a tensor's storage begins where the array does."""

    def __init__(self, array: np.ndarray):
        self.array, self.__array_interface__ = array, array.__array_interface__


@public(method=False, out=False)
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """A tensor of almost anything: tensors, arrays, DLPack exporters, buffers, scalars and sequences."""
    dtype = dtypes.argument(dtype, "asarray")
    if isinstance(obj, Tensor):
        shared = obj
    elif isinstance(obj, np.ndarray):
        shared = from_numpy(obj)
    elif hasattr(obj, "__dlpack__"):
        shared = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        shared = frombuffer(obj, dtype=dtype or dtypes.get_default_dtype())
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return tensor(obj, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    wanted = resolve(device, "asarray") if device is not None else shared.device
    if copy is False and dtype not in (None, shared.dtype):
        raise ValueError(f"can't alias tensor with dtype '{shared.dtype.word}' into dtype '{dtype.word}'.")
    if copy is False and wanted != shared.device:
        raise ValueError(f"can't alias tensor from device '{shared.device}' to '{wanted}'.")
    made = shared.to(device=wanted, dtype=dtype, copy=bool(copy))
    if requires_grad is None or (requires_grad and made.requires_grad):
        return made
    return made.detach().requires_grad_(requires_grad)


@public(method=False, out=False)
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A 1-dim tensor that shares the memory of a Python buffer.

    Differs from PyTorch: elements that are not aligned are copied.
    """
    dtype = dtypes.argument(dtype, "frombuffer")
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    size = dtype.itemsize
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0 and (length - offset) % size:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({size})"
        )
    if count > 0 and offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    array = np.frombuffer(buffer, dtype=dtype.numpy, count=count, offset=offset)
    if not array.flags.writeable:
        _warn_read_only("buffer")
    return finish(lend(array if array.flags.aligned else array.copy()), requires_grad)


@public(method=False, out=False)
def from_file(filename, shared=None, size=0, *, dtype=None, device=None, requires_grad=False):
    """A 1-dim tensor of ``size`` elements whose memory is a file's; ``shared`` writes through, and makes the file."""
    import mmap

    dtype = dtypes.argument(dtype, "from_file") or dtypes.get_default_dtype()
    if not _is_int(size) or size < 0:
        raise RuntimeError(f"from_file: size must be a number of elements, 0 or more, got {size!r}")
    nbytes = size * dtype.itemsize
    with open(filename, "a+b" if shared else "rb") as file:
        have = file.seek(0, 2)
        if have < nbytes and not shared:
            raise RuntimeError(
                f"file <{os.fspath(filename)}> size <{have}> is smaller than the required mapping size <{nbytes}>"
            )
        if not nbytes:
            return finish(np.empty(0, dtype.numpy), requires_grad)
        if have < nbytes:
            file.truncate(nbytes)
        memory = mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    return finish(on_device(np.frombuffer(memory, dtype.numpy), resolve(device, "from_file")), requires_grad)


@public(method=False, out=False)
def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor that shares the memory of any library's array, by the DLPack protocol."""
    if isinstance(ext_tensor, Tensor):
        if ext_tensor.is_conj():
            raise BufferError("Can't export tensors with the conjugate bit set")
        made = ext_tensor.detach()
    else:
        if type(ext_tensor).__name__ == "PyCapsule":
            ext_tensor = _Capsule(ext_tensor)
        kind, _ = ext_tensor.__dlpack_device__()
        if int(kind) == 1:  # kDLCPU
            made = finish(lend(of_ndarray(np.from_dlpack(ext_tensor))))
        else:
            from ..engine.xla import namespace as xla

            made = finish(xla.from_dlpack(ext_tensor))
    return made.to(device=device, copy=bool(copy))


class _Capsule:
    """What ``to_dlpack`` makes, as an object that hands it out: capsules are of the CPU."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0


# -- legacy constructors ---------------------------------------------------------------------------------------------


def legacy_tensor(*args, device=None, dtype=None, **kwargs) -> Tensor:
    """``Tensor(2, 3)``, ``Tensor([1, 2])``, ``Tensor(other)``: sizes, values or a tensor to share memory with."""
    if "size" in kwargs:
        args = (*args, _Sizes(kwargs.pop("size")))
    elif "data" in kwargs:
        args = (*args, kwargs.pop("data"))
    if dtype is not None and not isinstance(dtype, _Fixed):
        kwargs["dtype"] = dtype
    if kwargs:
        given = ", ".join([type(a).__name__ for a in args] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()])
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({given}), but expected sizes, or data, and "
            "optionally device; use torch.tensor(data, dtype=..., requires_grad=...)"
        )
    fixed = dtype.dtype if dtype is not None else None
    wanted = fixed or dtypes.get_default_dtype()
    place = resolve(device, "new")
    if len(args) == 1 and not isinstance(args[0], _Sizes) and not _is_int(args[0]):
        (data,) = args
        if isinstance(data, Tensor):
            if fixed is not None and data.dtype is not fixed:
                raise TypeError(f"expected a {fixed.char} (got a {data.dtype.char}); convert it with .to({fixed!r})")
            return data.detach()
        if isinstance(data, Size):
            return finish(_filled(tuple(data), None, wanted, place))
        if not isinstance(data, (np.ndarray, str, bytes)) and not hasattr(data, "__getitem__"):
            raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
        array = as_array(data, wanted)
        return finish(on_device(array.copy() if np.may_share_memory(array, _raw(data)) else array, place))
    return finish(_filled(sizes("new", args) if args else (0,), None, wanted, place))


class _Sizes(tuple):
    """A shape given by keyword, told apart from data."""


class _Fixed:
    """The dtype of a typed constructor; legacy calls take no dtype of their own."""

    def __init__(self, dtype):
        self.dtype = dtype


class tensortype:
    """``FloatTensor`` and its kin: constructors of one dtype that ``isinstance`` understands."""

    def __init__(self, dtype, device="cpu"):
        self.dtype, self.device = dtype, device
        self.__name__ = self.__qualname__ = dtype.char
        self.__module__ = "torch" if device == "cpu" else f"torch.{device}"

    def __call__(self, *args, **kwargs):
        kwargs.setdefault("device", None if self.device == "cpu" else self.device)
        return legacy_tensor(*args, dtype=_Fixed(self.dtype), **kwargs)

    def __instancecheck__(self, value) -> bool:
        return isinstance(value, Tensor) and value.dtype is self.dtype and value.device.type == self.device

    def __or__(self, other):
        return typing.Union[self, other]  # noqa: UP007 (this is what `|` of an annotation calls)

    def __ror__(self, other):
        return typing.Union[other, self]  # noqa: UP007

    def __repr__(self) -> str:
        return f"<class '{self.__module__}.{self.__name__}'>"


TYPES = {d.char: tensortype(d) for d in dtypes.ALL if d.char[:4] not in ("UInt", "Comp") and d.char[:6] != "Float8"}
CUDA_TYPES = {name: tensortype(kind.dtype, "cuda") for name, kind in TYPES.items()}
PUBLIC.update(TYPES)


# -- filled ----------------------------------------------------------------------------------------------------------


def factory(make):
    """Publish ``make``, which returns an array for a dtype and a device, with the arguments all factories take."""
    name = make.__name__

    @functools.wraps(make)
    def create(*args, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **kwargs):
        dtype = dtypes.argument(dtype, name)
        _check_options(name, layout, requires_grad)
        if out is not None:
            if dtype is not None and dtype is not out.dtype:
                raise RuntimeError(f"dtype {dtype.word} does not match dtype of out parameter ({out.dtype.word})")
            dtype, device = out.dtype, out.device
        try:
            made = finish(make(*args, dtype=dtype, device=resolve(device, name), **kwargs), requires_grad)
        except (MemoryError, ValueError) as error:
            if larger := too_large(error):
                raise larger from None
            raise
        return made if out is None else out.resize_(made.shape).copy_(made)

    PUBLIC[name] = create
    return create


@factory
def zeros(*size, dtype, device, **keywords):
    """A tensor filled with zeros."""
    shape = sizes("zeros", size, keywords)
    for n in shape:
        if n < 0:
            raise RuntimeError("zeros: Dimension size must be non-negative.")
    return _filled(shape, 0, dtype or dtypes.get_default_dtype(), device)


@factory
def ones(*size, dtype, device, **keywords):
    """A tensor filled with ones."""
    return _filled(sizes("ones", size, keywords), 1, dtype or dtypes.get_default_dtype(), device)


@factory
def empty(*size, dtype, device, memory_format=contiguous_format, **keywords):
    """A tensor whose values nobody has set."""
    shape = sizes("empty", size, keywords)
    dtype = dtype or dtypes.get_default_dtype()
    if memory_format is contiguous_format:
        return _filled(shape, None, dtype, device)
    return _strided(shape, dense_strides(shape, memory_order(memory_format, len(shape))), dtype, device)


@factory
def full(size, fill_value, *, dtype, device):
    """A tensor filled with ``fill_value``."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    value = number("full", "fill_value", 2, fill_value)
    return _filled(sizes("full", (size,)), value, dtype or dtypes.of_scalar(value), device)


@factory
def scalar_tensor(s, *, dtype, device):
    """A number as a tensor of no dimensions."""
    return _filled((), number("scalar_tensor", "s", 1, s), dtype or dtypes.get_default_dtype(), device)


@factory
def empty_strided(size, stride, *, dtype, device):
    """An uninitialized tensor with the given strides."""
    return _strided(_ints(size), _ints(stride), dtype or dtypes.get_default_dtype(), device)


@factory
def empty_permuted(size, physical_layout, *, dtype, device):
    """An uninitialized tensor whose dimensions lie in memory in the given order."""
    size, order = _ints(size), _ints(physical_layout)
    if len(size) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for d in order:
        if not 0 <= d < len(size):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {d})")
    if len(set(order)) < len(order):
        raise RuntimeError("Duplicate dim not allowed")
    return _strided(size, dense_strides(size, order), dtype or dtypes.get_default_dtype(), device)


# -- ranges ----------------------------------------------------------------------------------------------------------


@factory
def arange(*args, dtype, device, start=0, end=None, step=1):
    """Numbers from ``start`` to below ``end``, ``step`` apart."""
    if len(args) > 3 or (not args and end is None):
        given = ", ".join(type(a).__name__ for a in args)
        raise TypeError(
            f"arange() received an invalid combination of arguments - got ({given}), "
            "but expected one of: (Number end), (Number start, Number end), (Number start, Number end, Number step)"
        )
    if len(args) == 1 and end is None:
        start, end, step = start, args[0], step
    elif args:
        start, end, step = args if len(args) == 3 else args + (end, step)[len(args) - 1 :]
    one, bounds = len(args) == 1, (start, end, step)
    if whole := _are_plain(bounds):  # the commonest: there is nothing to convert
        dtype = dtype or dtypes.int64
    else:
        start, end, step = (
            number("arange", name, place, value)
            for name, place, value in (("start", 1, start), ("end", 1 if one else 2, end), ("step", 3, step))
        )
        bounds = (start, end, step)
        if any(isinstance(v, complex) for v in bounds):
            raise RuntimeError("value cannot be converted to type double without overflow")
        if dtype is None:
            dtype = dtypes.get_default_dtype() if any(isinstance(v, float) for v in bounds) else dtypes.int64
    if dtype is dtypes.bool_ or dtype.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.word}'")
    if not whole and has_open(bounds):
        return accelerated().arange(start, end, step, dtype=dtype.numpy)
    return on_device(_arange(start, end, step, dtype), device)


def _arange(start, end, step, dtype) -> np.ndarray:
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is dtypes.int64:
        if int(step) == 0:
            raise ValueError("step must be nonzero")
        count = len(range(int(start), int(end), int(step)))
    else:
        count = math.ceil((end - start) / step)
    if not dtype.is_floating_point:
        numbers = np.arange(count)
        if int(step) != 1:
            numbers *= int(step)
        if int(start):
            numbers += int(start)
        return numbers.astype(dtype.numpy, copy=False)
    if dtype.itemsize == 2:
        start, step = float(np.asarray(start, dtype.numpy)), float(np.asarray(step, dtype.numpy))
    return (start + step * np.arange(count, dtype=np.float64)).astype(dtype.numpy)


@public(method=False)
def range_(start=0, end=None, step=1, *, dtype=None, layout=None, device=None, requires_grad=False):
    """Deprecated: like ``arange``, but with ``end`` included and floating point by default."""
    warn_user(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    if end is None:
        start, end = 0, start
    count = math.floor((end - start) / step) + 1
    values = start + step * np.arange(count, dtype=np.float64)
    dtype = dtypes.argument(dtype, "range") or dtypes.get_default_dtype()
    return finish(on_device(values.astype(dtype.numpy), resolve(device, "range")), requires_grad)


@factory
def linspace(start, end, steps, *, dtype, device):
    """``steps`` numbers from ``start`` to ``end``, evenly apart."""
    start, end, steps, dtype = _spaced("linspace", start, end, steps, dtype)
    if xp := _unknown(start, end):
        return xp.astype(_linspace_of(xp, start, end, steps, dtype), dtype.numpy)
    return on_device(_linspace(start, end, steps, dtype), device)


@factory
def logspace(start, end, steps, base=10.0, *, dtype, device):
    """``steps`` powers of ``base``, whose exponents go evenly from ``start`` to ``end``."""
    start, end, steps, dtype = _spaced("logspace", start, end, steps, dtype)
    base = number("logspace", "base", 4, base)
    if xp := _unknown(start, end):
        exponents = _linspace_of(xp, start, end, steps, dtype)
        return xp.astype(xp.power(xp.asarray(base, exponents.dtype), exponents), dtype.numpy)
    if not (dtype.is_floating_point or dtype.is_complex):
        return on_device(_integer_powers(start, end, steps, base, dtype), device)
    wide = dtypes.complex128 if dtype.is_complex else dtypes.float64
    exponents = _linspace(start, end, steps, wide)
    return on_device(np.power(np.asarray(base, wide.numpy), exponents).astype(dtype.numpy), device)


def _integer_powers(start, end, steps, base, dtype) -> np.ndarray:
    """``logspace`` of integers, as PyTorch has it: the ends are integers first; what does not fit is 0."""
    start, end = (int(np.asarray(int(v)).astype(dtype.numpy)) for v in (start, end))
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    place = np.arange(steps)
    exponents = np.where(place < steps // 2, start + step * place, end - step * (steps - 1 - place))
    exponents = exponents if steps != 1 else np.full(1, start)
    with np.errstate(over="ignore"):
        powers = np.power(float(base), exponents)
    return np.where(np.abs(powers) < 2.0**63, powers, 0.0).astype(np.int64).astype(dtype.numpy)


def _unknown(*ends):
    """The engine of an end whose value nobody knows: ``vmap`` maps over it, or a program is compiled."""
    return next((namespace_of(v) for v in ends if hasattr(v, "dtype")), None)


def _linspace_of(xp, start, end, steps, dtype):
    """As ``_linspace``, of ends that are arrays; in double precision."""
    inexact = dtype.is_floating_point or dtype.is_complex
    kind = np.dtype(np.complex128 if dtype.is_complex else np.float64)
    start, end = (xp.asarray(v, v.dtype if hasattr(v, "dtype") else None) for v in (start, end))
    if not inexact:
        start, end = xp.trunc(start), xp.trunc(end)
    start, end = xp.astype(start, kind), xp.astype(end, kind)
    index = np.arange(steps)
    step = (end - start) / max(steps - 1, 1)
    return xp.where(index < max(steps // 2, 1), start + step * index, end - step * (steps - 1 - index))


def _spaced(name, start, end, steps, dtype):
    ends = (("start", 1, start), ("end", 2, end))
    start, end = (v._array if _is_unknown(v) else number(name, what, place, v) for what, place, v in ends)
    if not _is_int(steps):
        raise TypeError(f"{name}(): argument 'steps' must be int, not {type(steps).__name__}")
    steps = operator.index(steps)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    complex_ends = any(np.iscomplexobj(v) if not hasattr(v, "dtype") else v.dtype.kind == "c" for v in (start, end))
    if dtype is None:
        dtype = dtypes.get_default_dtype().to_complex() if complex_ends else dtypes.get_default_dtype()
    elif complex_ends and not dtype.is_complex:
        raise RuntimeError(f"torch.{name}(): inferred dtype complex can't be safely cast to passed dtype {dtype.word}")
    if dtype is dtypes.bool_ or (dtype is dtypes.complex32 and name == "linspace" and steps > 1):
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{dtype.word}'")
    return start, end, steps, dtype


_WIDER = {"float16": np.float32, "bfloat16": np.float32, "float32": np.float64, "complex32": np.complex64,
          "complex64": np.complex128, "complex128": np.clongdouble}  # fmt: skip


def _linspace(start, end, steps, dtype) -> np.ndarray:
    """From both ends towards the middle, as PyTorch does.

    The step is of the result's precision (integers: double), multiply-add is fused, that is, one precision wider.
    """
    inexact = dtype.is_floating_point or dtype.is_complex
    kind = dtype.numpy if inexact else np.dtype(np.float64)
    wide = _WIDER.get(dtype.name, np.longdouble)
    start, end = (np.asarray(v if inexact else int(v), kind) for v in (start, end))
    if steps == 1:
        return start.astype(dtype.numpy).reshape(1)
    step = (end - start) / np.asarray(max(steps - 1, 1), kind)
    start, end, step = (np.asarray(v).astype(wide) for v in (start, end, step))
    index = np.arange(steps)
    values = np.where(index < steps // 2, start + step * index, end - step * (steps - 1 - index))
    return values.astype(kind).astype(dtype.numpy)


@factory
def eye(n, m=None, *, dtype, device):
    """Ones on the diagonal, zeros elsewhere."""
    for name, value, place in (("n", n, 1), ("m", m, 2)):
        if value is not None and not _is_int(value):
            raise TypeError(f"eye(): argument '{name}' (position {place}) must be int, not {type(value).__name__}")
        if value is not None and value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    m = n if m is None else m
    if dtype is dtypes.complex32:
        raise NotImplementedError("\"eye\" not implemented for 'ComplexHalf'")
    dtype = (dtype or dtypes.get_default_dtype()).numpy
    return on_device(np.eye(n, m, dtype=dtype) if n and m else np.empty((n, m), dtype), device)


@factory
def tril_indices(row, col, offset=0, *, dtype, device):
    """Rows and columns of the lower triangle of a matrix."""
    return _triangle("tril_indices", row, col, offset, dtype, device)


@factory
def triu_indices(row, col, offset=0, *, dtype, device):
    """Rows and columns of the upper triangle of a matrix."""
    return _triangle("triu_indices", row, col, offset, dtype, device)


def _triangle(name, row, col, offset, dtype, device):
    for place, (what, n) in enumerate((("row", row), ("col", col), ("offset", offset)), 1):
        if not _is_int(n):
            raise TypeError(f"{name}(): argument '{what}' (position {place}) must be int, not {type_name(n)}")
        if n < 0 and what != "offset":
            raise RuntimeError(f"{what} must be non-negative, got{n}")
    dtype = dtype or dtypes.int64
    if dtype not in (dtypes.int32, dtypes.int64):
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.word}'")
    # Only rows that have a part in the triangle, of which one side is the matrix's own.
    lower = name == "tril_indices"
    first, last = (max(0, -offset), row) if lower else (0, min(row, col - offset))
    if first >= last or not col:
        return on_device(np.empty((2, 0), dtype.numpy), device)
    whole = max(first, min(last, col - offset if lower else -offset))  # the row where whole rows begin, or end
    part = (last - whole) * col if lower else whole * col
    count = part + (
        (whole - first) * (first + whole + 1 + 2 * offset) // 2 if lower
        else (last - whole) * (2 * (col - offset) - whole - last + 1) // 2
    )  # fmt: skip
    if 2 * count >= 1 << 60:
        raise RuntimeError(f"Storage size calculation overflowed with sizes=[2, {count}]")
    affordable(2 * count * dtype.itemsize)
    rows = np.arange(first, last)
    begin = 0 * rows if lower else np.maximum(rows + offset, 0)
    lengths = (np.minimum(rows + offset + 1, col) if lower else col) - begin
    columns = np.arange(count) - np.repeat(np.cumsum(lengths) - lengths - begin, lengths)
    return on_device(np.stack([np.repeat(rows, lengths), columns]).astype(dtype.numpy), device)


# -- like another tensor ---------------------------------------------------------------------------------------------


def _like(name, value):
    """``zeros_like`` and its kin: ``value`` is what to fill with, None for nothing."""

    def like(
        input,
        *,
        dtype=None,
        layout=None,
        device=None,
        requires_grad=False,
        memory_format=preserve_format,
        pin_memory=False,
    ):
        return _made_like(name, input, value, dtype, device, layout, requires_grad, memory_format)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = f"``{name.removesuffix('_like')}`` with the shape, dtype and device of ``input``."
    return public(like, method=False)


zeros_like = _like("zeros_like", 0)
ones_like = _like("ones_like", 1)
empty_like = _like("empty_like", None)


@public(method=False)
def full_like(
    input, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=preserve_format,
    pin_memory=False,
):  # fmt: skip
    """A tensor of ``fill_value`` with ``input``'s shape, dtype and device."""
    value = number("full_like", "fill_value", 2, fill_value)
    return _made_like("full_like", input, value, dtype, device, layout, requires_grad, memory_format)


def _made_like(name, input, value, dtype, device, layout, requires_grad, memory_format):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    _check_options(name, layout, requires_grad)
    dtype = dtypes.argument(dtype, name) or input.dtype
    place = input.device if device is None else resolve(device, name)
    if input._array.__class__ is SPREAD.array and place.type == input.device.type:
        device = None  # it lies on many of these
    shape = input._array.shape
    if input._array.__class__ is not np.ndarray and device is None:
        # A namespace's own function: while compiling, the input may have no device yet.
        xp, value = namespace_of(input._array), fill_value(value or 0, dtype)
        if input._array.__class__ is SPREAD.array or (mode.active and mode.maps()):  # laid, or of levels, as that is
            return finish(xp.full_like(input._array, value, dtype=dtype.numpy), requires_grad)
        made = xp.full(shape, value, dtype=dtype.numpy)
        return finish(made.laid(_strides_like(input, memory_format)) if input.is_meta else made, requires_grad)
    if memory_format is preserve_format and _lies_plain(input):
        return finish(_filled(shape, value, dtype, place), requires_grad)
    plain, strides = dense_strides(shape, range(len(shape))), _strides_like(input, memory_format)
    if strides == plain:
        return finish(_filled(shape, value, dtype, place), requires_grad)
    array = _strided(shape, strides, dtype, place)
    if value is not None and array.__class__ is np.ndarray:
        array[...] = fill_value(value, dtype)
    elif value is not None:
        array = _filled(shape, value, dtype, place)
    return finish(array, requires_grad)


def _lies_plain(t) -> bool:
    """Is it known at once that the tensor lies in plain order? Most do."""
    return not layouts.watched or (t._array.size > 0 and layouts.is_plain(t._strided_array()))


def _strides_like(input, memory_format) -> tuple[int, ...]:
    shape = input._array.shape
    if memory_format is not preserve_format:
        return dense_strides(shape, memory_order(memory_format, len(shape)))
    return layouts.preserved(shape, input.stride()) if layouts.watched else dense_strides(shape, range(len(shape)))


def _new(make):
    """Attach ``Tensor.new_zeros`` and its kin: dtype and device default to the tensor's own."""
    base = make.__name__

    def new(self, *args, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **keywords):
        name = f"new_{base}"
        _check_options(name, layout, requires_grad)
        dtype = dtypes.argument(dtype, name) or self.dtype
        place = self.device if device is None else resolve(device, name)
        try:
            made = make.__wrapped__(*args, dtype=dtype, device=place, **keywords)
        except MemoryError as error:
            raise too_large(error) from None
        except TypeError as error:
            raise TypeError(str(error).replace(f"{base}()", f"{name}()")) from None
        if mode.active and mode.maps():
            made = beside(self, made)
        if self._array.__class__ is SPREAD.array:
            made = namespace_of(self._array).everywhere(made, self._array.mesh)
        return finish(made, requires_grad)

    new.__name__ = new.__qualname__ = f"new_{base}"
    new.__doc__ = f"``{base}`` with this tensor's dtype and device."
    setattr(Tensor, new.__name__, new)


def _new_zeros(*size, dtype, device, **keywords):
    return _filled(sizes("zeros", size, keywords), 0, dtype, device)


_new_zeros.__name__, _new_zeros.__wrapped__ = "zeros", _new_zeros
for _make in (_new_zeros, ones, empty, full, empty_strided):
    _new(_make)


@public(function=False)
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """A copy of ``data`` with this tensor's dtype and device."""
    dtype = dtypes.argument(dtype, "new_tensor") or self.dtype
    if isinstance(data, Tensor):
        _warn_copy("tensor.new_tensor")
        return _copied(data, dtype, device or self.device, requires_grad)
    return tensor(data, dtype=dtype, device=device or self.device, requires_grad=requires_grad)


@public(function=False)
def new(self, *args, device=None, **kwargs):
    """The legacy constructor with this tensor's dtype and device."""
    return legacy_tensor(*args, device=device or self.device, dtype=_Fixed(self.dtype), **kwargs)


# -- arrays on devices, and arguments --------------------------------------------------------------------------------


def finish(array, requires_grad=False) -> Tensor:
    """A leaf tensor around a new array."""
    t = wrap(array)
    if state.inference:
        t._storage = Storage(inference=True)
    if requires_grad:
        if requires_grad is not True:
            raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
        if array.dtype.kind in "biu":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t.requires_grad_(True)
    return t


def resolve(device, function: str) -> Device:
    """A ``device=`` argument as a device; the default one for None."""
    if device is None:
        return config.default_device
    if isinstance(device, (str, int)) and not isinstance(device, bool):
        return Device(device)
    if not isinstance(device, Device):
        raise TypeError(f"{function}(): argument 'device' must be torch.device, not {type(device).__name__}")
    return device


def on_device(array: np.ndarray, device: Device):
    """A NumPy array as the array of the engine that serves ``device``."""
    if device.type == "cpu":
        if not array.flags.c_contiguous:
            layouts.watch()
        return array
    return engine_of(device).to_device(array, device)


def engine_of(device: Device):
    """The engine for a device that is not the CPU; the errors say what is missing."""
    _ = device.engine
    if device.type == "meta":
        return meta()
    try:
        return accelerated()
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        what = "Torch not compiled with CUDA enabled" if device.type == "cuda" else f"device '{device}' needs JAX"
        raise AssertionError(f"{what}: install rushlight[xla] (or rushlight[cuda]), or use device='cpu'") from None


def _filled(shape, value, dtype, device):
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    if device.type != "cpu":
        xp = engine_of(device)
        return xp.full(shape, fill_value(value or 0, dtype), dtype=dtype.numpy, device=xp.place_of(device))
    if has_open(shape):
        return accelerated().full(shape, fill_value(value or 0, dtype), dtype=dtype.numpy)
    if value is None:
        return np.empty(shape, dtype.numpy)
    if value.__class__ is int and value == 0:
        return np.zeros(shape, dtype.numpy)
    value = fill_value(value, dtype)
    array = np.empty(shape, dtype.numpy)
    array.fill(value)  # np.full takes several times as long for a few numbers
    return array


def _strided(size, stride, dtype, device):
    """An uninitialized array with strides given in elements."""
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    if any(s < 0 for s in stride):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    if device.type != "cpu" or any(n < 0 for n in size):
        made = _filled(size, None, dtype, device)
        return made.laid(tuple(stride)) if device.type == "meta" else made
    extent = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride))
    memory = np.empty(extent, dtype.numpy)
    layouts.watch()
    return np.ndarray(size, dtype.numpy, memory, strides=[s * dtype.itemsize for s in stride])


def sizes(function: str, args, keywords=None) -> tuple[int, ...]:
    """A shape given as ``f(2, 3)``, ``f((2, 3))`` or ``f(size=(2, 3))``."""
    if args and not keywords:  # the commonest: nothing but ints
        given = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        if _are_plain(given) and math.prod(given) < 1 << 60:
            return tuple(given)
    if keywords:
        unknown = next((k for k in keywords if k != "size"), None)
        if unknown is not None or args:
            raise TypeError(f"{function}() got an unexpected keyword argument '{unknown or 'size'}'")
        args = (keywords["size"],)
    elif not args:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    first = args[0]
    if len(args) == 1 and isinstance(first, (tuple, list)):
        args = first
    elif not _is_int(first):
        raise TypeError(f"{function}(): argument 'size' (position 1) must be tuple of ints, not {type(first).__name__}")
    shape = []
    for i, n in enumerate(args):
        if i and n.__class__ is bool:  # PyTorch looks at the first only
            n = int(n)
        if not _is_int(n):
            raise TypeError(
                f"{function}(): argument 'size' failed to unpack the object at pos {i + 1} with error "
                f'"type must be tuple of ints,but got {type(n).__name__}"'
            )
        shape.append(n if n.__class__ is int or is_open(n) else operator.index(n))
    if not has_open(shape) and math.prod(shape) >= 1 << 60:  # NumPy's error for such a shape is another
        raise RuntimeError(f"Storage size calculation overflowed with sizes={shape}")
    return tuple(shape)


def _are_plain(values) -> bool:
    for n in values:  # noqa: SIM110 (as in ``has_open``)
        if n.__class__ is not int:
            return False
    return True


def number(function: str, name: str, position: int, value):
    """A Python number from a number or a 0-dim tensor."""
    if type(value) in (int, float, bool, complex) or is_open(value):
        return value
    if isinstance(value, Tensor) and value.ndim == 0:
        return value.item()
    if isinstance(value, (np.generic, int, float, complex)):
        return value.item() if isinstance(value, np.generic) else value
    raise TypeError(f"{function}(): argument '{name}' (position {position}) must be Number, not {type(value).__name__}")


def _is_unknown(value) -> bool:
    return (
        isinstance(value, Tensor)
        and value.ndim == 0
        and value._array.__class__ is not np.ndarray
        and namespace_of(value._array).is_traced(value._array)
    )


def _is_int(value) -> bool:
    if value.__class__ is int:
        return True
    if isinstance(value, Tensor):
        return value.ndim == 0 and value._array.dtype.kind in "iu"
    return not isinstance(value, bool) and (isinstance(value, (int, np.integer)) or is_open(value))


def _ints(values) -> tuple[int, ...]:
    return (operator.index(values),) if _is_int(values) else tuple(operator.index(v) for v in values)


def _check_options(name, layout, requires_grad) -> None:
    if layout is not None and not isinstance(layout, Layout):
        raise TypeError(f"{name}(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
    if requires_grad.__class__ is not bool and requires_grad is not None:
        raise TypeError(f"{name}(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")


def _copied(data, dtype, device, requires_grad) -> Tensor:
    return data.detach().to(device=device, dtype=dtype, copy=True).requires_grad_(requires_grad)


def _raw(data):
    return data if isinstance(data, np.ndarray) else np.empty(0)


def _warn_copy(name) -> None:
    warn_user(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor)."
    )


@functools.cache
def _warn_slow_list() -> None:
    warn_user(
        "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a "
        "single numpy.ndarray with numpy.array() before converting to a tensor."
    )


@functools.cache
def _warn_read_only(what="NumPy array") -> None:
    warn_user(
        f"The given {what} is not writable. Tensors share its memory, so writing to this tensor will raise an error: "
        "clone() the tensor to get one that can be written. This warning is given once."
    )
