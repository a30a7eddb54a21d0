"""Losses."""

from __future__ import annotations

import math

from ... import dtypes
from ...autograd.mode import in_single_precision, state
from ...autograd.op import check_broadcast, variant
from ...autograd.op import differentiable as xp
from ...errors import warn_user
from ...ops.common import (
    are_below,
    check_tensor,
    known_values,
    not_floating_dtype,
    refuse,
    refuse_complex_gradient,
    type_word,
)
from ...ops.public import PUBLIC
from ...tensor import Tensor
from .distance import cosine_similarity_rows, pairwise_distance
from .linear import linear

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy", "ctc_loss",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "linear_cross_entropy",
    "margin_ranking_loss", "mse_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss",
    "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip

_REDUCTIONS = frozenset({"none", "mean", "sum"})
_mse = {"mean": xp.mse_mean, "sum": xp.mse_sum, "none": xp.mse_each}
_nll_2d = variant(xp.nll_loss, "NllLoss2DBackward0")


def reduction_of(reduction, size_average=None, reduce=None) -> str:
    """The reduction asked for, checked; ``size_average`` and ``reduce`` are the old way to ask."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    elif reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def legacy_reduction(size_average, reduce, warn=True) -> str:
    """What ``size_average`` and ``reduce`` mean as a ``reduction``."""
    reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
    if warn:
        warn_user(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    return reduction


def _reduce(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


# -- differences -------------------------------------------------------------------------------------------------------


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The mean of (input - target)².

    >>> F.mse_loss(rushlight.tensor([1.0, 2.0]), rushlight.tensor([1.0, 4.0]))
    tensor(2.)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if input._array.shape != target.size():
        input, target = _broadcast(input, target)
    if weight is not None:
        return _weighted(xp.mse_each(input, target), input, weight, reduction)
    return _mse[reduction](input, target)


@in_single_precision
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The mean of |input - target|."""
    reduction = reduction_of(reduction, size_average, reduce)
    input, target = _broadcast(input, target)
    loss = (input - target).abs()
    return _reduce(loss, reduction) if weight is None else _weighted(loss, input, weight, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Squared below ``beta``, linear above: d² / (2 beta), or |d| - beta / 2."""
    reduction = reduction_of(reduction, size_average, reduce)
    input, target = _broadcast(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return _reduce((input - target).abs(), reduction)
    return xp.smooth_l1_loss(input, target, beta=beta, reduction=reduction)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Squared below ``delta``, linear above: d² / 2, or delta · (|d| - delta / 2)."""
    reduction = reduction_of(reduction)
    input, target = _broadcast(input, target)
    delta = delta.item() if isinstance(delta, Tensor) else delta
    if not isinstance(delta, (float, int)):
        raise TypeError(f"huber_loss(): argument 'delta' (position 4) must be float, not {type(delta).__name__}")
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is not None:
        _check_weight(weight, input)
        return _reduce(xp.huber_loss(input, target, delta=delta, reduction="none") * weight, reduction)
    common = PUBLIC["result_type"](input, target)
    if not PUBLIC["can_cast"](common, input.dtype):
        raise RuntimeError(
            f"result type {type_word(common)} can't be cast to the desired output type {_type_word(input)}"
        )
    if not_floating_dtype(common):
        raise NotImplementedError(f"\"huber_cpu\" not implemented for '{type_word(common)}'")
    return _held(xp.huber_loss(input, target, delta=delta, reduction=reduction), input)


def _broadcast(input, target):
    if input.shape == target.shape:
        return input, target
    warn_user(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size."
    )
    return PUBLIC["broadcast_tensors"](input, target)


def _weighted(loss, input, weight, reduction):
    _check_weight(weight, input)
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return _reduce(loss, reduction)


def _check_weight(weight, input):
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")


# -- two classes -------------------------------------------------------------------------------------------------------


@in_single_precision
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-target · log(input) - (1 - target) · log(1 - input), for probabilities."""
    reduction = reduction_of(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(f"Found dtype {_type_word(target)} but expected {_type_word(input)}")
    for name, t in (("input", input), ("target", target)):
        values = known_values(t, lambda p: (p >= 0) & (p <= 1))
        if values is not None and not ((values >= 0) & (values <= 1)).all():
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    if weight is not None:
        _check_holds(input, weight)
        weight = _expanded(weight, input).to(input.dtype)
    return xp.binary_cross_entropy(input, target, weight, reduction=reduction)


def _expanded(weight, input):
    try:
        return weight.expand(input.shape)
    except RuntimeError:
        raise RuntimeError(
            f"Attempting to broadcast weight of {weight.shape}: expected shape should be broadcastable to "
            f"{list(input.shape)}"
        ) from None


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """``binary_cross_entropy`` of sigmoid(input), without overflow."""
    reduction = reduction_of(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if input._array.dtype.kind in "biuc":
        raise NotImplementedError(f"\"log_sigmoid_cpu\" not implemented for '{_type_word(input)}'")
    if target._array.dtype.kind in "biu":
        raise RuntimeError(f"result type Float can't be cast to the desired output type {_type_word(target)}")
    if pos_weight is not None and pos_weight._array.dtype.kind == "b":
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported.")
    if weight is not None and PUBLIC["broadcast_shapes"](input.shape, weight.shape) != input.shape:
        raise RuntimeError(
            f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(weight.shape)}"
        )
    loss = xp.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction=reduction)
    return _held(loss, target)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target · input)), for targets of 1 and -1."""
    check_tensor("soft_margin_loss", input)
    check_broadcast((input._array, target._array))
    shape = PUBLIC["broadcast_shapes"](input.shape, target.shape)
    if shape != input.shape:
        raise RuntimeError(f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(shape)}")
    _check_holds(input, target)
    if target.requires_grad and state.grad:
        raise RuntimeError(
            "The function 'soft_margin_loss' is not differentiable with respect to argument 'target'. This input "
            "cannot have requires_grad True."
        )
    reduction = reduction_of(reduction, size_average, reduce)
    refuse_complex_gradient("soft_margin_loss", input)
    return _held(xp.soft_margin_loss(input, target, reduction=reduction), input)


def _held(loss, input):
    """The loss in the dtype of ``input``, in whose memory PyTorch computes it, unless autocast chooses another."""
    return loss if state.casting is not None or loss.dtype is input.dtype else loss.to(input.dtype)


def _not_single(d) -> bool:
    """Is it no float32 or float64?"""
    return not d.is_floating_point or d.itemsize < 4


def _check_holds(input, target) -> None:
    """Losses that PyTorch writes into a tensor of the input's dtype."""
    kind, other = input._array.dtype.kind, target._array.dtype.kind
    if kind == "b":
        raise RuntimeError("Negation, the `-` operator, on a bool tensor is not supported.")
    if kind in "iu":
        raise RuntimeError(f"result type Float can't be cast to the desired output type {_type_word(input)}")
    if other == "c" and kind != "c":
        raise RuntimeError(
            f"result type {_type_word(target)} can't be cast to the desired output type {_type_word(input)}"
        )


@in_single_precision
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """input where target is 1, max(0, margin - input) where it is -1."""
    check_tensor("hinge_embedding_loss", input)
    reduction = reduction_of(reduction, size_average, reduce)
    apart = PUBLIC["where"](target != 1, (float(margin) - input).clamp_min(0).to(input.dtype), 0)
    near = PUBLIC["where"](target != -1, input, 0)
    return _reduce(apart + near, reduction)


# -- many classes ------------------------------------------------------------------------------------------------------


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Minus the input (log-probabilities, classes in dimension 1) at the target class, weighted."""
    check_tensor("nll_loss_nd", input)
    check_tensor("nll_loss_nd", target, "target", 2)
    reduction = reduction_of(reduction, size_average, reduce)
    weight = _spatial_weight(input, weight)
    target = _checked_classes(input, target, weight, ignore_index)
    _check_scores(input)
    function = xp.nll_loss if input.ndim <= 2 else _nll_2d
    return function(input, target, weight, ignore_index=ignore_index, reduction=reduction)


def _check_scores(input):
    if input._array.dtype.kind in "biuc":
        refuse("nll_loss_out_frame" if input.ndim <= 2 else "nll_loss2d_forward_out_frame", not_floating_dtype, input)


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """-log softmax(input) at the target class; targets of input's shape are class probabilities.

    >>> F.cross_entropy(rushlight.tensor([[2.0, 0.0], [0.0, 2.0]]), rushlight.tensor([0, 1]))
    tensor(0.1269)
    """
    check_tensor("cross_entropy_loss", input)
    check_tensor("cross_entropy_loss", target, "target", 2)
    reduction = reduction_of(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    shape = input._array.shape
    axis = 0 if len(shape) == 1 else 1
    if state.casting is not None:  # it keeps the whole of this in float32
        input, weight = state.casting.raise_(input, weight)
    if shape == target._array.shape:
        return _cross_entropy_of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing, axis)
    scores = PUBLIC["log_softmax"](input, axis)
    weight = _spatial_weight(input, weight)
    target = _checked_classes(input, target, weight, ignore_index)
    _check_scores(scores)
    function = xp.nll_loss if len(shape) <= 2 else _nll_2d
    loss = function(scores, target, weight, ignore_index=ignore_index, reduction=reduction)
    if not label_smoothing:
        return loss
    smooth = _smoothing(scores, target, weight, ignore_index, reduction, axis)
    return (1 - label_smoothing) * loss + smooth * (label_smoothing / shape[axis])


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """``cross_entropy`` of ``linear(input, linear_weight, linear_bias)``; weights (C, d…, in) make a loss for each d.

    Differs from PyTorch: ``options`` about doing it in chunks are taken, the logits are made at once all the same.
    """
    _check_linear(input, linear_weight, linear_bias)
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    shape = linear_weight.shape[:-1]
    flat = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(input, linear_weight.reshape(math.prod(shape), linear_weight.shape[-1]), flat)
    if len(shape) > 1:
        logits = logits.reshape(*input.shape[:-1], *shape)
    ignore_index = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    )


def _check_linear(input, weight, bias):
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {weight.ndim}")
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    if weight.ndim > 2 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires batched input, "
            f"(N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {tuple(weight.shape[:-1])}, got {tuple(bias.shape)}")


def _smoothing(scores, target, weight, ignore_index, reduction, axis):
    """What every class would lose, each for each sample; averaged over the samples that count."""
    each = -(scores if weight is None else scores * weight.reshape(_along(axis, scores.ndim))).sum(axis)
    ignored = target == ignore_index
    each = each.masked_fill(ignored, 0.0)
    if reduction != "mean":
        return _reduce(each, reduction)
    if weight is None:
        return each.sum() / (~ignored).sum()
    return each.sum() / weight[target.masked_fill(ignored, 0)].masked_fill(ignored, 0.0).sum()


def _cross_entropy_of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing, axis):
    if not target.is_floating_point():
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {_type_word(target)}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    classes = input.shape[axis] if input.ndim else 1
    _check_class_weight(weight, classes, "cross_entropy: ")
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    each = PUBLIC["log_softmax"](input, axis) * target
    if weight is not None:
        each = each * weight.reshape(_along(axis, input.ndim))
    if reduction == "none":
        return -each.sum(axis)
    total = -each.sum()
    return total if reduction == "sum" else _divide_number(total, input.numel() // max(classes, 1))


_divide_number = variant(xp.divide, "DivBackward1")


def _along(axis, ndim):
    return [-1 if d == axis else 1 for d in range(ndim)]


def _checked_classes(input, target, weight, ignore_index):
    """``target`` if it can be the class indices of ``input``."""
    shape, wanted = tuple(input._array.shape), tuple(target._array.shape)
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) > 1 and (not wanted or shape[0] != wanted[0]):
        found = wanted[0] if wanted else 1
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({found}).")
    if len(shape) == 1 and wanted == (1,):
        target, wanted = target.reshape(()), ()
    if wanted != shape[:1] * (len(shape) > 1) + shape[2:]:
        raise RuntimeError(_wrong_target_shape(shape, wanted))
    if target.dtype is dtypes.uint8 and len(shape) > 2:
        raise RuntimeError("expected scalar type Long but found Byte")
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {_type_word(target)}")
    classes = shape[1] if len(shape) > 1 else shape[0]
    _check_class_weight(weight, classes, "")
    _check_weight_dtype(weight, input)
    values = known_values(target, lambda i: ((i >= 0) & (i < classes)) | (i == ignore_index))
    if values is not None and not are_below(values, classes):
        wrong = values[((values < 0) | (values >= classes)) & (values != ignore_index)]
        if wrong.size:
            raise IndexError(f"Target {wrong.flat[0]} is out of bounds.")
    return target


def _spatial_weight(input, weight):
    """For images only the number of a weight's elements counts, not its shape."""
    return weight.reshape(-1) if weight is not None and input.ndim > 2 and weight.ndim > 1 else weight


def _wrong_target_shape(shape, wanted) -> str:
    if len(shape) <= 2:
        return "0D or 1D target tensor expected, multi-target not supported"
    if len(shape) == 4 and len(wanted) != 3:
        return f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(wanted)}"
    if len(shape) == 4:
        return f"size mismatch (got input: {list(shape)} , target: {list(wanted)}"
    return f"Expected target size {[shape[0], *shape[2:]]}, got {list(wanted)}"


