"""The NumPy engine: NumPy's own functions, and the names it lacks or spells differently.

A name that NumPy and JAX share with one meaning needs no entry here or in ``xla``: it is found in NumPy.
"""

from __future__ import annotations

import builtins  # names of functions here hide some of these
import functools
import math
import sys

import ml_dtypes
import numpy as np

from ... import storage
from .. import ctc, special
from ..fallback import FORWARDS, lookup
from ..native import bodies as _native
from ..special import (
    digamma,
    erfc,
    erfinv,
    igamma,
    igammac,
    lgamma,
    log_ndtr,
    ndtri,
    polygamma,
    zeta,
)
from . import layouts
from .fused import fused as _fused
from .kernels import activations, along, chains, copies, losses, norms, orders, products, spreads, sums
from .kernels import attention as _attention
from .kernels import rnn as _rnn
from .kernels.conv import conv, conv_input, conv_weight
from .kernels.conv import conv_backward as _conv_backward
from .kernels.products import matmul
from .kernels.select import where
from .kernels.slopes import dirichlet_slope, gamma_slope
from .kernels.softmax import log_softmax, log_softmax_backward_data, softmax, softmax_backward_data
from .kernels.windows import (
    add_columns,
    columns,
    max_windows,
    pick,
    spread,
    spread_windows,
    sum_windows,
)
from .kernels.windows import max_windows_backward as _max_windows_backward
from .linalg import *

_E4M3FN = np.dtype(ml_dtypes.float8_e4m3fn)

DEFERS = False  # see ``once``
BODIES: dict = {}  # op name -> a faster forward
BACKWARD: dict = {}  # op name -> a faster backward: f(g, edges, saved by name) -> gradients


def once(name, function, constants, *args):
    """``function(xp, *constants, *args)``; an engine that ``DEFERS`` records it as one call."""
    return function(sys.modules[__name__], *constants, *args)


def astype(x, dtype):
    if dtype is _E4M3FN:
        x = np.clip(x, -448, 448)  # PyTorch's conversion stops at its limits; NumPy's gives nan beyond
    elif getattr(x, "dtype", _E4M3FN).kind == "W" and np.dtype(dtype).kind == "b":
        x = x != 0  # the cast would look at the real part only
    return copies.converted(np.asarray(x), np.dtype(dtype))


def reshape(x, shape):
    if x.__class__ is not np.ndarray:
        return np.reshape(x, shape)
    return x.reshape(shape) if x.flags.c_contiguous or x.size < _LARGE else _reshaped(x, shape)


_LARGE = 1 << 15  # elements whose copy is shared out to threads


def _reshaped(x, shape):
    try:
        return x.reshape(shape, copy=False)
    except TypeError:  # NumPy before 2.1
        return x.reshape(shape)
    except ValueError:  # it is no view
        return copies.copied(x).reshape(shape)


def asarray(x, dtype=None, copy=None):
    if copy and dtype is None and x.__class__ is np.ndarray:
        if x.size >= _LARGE and copies.is_forward(x.strides):
            return copies.copied(x)
        return np.array(x, order=copies.order_of_copy(x))
    return np.asarray(x, dtype, copy=copy)


def stack(arrays, axis=0):
    if not arrays or len({a.shape for a in arrays}) > 1:
        return np.stack(arrays, axis)  # which says what is wrong
    axis %= arrays[0].ndim + 1
    shape = (*arrays[0].shape[:axis], 1, *arrays[0].shape[axis:])
    return concatenate([a.reshape(shape) for a in arrays], axis)


def tril(x, k=0):
    if x.size < _LARGE:
        return np.where(_triangle(*x.shape[-2:], k), x, np.zeros(1, x.dtype))
    return where(np.tri(*x.shape[-2:], k, dtype=bool), x, x.dtype.type(0))


def triu(x, k=0):
    if x.size < _LARGE:
        return np.where(_triangle(*x.shape[-2:], k - 1), np.zeros(1, x.dtype), x)
    return where(np.tri(*x.shape[-2:], k - 1, dtype=bool), x.dtype.type(0), x)


@functools.lru_cache(32)
def _triangle(m, n, k):
    """Where the lower triangle of a small matrix is."""
    return np.tri(m, n, k, dtype=bool)


