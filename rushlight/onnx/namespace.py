"""The namespace ``xp`` whose functions emit ONNX nodes: with it an operator's own forward function exports itself.

``TABLE`` has what ONNX has a node for. Any other operator is what its declaration says: its forward function is run
with this namespace, down to names of the table.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..autograd.registry import differentiable
from ..engine.fallback import FORWARDS
from ..engine.numpy import namespace as numpy_engine
from .graph import Positions, UnsupportedOperatorError, Value

TABLE: dict = {}
BODIES: dict = {}
BACKWARD: dict = {}
DEFERS = False
OPERATORS = {name: getattr(differentiable, name).op for name in ("normalized",)}
_running: list[str] = []


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    if not (name in TABLE or name in FORWARDS or hasattr(numpy_engine, name)):
        raise UnsupportedOperatorError(f"torch.onnx: there is no ONNX for '{name}'")
    return functools.partial(run, name)


def run(name: str, *args, **static):
    """``xp.name(*args, **static)``: NumPy's where there is no Value, the table's, or else the operator's forward."""
    if not _has_values((*args, *static.values())):
        return getattr(numpy_engine, name)(*args, **static)
    if name in TABLE:
        return TABLE[name](*args, **static)
    if name not in FORWARDS or name in _running:
        raise UnsupportedOperatorError(f"torch.onnx: there is no ONNX for the operator '{name}'")
    _running.append(name)
    try:
        return FORWARDS[name](_here(), *args, **static)
    finally:
        _running.pop()


def _has_values(values) -> bool:
    return any(isinstance(v, Value) or (isinstance(v, (list, tuple)) and _has_values(v)) for v in values)


def _here():
    import sys

    return sys.modules[__name__]


def lowers(*names):
    """The function emits the nodes for these names."""

    def enter(function):
        for name in names:
            TABLE[name] = function
        return function

    return enter


# -- element by element ------------------------------------------------------------------------------------------------

_UNARY = {
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs", "negative": "Neg", "sign": "Sign", "floor": "Floor",
    "ceil": "Ceil", "round": "Round", "tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu", "erf": "Erf", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "sinh": "Sinh", "cosh": "Cosh", "arcsin": "Asin", "arccos": "Acos", "arctan": "Atan",
    "arcsinh": "Asinh", "arccosh": "Acosh", "arctanh": "Atanh", "reciprocal": "Reciprocal", "softsign": "Softsign",
    "real_sign": "Sign",
}  # fmt: skip
_TESTS = {"isnan": "IsNaN", "isinf": "IsInf", "logical_not": "Not", "invert": "Not"}
_ARITHMETIC = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "power": "Pow", "maximum": "Max",
    "minimum": "Min",
}  # fmt: skip
_COMPARISONS = {
    "equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater",
    "greater_equal": "GreaterOrEqual", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
    "bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor",
}  # fmt: skip


def _unary(kind, x):
    return x.draft.emit(kind, [x], x.shape, x.dtype)


def _test(kind, x):
    if kind == "Not" and x.dtype != np.bool_:
        raise UnsupportedOperatorError("torch.onnx: bits of integers cannot be turned around")
    return x.draft.emit(kind, [x], x.shape, np.bool_)


def _arithmetic(kind, x, y):
    x, y, shape, dtype, draft = _pair(x, y)
    return draft.emit(kind, [x, y], shape, dtype)


def _comparison(kind, x, y):
    x, y, shape, dtype, draft = _pair(x, y)
    if kind in ("And", "Or", "Xor") and dtype != np.bool_:
        raise UnsupportedOperatorError("torch.onnx: there are no operators on bits of integers")
    return draft.emit(kind, [x, y], shape, np.bool_)


for _name, _kind in _UNARY.items():
    TABLE[_name] = functools.partial(_unary, _kind)
for _name, _kind in _TESTS.items():
    TABLE[_name] = functools.partial(_test, _kind)
for _name, _kind in _ARITHMETIC.items():
    TABLE[_name] = functools.partial(_arithmetic, _kind)