def _check_class_weight(weight, classes, prefix):
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"{prefix}weight tensor should be defined either for all {classes} classes or no classes but got weight "
            f"tensor of shape: {list(weight.shape)}"
        )


def _check_weight_dtype(weight, input):
    if weight is not None and weight.dtype is not input.dtype and not state.casting:
        raise RuntimeError(f"expected scalar type {_type_word(input)} but found {_type_word(weight)}")


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over the wrong classes of max(0, margin - input[target] + input)ᵖ."""
    check_tensor("multi_margin_loss", input)
    if state.casting is None:  # autocast makes it float32
        refuse("multi_margin_loss_cpu_kernel", _not_single, input)
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    _check_rows(input)
    rows = input if input.ndim == 2 else input.reshape(1, -1)
    if weight is not None and tuple(weight.shape) != (rows.shape[1],):
        raise RuntimeError(f"inconsistent weight size, expected {rows.shape[1]} but got {list(weight.shape)}")
    _check_weight_dtype(weight, input)
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {_type_word(target)}")
    if target.ndim > 1 or target.numel() != rows.shape[0]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{rows.shape[0]}], but got {list(target.shape)}. Input has shape "
            f"{list(input.shape)}."
        )
    values = known_values(target, lambda i: (i >= 0) & (i < rows.shape[1]))
    if values is not None and ((values < 0) | (values >= rows.shape[1])).any():
        raise RuntimeError("target out of range")
    loss = xp.multi_margin_loss(rows, target.reshape(-1), weight, p=p, margin=margin, reduction=reduction)
    return loss.reshape(()) if reduction == "none" and input.ndim < 2 and target.ndim == 0 else loss


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Each wrong class against each right one: max(0, 1 - input[right] + input[wrong]); -1 ends a row of targets."""
    check_tensor("multilabel_margin_loss", input)
    if state.casting is None:
        refuse("multilabel_margin_loss_forward_out_frame", _not_single, input)
    reduction = reduction_of(reduction, size_average, reduce)
    _check_rows(input)
    if target.shape != input.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {_type_word(target)}")
    classes = input.shape[-1] if input.ndim else 1
    values = known_values(target, lambda i: (i >= -1) & (i < classes))
    if values is not None and ((values < -1) | (values >= classes)).any():
        raise RuntimeError("argument #2 'target' is out of range")
    rows = (input, target) if input.ndim == 2 else (input.reshape(1, -1), target.reshape(1, -1))
    loss = xp.multilabel_margin_loss(*rows, reduction=reduction)
    return loss if input.ndim == 2 or reduction != "none" else loss.reshape(())