def concatenate(arrays, axis=0):
    return copies.joined(arrays, axis)


def tile(x, repeats):
    if math.prod(repeats) * x.size < _LARGE or len(repeats) < x.ndim:
        return np.tile(x, repeats)
    shape = (1,) * (len(repeats) - x.ndim) + x.shape
    apart = x.reshape([n for size in shape for n in (1, size)])
    wide = np.broadcast_to(apart, [n for pair in zip(repeats, shape) for n in pair])
    return copies.copied(wide).reshape([n * size for n, size in zip(repeats, shape)])


# Views by the array's own methods: NumPy's functions of the same name take several times as long.


def expand_dims(x, axis):
    if x.__class__ is not np.ndarray or axis.__class__ is not int or axis < 0:
        return np.expand_dims(x, axis)
    return x.reshape((*x.shape[:axis], 1, *x.shape[axis:]))


def squeeze(x, axis=None):
    return x.squeeze(axis) if x.__class__ is np.ndarray else np.squeeze(x, axis)


def transpose(x, axes=None):
    return x.transpose(axes)


def swapaxes(x, axis1, axis2):
    return x.swapaxes(axis1, axis2)


def conj(x):
    if hasattr(x, "dtype"):
        return np.conj(x) if x.dtype.kind in "cW" else x
    return x.conjugate()


def alias(x):
    return x.view()


def rot90(x, k=1, axes=(0, 1)):
    layouts.watch()
    return np.rot90(x, k, axes)


def lay_out(x, order):
    """A copy whose dimensions lie in memory in ``order``, outermost first."""
    if [*order] == [*range(x.ndim)]:
        return copies.copied(x)
    layouts.watch()
    return copies.copied(x.transpose(order)).transpose(np.argsort(order))


# -- reductions, scans, order ----------------------------------------------------------------------------------------
# NumPy's functions check and convert arguments in Python first; the ufunc methods beneath them do not.