for _name, _kind in _COMPARISONS.items():
    TABLE[_name] = functools.partial(_comparison, _kind)


def _pair(x, y):
    """Two operands of one dtype: (x, y, the shape of the result, the dtype, the draft)."""
    draft = (x if isinstance(x, Value) else y).draft
    shape = np.broadcast_shapes(np.shape(x) if not isinstance(x, Value) else x.shape, _shape(y))
    arrays = [v for v in (x, y) if hasattr(v, "dtype") and v.shape] or [v for v in (x, y) if hasattr(v, "dtype")]
    dtype = np.result_type(*[v.dtype for v in arrays])
    numbers = [v for v in (x, y) if not hasattr(v, "dtype")]
    if dtype.kind in "biu" and any(isinstance(v, float) for v in numbers):
        dtype = np.dtype(np.float32)
    elif dtype.kind == "b" and any(type(v) is int for v in numbers):
        dtype = np.dtype(np.int64)
    return _as(x, dtype), _as(y, dtype), shape, dtype, draft


def _shape(v) -> tuple:
    return v.shape if isinstance(v, Value) else np.shape(v)


def _as(v, dtype):
    if isinstance(v, Value):
        return v if v.dtype == dtype else TABLE["astype"](v, dtype=dtype)
    return np.asarray(v, dtype=dtype)


@lowers("not_equal")
def _not_equal(x, y):
    return _test("Not", _comparison("Equal", x, y))


@lowers("where")
def _where(condition, x, y):
    values = [v for v in (condition, x, y) if isinstance(v, Value)]
    given = [v for v in (x, y) if hasattr(v, "dtype")]
    dtype = np.result_type(*[v.dtype for v in given]) if given else np.dtype(np.float32)
    shape = np.broadcast_shapes(_shape(condition), _shape(x), _shape(y))
    return values[0].draft.emit("Where", [_as(condition, np.bool_), _as(x, dtype), _as(y, dtype)], shape, dtype)


@lowers("masked_fill")
def _masked_fill(x, mask, value):
    return _where(mask, _as(value, x.dtype), x)


@lowers("clip")
def _clip(x, low=None, high=None):
    x = x if low is None else TABLE["maximum"](x, low)
    return x if high is None else TABLE["minimum"](x, high)


@lowers("expm1")
def _expm1(x):
    return TABLE["subtract"](TABLE["exp"](x), 1.0)


@lowers("log1p")
def _log1p(x):
    return TABLE["log"](TABLE["add"](x, 1.0))


@lowers("logaddexp")
def _logaddexp(x, y):
    apart = TABLE["negative"](TABLE["abs"](TABLE["subtract"](x, y)))
    return TABLE["add"](TABLE["maximum"](x, y), _log1p(TABLE["exp"](apart)))


@lowers("trunc")
def _trunc(x):
    return TABLE["multiply"](TABLE["sign"](x), TABLE["floor"](TABLE["abs"](x)))


@lowers("astype")
def _astype(x, dtype):
    dtype = np.dtype(dtype)
    return x if x.dtype == dtype else x.draft.emit("Cast", [x], x.shape, dtype, to=dtype)


@lowers("clone", "copy", "lay_out", "alias", "copied", "asarray", "ascontiguousarray", "positive")
def _same(x, dtype=None, **options):
    return x if dtype is None else _astype(x, dtype)


# -- sums --------------------------------------------------------------------------------------------------------------


def _axes(x, axis) -> tuple[int, ...]:
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(a % x.ndim for a in axes)


def _reduced(kind, x, axis=None, keepdims=False, dtype=None, **options):
    if dtype is None and x.dtype.kind in "bi" and kind == "ReduceSum":
        dtype = np.int64
    x = x if dtype is None else _astype(x, dtype)
    axes = _axes(x, axis)
    if not axes:
        return x
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
    return x.draft.emit(kind, [x, np.array(axes, np.int64)], shape, x.dtype, keepdims=int(keepdims))


