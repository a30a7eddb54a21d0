"""Losses that are one node in PyTorch's graph; the others are composites in ``nn/functional/loss.py``.

``reduction`` is "none", "mean" or "sum" throughout.
"""

from __future__ import annotations

import math

from .. import dtypes
from ..autograd.op import op
from .common import bool_dtype, dtype_of, no_gradient, refuse


def _floats_only(kernel):
    return lambda x, *_: refuse(kernel, lambda d: not d.is_floating_point, x)


def _common_float(kernel):
    """The same of the dtype that both come to."""
    return lambda x, w: refuse(
        kernel, lambda _: not dtypes.promote_types(dtype_of(x), dtype_of(w)).is_floating_point, x
    )


def reduced(xp, loss, reduction):
    if reduction == "mean":
        return xp.mean(loss)
    return xp.sum(loss) if reduction == "sum" else loss


def spread_evenly(g, reduction, shape):
    """The gradient of each element before it was reduced."""
    return g / (math.prod(shape) or math.nan) if reduction == "mean" else g


# -- differences -------------------------------------------------------------------------------------------------------
# Three ops for the three reductions of the commonest loss: without static arguments a call takes the short way.


def _mse(slope):
    """The declaration the three share; ``slope(shape)`` is what the gradient at each difference is multiplied by."""
    return op(
        node="MseLossBackward0",
        promote="common",
        check=_common_float("mse_cpu"),
        x=lambda xp, g, x, w: (x - w) * (g * slope(x.shape)),
        w=lambda xp, g, x, w: (w - x) * (g * slope(x.shape)),
    )


@_mse(lambda shape: 2 / (math.prod(shape) or math.nan))
def mse_mean(xp, x, w):
    difference = x - w
    return xp.mean(difference * difference)


@_mse(lambda shape: 2.0)
def mse_sum(xp, x, w):
    difference = x - w
    return xp.sum(difference * difference)


@_mse(lambda shape: 2.0)
def mse_each(xp, x, w):
    difference = x - w
    return difference * difference


def _within(xp, g, d, limit, inner, slope):
    """``inner`` where d is within ``limit`` of 0 or nan, outside the gradient of a line of ``slope`` on each side."""
    return xp.where(d >= limit, g * slope, xp.where(d <= -limit, g * -slope, inner))


def _smooth_slope(xp, g, x, w, beta, reduction):
    d = x - w
    g = spread_evenly(g, reduction, x.shape)
    return _within(xp, g, d, beta, g * (d / beta), 1.0)


@op(
    promote="common",
    check=_common_float("smooth_l1_cpu"),
    x=_smooth_slope,
    w=lambda xp, g, x, w, beta, reduction: -_smooth_slope(xp, g, x, w, beta, reduction),
)
def smooth_l1_loss(xp, x, w, *, beta, reduction):
    d = xp.abs(x - w)
    return reduced(xp, xp.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta), reduction)


def _huber_slope(xp, g, x, w, delta, reduction):
    d = x - w
    g = spread_evenly(g, reduction, x.shape)
    return _within(xp, g, d, delta, g * d, delta)