def sum(x, axis=None, keepdims=False, dtype=None):
    plain = x.size <= sums.FEW and x.itemsize > 2  # of halves there may be too many to be added one by one
    return (np.add.reduce if plain else sums.reduce)(x, axis, dtype, None, keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    if x.size > sums.FEW and dtype in (None, x.dtype):
        found = sums.rowwise(x, axis, sums.PRODUCTS)
        if found is not None:
            return _with_axes(found, x.ndim) if keepdims else found
    return np.multiply.reduce(x, axis, dtype, None, keepdims)


def max(x, axis=None, keepdims=False):
    return np.maximum.reduce(x, axis, None, None, keepdims)


def min(x, axis=None, keepdims=False):
    return np.minimum.reduce(x, axis, None, None, keepdims)


def all(x, axis=None, keepdims=False):
    return np.logical_and.reduce(x, axis, bool, None, keepdims)


def any(x, axis=None, keepdims=False):
    return np.logical_or.reduce(x, axis, bool, None, keepdims)


def mean(x, axis=None, keepdims=False):
    total = sum(x, axis, keepdims)
    return total / (x.size // (total.size or 1) or np.nan)


def root_mean_square(x, count, axis=None, keepdims=False):
    """The root of the sum of squares divided by ``count``, also where the squares are too large for a float32."""
    root = np.sqrt(sum(np.multiply(x, x), axis, keepdims) / count)
    if x.dtype == np.float32 and (np.fmax.reduce(root, axis=None, initial=0) if root.ndim else root) == np.inf:
        x = x.astype(np.float64)
        root = np.sqrt(sum(np.multiply(x, x), axis, keepdims) / count).astype(np.float32)
    return root


def vector_norm(x, ord=2, axis=None, keepdims=False):
    found = sums.rowwise(x, axis, sums.SIZES if ord == 1 else sums.SQUARES) if ord == 1 or ord == 2 else None
    if found is None and ord == 2 and x.dtype.kind == "f":  # in fewer calls than the rule, which takes absolute values
        return np.sqrt(sum(x * x, axis, keepdims))
    if found is None:
        return FORWARDS["vector_norm"](sys.modules[__name__], x, ord=ord, axis=axis, keepdims=keepdims)
    found = np.sqrt(found) if ord == 2 else found
    return _with_axes(found, x.ndim) if keepdims else found


def _with_axes(x, ndim):
    """With axes of one element at its end, where others were summed up."""
    return x.reshape(x.shape + (1,) * (ndim - x.ndim))


BODIES["vector_norm"] = lambda xp, x, **static: vector_norm(x, **static)


def cumsum(x, axis, dtype=None):
    found = sums.running(x, axis) if dtype is None or dtype == x.dtype else None
    return _running(np.add, x, axis, dtype) if found is None else found


def cumprod(x, axis, dtype=None):
    found = sums.running(x, axis, "running_products") if dtype is None or dtype == x.dtype else None
    return _running(np.multiply, x, axis, dtype) if found is None else found


_ROW = 256  # as many numbers or more are added to as many by one call; NumPy's own loop would go down the columns
_WIDER = {
    np.dtype(np.float32): np.float64,
    np.dtype(np.complex64): np.complex128,
    **dict.fromkeys(copies.HALVES, np.float32),
}


def _running(ufunc, x, axis, dtype):
    """One by one, as running totals must be, but in double precision: PyTorch's way."""
    if x.dtype not in _WIDER:
        return ufunc.accumulate(x, axis, dtype)
    wide = x.astype(_WIDER[x.dtype])
    n = x.shape[axis]
    if n * _ROW <= x.size and axis % x.ndim != x.ndim - 1:
        steps = np.moveaxis(wide, axis, 0)
        for i in range(1, n):
            ufunc(steps[i - 1], steps[i], steps[i])
    else:
        ufunc.accumulate(wide, axis, out=wide)
    return wide.astype(x.dtype)


def cummax(x, axis):
    return np.maximum.accumulate(x, axis)


def cummin(x, axis):
    return np.minimum.accumulate(x, axis)


def cumlogsumexp(x, axis):
    return np.logaddexp.accumulate(x.astype(_WIDER.get(x.dtype, x.dtype)), axis).astype(x.dtype)  # PyTorch's way, too


def other_products(x, axis):
    found = sums.other_products(x, axis)
    return FORWARDS["other_products"](sys.modules[__name__], x, axis=axis) if found is None else found


BODIES["other_products"] = lambda xp, x, axis: other_products(x, axis)


def linear_scan(a, b, axis, reverse=False):
    """``y[i] = a[i] * y[i-1] + b[i]`` along ``axis``, or from its end with ``y[i+1]``."""
    found = sums.scan(a, b, axis, reverse)
    if found is not None:
        return found
    y = np.moveaxis(np.array(np.broadcast_to(b, np.broadcast_shapes(a.shape, b.shape)), np.result_type(a, b)), axis, 0)
    a = np.moveaxis(a, axis, 0)
    order = range(len(y) - 1, -1, -1) if reverse else range(len(y))
    before = None
    for i in order:
        if before is not None:
            y[i] += a[i] * y[before]
        before = i
    return np.moveaxis(y, 0, axis)


def scan(step, carry, *xs):
    """The carries ``carry = step(carry, *x)`` for x in zip(*xs), stacked."""
    out = np.empty((len(xs[0]), *carry.shape), carry.dtype)
    for i, x in enumerate(zip(*xs)):
        out[i] = carry = step(carry, *x)
    return out


def ctc_paths(x, targets, input_lengths, target_lengths, blank):
    return ctc.paths(np, scan, x, targets, input_lengths, target_lengths, blank)


def ctc_gradient(g, x, targets, input_lengths, target_lengths, alpha, loss, blank):
    return ctc.gradient(np, scan, g, x, targets, input_lengths, target_lengths, alpha, loss, blank)


def argsort(x, axis=-1):
    """The order that sorts, NaN last, equal elements as they came."""
    found = orders.order(x, axis)
    return np.argsort(x, axis=axis, kind="stable") if found is None else found


def argmax(x, axis=None, keepdims=False):
    return x.argmax(axis, keepdims=keepdims)


def argmin(x, axis=None, keepdims=False):
    return x.argmin(axis, keepdims=keepdims)


def top_order(x, k, axis):
    """Where the ``k`` largest elements along ``axis`` are, the first of equal ones first; NaN is the largest."""
    n = x.shape[axis]
    if k <= 8 and 8 * k <= n and x.dtype.kind == "f":
        found = _top_few(x, k, axis)
        if found is not None:
            return found
    found = np.sort(np.take(np.argpartition(x, n - k, axis=axis), range(n - k, n), axis=axis), axis=axis)
    values = np.take_along_axis(x, found, axis)
    least = values.min(axis, keepdims=True)
    alike = np.array_equal(np.count_nonzero(x == least, axis), np.count_nonzero(values == least, axis))
    if alike and (least == least).all():  # of NaN, too, the first are taken
        return found
    order = n - 1 - np.flip(argsort(np.flip(x, axis), axis), axis)  # equal ones are left out: take the first of them
    return np.take(order, range(k), axis=axis)


def _top_few(x, k, axis):
    """The same by looking for the largest ``k`` times: 20 times faster than a partition. None if -inf would come up."""
    left, found = x.copy(), []
    for _ in range(k):
        found.append(left.argmax(axis, keepdims=True))
        np.put_along_axis(left, found[-1], -np.inf, axis)
    found = np.concatenate(found, axis)
    return None if (np.take_along_axis(x, found, axis) == -np.inf).any() else found


def add_rows(value, index, size):
    """Zeros with ``size`` rows, with each row of ``value`` added to the one that ``index`` names."""
    return losses.add_rows(value, index, size)


def take_along_axis(x, index, axis):
    found = along.take(x, index, axis % (x.ndim or 1))
    return np.take_along_axis(x, index, axis) if found is None else found


def add_along_axis(value, index, axis, size, unique=False):
    """Zeros of ``size`` along ``axis``, with ``value`` added where ``index`` says; ``unique``: no place twice."""
    shape = [size if i == axis else n for i, n in enumerate(value.shape)]
    found = along.add_to_zeros(value, index, axis, shape)
    if found is not None:
        return found
    out = np.zeros(shape, value.dtype)
    if unique:
        np.put_along_axis(out, index, value, axis)
    else:
        places = list(np.ogrid[tuple(map(slice, index.shape))])
        places[axis] = index
        out = index_add(out, value, tuple(places))
    return out


def put_one(value, index, axis, size):
    shape = [size if i == axis else n for i, n in enumerate(value.shape)]
    if value.shape == index.shape:
        found = along.add_to_zeros(value, index, axis, shape)
        if found is not None:
            return found
    return FORWARDS["put_one"](sys.modules[__name__], value, index, axis=axis, size=size)


def gather(x, index, axis):
    found = along.take(x, index, axis)
    return FORWARDS["gather"](sys.modules[__name__], x, index, axis=axis) if found is None else found


def scatter_zeros(x, index, axis, shape):
    found = along.add_to_zeros(x, index, axis, shape)
    return (
        FORWARDS["scatter_zeros"](sys.modules[__name__], x, index, axis=axis, shape=shape) if found is None else found
    )


def scatter(x, index, src, axis):
    found = along.put(copies.copied(x), src, index, axis)
    return FORWARDS["scatter"](sys.modules[__name__], x, index, src, axis=axis) if found is None else found


def scatter_add(x, index, src, axis):
    found = along.add(copies.copied(x), src, index, axis) if src.__class__ is x.__class__ else None
    return FORWARDS["scatter_add"](sys.modules[__name__], x, index, src, axis=axis) if found is None else found


def take_slices(x, index, axis):
    found = along.take_slices(x, index, axis)
    return getitem(x, (slice(None),) * axis + (index,)) if found is None else found


def add_slices(x, index, axis, shape):
    found = along.spread_slices(x, index, axis, shape)
    return FORWARDS["add_slices"](sys.modules[__name__], x, index, axis=axis, shape=shape) if found is None else found


def nonzero(x):
    if x.ndim < 2 or x.size < _LARGE or x.dtype != bool or not x.flags.c_contiguous:
        return x.nonzero() if x.__class__ is np.ndarray and x.ndim else np.nonzero(x)
    place, found = np.flatnonzero(x), []  # NumPy takes several times as long to count in all dimensions
    for n in x.shape[:0:-1]:
        place, last = np.divmod(place, n)
        found.append(last)
    return (place, *found[::-1])


def _add_at_zeros(xp, x, *indices, shape, dims=None):
    found = along.spread_at(x, indices, shape) if dims is None else None
    return FORWARDS["add_at_zeros"](xp, x, *indices, shape=shape, dims=dims) if found is None else found


def _embed_slice(xp, x, *, axis, start, length, step=1):
    out = np.zeros((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)
    copies.put(out[(slice(None),) * axis + (slice(start, start + x.shape[axis] * step, step),)], x)
    return out


BODIES["add_at_zeros"], BODIES["embed_slice"] = _add_at_zeros, _embed_slice
BODIES["take_slices"] = lambda xp, x, index, axis: take_slices(x, index, axis)
BODIES["add_slices"] = lambda xp, x, index, axis, shape: add_slices(x, index, axis, shape)
BODIES["put_one"] = lambda xp, value, index, axis, size: put_one(value, index, axis, size)
BODIES["gather"] = lambda xp, x, index, axis: gather(x, index, axis)
BODIES["scatter_zeros"] = lambda xp, x, index, axis, shape: scatter_zeros(x, index, axis, shape)
BODIES["scatter"] = lambda xp, x, index, src, axis: scatter(x, index, src, axis)
BODIES["scatter_add"] = lambda xp, x, index, src, axis: scatter_add(x, index, src, axis)


def searchsorted(sequence, values, side="left"):
    """Where ``values`` belong in ``sequence``; if that has rows, row by row."""
    if sequence.ndim == 1:
        return _places(sequence, values, side)
    rows = zip(_rows(sequence), _rows(values))
    found = [_places(s, v, side) for s, v in rows]
    return np.array(found, dtype=np.int64).reshape(values.shape)


def _places(sequence, values, side):
    if (sequence[:-1] <= sequence[1:]).all() and (sequence[-1:] == sequence[-1:]).all():
        return np.searchsorted(sequence, values, side=side)
    # Not in order, or nan: PyTorch halves all the same, and goes on after whatever does not hold.
    low, high = np.zeros(values.shape, np.int64), np.full(values.shape, sequence.size, np.int64)
    for _ in range(sequence.size.bit_length()):
        middle = np.minimum((low + high) // 2, sequence.size - 1)
        there = sequence[middle] >= values if side == "left" else sequence[middle] > values
        low, high = np.where(there | (low >= high), low, middle + 1), np.where(there & (low < high), middle, high)
    return low


def bincount(x, weights=None, length=0):
    return np.bincount(x, weights, length)


def _rows(x):
    """All axes but the last as one."""
    return x.reshape(-1 if x.size else int(np.prod(x.shape[:-1])), x.shape[-1])


def on_host(function, name, *arrays):
    """``function`` of NumPy arrays, for what has a shape that depends on values; see ``xla.on_host``."""
    return function(*arrays)


for _fast in (softmax, softmax_backward_data, log_softmax, log_softmax_backward_data):
    BODIES[_fast.__name__] = lambda xp, *arrays, axis, _fast=_fast: _fast(*arrays, axis)


def matrix_transpose(x):
    return x.mT


for _family in (activations, losses, norms, orders, spreads):
    BODIES.update(_family.BODIES)
    BACKWARD.update(_family.BACKWARD)
BACKWARD["max_pool"] = _max_windows_backward
BODIES["conv"] = lambda xp, x, w, b=None, **static: conv(x, w, b, **static)  # adds the bias while it is in the cache
BACKWARD["conv"] = _conv_backward
BODIES["linear"], BACKWARD["linear"] = products.linear, products.linear_backward
BODIES["add_matmul"] = products.add_matmul
BODIES["integer_product"] = products.integer_product
BODIES["recurrent"], BACKWARD["recurrent"] = _rnn.recurrent, _rnn.recurrent_backward
BODIES["attention"], BACKWARD["attention"] = _attention.attention, _attention.attention_backward


def getitem(x, index):
    """What is picked by arrays lies in plain order, as in PyTorch; NumPy lays the dimensions of the index outermost."""
    if index.__class__ is not tuple or not index or index[-1].__class__ is not np.ndarray:
        return x[index]
    before = index[:-1]
    if before and index[-1].dtype.kind in "iu" and x.flags.c_contiguous and builtins.all(map(_is_whole, before)):
        return x.take(index[-1], len(before))
    out = along.take_at(x, index)
    if out is None:
        out = x[index]
    return out if out.ndim < 2 or out.flags.c_contiguous else np.ascontiguousarray(out)


def _is_whole(i) -> bool:
    return i.__class__ is slice and i == slice(None)


def is_traced(x) -> bool:
    """Is it a stand-in whose values are not known yet?"""
    return False


def is_known(x) -> bool:
    """Can values be looked at without waiting?"""
    return True


def expanded(x, shape):
    """``broadcast_to`` whose rows may be written through, as PyTorch's ``expand``."""
    if not x.flags.writeable:
        return np.broadcast_to(x, shape)
    if x.shape == shape:
        return x.view()
    fixed = len(shape) - x.ndim
    strides = x.strides
    if x.shape != shape[fixed:]:
        strides = tuple([s if n == m else 0 for n, m, s in zip(x.shape, shape[fixed:], strides)])
    strides = (0,) * fixed + strides
    if x.flags.c_contiguous and x.size:
        return np.ndarray(shape, x.dtype, x, 0, strides)
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def diagonal(x, offset=0, axis1=0, axis2=1):
    out = np.diagonal(x, offset, axis1, axis2)
    if x.flags.writeable:
        out.flags.writeable = True
    return out


def windows(x, axis, size, step):
    """All windows of ``size`` along ``axis``, ``step`` apart, as a last axis."""
    plain = x.view(np.int32) if x.dtype.kind == "W" else x  # of which NumPy makes no windows
    every = np.lib.stride_tricks.sliding_window_view(plain, size, axis=axis, writeable=x.flags.writeable)
    every = every[(slice(None),) * axis + (slice(None, None, step),)]
    return every if plain is x else every.view(x.dtype)


def strided(x, shape, strides, offset):
    """``x``'s memory, read with the given strides from ``offset`` on (counted in elements)."""
    whole = storage.owner(x)
    start = (storage.pointer(x) - storage.pointer(whole)) // x.itemsize if x.size else 0
    return storage.placed(storage.memory_of(whole), x.dtype, shape, strides, start + offset)


def index_reduce(x, value, index, how):
    """``x`` with ``value`` multiplied in (``how="prod"``), or the larger or smaller kept ("amax", "amin")."""
    out = np.array(x)
    {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[how].at(out, index, value)
    return out


def repeat_each(repeats, total=None):
    """Each position of ``repeats`` so many times as it says; ``total`` is the length, where that must be known."""
    return np.repeat(np.arange(len(repeats)), repeats)


def bitcast(x, dtype):
    """The same bytes read as another dtype; the last axis grows or shrinks."""
    return x.view(dtype)


def index_put(x, value, index):
    """``x`` with ``x[index] = value`` done to a copy."""
    out = copies.copied(x) if x.flags.c_contiguous else np.array(x)
    part = out[index] if x.size >= _LARGE and _is_basic(index) else None
    if part.__class__ is value.__class__ is np.ndarray:
        copies.write(part, value)
    else:
        out[index] = value
    return out


def index_add(x, value, index):
    """``x`` with ``value`` added at ``index``, repeated positions adding up."""
    if x.dtype in copies.HALVES:
        return astype(index_add(astype(x, np.float32), astype(value, np.float32), index), x.dtype)
    out = copies.copied(x)
    *before, last = index if index.__class__ is tuple and index else (index,)
    if last.__class__ is value.__class__ is np.ndarray and builtins.all(map(_is_whole, before)):
        found = along.add_slices(out, value, last, len(before))
        if found is not None:
            return found
        out = copies.copied(x)  # an index out of range has left some of it
    elif before and value.__class__ is np.ndarray and along.add_at(out, value, index) is not None:
        return out
    if _is_basic(index):
        out[index] += value
    else:
        np.add.at(out, index, value)
    return out


def _is_basic(index) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return builtins.all(isinstance(p, (int, slice)) or p is None or p is Ellipsis for p in parts)


# -- element-wise ------------------------------------------------------------------------------------------------------

add, subtract, multiply, divide = map(chains.of_two, (np.add, np.subtract, np.multiply, np.divide))
maximum, minimum, equal, not_equal = map(chains.of_two, (np.maximum, np.minimum, np.equal, np.not_equal))
less, less_equal = chains.of_two(np.less), chains.of_two(np.less_equal)
greater, greater_equal = chains.of_two(np.greater), chains.of_two(np.greater_equal)
negative, sqrt, square, isnan = map(chains.of_one, (np.negative, np.sqrt, np.square, np.isnan))
exp, log, log1p, expm1 = map(chains.of_one, (np.exp, np.log, np.log1p, np.expm1))
abs, erf = chains.of_one(np.abs, "abs"), chains.of_one(special.erf)


def sigmoid(x):
    return activations.sigmoid(x if x.__class__ is np.ndarray else np.asarray(x))


def sign(x):
    """-1, 0 or 1, 0 for nan; for complex numbers x / |x|, and 0 for 0."""
    if x.dtype.kind == "f":
        return np.subtract(x > 0, x < 0, dtype=x.dtype)
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, x.dtype.type(0), x / size)
    return np.sign(x)


def _reciprocal(x):
    y = np.reciprocal(x)
    return y if x.dtype.kind != "c" else np.where(x == 0, x.dtype.type(_POLE), y)


def _rsqrt(x):
    return _reciprocal(np.sqrt(x))


reciprocal, rsqrt = chains.of_one(_reciprocal, "reciprocal"), chains.of_one(_rsqrt, "rsqrt")


_POLE = complex(math.inf, math.nan)
_INVERSES = {0.5: np.sqrt, -1: reciprocal, -0.5: rsqrt}


def power(x, w):
    if x.__class__ is np.ndarray and (w.__class__ is int or w.__class__ is float):
        if w == 2:
            return np.multiply(x, x)
        if w == 3:
            return np.multiply(np.multiply(x, x), x)
        if w in _INVERSES and x.dtype.kind in "fc":
            return _INVERSES[w](x)
        return np.power(x, w) if x.dtype.kind != "c" else _complex_power(x, w)
    if getattr(x, "dtype", None) is not None and np.asarray(x).dtype.kind in "iu":
        return _integer_power(x, w)
    return _complex_power(x, w) if np.iscomplexobj(x) or np.iscomplexobj(w) else np.power(x, w)


def _complex_power(x, w):
    """At a base of 0 what PyTorch's exponential of a logarithm gives: 0 to the power of 0 is 1 for numbers only."""
    y = np.power(x, w)
    zero = np.equal(x, 0)
    y = np.where(zero & (np.real(w) < 0), y.dtype.type(_POLE), y)
    return np.where(zero & np.equal(w, 0), y.dtype.type(math.nan * 1j), y) if w.__class__ is np.ndarray else y


def _integer_power(x, w):
    """Negative exponents give the truncated result: 0, or ±1 for a base of ±1."""
    negative = np.less(w, 0)
    if not negative.any():
        return np.power(x, w)
    inverse = np.where(x == 1, 1, np.where(x == -1, 1 - 2 * (w % 2), 0))
    return np.where(negative, inverse, np.power(x, np.where(negative, 0, w))).astype(np.result_type(x, w))


def floor_divide(x, w):
    _refuse_zero(x, w)
    return np.floor_divide(x, w)


def remainder(x, w):
    _refuse_zero(x, w)
    return np.remainder(x, w)


def fmod(x, w):
    _refuse_zero(x, w)
    return np.fmod(x, w)


def _refuse_zero(x, w):
    if isinstance(w, (np.ndarray, np.generic)) and w.dtype.kind in "biu" and not np.all(w) and np.size(x):
        raise RuntimeError("ZeroDivisionError")


def left_shift(x, w):
    """Shifting by the width or more, or by less than 0, leaves 0."""
    outside = (w < 0) | (w >= 8 * x.dtype.itemsize)
    return np.where(outside, x.dtype.type(0), np.left_shift(x, np.where(outside, 0, w).astype(w.dtype)))


def right_shift(x, w):
    """Shifting by the width or more, or by less than 0, leaves only the sign."""
    most = 8 * x.dtype.itemsize - 1
    return np.right_shift(x, np.where((w < 0) | (w > most), most, w).astype(w.dtype))


def exp2(x):
    return np.exp(x * np.log(2).item()) if np.iscomplexobj(x) else np.exp2(x)


erfcx, i0, i0e, i1, i1e = map(special.in_blocks, (special.erfcx, special.i0, special.i0e, special.i1, special.i1e))


def recurrence(step, first, second, n):
    """Item ``n`` (an array) of the sequence that begins ``first, second``, goes on ``step(k, last, item)``."""
    last, item = first, second
    result = np.where(n == 0, first, second)
    for k in range(1, int(np.max(n, initial=0))):
        last, item = item, step(k, last, item)
        result = np.where(n == k + 1, item, result)
        if k % 64 == 0 and np.isnan(item[n > k]).all():  # what is NaN once stays so: nothing is left to find
            return np.where(n > k, item, result)
    return result


def iterate(step, unfinished, state, most):
    """``state = step(n, state)`` for n from 0, while ``unfinished(n, state)``, ``most`` times at most."""
    for n in range(most):
        if not unfinished(n, state):
            break
        state = step(n, state)
    return state


def make_complex(x, w):
    out = np.empty(np.broadcast_shapes(x.shape, w.shape), np.result_type(x, np.complex64))
    out.real, out.imag = x, w
    return out


_PARTS = {
    np.dtype(ml_dtypes.complex32): np.dtype(np.float16),
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}
_WHOLES = {part: whole for whole, part in _PARTS.items()}


def real(x):
    return np.real(x) if getattr(x, "dtype", _E4M3FN).kind != "W" else view_as_real(x)[..., 0]


def imag(x):
    return np.imag(x) if getattr(x, "dtype", _E4M3FN).kind != "W" else view_as_real(x)[..., 1]


def view_as_real(x):
    return x[..., None].view(_PARTS[x.dtype])


def view_as_complex(x):
    kind = _WHOLES[x.dtype]
    if x.strides[-1] != x.itemsize:
        x = np.ascontiguousarray(x)
    return x.view(kind)[..., 0]


# -- what NumPy writes in Python: it would warn under NumPy's name, which our filter does not know -------------------

_quiet = np.errstate(all="ignore")
sinc = _quiet(np.sinc)


@_quiet
def cross(x, w, axis=-1):
    """As PyTorch's, which rounds the second product, and the first only with the difference of both."""
    if x.dtype.kind != "f" or x.dtype.itemsize == 2:
        return np.ascontiguousarray(np.cross(x, w, axis=axis))
    x, w = [np.moveaxis(t, axis, 0) for t in (x, w)]
    y = np.empty(np.broadcast_shapes(x.shape, w.shape), x.dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        second = x[k] * w[j]
        one = _fused(x[j], w[k], -second)
        y[i] = np.where(np.isfinite(one), one, x[j] * w[k] - second)
    return np.ascontiguousarray(np.moveaxis(y, 0, axis))


@_quiet
def _transformed(name, x, axes, size, dtype, norm):
    """A Fourier transform, computed where it is to lie; its last axis has ``size`` elements (None: as many as x)."""
    shape, last = x.shape, axes[-1] % x.ndim
    if size is not None:
        shape = (*shape[:last], size, *shape[last + 1 :])
    out = np.empty(math.prod(shape), dtype)
    strides = layouts.transformed(shape, x, axes, size is not None)
    out = np.ndarray(shape, dtype, out, 0, [step * out.itemsize for step in strides])
    if len(axes) == 1:
        return getattr(np.fft, name)(x, size if name == "irfft" else None, axis=last, norm=norm, out=out)
    sizes = [*(shape[a] for a in axes[:-1]), size] if name == "irfft" else None
    return getattr(np.fft, name + "n")(x, sizes, axes=axes, norm=norm, out=out)


def fftn(x, axes, norm=None):
    return _transformed("fft", x, axes, None, _COMPLEX[x.dtype], norm)


def ifftn(x, axes, norm=None):
    return _transformed("ifft", x, axes, None, _COMPLEX[x.dtype], norm)


def rfftn(x, axes, norm=None):
    return _transformed("rfft", x, axes, x.shape[axes[-1]] // 2 + 1, _COMPLEX[x.dtype], norm)


def irfftn(x, s, axes, norm=None):
    return _transformed("irfft", x, axes, s[-1], x.real.dtype, norm)


_COMPLEX = {np.dtype(d): np.result_type(d, np.complex64) for d in "fdFD"}

BODIES["cofactor"] = lambda xp, x: cofactor(x)  # noqa: F405 — the op's own forward divides by the determinant
_native.install(BODIES, BACKWARD)
chains.install(BODIES, sys.modules[__name__])


def __getattr__(name):
    function = globals()[name] = lookup(np, name, sys.modules[__name__])  # found once, then an ordinary global
    return function