for _name, _kind in {
    "sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd",
}.items():  # fmt: skip
    TABLE[_name] = functools.partial(_reduced, _kind)


@lowers("any")
def _any(x, axis=None, keepdims=False):
    return TABLE["greater"](_reduced("ReduceMax", _astype(x, np.int32), axis, keepdims), 0)


@lowers("all")
def _all(x, axis=None, keepdims=False):
    return TABLE["greater"](_reduced("ReduceMin", _astype(x, np.int32), axis, keepdims), 0)


@lowers("argmax", "argmin")
def _argmax(x, axis=None, keepdims=False):
    if axis is None:
        x, axis = _reshape(x, (x.size,)), 0
    x = _astype(x, np.int32) if x.dtype == bool else x
    axis %= x.ndim
    shape = [1 if i == axis else n for i, n in enumerate(x.shape) if keepdims or i != axis]
    return x.draft.emit("ArgMax", [x], shape, np.int64, axis=axis, keepdims=int(keepdims))


TABLE["argmin"] = lambda x, axis=None, keepdims=False: _argmax(TABLE["negative"](x), axis, keepdims)


@lowers("cumsum")
def _cumsum(x, axis, dtype=None):
    x = x if dtype is None else _astype(x, dtype)
    return x.draft.emit("CumSum", [x, np.array(axis % x.ndim, np.int64)], x.shape, x.dtype)


@lowers("softmax")
def _softmax(x, axis=-1):
    return x.draft.emit("Softmax", [x], x.shape, x.dtype, axis=axis % x.ndim) if x.ndim else _as(x, x.dtype) ** 0


@lowers("log_softmax")
def _log_softmax(x, axis=-1):
    return x.draft.emit("LogSoftmax", [x], x.shape, x.dtype, axis=axis % x.ndim)


# -- shapes ------------------------------------------------------------------------------------------------------------


