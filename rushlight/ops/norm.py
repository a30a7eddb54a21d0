"""Normalization: batch, layer, group and instance norm are one op that differs in the axes it averages over.

``view`` is the shape to look at x in, ``axes`` the axes of that to average over, ``affine`` the shape in which weight
and bias meet it.
"""

from __future__ import annotations

import math

from ..autograd.op import differentiable as xp
from ..autograd.op import op, variant


def _seen(xp, x, view):
    return x if tuple(x.shape) == view else xp.reshape(x, shape=view)


def _moments(xp, x, view, axes, affine, eps):
    """(mean, 1 / standard deviation, variance) over ``axes``."""
    x = _seen(xp, x, view)
    mean = xp.mean(x, axis=axes, keepdims=True)
    centred = x - mean
    variance = xp.mean(centred * centred, axis=axes, keepdims=True)
    if len(affine) == len(axes):  # squares that overflow make a layer nan, as in PyTorch, but a batch zeros
        variance = variance + 0.0 * variance
    return mean, xp.reciprocal(xp.sqrt(variance + eps)), variance


def _slope_x(xp, g, x, w, view, axes, affine, aux):
    mean, scale, _ = aux
    _, to_mean, to_scale, _ = g  # the last three are None where nobody sees the statistics
    unit, g = (_seen(xp, x, view) - mean) * scale, _seen(xp, g[0], view)
    if w is not None:
        g = g * xp.reshape(w, shape=affine)
    g = g - xp.mean(g, axis=axes, keepdims=True)  # first: unit does not quite sum to 0
    through_y = scale * (g - unit * xp.mean(g * unit, axis=axes, keepdims=True))
    if to_mean is None:
        return through_y
    return through_y + (to_mean - to_scale * scale * scale * unit) / math.prod(view[i] for i in axes)


def _slope_w(xp, g, x, view, axes, affine, w_shape, aux):
    mean, scale, _ = aux
    unit = (_seen(xp, x, view) - mean) * scale
    return _to_affine(xp, _seen(xp, g[0], view) * unit, affine, w_shape)


def _to_affine(xp, g, affine, shape):
    """Sum over what weight or bias were broadcast along."""
    axes = tuple(i for i in range(g.ndim) if i < g.ndim - len(affine) or affine[i - (g.ndim - len(affine))] == 1)
    return xp.reshape(xp.sum(g, axis=axes, keepdims=False) if axes else g, shape=shape)


@op(
    node="NativeBatchNormBackward0",
    wide=True,
    aux=_moments,
    residuals=True,
    x=_slope_x,
    w=_slope_w,
    b=lambda xp, g, view, axes, affine, b_shape: _to_affine(xp, _seen(xp, g[0], view), affine, b_shape),
)
def normalized(xp, x, w, b, *, view, axes, affine, eps, aux):
    """(x normalized, scaled and shifted; the means; 1 / the standard deviations; the variances)."""
    mean, scale, variance = aux
    y = (_seen(xp, x, view) - mean) * scale
    if w is not None:
        y = y * xp.reshape(w, shape=affine)
    if b is not None:
        y = y + xp.reshape(b, shape=affine)
    return xp.reshape(y, shape=x.shape), mean, scale, variance


def _scaling(xp, variance, eps):
    return xp.reciprocal(xp.sqrt(variance + eps))


@op(
    node="NativeBatchNormBackward0",
    wide=True,
    x=lambda xp, g, w, variance, affine, eps: (
        g * xp.reshape(_scaling(xp, variance, eps) * (1 if w is None else w), shape=affine)
    ),
    w=lambda xp, g, x, mean, variance, affine, eps, w_shape: _to_affine(
        xp,
        g * (x - xp.reshape(mean, shape=affine)) * xp.reshape(_scaling(xp, variance, eps), shape=affine),
        affine,
        w_shape,
    ),
    b=lambda xp, g, affine, b_shape: _to_affine(xp, g, affine, b_shape),
)
def normalized_by(xp, x, w, b, mean, variance, *, affine, eps):
    """x normalized with a given mean and variance of each channel."""
    scale = _scaling(xp, variance, eps)
    scale = scale if w is None else scale * w
    shift = -mean * scale if b is None else b - mean * scale
    return x * xp.reshape(scale, shape=affine) + xp.reshape(shift, shape=affine)


