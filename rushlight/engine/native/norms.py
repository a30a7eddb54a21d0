"""Norms by kernels, in the forms of the plain bodies (``numpy/kernels/norms.py``)."""

from __future__ import annotations

import functools
import math

import numpy as np

from ..fallback import FORWARDS
from ..numpy.kernels import norms as plain
from . import library

# Of each form of the plain bodies: the kernel (its gradients' is ``…_slope``), the numbers that tell it the sizes, and
# the shape of the sums that it makes for the parameters' gradients.
_KERNELS = {
    plain.Layer: ("layer_norm", lambda form: (form.size,), lambda form: form.size),
    plain.Group: ("group_norm", lambda form: (*form.shape[1:], form.turns), lambda form: form.shape[:2]),
    plain.Batch: ("batch_norm", lambda form: form.shape, lambda form: form.shape[1]),
}


def install(library, bodies, backward) -> None:
    bodies["normalized"] = _normalized(bodies["normalized"])
    backward["normalized"] = _normalized_backward(backward["normalized"])
    bodies["rms_normalized"], backward["rms_normalized"] = _rms, _rms_backward
    bodies["normalized_by"] = _normalized_by(bodies["normalized_by"])
    backward["normalized_by"] = _normalized_by_backward
    bodies["followed"] = _followed


def _took(kernel, read, *rest) -> bool:
    """Did the kernel take what it is to read, as it lies or in C order?"""
    try:
        kernel(*read, *rest)
    except TypeError:
        if all(a is None or a.flags.c_contiguous for a in read):
            return False
        return _took(kernel, [a if a is None else np.ascontiguousarray(a) for a in read], *rest)
    return True


class _Form:
    """What the kernels take for these sizes."""

    def __init__(self, view, axes, affine):
        form, self.kept = plain.form_of(view, axes, affine)  # kept: the shape of statistics
        name, numbers, sums = _KERNELS[type(form)]
        self.kernel, self.slope = getattr(library, name), getattr(library, name + "_slope")
        self.numbers, self.sums, self.each = numbers(form), sums(form), getattr(form, "each", None)


_form_of = functools.lru_cache(256)(_Form)


def _normalized(before):
    def normalized(needs, x, w, b, *, view, axes, affine, eps):
        form, y = _form_of(view, axes, affine), np.empty(x.shape, x.dtype)
        statistics = tuple([np.empty(form.kept, x.dtype) for _ in range(3)])
        if _took(form.kernel, (x, w, b), y, *statistics, *form.numbers, eps):
            return (y, *statistics), statistics
        return before(needs, x, w, b, view=view, axes=axes, affine=affine, eps=eps)

    return normalized


def _normalized_backward(before):
    def backward(g, edges, saved):
        to_y, to_mean, to_scale, _ = g
        x, (mean, scale, _) = saved.get("x"), saved["aux"]
        if x is None:
            return before(g, edges, saved)
        form, gx = _form_of(saved["view"], saved["axes"], saved["affine"]), np.empty(x.shape, x.dtype)
        sums = [np.empty(form.sums, x.dtype) for _ in range(2)]  # a leaf takes over what is no part of another array
        if not _took(form.slope, (to_y, x, saved.get("w"), mean, scale, to_mean, to_scale), gx, *sums, *form.numbers):
            return before(g, edges, saved)
        gw, gb = sums if form.each is None else map(form.each, sums)
        return gx, None if edges[1] is None else gw, None if edges[2] is None else gb

    return backward


def _rms(needs, x, w, *, axes, eps):
    form, y = plain.Layer(x.shape, axes), np.empty(x.shape, x.dtype)
    scale = np.empty((form.shape[0], 1), x.dtype)
    if _took(library.rms_norm, (x, w), y, scale, form.size, eps):
        return y, scale
    return plain.BODIES["rms_normalized"](needs, x, w, axes=axes, eps=eps)


def _rms_backward(g, edges, saved):
    x, scale = saved["x"], saved["aux"]
    form, gx = plain.Layer(x.shape, saved["axes"]), np.empty(x.shape, x.dtype)
    gw = np.empty(form.size, x.dtype)
    if _took(library.rms_norm_slope, (g, x, saved.get("w"), scale), gx, gw, form.size):
        return gx, None if edges[1] is None else gw
    return plain.BACKWARD["rms_normalized"](g, edges, saved)


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
    if not _took(library.given_norm_slope, (g, x, saved.get("w"), mean, scale), gx, gw, gb, *sizes):
        return None
    return gx, None if edges[1] is None else gw, None if edges[2] is None else gb, None, None


def _followed(xp, running_mean, running_var, mean, variance, by, *, scale):
    given = running_mean, running_var, mean, variance
    after = np.empty_like(running_mean), np.empty_like(running_var)
    try:
        if len({a.size for a in given}) == 1:
            library.followed(*given, *after, by, scale)
            return after
    except TypeError:  # of other dtypes, not in C order, or by as much as a tensor says
        pass
    return FORWARDS["followed"](xp, *given, by, scale=scale)
