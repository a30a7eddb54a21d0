"""Choosing between arrays on NumPy without branches: ``np.where`` mispredicts on random masks, ten times slower."""

from __future__ import annotations

import numpy as np

from . import chains
from .parallel import rows

_SMALL = 1 << 11  # below this np.where's single call is quicker
BITS = {4: np.int32, 8: np.int64}


def where(condition, x, w):
    """``np.where``; arrays of 4 and 8 byte numbers as large as the condition are chosen from by their bits."""
    if condition.__class__ is not np.ndarray:
        return np.where(condition, x, w)
    if max(condition.size, getattr(x, "size", 1), getattr(w, "size", 1)) >= chains.WORTH:
        sides = [np.asarray(side) if isinstance(side, np.generic) else side for side in (x, w)]
        found = chains.evaluated(_choice, (condition, *sides), {})
        if found is not None:
            return found
    if condition.size > _SMALL and condition.dtype == bool:
        dtype = np.result_type(x, w)
        bits = BITS.get(dtype.itemsize)
        if bits is not None and dtype.kind != "c":
            sides = [_side(side, dtype, condition.shape, bits) for side in (x, w)]
            if None not in sides:
                return _chosen(condition, *[side[0] for side in sides], dtype, bits)
    return np.where(condition, x, w)


def _choice(xp, condition, x, w):
    return xp.where(condition, x, w)


def _side(side, dtype, shape, bits):
    """(the bits of an operand, flat, or of a number, 0-dim), or None if it is not of the right kind."""
    if getattr(side, "ndim", 0) == 0:
        return (np.asarray(side, dtype).view(bits),)
    if side.shape != shape or side.dtype != dtype:
        return None
    return (np.ascontiguousarray(side).reshape(-1).view(bits),)


def _chosen(condition, x, w, dtype, bits):
    out = np.empty(condition.shape, dtype)
    flat, choice = out.reshape(-1).view(bits), np.ascontiguousarray(condition).reshape(-1)

    def work(start, stop):
        a, b = (side[start:stop] if side.ndim else side for side in (x, w))
        choose(flat[start:stop], choice[start:stop], a, b)

    rows(flat.size, 1, work)
    return out


def choose(out, condition, x, w):
    """``out`` = x where the condition holds, else w; all but the condition are integers, the bits of what is chosen."""
    flags = (condition.view(np.int8) != 0).view(np.int8)  # bytes that are seen as truths may be any
    if x.ndim == 0 and x == 0:
        mask = np.subtract(flags, 1).astype(out.dtype)  # all bits where the condition is false
        np.bitwise_and(w, mask, out=out)
        return
    mask = np.negative(flags).astype(out.dtype)  # all bits where it is true
    if w.ndim == 0 and w == 0:
        np.bitwise_and(x, mask, out=out)
    else:
        np.bitwise_xor(x, w, out=out)
        out &= mask
        out ^= w
