"""Norms by kernels: the forms of the plain bodies (``numpy/kernels/norms.py``) with their arithmetic replaced."""

from __future__ import annotations

import math

import numpy as np

from ..numpy.kernels import norms as plain
from . import library


def install(library, bodies, backward) -> None:
    plain.FORMS.update(layer=Layer, group=Group, batch=Batch)
    bodies["rms_normalized"], backward["rms_normalized"] = _rms, _rms_backward
    bodies["normalized_by"] = _normalized_by(bodies["normalized_by"])
    backward["normalized_by"] = _normalized_by_backward


def _statistics(x, count):
    return [np.empty((count, 1), x.dtype) for _ in range(3)]


def _parameters(w, b):
    """As the kernels take them; NumPy's bodies want another shape."""
    return [None if p is None else np.ascontiguousarray(p).reshape(-1) for p in (w, b)]


class Layer(plain.Layer):
    def forward(self, x, y, w, b, eps):
        statistics = _statistics(x, len(x))
        try:
            library.layer_norm(np.ascontiguousarray(x), *_parameters(w, b), y, *statistics, self.size, eps)
        except TypeError:
            return super().forward(x, y, w, b, eps)
        return statistics

    def backward(self, g, x, gx, w, mean, scale, with_w, with_b):
        gw, gb = (np.empty(self.size, x.dtype) for _ in range(2))  # a leaf takes over what is no part of another
        try:
            g, x = (np.ascontiguousarray(a) for a in (g, x))
            library.layer_norm_slope(g, x, *_parameters(w, None)[:1], mean, scale, gx, gw, gb, self.size)
        except TypeError:
            return super().backward(g, x, gx, w, mean, scale, with_w, with_b)
        return gw if with_w else None, gb if with_b else None


class Group(plain.Group):
    def forward(self, x, y, w, b, eps):
        statistics = _statistics(x, len(x))
        try:
            library.group_norm(
                np.ascontiguousarray(x), *_parameters(w, b), y, *statistics, *self.shape[1:], self.turns, eps
            )
        except TypeError:
            return super().forward(x, y, w, b, eps)
        return statistics

    def backward(self, g, x, gx, w, mean, scale, with_w, with_b):
        along, total = np.empty((2, *self.shape[:2]), x.dtype)
        numbers = (*self.shape[1:], self.turns)
        try:
            g, x = (np.ascontiguousarray(a) for a in (g, x))
            library.group_norm_slope(g, x, *_parameters(w, None)[:1], mean, scale, gx, along, total, *numbers)
        except TypeError:
            return super().backward(g, x, gx, w, mean, scale, with_w, with_b)
        return self._each(along) if with_w else None, self._each(total) if with_b else None


class Batch(plain.Batch):
    def forward(self, x, y, w, b, eps):
        statistics = _statistics(x, self.shape[1])
        try:
            library.batch_norm(np.ascontiguousarray(x), *_parameters(w, b), y, *statistics, *self.shape, eps)
        except TypeError:
            return super().forward(x, y, w, b, eps)
        return statistics

    def backward(self, g, x, gx, w, mean, scale, with_w, with_b):
        gw, gb = (np.empty(self.shape[1], x.dtype) for _ in range(2))
        try:
            g, x = (np.ascontiguousarray(a) for a in (g, x))
            library.batch_norm_slope(g, x, *_parameters(w, None)[:1], mean, scale, gx, gw, gb, *self.shape)
        except TypeError:
            return super().backward(g, x, gx, w, mean, scale, with_w, with_b)
        return gw if with_w else None, gb if with_b else None


def _rms(needs, x, w, *, axes, eps):
    form, y = plain.Layer(x.shape, axes), np.empty(x.shape, x.dtype)
    scale = np.empty((form.shape[0], 1), x.dtype)
    try:
        library.rms_norm(np.ascontiguousarray(x), *_parameters(w, None)[:1], y, scale, form.size, eps)
    except TypeError:
        return plain.BODIES["rms_normalized"](needs, x, w, axes=axes, eps=eps)
    return y, scale


def _rms_backward(g, edges, saved):
    x, scale = saved["x"], saved["aux"]
    form, gx = plain.Layer(x.shape, saved["axes"]), np.empty(x.shape, x.dtype)
    gw = np.empty(form.size, x.dtype)
    arrays = [np.ascontiguousarray(a) for a in (g, x)]
    try:
        library.rms_norm_slope(*arrays, *_parameters(saved.get("w"), None)[:1], scale, gx, gw, form.size)
    except TypeError:
        return plain.BACKWARD["rms_normalized"](g, edges, saved)
    return gx, None if edges[1] is None else gw


def _normalized_by(before):
    def normalized_by(xp, x, w, b, mean, variance, *, affine, eps):
        """x times a factor of each channel, plus a shift."""
        factor = 1 / np.sqrt(variance + variance.dtype.type(eps))
        factor = factor if w is None else factor * w
        shift = -mean * factor if b is None else b - mean * factor
        out = np.empty(x.shape, x.dtype)
        try:
            library.channel_affine(x, factor, shift, out, x[0, 0].size if x.ndim > 2 else 1)
        except (TypeError, IndexError):  # of other dtypes, not in C order, or with nothing in it
            return before(xp, x, w, b, mean, variance, affine=affine, eps=eps)
        return out

    return normalized_by


def _normalized_by_backward(g, edges, saved):
    """All gradients of x, w and b in one pass; None where the op's rules do the work."""
    x, mean, variance = (saved.get(name) for name in ("x", "mean", "variance"))
    if x is None or mean is None or x.ndim < 2 or not x.size:
        return None
    scale, gx = 1 / np.sqrt(variance + variance.dtype.type(saved["eps"])), np.empty(x.shape, x.dtype)
    gw, gb = (np.empty(x.shape[1], x.dtype) for _ in range(2))
    sizes = (*x.shape[:2], math.prod(x.shape[2:]))
    try:
        g, x = (np.ascontiguousarray(a) for a in (g, x))
        library.given_norm_slope(g, x, *_parameters(saved.get("w"), None)[:1], mean, scale, gx, gw, gb, *sizes)
    except TypeError:
        return None
    return gx, None if edges[1] is None else gw, None if edges[2] is None else gb, None, None