# Only the statistics of groups have gradients, where ``native_group_norm`` shows them.
batch_normalized = variant(xp.normalized, "NativeBatchNormBackward0", first=True)
layer_normalized = variant(xp.normalized, "NativeLayerNormBackward0", first=True)
group_normalized = variant(xp.normalized, "NativeGroupNormBackward0", first=True)
shown_group_normalized = variant(xp.normalized, "NativeGroupNormBackward0")
instance_normalized = variant(xp.normalized, "ViewBackward0", first=True)


def _rms_scale(xp, x, axes, eps):
    return xp.reciprocal(xp.sqrt(xp.mean(x * x, axis=axes, keepdims=True) + eps))


def _rms_slope(xp, g, x, w, axes, aux):
    g = g if w is None else g * xp.conj(w)
    x, aux = xp.conj(x), xp.conj(aux)
    return aux * (g - x * aux * (aux * xp.mean(g * x, axis=axes, keepdims=True)))


@op(
    node="MulBackward0",
    wide=True,
    aux=_rms_scale,
    residuals=True,
    x=_rms_slope,
    w=lambda xp, g, x, w_shape, aux: _to_affine(xp, g * xp.conj(x * aux), w_shape, w_shape),
)
def rms_normalized(xp, x, w, *, axes, eps, aux):
    """x divided by the root of its mean square."""
    return x * aux if w is None else x * aux * w


@op
def followed(xp, running_mean, running_var, mean, variance, by, *, scale):
    """The running statistics moved by the fraction ``by`` towards those of one more batch."""

    def moved(running, now):
        return (1 - by) * running + by * xp.astype(xp.reshape(now, shape=running.shape), dtype=running.dtype)

    return moved(running_mean, mean), moved(running_var, variance if scale == 1 else variance * scale)


def channel_first(shape):
    """How a vector with an element for each channel (dimension 1) broadcasts against ``shape``."""
    return tuple(n if d == 1 else 1 for d, n in enumerate(shape))


def batch_norm_stats(x, w, b, eps):
    """(y, mean, 1 / standard deviation, variance), the last three with 1 for every axis but the channels'."""
    shape = tuple(x._array.shape)
    axes, affine = (0, *range(2, len(shape))), channel_first(shape)
    return batch_normalized(x, w, b, view=shape, axes=axes, affine=affine, eps=eps)


def layer_norm_stats(x, normalized_shape, w, b, eps):
    shape = tuple(x._array.shape)
    axes = tuple(range(len(shape) - len(normalized_shape), len(shape)))
    return layer_normalized(x, w, b, view=shape, axes=axes, affine=tuple(normalized_shape), eps=eps)


def group_norm_stats(x, groups, w, b, eps, shown=False):
    n, channels, inner = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    view, affine = (n, groups, channels // groups, inner), (1, groups, channels // groups, 1)
    normalize = shown_group_normalized if shown else group_normalized
    return normalize(x, w, b, view=view, axes=(2, 3), affine=affine, eps=eps)


def instance_norm_stats(x, w, b, eps):
    n, channels, inner = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    view, affine = (n, channels, inner), (1, channels, 1)
    return instance_normalized(x, w, b, view=view, axes=(2,), affine=affine, eps=eps)


def _window(xp, x, before, after):
    """The sum over channels (axis 1) from ``before`` ahead of each to ``after`` behind it, where they exist."""
    channels = x.shape[1]
    pad = [(0, 0)] * x.ndim
    total = 0.0
    for shift in range(-before, after + 1):
        start, stop = max(shift, 0), min(channels + shift, channels)
        if start < stop:
            pad[1] = (max(-shift, 0), max(shift, 0))
            total = total + xp.pad_constant(xp.slice_part(x, axis=1, start=start, size=stop - start), pad=tuple(pad))
    return total


@op(x=lambda xp, g, size: _window(xp, g, (size - 1) // 2, size // 2) / size)
def channel_means(xp, x, *, size):
    """The sum over ``size`` channels around each, divided by ``size``: half of them before it, rounded down."""
    return _window(xp, x, size // 2, (size - 1) // 2) / size
