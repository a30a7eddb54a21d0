"""Fused NumPy bodies of batch, layer, group, instance and RMS norm, a piece at a time, shared out to threads.

Sums go through BLAS: np.add.reduce along short rows takes three times as long. Variances are of differences from a
mean, never differences of squares, so numbers far from 0 lose nothing.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from . import parallel, sums
from .parallel import cycled

BODIES: dict = {}
BACKWARD: dict = {}


def _normalized(needs, x, w, b, *, view, axes, affine, eps):
    """((y, means, 1 / standard deviations, variances), the last three once more as residuals)."""
    (form, kept), y = form_of(view, axes, affine), np.empty(x.shape, x.dtype)
    seen = [a.reshape(form.shape) for a in (x, y)]
    statistics = tuple([t.reshape(kept) for t in form.forward(*seen, form.parameter(w), form.parameter(b), eps)])
    return (y, *statistics), statistics


def _normalized_backward(g, edges, saved):
    g, to_mean, to_scale, _ = g
    x, view, axes, (mean, scale, _) = saved.get("x"), saved["view"], saved["axes"], saved["aux"]
    form, _ = form_of(view, axes, saved["affine"])
    if x is None:  # only the bias's gradient is wanted
        return None, None, form.sum(g.reshape(form.shape))
    gx = np.empty(x.shape, x.dtype)
    seen = [a.reshape(form.shape) for a in (g, x, gx)]
    seen += [form.parameter(saved.get("w")), mean.reshape(-1, 1), scale.reshape(-1, 1)]
    gw, gb = form.backward(*seen, *[e is not None for e in edges[1:]])
    if to_mean is not None and (np.count_nonzero(to_mean) or np.count_nonzero(to_scale)):
        away = (x.reshape(view) - mean) * (to_scale * scale**3)
        gx += ((to_mean - away) / math.prod(view[i] for i in axes)).reshape(x.shape)
    return gx, gw, gb


@functools.lru_cache(256)
def form_of(view, axes, affine):
    """How these sizes are gone through, and the shape of their statistics."""
    form = "layer" if len(affine) == len(axes) else "group" if axes[0] else "batch"
    return FORMS[form](view, axes, affine), tuple([1 if i in axes else n for i, n in enumerate(view)])


def _over(top, bottom):
    """``top`` divided by a number of elements, which may be 0."""
    return top / (bottom or math.nan)


class Layer:
    """(rows, D): a mean and a variance for each row, parameters for each column."""

    def __init__(self, view, axes, affine=None):
        self.size = math.prod(view[a] for a in axes)
        self.shape = (math.prod(view[: axes[0]]), self.size)

    def parameter(self, w):
        return w if w is None else w.reshape(-1)

    def forward(self, x, y, w, b, eps):
        mean, scale, variance = (np.empty((len(x), 1), x.dtype) for _ in range(3))

        def work(start, stop):
            part = slice(start, stop)
            c = _centred_rows(x[part], y[part], mean[part], scale[part], variance[part], eps)
            scale[part] += 0.0 * variance[part]  # squares that overflow leave no number
            c *= scale[part]
            if w is not None:
                c *= w
            if b is not None:
                c += b

        parallel.rows(*self.shape, work)
        return mean, scale, variance

    def backward(self, g, x, gx, w, mean, scale, with_w, with_b):
        to_w, to_b = {}, {}

        def work(start, stop):
            part = slice(start, stop)
            c, s, incoming = gx[part], scale[part], g[part]
            np.subtract(x[part], mean[part], out=c)
            if with_w:
                to_w[start] = s[:, 0].dot(incoming * c)
            if with_b:
                to_b[start] = self.sum(incoming)
            if w is not None:
                incoming = incoming * w
            # Around its mean: c does not quite sum to 0, which counts where rows vary little.
            incoming = incoming - sums.along(incoming)[:, None] / self.size
            along = sums.products(incoming, c)[:, None]
            along *= s * s / -self.size
            c *= along
            c += incoming
            c *= s

        parallel.rows(*self.shape, work)
        return self.total(to_w, g) if with_w else None, self.total(to_b, g) if with_b else None

    def sum(self, g):
        """The sum for each parameter."""
        return sums.rows(g)

    def total(self, parts, g):
        total = np.zeros(self.size, g.dtype)
        for start in sorted(parts):  # whichever thread was first: the sum is the same every time
            total += parts[start]
        return total


class Group:
    """(rows, K, S): a mean and a variance for each row, of K channels; rows of C / K different channels take turns."""

    def __init__(self, view, axes, affine):
        self.turns, channels = view[1], math.prod(affine)
        self.shape = (view[0] * view[1], channels // view[1] if view[1] else 0, view[-1])
        self.size = math.prod(self.shape[1:])

    def parameter(self, w):
        return w if w is None else w.reshape(self.turns, -1, 1)

    def forward(self, x, y, w, b, eps):
        mean, scale, variance = (np.empty((len(x), 1), x.dtype) for _ in range(3))
        rows, flat = x.reshape(len(x), self.size), y.reshape(len(x), self.size)

        def work(start, stop):
            part = slice(start, stop)
            c, s = _centred_rows(rows[part], flat[part], mean[part], scale[part], variance[part], eps), scale[part]
            if w is None:
                c *= s
            else:
                c = c.reshape(-1, *self.shape[1:])
                c *= s[:, :, None] * cycled(w, start, stop)
            if b is not None:
                c = c.reshape(-1, *self.shape[1:])
                c += cycled(b, start, stop)

        parallel.rows(len(x), self.size, work)
        return mean, scale, variance

    def backward(self, g, x, gx, w, mean, scale, with_w, with_b):
        along, total = np.empty((2, *self.shape[:2]), x.dtype)

        def work(start, stop):
            part = slice(start, stop)
            c, s, incoming = gx[part], scale[part], g[part]
            np.subtract(x[part], mean[part, :, None], out=c)
            along[part] = sums.products(incoming, c)
            total[part] = sums.along(incoming)
            factor = s[:, :, None] if w is None else s[:, :, None] * cycled(w, start, stop)
            # s w g - s mean(w g) - c s³ mean(w g c), and c does not quite sum to 0
            slope, shift = ((factor[..., 0] * t[part]).sum(1, keepdims=True) / -self.size for t in (along, total))
            rows = c.reshape(len(c), self.size)
            slope -= shift * sums.along(rows)[:, None] / self.size
            rows *= slope * s * s
            rows += shift
            c += incoming * factor

        parallel.rows(len(x), self.size, work)
        return self.each(along * scale) if with_w else None, self.each(total) if with_b else None

    def sum(self, g):
        """The sum for each parameter."""
        return self.each(sums.along(g))

    def each(self, t):
        """The sum for each parameter from those of each row."""
        return sums.rows(t.reshape(-1, self.turns * self.shape[1]))


class Batch:
    """(N, C, S): a mean and a variance for each channel, and a parameter."""

    def __init__(self, view, axes, affine):
        self.shape = (view[0], view[1], math.prod(view[2:]))
        self.size = self.shape[0] * self.shape[2]

    def parameter(self, w):
        return w if w is None else w.reshape(-1, 1)

    def forward(self, x, y, w, b, eps):
        parts = {}

        def centre(start, stop):
            part, c = x[start:stop], y[start:stop]
            count = len(part) * self.shape[2]
            mean = _over(self.sum(part)[:, None], count)
            np.subtract(part, mean, out=c)
            rest = _over(self.sum(c)[:, None], count)
            c -= rest
            parts[start] = (
                count / (self.size or 1),
                mean + _rounding(rest).astype(np.float64),
                self._products(c, c)[:, None],
            )

        self._rows(centre)
        mean, variance = self._merged(parts)
        scale = np.reciprocal(np.sqrt(variance.astype(x.dtype) + x.dtype.type(eps)))
        factor = scale if w is None else scale * w

        def spread(start, stop):
            c = y[start:stop]
            c *= factor
            c += (parts[start][1] - mean).astype(x.dtype) * factor + (0 if b is None else b)

        self._rows(spread)
        return mean.astype(x.dtype), scale, variance.astype(x.dtype)

    def _merged(self, parts):
        """The mean and the variance of all parts from (share, mean, sum of squares around it) of each, by start."""
        if not (parts and self.size):
            return np.full((2, self.shape[1], 1), math.nan)
        ordered = [parts[start] for start in sorted(parts)]
        mean = sum(share * level for share, level, _ in ordered)
        return mean, sum(squares / self.size + share * (level - mean) ** 2 for share, level, squares in ordered)

    def backward(self, g, x, gx, w, mean, scale, with_w, with_b):
        parts = {}

        def centre(start, stop):
            c, incoming = gx[start:stop], g[start:stop]
            np.subtract(x[start:stop], mean, out=c)
            parts[start] = self._products(incoming, c), self.sum(incoming)

        self._rows(centre)
        along, total = np.zeros((2, self.shape[1], 1), x.dtype)
        for start in sorted(parts):
            along[:, 0] += parts[start][0]
            total[:, 0] += parts[start][1]
        factor = scale if w is None else scale * w
        # scale * w * (g - mean(g) - unit * mean(g * unit)), with c = x - mean still in gx
        slope, shift = _over(-factor * scale * scale * along, self.size), _over(-factor * total, self.size)

        def spread(start, stop):
            c = gx[start:stop]
            c *= slope
            c += g[start:stop] * factor
            c += shift

        self._rows(spread)
        return (along * scale)[:, 0] if with_w else None, total[:, 0] if with_b else None

    def _rows(self, work):
        parallel.rows(self.shape[0], self.shape[1] * self.shape[2], work)

    def sum(self, x):
        """The sum of each channel."""
        return sums.rows(x[:, :, 0] if self.shape[2] == 1 else sums.along(x))

    def _products(self, g, u):
        return sums.rows((g * u)[:, :, 0] if self.shape[2] == 1 else sums.products(g, u))


def _centred_rows(x, out, mean, scale, variance, eps):
    """``out`` = x - mean of each row; the statistics are written to the last arguments but one."""
    np.divide(sums.along(x)[:, None], x.shape[1] or math.nan, out=mean)
    c = np.subtract(x, mean, out=out)
    rest = sums.along(c)[:, None] / (x.shape[1] or math.nan)
    mean += _rounding(rest)
    c -= rest
    np.divide(sums.products(c, c)[:, None], x.shape[1] or math.nan, out=variance)
    np.reciprocal(np.sqrt(variance + x.dtype.type(eps)), out=scale)
    return c


def _rounding(rest):
    """What rounding took from a mean, told by that of the differences from it; nothing if the mean is no number."""
    return np.where(np.isfinite(rest), rest, 0)


FORMS: dict = {"layer": Layer, "group": Group, "batch": Batch}
BODIES["normalized"], BACKWARD["normalized"] = _normalized, _normalized_backward


# -- by the root of the mean square ------------------------------------------------------------------------------------


def _rms(needs, x, w, *, axes, eps):
    """(x divided by the root of its mean square, times w; 1 / those roots)."""
    form, y = Layer(x.shape, axes), np.empty(x.shape, x.dtype if w is None else np.result_type(x, w))
    source, target, w = x.reshape(form.shape), y.reshape(form.shape), form.parameter(w)
    scale = np.empty((len(source), 1), x.dtype)

    def work(start, stop):
        rows, out, s = source[start:stop], target[start:stop], scale[start:stop]
        np.divide(sums.products(rows.conj(), rows)[:, None], form.size or math.nan, out=s)
        np.reciprocal(np.sqrt(s + x.dtype.type(eps)), out=s)
        np.multiply(rows, s, out=out)
        if w is not None:
            out *= w

    parallel.rows(*form.shape, work)
    return y, scale


def _rms_backward(g, edges, saved):
    x, scale, to_w = saved["x"], saved["aux"], {}
    form, gx = Layer(x.shape, saved["axes"]), np.empty(x.shape, x.dtype)
    g, source, target = (a.reshape(form.shape) for a in (g, x, gx))
    w = form.parameter(saved.get("w"))

    def work(start, stop):
        rows, incoming, out, s = source[start:stop], g[start:stop], target[start:stop], scale[start:stop]
        if edges[1] is not None:
            to_w[start] = s[:, 0].dot(incoming * rows)
        incoming = incoming * (s if w is None else w)
        if w is not None:
            incoming *= s
        along = sums.products(incoming.conj(), rows)[:, None]
        along *= s * s / -form.size
        np.multiply(rows, along, out=out)
        out += incoming

    parallel.rows(*form.shape, work)
    return gx, None if edges[1] is None else form.total(to_w, g)


BODIES["rms_normalized"], BACKWARD["rms_normalized"] = _rms, _rms_backward
