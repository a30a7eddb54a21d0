"""Losses that are sums of a formula of each difference, by kernels: one pass, where there is nothing to broadcast."""

from __future__ import annotations

import numpy as np

from ..fallback import FORWARDS
from ..numpy.kernels import chains


def install(library, bodies, backward) -> None:
    for name, divides in (("mse_mean", True), ("mse_sum", False)):
        bodies[name] = _squares(library.squares_sum, bodies[name], divides)
        backward[name] = _squares_backward(library.squares_slope, backward[name], divides)
    for name, kernel, limit in (("huber_loss", "huber", "delta"), ("smooth_l1_loss", "smooth", "beta")):
        bodies[name] = _lines(getattr(library, kernel + "_sum"), name, limit)
        backward[name] = _lines_backward(getattr(library, kernel + "_slope"), limit)


def _sum(kernel, x, w, limit, divides):
    """None where the kernel does not take the arrays."""
    if x.__class__ is not np.ndarray or x.shape != getattr(w, "shape", None) or not x.size:
        return None
    try:
        out = np.empty((), x.dtype)
        kernel(x, w, out, limit, x.size if divides else 1)
        return out
    except TypeError:
        return None


def _slopes(kernel, x, w, limit, g, edges):
    if x.shape != w.shape or g.ndim:
        return None
    try:
        out = np.empty(x.shape, x.dtype)
        kernel(x, w, out, limit, g)
    except TypeError:
        return None
    to_x, to_w = edges
    return None if to_x is None else out, None if to_w is None else np.negative(out)


def _squares(kernel, plain, divides):
    def squares(xp, x, w):
        out = _sum(kernel, x, w, 0, divides)
        return plain(xp, x, w) if out is None else out

    return squares


def _squares_backward(kernel, plain, divides):
    def backward(g, edges, saved):
        x = saved["x"]
        scale = g * (2.0 / x.size if divides and x.size else 2.0)
        found = _slopes(kernel, x, saved["w"], 0, scale, edges) if x.size else None
        return plain(g, edges, saved) if found is None else found

    return backward


def _lines(kernel, name, limit):
    def lines(xp, x, w, **static):
        out = None
        if static["reduction"] != "none":
            out = _sum(kernel, x, w, static[limit], static["reduction"] == "mean")
        elif x.size >= chains.WORTH:
            out = chains.evaluated(FORWARDS[name], (x, w), static)
        return FORWARDS[name](xp, x, w, **static) if out is None else out

    return lines


def _lines_backward(kernel, limit):
    def backward(g, edges, saved):
        """None where the op's rules do the work."""
        x = saved["x"]
        if saved["reduction"] == "none" or not x.size:
            return None
        return _slopes(kernel, x, saved["w"], saved[limit], g / x.size if saved["reduction"] == "mean" else g, edges)

    return backward