@op(
    promote="common",
    check=_floats_only("huber_cpu"),
    x=_huber_slope,
    w=lambda xp, g, x, w, delta, reduction: -_huber_slope(xp, g, x, w, delta, reduction),
)
def huber_loss(xp, x, w, *, delta, reduction):
    d = xp.abs(x - w)
    return reduced(xp, xp.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


# -- two classes -------------------------------------------------------------------------------------------------------


def _weighted(loss, weight):
    return loss if weight is None else loss * weight


def _bce_slope(xp, g, x, t, weight, reduction):
    g = spread_evenly(g, reduction, x.shape)
    slope = (x - t) / xp.maximum(x * (1 - x), 1e-12)
    return _weighted(g * slope, weight)


def _bce_target(xp, g, x, weight, reduction):
    g = spread_evenly(g, reduction, x.shape)
    return _weighted(g * (xp.log1p(-x) - xp.log(x)), weight)


@op(check=_floats_only("binary_cross_entropy"), x=_bce_slope, t=_bce_target)
def binary_cross_entropy(xp, x, t, weight, *, reduction):
    # Logarithms are kept from going below -100, so that the loss stays finite.
    loss = (t - 1) * xp.maximum(xp.log1p(-x), -100) - t * xp.maximum(xp.log(x), -100)
    return reduced(xp, _weighted(loss, weight), reduction)


def _bce_logits_slope(xp, g, x, t, weight, pos_weight, reduction):
    g = spread_evenly(g, reduction, x.shape)
    if pos_weight is None:
        slope = xp.sigmoid(x) - t
    else:
        positive = pos_weight * t
        slope = (positive + 1 - t) * xp.sigmoid(x) - positive
    return _weighted(g * slope, weight)


def _bce_logits_target(xp, g, x, weight, pos_weight, reduction):
    g = spread_evenly(g, reduction, x.shape)
    if pos_weight is None:
        return _weighted(-g * x, weight)
    return _weighted(g * (xp.log_sigmoid(-x) - pos_weight * xp.log_sigmoid(x)), weight)


@op(promote="common", takes="real", x=_bce_logits_slope, t=_bce_logits_target)
def binary_cross_entropy_with_logits(xp, x, t, weight, pos_weight, *, reduction):
    soft = -xp.log_sigmoid(x)  # log(1 + exp(-x))
    if pos_weight is not None:
        soft = soft * ((pos_weight - 1) * t + 1)
    return reduced(xp, _weighted((1 - t) * x + soft, weight), reduction)


def _soft_margin_slope(xp, g, x, t, reduction):
    if bool_dtype(dtype_of(t)):
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    return spread_evenly(g, reduction, x.shape) * (-t * xp.sigmoid(-t * x))


@op(promote="common", x=_soft_margin_slope)
def soft_margin_loss(xp, x, t, *, reduction):
    return reduced(xp, xp.log1p(xp.exp(-t * x)), reduction)


# -- many classes ------------------------------------------------------------------------------------------------------


def _class_axis(x) -> int:
    return 1 if x.ndim > 1 else 0


def _picked_weights(xp, x, target, weight, ignore_index):
    """(indices with 0 for those to ignore, the weight of each, their sum)."""
    ignored = target == ignore_index
    index = xp.where(ignored, 0, target)
    one = x.dtype.numpy if hasattr(x.dtype, "numpy") else x.dtype
    if weight is None:
        picked = xp.astype(xp.logical_not(ignored), dtype=one)
    else:
        picked = xp.where(ignored, 0.0, xp.index_at(weight, index))
    return index, picked, xp.sum(picked)


def _nll_slope(xp, g, x_shape, target, ignore_index, reduction, aux):
    index, picked, total = aux
    axis = 1 if len(x_shape) > 1 else 0
    if reduction == "mean":
        g = g / total  # by 0 where all weights are: then both loss and gradient are nan
    each = xp.where(target == ignore_index, 0.0, -picked * g)  # those ignored take no part
    at = xp.expand_dims(index, axis=axis)
    return xp.add_along_axis(xp.expand_dims(each, axis=axis), at, axis=axis, size=x_shape[axis], unique=True)


@op(aux=_picked_weights, residuals=True, x=_nll_slope)
def nll_loss(xp, x, target, weight, *, ignore_index, reduction, aux):
    """Minus x at the target's class, weighted; classes are dimension 1, or the only one."""
    index, picked, total = aux
    axis = _class_axis(x)
    at = xp.expand_dims(index, axis=axis)
    loss = -picked * xp.squeeze(xp.take_along_axis(x, at, axis=axis), axis=axis)
    if reduction == "none":
        return loss
    return xp.sum(loss) / total if reduction == "mean" else xp.sum(loss)


@op(derive=True)
def multi_margin_loss(xp, x, target, weight, *, p, margin, reduction):
    """The mean over classes of ``max(0, margin - x[target] + x)**p``, the target's own left out; x is (N, C)."""
    classes = x.shape[1]
    at = xp.expand_dims(target, axis=1)
    short = margin - xp.take_along_axis(x, at, axis=1) + x
    cost = xp.where(short > 0, short if p == 1 else short * short, 0.0)
    if weight is not None:
        cost = cost * xp.index_at(weight, at)
    own = xp.is_class(target, classes=classes)
    return reduced(xp, xp.sum(xp.where(own, 0.0, cost), axis=1) / classes, reduction)


@op(derive=True)
def multilabel_margin_loss(xp, x, target, *, reduction):
    """Each wrong class against each right one: ``max(0, 1 - x[right] + x[wrong])`` over the number of classes.

    A row of ``target`` lists the right classes up to the first negative number.
    """
    classes = x.shape[1]
    listed = xp.cumsum(xp.astype(target < 0, dtype="int64"), axis=1) == 0
    index = xp.where(listed, target, 0)
    right = xp.any(xp.is_class(index, classes=classes) & xp.expand_dims(listed, axis=2), axis=1)
    short = 1 - xp.expand_dims(xp.take_along_axis(x, index, axis=1), axis=2) + xp.expand_dims(x, axis=1)
    counts = xp.expand_dims(listed, axis=2) & xp.expand_dims(xp.logical_not(right), axis=1) & (short > 0)
    return reduced(xp, xp.sum(xp.where(counts, short, 0.0), axis=(1, 2)) / classes, reduction)


# -- sequences ---------------------------------------------------------------------------------------------------------


def _ctc_slope(xp, g, x, targets, input_lengths, target_lengths, blank, aux):
    return xp.ctc_slope(g, x, targets, input_lengths, target_lengths, *aux, blank=blank)


def _ctc_forward(xp, x, targets, input_lengths, target_lengths, blank):
    return xp.ctc_paths(x, targets, input_lengths, target_lengths, blank=blank)


@op
def ctc_paths(xp, x, targets, input_lengths, target_lengths, *, blank):
    """(log-probabilities of beginnings, minus the log-probability of each whole); see ``engine/ctc.py``."""
    return xp.ctc_paths(x, targets, input_lengths, target_lengths, blank=blank)


def _check_ctc(x, *_):
    refuse("ctc_loss_cpu", lambda d: d.name not in ("float32", "float64"), x)


@op(node="CtcLossBackward0", check=_check_ctc, aux=_ctc_forward, x=_ctc_slope)
def ctc(xp, x, targets, input_lengths, target_lengths, *, blank, aux):
    """-log of the probability of all paths through x (T, N, C) that spell ``targets`` (N, S)."""
    return aux[1]


@op(x=no_gradient("_ctc_loss_backward"), g=no_gradient("_ctc_loss_backward"))
def ctc_slope(xp, g, x, targets, input_lengths, target_lengths, alpha, loss, *, blank):
    """What PyTorch gives as the gradient of x: that of the unnormalized scores, if x is their log_softmax."""
    return xp.ctc_gradient(g, x, targets, input_lengths, target_lengths, alpha, loss, blank=blank)
