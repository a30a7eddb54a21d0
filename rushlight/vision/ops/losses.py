"""Losses of detectors."""

from __future__ import annotations

import math

import rushlight as torch
import rushlight.nn.functional as F

from .boxes import _upcast

__all__ = ["complete_box_iou_loss", "distance_box_iou_loss", "generalized_box_iou_loss", "sigmoid_focal_loss"]


def sigmoid_focal_loss(inputs, targets, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"):
    """Cross entropy of yes and no, scaled down where the answer is right (https://arxiv.org/abs/1708.02002).

    >>> rushlight.vision.ops.sigmoid_focal_loss(rushlight.zeros(1), rushlight.ones(1))
    tensor([0.0433])
    """
    if not (0 <= alpha <= 1) and alpha != -1:
        raise ValueError(f"Invalid alpha value: {alpha}. alpha must be in the range [0,1] or -1 for ignore.")
    p = torch.sigmoid(inputs)
    right = p * targets + (1 - p) * (1 - targets)
    loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none") * (1 - right) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return _reduced(loss, reduction)


def generalized_box_iou_loss(boxes1, boxes2, reduction: str = "none", eps: float = 1e-7):
    """1 less the generalized overlap of each box with the one beside it."""
    boxes1, boxes2 = _upcast(boxes1), _upcast(boxes2)
    common, union, wide, high = _pairs(boxes1, boxes2)
    area = wide * high
    return _reduced(1 - (common / (union + eps) - (area - union) / (area + eps)), reduction)


def distance_box_iou_loss(boxes1, boxes2, reduction: str = "none", eps: float = 1e-7):
    """1 less the overlap, and the squared distance of the centres by the diagonal of the box around both."""
    return _reduced(_distance(_upcast(boxes1), _upcast(boxes2), eps)[0], reduction)


def complete_box_iou_loss(boxes1, boxes2, reduction: str = "none", eps: float = 1e-7):
    """``distance_box_iou_loss`` and how different the proportions are."""
    boxes1, boxes2 = _upcast(boxes1), _upcast(boxes2)
    loss, iou = _distance(boxes1, boxes2, eps)
    angles = [torch.atan((b[..., 2] - b[..., 0]) / (b[..., 3] - b[..., 1])) for b in (boxes1, boxes2)]
    v = 4 / math.pi**2 * (angles[1] - angles[0]).pow(2)
    with torch.no_grad():
        alpha = v / (1 - iou + v + eps)
    return _reduced(loss + alpha * v, reduction)


def _pairs(boxes1, boxes2):
    """(common areas, areas of both, width and height of the box around both) of boxes side by side."""
    low, high = torch.max(boxes1[..., :2], boxes2[..., :2]), torch.min(boxes1[..., 2:], boxes2[..., 2:])
    common = (high - low).clamp(min=0).prod(-1)
    areas = [(b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1]) for b in (boxes1, boxes2)]
    around = torch.max(boxes1[..., 2:], boxes2[..., 2:]) - torch.min(boxes1[..., :2], boxes2[..., :2])
    return common, areas[0] + areas[1] - common, around[..., 0], around[..., 1]


def _distance(boxes1, boxes2, eps):
    common, union, wide, high = _pairs(boxes1, boxes2)
    iou = common / (union + eps)
    apart = ((boxes1[..., :2] + boxes1[..., 2:] - boxes2[..., :2] - boxes2[..., 2:]) / 2).pow(2).sum(-1)
    return 1 - iou + apart / (wide**2 + high**2 + eps), iou


def _reduced(loss, reduction: str):
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean() if loss.numel() else 0.0 * loss.sum()
    if reduction == "sum":
        return loss.sum()
    raise ValueError(
        f"Invalid Value for arg 'reduction': '{reduction} \n Supported reduction modes: 'none', 'mean', 'sum'"
    )