def _check_rows(input):
    if input.ndim > 2 or (input.numel() == 0 and not (input.ndim == 2 and input.shape[1])):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """``binary_cross_entropy_with_logits`` of each label, averaged over the labels."""
    reduction = reduction_of(reduction, size_average, reduce)
    each = -(target * xp.log_sigmoid(input) + (1 - target) * xp.log_sigmoid(-input))
    if weight is not None:
        each = each * weight
    return _reduce(each.sum(input.ndim - 1) / input.shape[-1], reduction)


# -- distributions -----------------------------------------------------------------------------------------------------


@in_single_precision
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target · (log(target) - input), input being log-probabilities, target too if ``log_target``."""
    check_tensor("kl_div", input)
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    elif reduction == "mean":
        warn_user(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release."
        )
    elif reduction != "batchmean":
        reduction_of(reduction)
    for t in (input, target):
        if t._array.dtype.kind in "biuc":
            kind = "Complex" if t.dtype.is_complex else "Integral"
            raise RuntimeError(f"kl_div: {kind} inputs not supported.")
    each = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if reduction != "batchmean":
        return _reduce(each, reduction)
    return each.sum() / (input.shape[0] if input.ndim else 1)


@in_single_precision
def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """exp(input) - target · input, without ``log_input``: input - target · log(input + eps); full: + log(target!)."""
    check_tensor("poisson_nll_loss", input)
    reduction = reduction_of(reduction, size_average, reduce)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduce(loss, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """(log(var) + (input - target)² / var) / 2; ``full`` adds log(2π) / 2."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * PUBLIC["ones_like"](input)
    elif var.dtype.is_complex:
        raise NotImplementedError(f"\"lt_cpu\" not implemented for '{_type_word(var)}'")
    elif (values := known_values(var, lambda v: v >= 0)) is not None and (values < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif [v for n, v in zip(input.shape, var.shape) if n != v] != [1] or input.ndim != var.ndim:
            raise ValueError("var is of incorrect size")
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not valid")
    # A variance below eps counts as eps, but its gradient is as if it had not been changed.
    var = var.clone()
    with _no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    return _reduce(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def _no_grad():
    from ...autograd.mode import no_grad

    return no_grad()


# -- pairs and triples -------------------------------------------------------------------------------------------------


@in_single_precision
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target · (input1 - input2) + margin)."""
    reduction = reduction_of(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    loss = (-target * (input1 - input2) + margin).clamp_min(0)
    return _reduce(loss if loss.is_floating_point() or reduction != "mean" else loss.float(), reduction)


@in_single_precision
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    check_tensor("cosine_embedding_loss", input1, "input1")
    reduction = reduction_of(reduction, size_average, reduce)
    _check_cosine(input1, input2, target)
    cosine = cosine_similarity_rows(input1, input2)
    where = PUBLIC["where"]
    return _reduce(
        where(target == 1, 1 - cosine, 0) + where(target == -1, (cosine - margin).clamp_min(0), 0), reduction
    )


def _check_cosine(input1, input2, target):
    expected = {0: 1, 1: 2}.get(target.ndim)
    if expected is None:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.ndim == input2.ndim == expected:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {expected}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )


@in_single_precision
def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d being ``pairwise_distance``."""
    check_tensor("triplet_margin_loss", anchor, "anchor")
    reduction = reduction_of(reduction, size_average, reduce)

    def distance(a, b):
        return pairwise_distance(a, b, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """``triplet_margin_loss`` with a distance of one's own."""
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet(anchor, positive, negative, distance, margin, swap, reduction_of(reduction))


def _triplet(anchor, positive, negative, distance, margin, swap, reduction):
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = PUBLIC["minimum"](far, distance(positive, negative))
    return _reduce((near + margin - far).clamp_min(0), reduction)


# -- sequences ---------------------------------------------------------------------------------------------------------


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """-log of the probability that a path through ``log_probs`` (T, N, C) spells ``targets``.

    ``targets`` is (N, S), or all of them one after the other. Differs from a plain derivative, as PyTorch does: the
    gradient is that of the scores that ``log_probs`` is the log_softmax of.
    """
    check_tensor("ctc_loss", log_probs, "log_probs")
    reduction = reduction_of(reduction)
    batched = log_probs.ndim != 2
    if not batched:
        log_probs = log_probs.unsqueeze(1)
    if log_probs.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for argument #1 'log_probs'"
        )
    steps, batch, classes = log_probs.shape
    if not log_probs.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    input_lengths = _lengths("input_lengths", input_lengths, batch, steps, log_probs.device)
    target_lengths = _lengths("target_lengths", target_lengths, batch, None, log_probs.device)
    targets = _padded_targets(targets.long(), target_lengths, batch, batched)
    loss = xp.ctc(log_probs, targets, input_lengths, target_lengths, blank=blank)
    if zero_infinity:
        loss = PUBLIC["where"](loss == math.inf, 0.0, loss)
    if reduction == "mean":
        return (loss / target_lengths.clamp(min=1)).mean()
    return loss.sum() if reduction == "sum" else loss if batched else loss.squeeze(0)


def _lengths(name, lengths, batch, most, device):
    if not isinstance(lengths, Tensor):
        lengths = PUBLIC["tensor"](lengths, dtype=dtypes.int64, device=device)
    if lengths.is_floating_point():
        raise RuntimeError(f"{name} must be integral")
    lengths = lengths.reshape(-1).long()
    if lengths.numel() != batch:
        raise RuntimeError(f"{name} must be of size batch_size")
    values = known_values(lengths, lambda n: (n >= 0) & (True if most is None else n <= most))
    if values is not None and values.size:
        if values.min() < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {values.min()}")
        if most is not None and values.max() > most:
            raise RuntimeError(f"Expected {name} to have value at most {most}, but got value {values.max()}")
    return lengths


def _padded_targets(targets, lengths, batch, batched):
    """Targets as (N, S); what is beyond a sequence's length is never looked at."""
    values = known_values(lengths)
    if targets.ndim == 2 or not batched:
        targets = targets if targets.ndim == 2 else targets.unsqueeze(0)
        if targets.shape[0] != batch:
            raise RuntimeError(
                f"Expected tensor to have size {batch} at dimension 0, but got size {targets.shape[0]} for argument #2 "
                "'targets'"
            )
        known_values(lengths, lambda n: n <= targets.shape[1])
        if values is not None and values.size and values.max() > targets.shape[1]:
            raise RuntimeError(
                f"Expected tensor to have size at least {values.max()} at dimension 1, but got size {targets.shape[1]} "
                "for argument #2 'targets'"
            )
        return targets
    if values is not None and values.sum() != targets.shape[0]:
        raise RuntimeError(
            f"Expected tensor to have size {values.sum()} at dimension 0, but got size {targets.shape[0]} for argument "
            "#2 'targets'"
        )
    longest = targets.shape[0] if values is None else int(values.max()) if values.size else 0
    if not longest:
        return targets.reshape(1, -1).expand(batch, -1)[:, :0]
    starts = lengths.cumsum(0) - lengths
    places = starts.unsqueeze(1) + PUBLIC["arange"](longest, device=targets.device)
    return targets[places.clamp(max=targets.shape[0] - 1)]


# -- arguments ---------------------------------------------------------------------------------------------------------


def _type_word(t) -> str:
    return t.dtype.char.removesuffix("Tensor")