@lowers("reshape", "view_as_shape", "unsafe_view")
def _reshape(x, shape):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if -1 in shape:
        rest = math.prod(n for n in shape if n != -1)
        shape = tuple(x.size // rest if n == -1 else n for n in shape)
    return (
        x if shape == x.shape else x.draft.emit("Reshape", [x, np.array(shape, np.int64)], shape, x.dtype, allowzero=1)
    )


@lowers("transpose", "permute_dims")
def _transpose(x, axes=None):
    axes = tuple(reversed(range(x.ndim))) if axes is None else tuple(a % x.ndim for a in axes)
    return x.draft.emit("Transpose", [x], [x.shape[a] for a in axes], x.dtype, perm=axes)


@lowers("swapaxes")
def _swapaxes(x, axis1, axis2):
    axes = list(range(x.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return _transpose(x, axes)


@lowers("matrix_transpose")
def _matrix_transpose(x):
    return _swapaxes(x, -1, -2)


@lowers("expand_dims")
def _expand_dims(x, axis):
    axis %= x.ndim + 1
    return x.draft.emit("Unsqueeze", [x, np.array([axis], np.int64)], (*x.shape[:axis], 1, *x.shape[axis:]), x.dtype)


@lowers("squeeze")
def _squeeze(x, axis=None):
    axes = [a for a in (_axes(x, axis) if x.ndim else ()) if x.shape[a] == 1]
    shape = [n for i, n in enumerate(x.shape) if i not in axes]
    return x.draft.emit("Squeeze", [x, np.array(axes, np.int64)], shape, x.dtype) if axes else x


@lowers("broadcast_to")
def _broadcast_to(x, shape):
    shape = tuple(shape)
    return x if shape == x.shape else x.draft.emit("Expand", [x, np.array(shape, np.int64)], shape, x.dtype)


@lowers("cat", "concatenate")
def _cat(*arrays, axis=0):
    arrays = arrays[0] if isinstance(arrays[0], (list, tuple)) else arrays
    first = next(a for a in arrays if isinstance(a, Value))
    dtype = np.result_type(*[a.dtype for a in arrays])
    axis %= first.ndim
    shape = list(first.shape)
    shape[axis] = sum(_shape(a)[axis] for a in arrays)
    return first.draft.emit("Concat", [_as(a, dtype) for a in arrays], shape, dtype, axis=axis)


@lowers("stack")
def _stack(*arrays, axis=0):
    arrays = arrays[0] if isinstance(arrays[0], (list, tuple)) else arrays
    parts = [_expand_dims(a, axis) if isinstance(a, Value) else np.expand_dims(a, axis) for a in arrays]
    return _cat(*parts, axis=axis)


@lowers("repeat", "tile")
def _repeat(x, repeats):
    x = _reshape(x, (1,) * (len(repeats) - x.ndim) + x.shape)
    shape = [n * r for n, r in zip(x.shape, repeats)]
    return x.draft.emit("Tile", [x, np.array(repeats, np.int64)], shape, x.dtype)


@lowers("flip")
def _flip(x, axis):
    for a in _axes(x, axis):
        x = _sliced(x, [(a, x.shape[a] - 1, -x.shape[a] - 1, -1)], list(x.shape))
    return x


@lowers("roll")
def _roll(x, shift, axis):
    for n, a in zip(shift, axis):
        size, n = x.shape[a], n % max(x.shape[a], 1)
        if n:
            tail, head = ([size - n, size], [0, size - n])
            parts = [_sliced(x, [(a, *ends, 1)], _with(x.shape, a, ends[1] - ends[0])) for ends in (tail, head)]
            x = _cat(*parts, axis=a)
    return x


def _with(shape, axis: int, size: int) -> list[int]:
    return [size if i == axis else n for i, n in enumerate(shape)]


@lowers("pad")
def _pad(x, pad, mode="constant", constant_values=0):
    if mode != "constant" or isinstance(constant_values, Value):
        raise UnsupportedOperatorError(f"torch.onnx: padding of mode '{mode}'")
    shape = [n + before + after for n, (before, after) in zip(x.shape, pad)]
    pads = np.array([before for before, _ in pad] + [after for _, after in pad], np.int64)
    return x.draft.emit("Pad", [x, pads, np.asarray(constant_values, x.dtype)], shape, x.dtype, mode="constant")


@lowers("zeros_like", "ones_like", "full_like")
def _like(x, value=0, dtype=None, **options):
    return np.full(x.shape, value, dtype or x.dtype)


TABLE["ones_like"] = lambda x, dtype=None, **options: np.ones(x.shape, dtype or x.dtype)


# -- parts -------------------------------------------------------------------------------------------------------------


@lowers("getitem")
def _getitem(x, index):
    """Basic indexing, and one array of positions."""
    index = index if isinstance(index, tuple) else (index,)
    if not isinstance(x, Value):
        (at,) = index
        return _take(x, at, axis=0)
    given = sum(i is not None and i is not Ellipsis for i in index)
    if Ellipsis not in [i for i in index if not isinstance(i, (Value, np.ndarray))]:
        index = (*index, Ellipsis)
    place = next(k for k, i in enumerate(index) if i is Ellipsis)
    index = (*index[:place], *[slice(None)] * (x.ndim - given), *index[place + 1 :])
    positions = [i for i in index if isinstance(i, (Value, np.ndarray))]
    if len(positions) > 1:
        raise UnsupportedOperatorError("torch.onnx: indexing by several tensors")
    cuts, shape, final, gone, taken, axis = [], list(x.shape), [], [], None, 0
    for i in index:
        if i is None:
            final.append(1)
            continue
        if isinstance(i, (Value, np.ndarray)):
            taken = (axis, i)
            final += list(i.shape)
        elif isinstance(i, slice):
            start, stop, step = i.indices(x.shape[axis])
            shape[axis] = len(range(start, stop, step))
            final.append(shape[axis])
            if shape[axis] != x.shape[axis] or step != 1:
                cuts.append((axis, start, stop if step > 0 or stop >= 0 else -x.shape[axis] - 1, step))
        else:
            i = int(i) % x.shape[axis]
            cuts.append((axis, i, i + 1, 1))
            shape[axis] = 1
            gone.append(axis)
        axis += 1
    x = _sliced(x, cuts, shape) if cuts else x
    x = x if taken is None else _take(x, taken[1], axis=taken[0])
    return _reshape(x, tuple(final))


def _sliced(x, cuts, shape):
    columns = [np.array(column, np.int64) for column in zip(*cuts)]
    axes, starts, stops, steps = columns
    return x.draft.emit("Slice", [x, starts, stops, axes, steps], shape, x.dtype)


@lowers("take")
def _take(x, index, axis=0, **options):
    draft = (x if isinstance(x, Value) else index).draft
    shape = (*_shape(x)[:axis], *_shape(index), *_shape(x)[axis + 1 :])
    return draft.emit("Gather", [x, _as(index, np.int64)], shape, x.dtype, axis=axis)


@lowers("gather", "take_along_axis")
def _gather(x, index, axis):
    draft = (x if isinstance(x, Value) else index).draft
    return draft.emit("GatherElements", [x, _as(index, np.int64)], _shape(index), x.dtype, axis=axis % len(_shape(x)))


# -- products, windows -------------------------------------------------------------------------------------------------


@lowers("matmul")
def _matmul(x, y):
    draft = (x if isinstance(x, Value) else y).draft
    a, b = _shape(x), _shape(y)
    shape = np.broadcast_shapes(a[:-2], b[:-2]) + a[-2:-1] * (len(a) > 1) + b[-1:] * (len(b) > 1)
    return draft.emit("MatMul", [x, y], shape, x.dtype)


@lowers("linear")
def _linear(x, w, b=None):
    if x.ndim == 2 and w.ndim == 2:
        return x.draft.emit("Gemm", [x, w, b][: 2 if b is None else 3], (x.shape[0], w.shape[0]), x.dtype, transB=1)
    y = _matmul(x, _matrix_transpose(w) if w.ndim > 1 else w)
    return y if b is None else TABLE["add"](y, b)


@lowers("conv")
def _conv(x, w, b=None, *, stride, padding, dilation, groups):
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(x.shape[2:], padding, dilation, w.shape[2:], stride)
    ]
    inputs = [x, w] if b is None else [x, w, b]
    return x.draft.emit(
        "Conv", inputs, (x.shape[0], w.shape[0], *sizes), x.dtype,
        strides=stride, pads=(*padding, *padding), dilations=dilation, group=groups, kernel_shape=w.shape[2:],
    )  # fmt: skip


@lowers("conv_input")
def _conv_input(x, w, b=None, *, size, stride, padding, dilation, groups):
    natural = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, p, d, k, s in zip(x.shape[2:], padding, dilation, w.shape[2:], stride)
    ]
    inputs = [x, w] if b is None else [x, w, b]
    return x.draft.emit(
        "ConvTranspose", inputs, (x.shape[0], w.shape[1] * groups, *size), x.dtype,
        strides=stride, pads=(*padding, *padding), dilations=dilation, group=groups, kernel_shape=w.shape[2:],
        output_padding=tuple(whole - part for whole, part in zip(size, natural)),
    )  # fmt: skip


@lowers("max_pool")
def _max_pool(x, *, offsets, size, step):
    taps = [sorted(set(column)) for column in zip(*offsets)]
    return _pooled("MaxPool", x, taps, size, step)


@lowers("flat_positions")
def _flat_positions(which, *, offsets, step, full):
    if not isinstance(which, Positions):
        raise UnsupportedOperatorError("torch.onnx: positions of maxima in windows that do not fill the tensor")
    size = np.array(math.prod(full), np.int64)
    return which.draft.emit("Mod", [which, size], which.shape, np.int64)


@lowers("sum_windows")
def _sum_windows(x, *, taps, size, step):
    y = _pooled("AveragePool", x, taps, size, step)
    return TABLE["multiply"](y, float(math.prod(len(t) for t in taps)))


def _pooled(kind, x, taps, size, step):
    """A pool over ``size`` windows, ``step`` apart, whose elements are at ``taps``; outside of x there is nothing."""
    kernel = [len(t) for t in taps]
    dilations = [t[1] - t[0] if len(t) > 1 else 1 for t in taps]
    before = [-t[0] for t in taps]
    even = all(tuple(t) == tuple(range(t[0], t[0] + d * k, d)) for t, d, k in zip(taps, dilations, kernel))
    if not even or min(before) < 0:
        raise UnsupportedOperatorError("torch.onnx: windows that are not evenly spaced")
    lead, full = x.shape[: x.ndim - len(size)], x.shape[x.ndim - len(size) :]
    # ONNX's windows go on to the end: what is behind the last one is cut off first, what it lacks is added.
    ends = [(n - 1) * s + t[-1] + 1 for n, s, t in zip(size, step, taps)]
    cut = [(len(lead) + i, 0, end, 1) for i, (end, n) in enumerate(zip(ends, full)) if end < n]
    x = _sliced(x, cut, (*lead, *[min(e, n) for e, n in zip(ends, full)])) if cut else x
    batch = (math.prod(lead[:-1]), lead[-1]) if lead else (1, 1)
    y = x.draft.emit(
        kind, [_reshape(x, (*batch, *x.shape[len(lead) :]))], (*batch, *size), x.dtype, kernel_shape=kernel,
        strides=step, dilations=dilations if max(dilations) > 1 else None,
        pads=[*before, *[max(e - n, 0) for e, n in zip(ends, full)]],
        count_include_pad=1 if kind == "AveragePool" else None,
    )  # fmt: skip
    if kind != "MaxPool":
        return _reshape(y, (*lead, *size))
    where = None if cut else x.draft.second(y)
    if where is not None and (*lead, *size) != y.shape:
        name = _reshape(where, (*lead, *size)).name
        where = Positions(x.draft, name, (*lead, *size), where.dtype)
    return _reshape(y, (*lead, *size)), np.zeros((*lead, *size), np.int8) if where is None else where


@lowers("normalized_by")
def _normalized_by(x, w, b, mean, variance, *, affine, eps):
    plain = all(v is not None for v in (w, b)) and x.ndim >= 2 and len(affine) == x.ndim and affine[1] == x.shape[1]
    if plain:
        return x.draft.emit("BatchNormalization", [x, w, b, mean, variance], x.shape, x.dtype, epsilon=eps)
    return FORWARDS["normalized_by"](_here(), x, w, b, mean, variance, affine=affine, eps=eps)


@lowers("normalized")
def _normalized(x, w, b, *, view, axes, affine, eps):
    """ONNX's layer normalization where it is one; else as the operator says."""
    known = {"view": view, "axes": axes, "affine": affine, "eps": eps}
    moments = OPERATORS["normalized"].aux(_here(), x, **known)
    y, *rest = FORWARDS["normalized"](_here(), x, w, b, **known, aux=moments)
    trailing = tuple(axes) == tuple(range(x.ndim - len(axes), x.ndim)) and tuple(view) == x.shape
    if trailing and w is not None and tuple(affine) == x.shape[x.ndim - len(axes) :]:
        inputs = [x, w] if b is None else [x, w, b]
        y = x.draft.emit("LayerNormalization", inputs, x.shape, x.dtype, axis=x.ndim - len(axes), epsilon=eps)
    return (y, *rest)  # what is not used is pruned


@lowers("attention")
def _attention(q, k, v, mask=None, noise=None, *, scale, causal):
    if mask is not None or noise is not None or causal:
        return FORWARDS["attention"](_here(), q, k, v, mask, noise, scale=scale, causal=causal)
    return _matmul(_softmax(_matmul(TABLE["multiply"](q, scale), _matrix_transpose(k)), axis=-1), v)
