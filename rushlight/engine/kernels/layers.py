"""Fused NumPy bodies of losses, activations and norms: few passes over memory, in blocks that stay in the cache."""

from __future__ import annotations

import math

import numpy as np

from ..special import erf

_BLOCK = 1 << 15  # elements worked on at a time: three float32 buffers of this size fit the second-level cache
_FEW = 8  # rows of one index that are added one by one
_ROOT_HALF, _ROOT_2_PI = math.sqrt(0.5), math.sqrt(2 * math.pi)
_TANH_SCALE, _TANH_CUBE = math.sqrt(2 / math.pi), 0.044715

BODIES: dict = {}
BACKWARD: dict = {}


# -- mean squared error ------------------------------------------------------------------------------------------------


def _mse_sum(xp, x, w):
    d = np.subtract(x, w).ravel()
    return d.dot(d)


def _mse_mean(xp, x, w):
    d = np.subtract(x, w).ravel()
    return d.dot(d) / (d.size or math.nan)


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


# -- activations -------------------------------------------------------------------------------------------------------


def _in_blocks(fill, *arrays):
    """A new array like the first, filled by ``fill(out, *parts)`` block by block."""
    out = np.empty(arrays[0].shape, arrays[0].dtype)
    flat, sources = out.reshape(-1), [a.reshape(-1) for a in arrays]
    for start in range(0, flat.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        fill(flat[part], *[s[part] for s in sources])
    return out


def _gelu(xp, x, *, approximate):
    return _in_blocks(_gelu_erf if approximate == "none" else _gelu_tanh, x)


def _gelu_backward(g, edges, saved):
    slope = _gelu_erf_slope if saved["approximate"] == "none" else _gelu_tanh_slope
    return (_in_blocks(slope, saved["x"], g),)


def _gelu_erf(out, x):
    t = erf(x * _ROOT_HALF)
    t += 1
    t *= x
    np.multiply(t, 0.5, out=out)


def _gelu_erf_slope(out, x, g):
    density = x * x
    density *= -0.5
    np.exp(density, out=density)
    density *= x
    density *= 1 / _ROOT_2_PI
    t = erf(x * _ROOT_HALF)
    t += 1
    t *= 0.5
    t += density
    np.multiply(t, g, out=out)


def _inner_tanh(x):
    t = x * x
    t *= _TANH_CUBE
    t += 1
    t *= x
    t *= _TANH_SCALE
    return np.tanh(t, out=t)


def _gelu_tanh(out, x):
    t = _inner_tanh(x)
    t += 1
    t *= x
    np.multiply(t, 0.5, out=out)


def _gelu_tanh_slope(out, x, g):
    slope = x * x
    slope *= 3 * _TANH_CUBE * _TANH_SCALE
    slope += _TANH_SCALE
    slope *= x
    t = _inner_tanh(x)
    rest = t * t
    np.subtract(1, rest, out=rest)
    rest *= slope
    t += 1
    t += rest
    t *= 0.5
    np.multiply(t, g, out=out)


def _dropped(xp, x, mask, *, scale):
    y = np.asarray(np.multiply(x, mask))
    np.multiply(y, scale, out=y)
    return y


def _dropped_backward(g, edges, saved):
    return _dropped(None, g, saved["mask"], scale=saved["scale"]), None


BODIES["gelu"], BACKWARD["gelu"] = _gelu, _gelu_backward
BODIES["native_dropped"], BACKWARD["native_dropped"] = _dropped, _dropped_backward


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
    index, picked, total = saved["aux"]
    shape = saved["x_shape"]
    if saved["reduction"] == "mean":
        g = g / (total if total != 0 else total.dtype.type(1))
    out = np.zeros(_seen_by_class(shape), picked.dtype)
    at = _at_classes(index, shape)
    out[at] = np.multiply(picked, np.negative(g)).reshape(at[1].shape)
    return out.reshape(shape), None, None


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
    out = np.zeros((size, *value.shape[1:]), value.dtype)
    if value.ndim == 1 or not value.size:
        np.add.at(out, index, value)
        return out
    order = np.argsort(index, kind="stable")
    ordered, value = index[order], value[order].reshape(len(index), -1)
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.diff(starts, append=len(ordered))
    rows, flat = ordered[starts], out.reshape(size, -1)
    few = counts <= _FEW
    for k in range(min(_FEW, int(counts.max()))):
        more = few & (counts > k)
        if k == 0:
            flat[rows[more]] = value[starts[more]]
        else:
            flat[rows[more]] += value[starts[more] + k]
    for row, start, count in zip(rows[~few], starts[~few], counts[~few]):
        flat[row] = np.ones(count, value.dtype).dot(value[start : start + count])
    return out


BODIES["nll_loss"], BACKWARD["nll_loss"] = _nll, _nll_backward


# -- normalization -----------------------------------------------------------------------------------------------------
# Batch norm averages over all but the channels of (N, C, S); layer, group and instance norm over rows that lie together
# in memory. Sums go through BLAS: np.add.reduce along short rows takes three times as long.


def _normalized(needs, x, w, b, *, view, axes, affine, eps):
    """((y, means, 1 / standard deviations, variances), the last three once more as residuals)."""
    form = _Rows(view, axes, affine) if _in_rows(axes, affine) else _Channels(view)
    y, *statistics = form.forward(form.seen(x), form.parameter(w), form.parameter(b), eps)
    kept = [1 if i in axes else n for i, n in enumerate(view)]
    statistics = tuple([t.reshape(kept) for t in statistics])
    return (y.reshape(x.shape), *statistics), statistics


def _normalized_backward(g, edges, saved):
    to_x, to_w, to_b = edges
    g, to_mean, to_scale, _ = g
    view, axes, affine = saved["view"], saved["axes"], saved["affine"]
    form = _Rows(view, axes, affine) if _in_rows(axes, affine) else _Channels(view)
    if to_x is None and to_w is None:
        return None, None, form.sum(form.seen(g))
    mean, scale, _ = saved["aux"]
    x = saved["x"]
    statistics = form.statistic(mean), form.statistic(scale)
    wants = to_w is not None, to_b is not None
    gx, gw, gb = form.backward(form.seen(g), form.seen(x), form.parameter(saved.get("w")), *statistics, *wants)
    if to_mean.any() or to_scale.any():
        away = (x.reshape(view) - mean) * (to_scale * scale**3)
        gx += form.seen((to_mean - away) / math.prod(view[i] for i in axes))
    return gx.reshape(x.shape), gw, gb


def _in_rows(axes, affine) -> bool:
    return axes[0] != 0 or len(affine) == len(axes)


def _blocks(x):
    step = max(1, _BLOCK // max(1, x.size // max(1, len(x))))
    return [slice(start, start + step) for start in range(0, len(x), step)]


class _Rows:
    """Rows of D elements, G to a sample. Layer norm has one parameter for each element, the others for each channel."""

    def __init__(self, view, axes, affine):
        self.size = math.prod(view[a] for a in axes)
        self.layer = len(affine) == len(axes)
        samples = math.prod(view[: axes[0]]) if self.layer else view[0]
        self.shape = (samples, 1 if self.layer else view[1], self.size)
        self.wide = (samples, self.size) if self.layer else (samples, math.prod(affine), view[-1])

    def seen(self, x):
        return x.reshape(self.shape)

    def parameter(self, w):
        return w if w is None else w.reshape(-1) if self.layer else w.reshape(-1, 1)

    def statistic(self, t):
        return t.reshape(*self.shape[:2], 1)

    def forward(self, x, w, b, eps):
        count = self.size or math.nan
        y = np.empty(self.shape, x.dtype)
        mean = self.statistic(x.reshape(-1, self.size).dot(np.ones(self.size, x.dtype)) / count)
        variance, scale = np.empty_like(mean), np.empty_like(mean)
        for part in _blocks(x):
            c = y[part]
            np.subtract(x[part], mean[part], out=c)
            v = np.divide(np.vecdot(c, c)[:, :, None], count, out=variance[part])
            s = np.reciprocal(np.sqrt(v + x.dtype.type(eps)), out=scale[part])
            c *= s
            c = c.reshape(-1, *self.wide[1:])
            if w is not None:
                c *= w
            if b is not None:
                c += b
        return y, mean, scale, variance

    def backward(self, g, x, w, mean, scale, with_w, with_b):
        gx = np.empty(self.shape, x.dtype)
        ones = np.ones(self.size, x.dtype)
        gw, gb = (np.zeros(self.wide[1], x.dtype) if wanted else None for wanted in (with_w, with_b))
        for part in _blocks(x):
            u, s, incoming = gx[part], scale[part], g[part]
            np.subtract(x[part], mean[part], out=u)
            u *= s
            wide = incoming.reshape(-1, *self.wide[1:])
            if with_w:
                gw += self._along(wide, u.reshape(wide.shape))
            if with_b:
                gb += self.sum(wide)
            if w is not None:
                incoming = (wide * w).reshape(u.shape)
            along = np.vecdot(incoming, u)[:, :, None]
            along /= -self.size
            level = incoming.reshape(-1, self.size).dot(ones).reshape(along.shape)
            level /= self.size
            u *= along
            u += incoming
            u -= level
            u *= s
        return gx, gw, gb

    def _along(self, g, u):
        return self.sum(g * u) if self.layer else np.add.reduce(np.vecdot(g, u), axis=0)

    def sum(self, g):
        """The sum for each parameter."""
        g = g.reshape(-1, *self.wide[1:])
        if self.layer:
            return np.ones(len(g), g.dtype).dot(g)
        return np.add.reduce(g.dot(np.ones(g.shape[-1], g.dtype)), axis=0)


class _Channels:
    """(N, C, S): a mean and a variance for each channel, and a parameter."""

    def __init__(self, view):
        self.shape = (view[0], view[1], math.prod(view[2:]))
        self.size = self.shape[0] * self.shape[2]

    def seen(self, x):
        return x.reshape(self.shape)

    def parameter(self, w):
        return w if w is None else w.reshape(-1, 1)

    statistic = parameter

    def forward(self, x, w, b, eps):
        count = self.size or math.nan
        y = np.empty(self.shape, x.dtype)
        mean = (self.sum(x) / count)[:, None]
        variance = np.zeros_like(mean)
        for part in _blocks(x):
            c = y[part]
            np.subtract(x[part], mean, out=c)
            variance += self._along(c, c)[:, None]
        variance /= count
        scale = np.reciprocal(np.sqrt(variance + x.dtype.type(eps)))
        factor = scale if w is None else scale * w
        for part in _blocks(x):
            c = y[part]
            c *= factor
            if b is not None:
                c += b
        return y, mean, scale, variance

    def backward(self, g, x, w, mean, scale, with_w, with_b):
        gx = np.empty(self.shape, x.dtype)
        along = np.zeros_like(mean)
        for part in _blocks(x):
            c = gx[part]
            np.subtract(x[part], mean, out=c)
            along += self._along(g[part], c)[:, None]
        total = self.sum(g)[:, None]
        factor = scale if w is None else scale * w
        # scale * w * (g - mean(g) - unit * mean(g * unit)), with c = x - mean still in gx
        slope, shift = factor * scale * scale * along / -self.size, factor * total / -self.size
        for part in _blocks(x):
            c = gx[part]
            c *= slope
            c += g[part] * factor
            c += shift
        return gx, (along * scale)[:, 0] if with_w else None, total[:, 0] if with_b else None

    def sum(self, x):
        """The sum of each channel."""
        if self.shape[2] == 1:
            return np.ones(len(x), x.dtype).dot(x[:, :, 0])
        return np.add.reduce(x.dot(np.ones(self.shape[2], x.dtype)), axis=0)

    def _along(self, g, u):
        return np.add.reduce((g * u)[:, :, 0] if self.shape[2] == 1 else np.vecdot(g, u), axis=0)


BODIES["normalized"], BACKWARD["normalized"] = _normalized, _normalized_backward
