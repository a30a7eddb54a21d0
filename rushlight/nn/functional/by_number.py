"""Losses as PyTorch has them at its top level, ``torch.kl_div`` and the like: with the reduction as a number."""

from __future__ import annotations

from ...ops.public import public
from . import loss as F

_REDUCTIONS = ("none", "mean", "sum")  # 0, PyTorch's default for these, is none


@public(method=False, out=False)
def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    return F.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight=pos_weight, reduction=_REDUCTIONS[reduction]
    )


@public(method=False, out=False)
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=0):
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_REDUCTIONS[reduction])


@public(method=False, out=False)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _REDUCTIONS[reduction], zero_infinity)


@public(method=False, out=False)
def hinge_embedding_loss(input, target, margin=1.0, reduction=0):
    return F.hinge_embedding_loss(input, target, margin, reduction=_REDUCTIONS[reduction])


@public(method=False, out=False)
def kl_div(input, target, reduction=0, *, log_target=False):
    each = F.kl_div(input, target, reduction="none", log_target=log_target)
    return (each, each.mean(), each.sum())[reduction]


@public(method=False, out=False)
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=0):
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_REDUCTIONS[reduction])


@public(method=False, out=False)
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_REDUCTIONS[reduction])


@public(method=False, out=False)
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction=0):
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_REDUCTIONS[reduction])
