"""Matrix products: large ones by the library in C, where it is there, others by NumPy's BLAS."""

from __future__ import annotations

import math

import numpy as np

from ...fallback import FORWARDS
from ...native import library
from . import sums

_SMALL = 1 << 11  # elements of two matrices that need no further question
FEW = 2  # rows or columns; a vector's product is bound by memory, and BLAS is twice as fast
_SHORT = 8  # elements of a batch of columns that NumPy multiplies as soon as the library is called
_FEW_SUMS = 16  # rows; with more BLAS is faster, and sums more carefully
# Multiplications below which a linear layer is done where its arrays lie, without BLAS; one row gains nothing by it.
_THIN, _THIN_ROW = (0, 0) if library is None else (1 << 12, 1 << 16)
_thin, _empty = getattr(library, "thin", None), np.empty  # found once: a small layer takes no longer than such lookups
WORTH = 1 << 17  # multiplications from which on the call of the library pays; BLAS is called with less ado


def matmul(x, w):
    """Products of the last two dimensions; the others are those of a batch, and broadcast."""
    if w.ndim == 2 and x.ndim >= 2:  # one product, where np.matmul would loop over the batch
        return product(x, w) if x.ndim == 2 else product(_rows(x), w).reshape(*x.shape[:-1], w.shape[1])
    if x.ndim > 2 and x.shape[-1] == 1 and x.size > _SHORT:
        return _outer(x, w)
    if x.ndim > 2 and w.ndim > 2 and x.size * w.shape[-1] > WORTH and _serves(x, w):
        return _batch(x, w)
    return np.matmul(x, w)


def product(x, w, bias=None):
    """``x @ w + bias`` of two matrices."""
    if w.shape[0] == 1 == x.shape[1] and bias is None:
        return _outer(x, w)
    if (w.size > _SMALL or x.size > _SMALL) and x.size * w.shape[1] > WORTH and _serves(x, w):
        return _native(x, w, bias)
    y = x.dot(w)  # half the overhead of np.matmul
    if bias is not None:
        y += bias
    return y


def _native(x, w, bias):
    y = np.empty((x.shape[0], w.shape[1]), x.dtype)
    fused = bias is not None and bias.shape == w.shape[1:] and bias.flags.c_contiguous and bias.dtype is x.dtype
    library.product(x, w, bias if fused else None, y)
    if not fused and bias is not None:
        y += bias
    return y


def linear(xp, x, w, b):
    if x.ndim != 2:
        return product(_rows(x), w.T, b).reshape(*x.shape[:-1], w.shape[0])
    (m, k), n = x.shape, len(w)
    if 0 < m * k * n < (_THIN_ROW if m == 1 else _THIN) and w.shape == (n, k) and (b is None or b.shape == (n,)):
        try:
            y = _empty((m, n), x.dtype)
            _thin(x, w, b, y)
            return y
        except TypeError:  # of another dtype, or not in plain order
            pass
    return product(x, w.T, b)


def add_matmul(xp, x, a, b, *, beta, alpha):
    """``beta * x + alpha * (a @ b)``: see ``ops.linalg.add_matmul``."""
    if beta == 1 and alpha == 1 and a.ndim == 2 and a.shape[1] and a.dtype.char in "fd":
        return product(a, b, x)
    return FORWARDS["add_matmul"](xp, x, a, b, beta=beta, alpha=alpha)


def integer_product(xp, x, w):
    """``x @ w.T`` of codes of eight bits, by BLAS in a float type that holds every sum exactly; NumPy has no other."""
    kind = np.float32 if x.shape[-1] * 255 * 128 < 1 << 24 else np.float64
    return product(x.astype(kind), w.astype(kind).T).astype(x.dtype)


def linear_backward(g, edges, saved):
    to_x, to_w, to_b = edges
    if g.ndim == 2 and g.size and library is not None:
        found = _thin_slopes(g, edges, saved)
        if found is not None:
            return found
    rows = g if g.ndim == 2 else _rows(g)
    gx = gw = None
    if to_x is not None:
        w = saved["w"]
        gx = product(rows, _conj(w))
        if g.ndim != 2:
            gx = gx.reshape(*g.shape[:-1], w.shape[1])
    if to_w is not None:
        x = saved["x"]
        gw = product(rows.T, _conj(x if x.ndim == 2 else _rows(x)))
    return gx, gw, None if to_b is None else sums.rows(rows)


def _thin_slopes(g, edges, saved):
    """All gradients of a small linear layer by one call; None where the kernel is not for them."""
    to_x, to_w, to_b = edges
    x, w = (None if to_w is None else saved["x"]), (None if to_x is None else saved["w"])
    if x is None and w is None:
        return None
    rows, outer = g.shape
    inner = (w if x is None else x).shape[-1]
    # ``.data`` may have another shape by now; NumPy says so, where the kernel would not look.
    if not (x is None or x.shape == (rows, inner)) or not (w is None or w.shape == (outer, inner)):
        return None
    if g.size * inner >= _THIN or rows > _FEW_SUMS:
        return None
    gx = None if w is None else np.empty((len(g), w.shape[1]), g.dtype)
    gw = None if x is None else np.empty((g.shape[1], x.shape[1]), g.dtype)
    gb = None if to_b is None else np.empty(g.shape[1], g.dtype)
    try:
        library.thin_slopes(g, x, w, gx, gw, gb)
    except TypeError:  # of another dtype, or not in plain order
        return None
    return gx, gw, gb


def _serves(x, w) -> bool:
    """Is the library there, and are these for it? Shapes that do not fit are left to NumPy, which says so."""
    if library is None or x.dtype.char not in "fd" or x.dtype is not w.dtype or x.shape[-1] != w.shape[-2]:
        return False
    return x.shape[-2] >= FEW and w.shape[-1] >= FEW


def _batch(x, w):
    batch = np.broadcast_shapes(x.shape[:-2], w.shape[:-2])
    y = np.empty((*batch, x.shape[-2], w.shape[-1]), x.dtype)
    library.matmul(*[four(a, batch) for a in (x, w)], None, four(y, batch))
    return y


def _outer(x, w):
    """Columns times rows, where BLAS would be called for each of them."""
    if library is not None and w.shape == (*x.shape[:-2], 1, w.shape[-1]) and x.dtype is w.dtype:
        try:
            y = np.empty((*x.shape[:-1], w.shape[-1]), x.dtype)
            library.outer(x, w, y, x.shape[-2], w.shape[-1])
            return y
        except TypeError:  # of another dtype, or not in plain order
            pass
    return np.matmul(x, w) if x.dtype.kind == "b" or w.ndim < 2 or w.shape[-2] != 1 else np.multiply(x, w)


def four(x, batch):
    """``x`` with its batch in two dimensions; a copy only where that cannot be a view."""
    matrices = x.shape[-2:]
    if x.shape[:-2] != batch:
        x = np.broadcast_to(x, (*batch, *matrices))
    if len(batch) == 2:
        return x
    return x[(None,) * (2 - len(batch))] if len(batch) < 2 else x.reshape(math.prod(batch[:-1]), *x.shape[-3:])


def _rows(x):
    """All axes but the last as one."""
    return x.reshape(-1 if x.size else int(np.prod(x.shape[:-1])), x.shape[-1])


def _conj(x):
    return x.conj() if x.dtype.kind == "c" else x
