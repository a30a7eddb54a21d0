"""Losses and bags as PyTorch has them at its top level, ``torch.kl_div`` and the like: with a choice as a number."""

from __future__ import annotations

from ...ops.public import PUBLIC, public
from . import loss as F
from . import sparse

_REDUCTIONS = ("none", "mean", "sum")  # 0, PyTorch's default for these, is none


@public(method=False, out=False)
def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    """``nn.functional.binary_cross_entropy_with_logits`` with the reduction as a number."""
    return F.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight=pos_weight, reduction=_REDUCTIONS[reduction]
    )


@public(method=False, out=False)
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=0):
    """``nn.functional.cosine_embedding_loss`` with the reduction as a number."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_REDUCTIONS[reduction])


@public(method=False, out=False)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    """``nn.functional.ctc_loss`` with the reduction as a number."""
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _REDUCTIONS[reduction], zero_infinity)


@public(method=False, out=False)
def hinge_embedding_loss(input, target, margin=1.0, reduction=0):
    """``nn.functional.hinge_embedding_loss`` with the reduction as a number."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_REDUCTIONS[reduction])


@public(method=False, out=False)
def kl_div(input, target, reduction=0, *, log_target=False):
    """``nn.functional.kl_div`` with the reduction as a number."""
    each = F.kl_div(input, target, reduction="none", log_target=log_target)
    return (each, each.mean(), each.sum())[reduction]


@public(method=False, out=False)
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=0):
    """``nn.functional.margin_ranking_loss`` with the reduction as a number."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_REDUCTIONS[reduction])


@public(method=False, out=False)
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """``nn.functional.poisson_nll_loss`` with the reduction as a number."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_REDUCTIONS[reduction])


@public(method=False, out=False)
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction=0):
    """``nn.functional.triplet_margin_loss`` with the reduction as a number."""
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_REDUCTIONS[reduction])


@public(method=False, out=False)
def embedding_bag(
    weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=None,
):  # fmt: skip
    """(the bags, the bag of each index, how many indices a bag has, for "max" where each element was found)."""
    return bags_and_counts(
        weight, indices, offsets, scale_grad_by_freq, ("sum", "mean", "max")[mode], sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip


def bags_and_counts(weight, indices, offsets, by_freq, mode, by_rows, per_sample_weights, include_last, padding_idx):
    result = sparse.embedding_bag(
        indices, weight, offsets, None, 2.0, by_freq, mode, by_rows, per_sample_weights, include_last, padding_idx
    )
    _, bag, bags = sparse._bags(indices, offsets, include_last)
    counts = PUBLIC["bincount"](bag, minlength=bags)[:bags]
    if mode == "sum":
        return result, bag[:0], PUBLIC["zeros_like"](counts), PUBLIC["zeros_like"](counts)
    if mode == "mean":
        return result, bag, counts, counts
    return result, bag, counts, _places(weight, indices, bag, bags)


def _places(weight, indices, bag, bags):
    """The index of the row that gave each element of a bag's maximum; 0 in an empty bag."""
    rows = []
    for b in range(bags):
        mine = indices[bag == b]
        rows.append(mine[weight.detach()[mine].max(0).indices] if len(mine) else indices.new_zeros(weight.shape[1]))
    return PUBLIC["stack"](rows) if rows else indices.new_zeros((0, weight.shape[1]))


def embedding_renorm_(weight, indices, max_norm, norm_type):
    """Scale the named rows down, in place, where they are longer than ``max_norm``."""
    sparse._shorten_rows(weight, indices, max_norm, norm_type)
    return weight


PUBLIC["embedding_renorm_"] = embedding_renorm_
