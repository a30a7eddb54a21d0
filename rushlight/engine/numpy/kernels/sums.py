"""Sums that add few numbers one by one: the error grows with the logarithm of their count, not with the count.

NumPy adds in pairs along the axis that is innermost in memory, but row to row over the others, where the millionth
row's last digits are lost. Here such an axis is added in blocks, the sums of blocks likewise: by the library in C,
where it is there, or by products with ones, at which BLAS is faster too.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ...native import library
from . import copies

_BLOCK = 64  # numbers that are added one by one
_WIDTH = 512  # narrower rows are laid side by side first: a loop over few columns is slow
_ROW = 4096  # numbers whose sum is left to BLAS
SHARED = 32768  # numbers that are worth more than one thread
FEW = 1024  # so small an array is not worth the trouble
_SINGLE = np.dtype(np.float32)


def reduce(x, axis=None, dtype=None, out=None, keepdims=False):
    """``np.add.reduce`` in blocks."""
    if x.dtype.kind == "b" and axis is None and not keepdims and dtype in (None, np.int64):
        return np.int64(np.count_nonzero(x))  # ten times as fast
    if x.dtype in copies.HALVES and dtype in (None, x.dtype):
        return reduce(copies.converted(x, _SINGLE), axis, None, None, keepdims).astype(x.dtype)
    if x.size <= FEW or x.dtype.kind not in "fc" or dtype not in (None, x.dtype) or x.dtype.itemsize < 4:
        return np.add.reduce(x, axis, dtype, None, keepdims)
    axes = axes_of(axis, x.ndim)
    total = _over(x, axes) if 1 not in x.shape else _over_long(x, axes)
    return total.reshape([1 if i in axes else n for i, n in enumerate(x.shape)]) if keepdims else total


def rows(x):
    """The sum over the first axis of a two-dimensional array."""
    if x.size <= FEW or not x.flags.c_contiguous or x.dtype in copies.HALVES:
        return reduce(x, 0)
    n, width = x.shape
    beside = _WIDTH // width if n > _BLOCK else 1
    if beside < 2:
        return _columns(x)
    whole = n // beside * beside
    part = _columns(x[:whole].reshape(-1, beside * width)).reshape(beside, width)
    if whole < n:
        part = np.concatenate([part, x[whole:]])
    return np.add.reduce(np.ascontiguousarray(part.T), axis=1)


def along(x):
    """The sums along the last axis: by BLAS, which is faster at short rows and keeps fewer digits of long ones."""
    return x.dot(np.ones(x.shape[-1], x.dtype)) if x.shape[-1] <= _ROW else np.add.reduce(x, axis=-1)


def products(x, y):
    """The sums of ``conj(x) * y`` along the last axis."""
    n = x.shape[-1]
    if n <= _ROW:
        return np.vecdot(x, y)
    whole = n // _ROW * _ROW
    total = np.add.reduce(np.vecdot(*(a[..., :whole].reshape(*a.shape[:-1], -1, _ROW) for a in (x, y))), axis=-1)
    return total + np.vecdot(x[..., whole:], y[..., whole:]) if whole < n else total


def _over_long(x, axes):
    """``_over`` without the axes of one element, which lie nowhere in memory."""
    long = [i for i, n in enumerate(x.shape) if n != 1]
    total = _over(x.reshape([x.shape[i] for i in long]), [at for at, i in enumerate(long) if i in axes])
    return total.reshape([n for i, n in enumerate(x.shape) if i not in axes])


def _over(x, axes):
    if len(axes) == x.ndim and x.flags.forc:
        return _innermost(x.ravel("K"), 1)[()]
    order = sorted(range(x.ndim), key=lambda i: -abs(x.strides[i]))  # as it lies in memory, outermost first
    if order != list(range(x.ndim)):
        kept = [i for i in order if i not in axes]
        total = _over(x.transpose(order), [order.index(a) for a in axes])
        return total.transpose(np.argsort(kept)) if kept else total
    left = sorted(axes)
    inner = []
    while left and left[-1] == x.ndim - 1 - len(inner):
        inner.append(left.pop())
    if inner:
        x = _innermost(x, len(inner)) if x.flags.c_contiguous else _one_by_one(x, inner)
    while left:
        last = left.pop()
        while left and left[-1] == last - 1 and x.flags.c_contiguous:  # neighbours in memory are one axis
            left.pop()
            x = x.reshape(*x.shape[: last - 1], -1, *x.shape[last + 1 :])
            last -= 1
        x = _axis(x, last)
    return x


SIZES, SQUARES, PRODUCTS = 1, 2, 3  # of which there are sums, and what is a product instead


def rowwise(x, axis, of, around=None):
    """Sums of sizes, of squares (of differences from ``around``, one for each row) or products over the last axes.

    Of real numbers in C order; None where the library does not serve.
    """
    axes = sorted(axes_of(axis, x.ndim))
    if x.size < SHARED or not _serves(x) or axes != list(range(x.ndim - len(axes), x.ndim)):
        return None
    if axis is None and x.flags.f_contiguous:
        x = x.T
    return _innermost(x, len(axes), of, around) if x.flags.c_contiguous else None


def _innermost(x, count, of=0, around=None):
    """The sums over the last ``count`` axes of an array in C order."""
    axes = x.ndim - count
    if x.size < SHARED or not _serves(x):
        return np.add.reduce(x, axis=tuple(range(axes, x.ndim)))
    y = np.empty(x.shape[:axes], x.dtype)
    library.row_sums(x, around, y, math.prod(x.shape[axes:]), of)
    return y


def _serves(x) -> bool:
    return library is not None and x.dtype.char in "fd"


def _one_by_one(x, axes):
    for axis in axes:
        x = np.add.reduce(x, axis=axis)
    return x


def _axis(x, axis):
    if axis == 0 and x.flags.c_contiguous:
        return rows(x.reshape(len(x), -1)).reshape(x.shape[1:])
    n = x.shape[axis]
    if x.flags.c_contiguous and _serves(x):
        y = np.empty(x.shape[:axis] + x.shape[axis + 1 :], x.dtype)
        library.axis_sums(x, y, math.prod(x.shape[:axis]), n, math.prod(x.shape[axis + 1 :]))
        return y
    while n > _BLOCK:
        blocks, before = n // _BLOCK, (slice(None),) * axis
        whole = x[(*before, slice(blocks * _BLOCK))]
        sums = np.add.reduce(whole.reshape(*x.shape[:axis], blocks, _BLOCK, *x.shape[axis + 1 :]), axis=axis + 1)
        if blocks * _BLOCK < n:
            rest = np.add.reduce(x[(*before, slice(blocks * _BLOCK, None))], axis=axis, keepdims=True)
            sums = np.concatenate([sums, rest], axis=axis)
        x, n = sums, sums.shape[axis]
    return np.add.reduce(x, axis=axis)


def running(x, axis, name="running_sums"):
    """Totals along an axis, or products, in double precision inside; None where the library does not serve."""
    if not x.ndim or not x.size or not _serves(x):
        return None
    y = np.empty(x.shape, x.dtype)
    getattr(library, name)(np.ascontiguousarray(x), y, x.shape[axis], math.prod(x.shape[axis % x.ndim + 1 :]))
    return y


def other_products(x, axis):
    """The products of all other elements along an axis; None where the library does not serve."""
    if not x.ndim or not x.size or not _serves(x):
        return None
    rows = copies.contiguous(np.moveaxis(x, axis, -1))
    y = np.empty(rows.shape, x.dtype)
    library.other_products(rows, y, rows.shape[-1])
    return copies.contiguous(np.moveaxis(y, -1, axis))


def scan(a, b, axis, reverse):
    """``y[i] = a[i] * y[i-1] + b[i]`` along the last axis; None where the library does not serve."""
    if library is None or a.shape != b.shape or a.dtype != b.dtype or a.dtype.char not in "fd":
        return None
    if not a.ndim or axis % a.ndim != a.ndim - 1 or not a.size:
        return None
    y = np.empty(a.shape, a.dtype)
    library.scan_rows(np.ascontiguousarray(a), np.ascontiguousarray(b), y, a.shape[-1], reverse)
    return y


def _columns(x):
    if _serves(x):
        y = np.empty(x.shape[1:], x.dtype)
        library.axis_sums(x, y, 1, *x.shape)
        return y
    while len(x) > _BLOCK:
        blocks = len(x) // _BLOCK
        sums = np.matmul(_ones(x.dtype), x[: blocks * _BLOCK].reshape(blocks, _BLOCK, -1))
        rest = x[blocks * _BLOCK :]
        x = np.concatenate([sums, _short(rest)[None]]) if len(rest) else sums
    return _short(x)


def _short(x):
    return _ones(x.dtype)[: len(x)].dot(x)


@functools.cache
def _ones(dtype):
    return np.ones(_BLOCK, dtype)


def axes_of(axis, ndim):
    if axis is None:
        return list(range(ndim))
    return [a % ndim for a in axis] if isinstance(axis, tuple) else [axis % ndim]
