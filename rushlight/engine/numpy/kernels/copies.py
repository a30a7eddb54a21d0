"""Copies of large arrays on several threads, whatever order their elements lie in."""

from __future__ import annotations

import functools

import numpy as np
from ml_dtypes import bfloat16

from ...native import library

_WORTH = 1 << 15  # elements
REALS = {4: np.float32, 8: np.float64}  # as which the library copies what is as large


def copied(x):
    """A copy in C order."""
    if library is None or x.size < _WORTH or x.itemsize not in REALS:
        return np.array(x, order="C")
    out = np.empty(x.shape, x.dtype)
    put(out, x)
    return out


def converted(x, dtype):
    """``x`` in another dtype."""
    if library is None or x.size < _FEW or (x.dtype, dtype) not in _CONVERSIONS:
        return _cast(x, dtype)
    name, seen, made = _CONVERSIONS[x.dtype, dtype]
    if x.size < _WORTH and name not in _SLOW:
        return _cast(x, dtype)
    if 0 in x.strides:  # of a sum, say: what is repeated is converted once
        once = x[tuple([slice(None) if step else slice(1) for step in x.strides])]
        if once.size < x.size:
            return np.array(np.broadcast_to(converted(once, dtype), x.shape), order="C")
    if not _is_plain(x):
        return x.astype(dtype, copy=False)
    if not x.flags.c_contiguous:
        return converted(x.T, dtype).T
    out = np.empty(x.shape, dtype)
    getattr(library, name)(x.view(seen) if seen else x, out.view(made) if made else out)
    return out


def _cast(x, dtype):
    return x.astype(dtype, "K" if x.dtype == dtype else order_of_copy(x), copy=False)


def order_of_copy(x) -> str:
    """NumPy's word for how a copy lies: as the array does, but what is repeated says nothing about its order."""
    return "C" if 0 in x.strides else "K"


def _is_plain(x) -> bool:
    return x.flags.forc and x.flags.aligned and x.dtype.isnative


# (from, to) -> the kernel, and as what each of the two is shown to it.
_HALF, _BRAIN, _SINGLE, _DOUBLE, _LONG = (np.dtype(d) for d in (np.float16, bfloat16, np.float32, np.float64, np.int64))
_CONVERSIONS: dict[tuple, tuple] = {
    **{(_LONG, real): ("from_long", None, None) for real in (_SINGLE, _DOUBLE)},
    **{(np.dtype(np.uint8), real): ("from_byte", None, None) for real in (_SINGLE, _DOUBLE)},
    **{(np.dtype(np.bool), real): ("from_truth", None, None) for real in (_SINGLE, _DOUBLE)},
    **{(real, _LONG): ("to_long", None, None) for real in (_SINGLE, _DOUBLE)},
    (_DOUBLE, _SINGLE): ("from_double", np.int64, None),
    (_SINGLE, _DOUBLE): ("to_double", None, np.int64),
    (_HALF, _SINGLE): ("from_half", np.uint8, None),
    (_SINGLE, _HALF): ("to_half", None, np.uint8),
    (_BRAIN, _SINGLE): ("from_brain", np.uint8, None),
    (_SINGLE, _BRAIN): ("to_brain", None, np.uint8),
}
HALVES = frozenset([_HALF, _BRAIN])  # of which many are added in single precision: one by one, digits are lost
_FEW, _SLOW = 1 << 9, ("from_half", "to_half")  # NumPy takes 2 ns for each half: so many are worth a call


def contiguous(x):
    """The array itself if it lies in C order, else a copy that does."""
    return x if x.flags.c_contiguous else copied(x)


def put(out, x) -> None:
    """``out[...] = x`` of arrays of one shape."""
    kind = REALS.get(x.itemsize)
    if library is None or x.size < _WORTH or kind is None or x.dtype != out.dtype or x.shape != out.shape:
        out[...] = x
        return
    source, target = x.view(kind), out.view(kind)
    if source.flags.aligned and target.flags.aligned:  # a complex number may begin where no real of that size does
        library.lay(source, target, *_layout(x.shape, x.strides, out.strides, x.itemsize))
    else:
        out[...] = x


def write(out, x) -> None:
    """``out[...] = x``, also of other dtypes and shapes, and where both share memory."""
    if library is None or out.size < _WORTH or x.dtype != out.dtype or np.may_share_memory(out, x):
        out[...] = x
    elif not x.ndim:  # ``broadcast_to`` takes as long as 64 kB
        put(out, np.ndarray(out.shape, x.dtype, x, 0, (0,) * out.ndim))
    else:
        put(out, x if x.shape == out.shape else np.broadcast_to(x, out.shape))


def joined(arrays, axis):
    """``np.concatenate``."""
    first = arrays[0]
    if library is None or sum([a.size for a in arrays]) < _WORTH:
        return np.concatenate(arrays, axis)
    if any(a.dtype != first.dtype or a.ndim != first.ndim for a in arrays) or not first.ndim:
        return np.concatenate(arrays, axis)
    axis %= first.ndim
    shape = (*first.shape[:axis], sum(a.shape[axis] for a in arrays), *first.shape[axis + 1 :])
    others = {(*a.shape[:axis], *a.shape[axis + 1 :]) for a in arrays}
    if len(others) > 1 or not all(is_forward(a.strides) for a in arrays):
        return np.concatenate(arrays, axis)
    out, start, before = np.empty(shape, first.dtype), 0, (slice(None),) * axis
    for a in arrays:
        put(out[(*before, slice(start, start + a.shape[axis]))], a)
        start += a.shape[axis]
    return out


def is_forward(strides) -> bool:
    """Does an array lie as its axes follow each other, each perhaps from its end? Then so does a copy."""
    steps = [*map(abs, strides)]
    return steps == sorted(steps, reverse=True)


@functools.lru_cache(256)
def _layout(shape, from_, to, itemsize):
    """Sizes and strides, in elements, with neighbouring axes joined; the axes in the order in which ``to`` lies."""
    axes = [(t, n, f) for n, f, t in zip(shape, from_, to) if n != 1]
    axes.sort(key=lambda axis: -axis[0])
    joined: list = []
    for t, n, f in axes:
        if joined and joined[-1][0] == n * t and joined[-1][2] == n * f:
            t, n, f = t, n * joined.pop()[1], f
        joined.append((t, n, f))
    joined = [(0, 1, 0)] * (2 - len(joined)) + joined
    sizes, starts, ends = ([axis[i] for axis in joined] for i in (1, 2, 0))
    return tuple(
        [np.array(v, np.int64) for v in (sizes, [s // itemsize for s in starts], [e // itemsize for e in ends])]
    )
