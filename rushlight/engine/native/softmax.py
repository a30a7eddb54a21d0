"""Softmax, its logarithm and the loss of log-probabilities by kernels."""

from __future__ import annotations

import math

import numpy as np

from ..numpy.kernels import sums
from ..numpy.kernels.losses import nll_slopes
from . import library

_EXACT = 2**24  # up to here float32 counts without rounding
_LARGE = 1 << 15  # elements: from here on sums are shared out


def install(library, bodies, backward) -> None:
    for name in ("softmax", "log_softmax"):
        slope = getattr(library, name + "_slope")
        bodies[name] = _forward(getattr(library, name), bodies[name])
        bodies[name + "_backward_data"] = _slope(slope, bodies[name + "_backward_data"])
        backward[name] = _backward(slope)
    bodies["logsumexp"] = _logsumexp(bodies["logsumexp"])
    bodies["nll_loss"] = _nll(bodies["nll_loss"])
    backward["nll_loss"] = _nll_backward(backward["nll_loss"])


def _sizes(x, axis):
    """How many elements there are along ``axis``, and within each of them."""
    if axis == -1 or axis == x.ndim - 1:
        return x.shape[-1], 1
    return x.shape[axis], math.prod(x.shape[axis % x.ndim + 1 :])


def _forward(kernel, plain):
    def forward(xp, x, *, axis):
        if x.ndim:
            try:
                out = np.empty(x.shape, x.dtype)
                kernel(x if x.flags.c_contiguous else np.ascontiguousarray(x), out, *_sizes(x, axis))
                return out
            except TypeError:
                pass
        return plain(xp, x, axis=axis)

    return forward


def _slope(kernel, plain):
    def slope(xp, g, y, *, axis):
        found = _by(kernel, g, y, axis)
        return plain(xp, g, y, axis=axis) if found is None else found

    return slope


def _backward(kernel):
    def backward(g, edges, saved):
        found = _by(kernel, g, saved["y"], saved["axis"])
        return None if found is None else (found,)

    return backward


def _by(kernel, g, y, axis):
    """None where the kernel does not take the arrays."""
    if g.shape != y.shape or not y.ndim:
        return None
    try:
        out = np.empty(y.shape, y.dtype)
        kernel(*[a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in (g, y)], out, *_sizes(y, axis))
        return out
    except TypeError:
        return None


def _logsumexp(plain):
    def logsumexp(xp, x, *, axis=None, keepdims=False):
        axes = sums.axes_of(axis, x.ndim)
        if x.size and sorted(axes) == list(range(x.ndim - len(axes), x.ndim)) and x.flags.c_contiguous:
            kept = x.shape[: x.ndim - len(axes)]
            out = np.empty(kept + (1,) * len(axes) if keepdims else kept, x.dtype)
            try:
                library.logsumexp(x, out, math.prod(x.shape[len(kept) :]))
                return out
            except TypeError:
                pass
        return plain(xp, x, axis=axis, keepdims=keepdims)

    return logsumexp


def _nll(plain):
    def nll(needs, x, target, weight, *, ignore_index, reduction):
        """(loss, (indices with 0 for those ignored, the weight of each, their sum)), as the plain body has it."""
        if x.ndim < 2 or target.shape != (x.shape[0], *x.shape[2:]):
            return plain(needs, x, target, weight, ignore_index=ignore_index, reduction=reduction)
        loss, picked = np.empty(target.shape, x.dtype), np.empty(target.shape, x.dtype)
        try:
            library.nll(x, target, weight, loss, picked, x.shape[1], math.prod(x.shape[2:]), ignore_index)
        except (TypeError, IndexError):
            return plain(needs, x, target, weight, ignore_index=ignore_index, reduction=reduction)
        total = _sum(picked)
        if reduction != "none":
            loss = _sum(loss)
            if reduction == "mean":
                loss = loss / total
        if weight is None and total == target.size < _EXACT:
            index = target  # nothing is ignored
        else:
            index = np.where(target == ignore_index, 0, target)
        return loss, (index, picked, np.asarray(total))

    return nll


def _sum(x):
    return np.add.reduce(x, None) if x.size < _LARGE else sums.reduce(x)


def _nll_backward(plain):
    def backward(g, edges, saved):
        index, picked, _ = saved["aux"]
        shape = saved["x_shape"]
        if len(shape) < 2:
            return plain(g, edges, saved)
        out = np.empty(shape, picked.dtype)
        try:
            library.nll_slope(index, nll_slopes(g, saved), out, shape[1], math.prod(shape[2:]))
        except TypeError:
            return plain(g, edges, saved)
        return out, None, None

    return backward
