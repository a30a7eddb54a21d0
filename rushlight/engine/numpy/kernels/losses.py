"""Fused NumPy bodies of losses, and sums over rows of a table."""

from __future__ import annotations

import math

import numpy as np

from ...native import library
from . import copies, sums

_FEW = 8  # rows of one index that are added one by one
_MANY = 1 << 16  # rows; the kernel adds fewer

BODIES: dict = {}
BACKWARD: dict = {}


# -- mean squared error ------------------------------------------------------------------------------------------------


def _mse_sum(xp, x, w):
    d = np.subtract(x, w).ravel()
    return sums.products(d, d)


def _mse_mean(xp, x, w):
    d = np.subtract(x, w).ravel()
    return sums.products(d, d) / (d.size or math.nan)


def _mse_backward(scale):
    def backward(g, edges, saved):
        d = np.asarray(np.subtract(saved["x"], saved["w"]))
        np.multiply(d, g * scale(d.size), out=d)
        to_x, to_w = edges
        return None if to_x is None else d, None if to_w is None else np.negative(d)

    return backward


BODIES["mse_mean"], BODIES["mse_sum"] = _mse_mean, _mse_sum
BACKWARD["mse_mean"] = _mse_backward(lambda n: 2.0 / (n or math.nan))
BACKWARD["mse_sum"] = BACKWARD["mse_each"] = _mse_backward(lambda n: 2.0)


# -- classes and rows --------------------------------------------------------------------------------------------------


def _nll(needs, x, target, weight, *, ignore_index, reduction):
    """(loss, (indices, the weight of each, their sum)); x is looked at as (N, C, S)."""
    keep = target != ignore_index
    index = target if keep.all() else np.where(keep, target, 0)
    picked = keep.astype(x.dtype)
    if weight is not None:
        picked *= weight[index]
    total = np.add.reduce(picked, axis=None)
    loss = x.reshape(_seen_by_class(x.shape))[_at_classes(index, x.shape)].reshape(target.shape) * picked
    loss = np.negative(loss)
    if reduction != "none":
        loss = np.add.reduce(loss, axis=None)
        if reduction == "mean":
            loss = loss / total
    return loss, (index, picked, np.asarray(total))


def _nll_backward(g, edges, saved):
    index, picked, _ = saved["aux"]
    shape = saved["x_shape"]
    out = np.zeros(_seen_by_class(shape), picked.dtype)
    at = _at_classes(index, shape)
    out[at] = nll_slopes(g, saved).reshape(at[1].shape)
    return out.reshape(shape), None, None


def nll_slopes(g, saved):
    """The gradient of each sample's own class: 0 for a sample that is ignored."""
    index, picked, total = saved["aux"]
    if saved["reduction"] == "mean":
        g = g / total
    slopes = np.negative(np.multiply(picked, g))
    if index is not saved["target"]:  # which it is where nothing is ignored
        slopes[saved["target"] == saved["ignore_index"]] = 0
    return slopes


def _seen_by_class(shape):
    return (shape[0], shape[1], math.prod(shape[2:])) if len(shape) > 1 else (1, shape[0], 1)


def _at_classes(index, shape):
    n, _, inner = _seen_by_class(shape)
    if inner == 1:
        return np.arange(n), index.reshape(n), 0
    return np.arange(n)[:, None], index.reshape(n, inner), np.arange(inner)


def add_rows(value, index, size):
    """Zeros with ``size`` rows, with each row of ``value`` added to the one that ``index`` names.

    Sorted by row, the first few for each row are added in as many steps; a row with more of them is a product.
    """
    found = _added_by_kernel(value, index, size)
    if found is not None:
        return found
    if value.dtype in copies.HALVES:
        return copies.converted(add_rows(copies.converted(value, np.dtype(np.float32)), index, size), value.dtype)
    out = np.zeros((size, *value.shape[1:]), value.dtype)
    if value.ndim == 1 or not value.size:
        np.add.at(out, index, value)
        return out
    order = np.argsort(index, kind="stable")
    ordered, value = index[order], value.reshape(len(index), -1)
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.diff(starts, append=len(ordered))
    rows, flat = ordered[starts], out.reshape(size, -1)
    few = counts <= _FEW
    for k in range(min(_FEW, int(counts.max()))):
        more = few & (counts > k)
        if k == 0:
            flat[rows[more]] = value.take(order[starts[more]], axis=0)
        else:
            flat[rows[more]] += value.take(order[starts[more] + k], axis=0)
    for row, start, count in zip(rows[~few], starts[~few], counts[~few]):
        flat[row] = sums.rows(value[order[start : start + count]])
    return out


def _added_by_kernel(value, index, size):
    """None where no kernel takes the arrays; it adds one by one, so there may not be too many."""
    if library is None or value.dtype.char not in "fd" or value.ndim < 2 or len(index) > _MANY:
        return None
    out = np.empty((size, *value.shape[1:]), value.dtype)
    try:
        value, index = np.ascontiguousarray(value), np.ascontiguousarray(index)
        library.add_rows(value, index, out, size, math.prod(value.shape[1:]))
    except (TypeError, IndexError):
        return None
    return out


BODIES["nll_loss"], BACKWARD["nll_loss"] = _nll, _nll_backward
