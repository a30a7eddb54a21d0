"""Boxes (x1, y1, x2, y2): areas, overlaps, conversions, and the best of many that overlap."""

from __future__ import annotations

import math

import numpy as np

import rushlight as torch

from ...ops.common import known_values

__all__ = [
    "batched_nms", "box_area", "box_convert", "box_iou", "clip_boxes_to_image", "complete_box_iou", "distance_box_iou",
    "generalized_box_iou", "masks_to_boxes", "nms", "remove_small_boxes",
]  # fmt: skip


def nms(boxes, scores, iou_threshold: float):
    """The numbers of the boxes that are left, by falling score, when each takes out those it overlaps too much.

    >>> boxes = rushlight.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [3.0, 3.0, 4.0, 4.0]])
    >>> rushlight.vision.ops.nms(boxes, rushlight.tensor([0.5, 0.9, 0.1]), 0.5)
    tensor([1, 2])
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise RuntimeError(f"boxes should be a 2d tensor of size (N, 4), got {list(boxes.shape)}")
    if scores.ndim != 1 or scores.shape[0] != boxes.shape[0]:
        raise RuntimeError(f"scores should be a 1d tensor with {boxes.shape[0]} elements, got {list(scores.shape)}")
    values, order = known_values(boxes.detach()), known_values(scores.detach().argsort(descending=True, stable=True))
    if values is None or order is None:
        raise RuntimeError("nms: how many boxes are left is not known while a program is compiled; call it outside")
    x1, y1, x2, y2 = values.T.astype(np.float64 if values.dtype == np.float64 else np.float32)
    areas = (x2 - x1) * (y2 - y1)
    kept, gone = [], np.zeros(len(values), bool)
    for place, i in enumerate(order):
        if gone[i]:
            continue
        kept.append(int(i))
        rest = order[place + 1 :]
        wide = np.minimum(x2[i], x2[rest]) - np.maximum(x1[i], x1[rest])
        high = np.minimum(y2[i], y2[rest]) - np.maximum(y1[i], y1[rest])
        common = np.maximum(wide, 0) * np.maximum(high, 0)
        with np.errstate(all="ignore"):
            gone[rest] |= common / (areas[i] + areas[rest] - common) > iou_threshold
    return torch.tensor(kept, dtype=torch.int64, device=boxes.device)


def batched_nms(boxes, scores, idxs, iou_threshold: float):
    """``nms`` for each class (or image) in ``idxs`` apart."""
    if boxes.numel() == 0:
        return torch.empty((0,), dtype=torch.int64, device=boxes.device)
    # Classes are moved so far from each other that their boxes do not meet.
    offsets = idxs.to(boxes) * (boxes.max() + torch.tensor(1).to(boxes))
    return nms(boxes + offsets[:, None], scores, iou_threshold)


def remove_small_boxes(boxes, min_size: float):
    """The numbers of boxes with both sides at least ``min_size``."""
    wide, high = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    return torch.where((wide >= min_size) & (high >= min_size))[0]


def clip_boxes_to_image(boxes, size):
    """Boxes cut off at the borders of an image of (height, width)."""
    height, width = size
    x, y = boxes[..., 0::2].clamp(min=0, max=width), boxes[..., 1::2].clamp(min=0, max=height)
    return torch.stack((x, y), dim=boxes.dim()).reshape(boxes.shape)


def box_convert(boxes, in_fmt: str, out_fmt: str):
    """Between xyxy (corners), xywh (a corner and sizes) and cxcywh (the centre and sizes).

    >>> rushlight.vision.ops.box_convert(rushlight.tensor([1.0, 1.0, 3.0, 5.0]), "xyxy", "cxcywh")
    tensor([2., 3., 2., 4.])
    """
    if in_fmt not in _CORNERS or out_fmt not in _CORNERS:
        raise ValueError(f"Unsupported Bounding Box Conversions for given in_fmt {in_fmt} and out_fmt {out_fmt}")
    if in_fmt == out_fmt:
        return boxes.clone()
    corners = _CORNERS[in_fmt][0](*boxes.unbind(-1))
    return torch.stack(_CORNERS[out_fmt][1](*corners), dim=-1)


_CORNERS = {  # to corners, and from them
    "xyxy": (lambda x1, y1, x2, y2: (x1, y1, x2, y2), lambda x1, y1, x2, y2: (x1, y1, x2, y2)),
    "xywh": (lambda x, y, w, h: (x, y, x + w, y + h), lambda x1, y1, x2, y2: (x1, y1, x2 - x1, y2 - y1)),
    "cxcywh": (
        lambda cx, cy, w, h: (cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h),
        lambda x1, y1, x2, y2: ((x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1),
    ),
}


def box_area(boxes, fmt: str = "xyxy"):
    """Widths by heights."""
    if fmt != "xyxy":
        return boxes[..., -2] * boxes[..., -1]
    boxes = _upcast(boxes)
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def box_iou(boxes1, boxes2, fmt: str = "xyxy"):
    """(N, M): the common area of each pair, as a part of the area of both.

    >>> a = rushlight.tensor([[0.0, 0.0, 2.0, 2.0]])
    >>> rushlight.vision.ops.box_iou(a, rushlight.tensor([[1.0, 0.0, 3.0, 2.0]]))
    tensor([[0.3333]])
    """
    common, union = _common_and_union(boxes1, boxes2, fmt)
    return common / union


def generalized_box_iou(boxes1, boxes2):
    """``box_iou`` less the part of the box around both that neither covers."""
    common, union = _common_and_union(boxes1, boxes2)
    wide, high = _around(boxes1, boxes2)
    area = wide * high
    return common / union - (area - union) / area


def distance_box_iou(boxes1, boxes2, eps: float = 1e-7):
    """``box_iou`` less the squared distance of the centres, measured by the diagonal of the box around both."""
    return _distance(boxes1, boxes2, eps)[0]


def complete_box_iou(boxes1, boxes2, eps: float = 1e-7):
    """``distance_box_iou`` less a measure of how different the boxes' proportions are."""
    boxes1, boxes2 = _upcast(boxes1), _upcast(boxes2)
    distance, iou = _distance(boxes1, boxes2, eps)
    angles = [torch.atan((b[:, 2] - b[:, 0]) / (b[:, 3] - b[:, 1])) for b in (boxes1, boxes2)]
    v = 4 / math.pi**2 * (angles[0][:, None] - angles[1]).pow(2)
    with torch.no_grad():
        alpha = v / (1 - iou + v + eps)
    return distance - alpha * v


def masks_to_boxes(masks):
    """The box around what is true in each mask (N, H, W)."""
    if masks.numel() == 0:
        return torch.zeros((masks.shape[0], 4), device=masks.device, dtype=torch.float)
    found = torch.zeros((masks.shape[0], 4), device=masks.device, dtype=torch.float)
    for i, mask in enumerate(masks):
        y, x = torch.where(mask != 0)
        found[i] = torch.stack([x.min(), y.min(), x.max(), y.max()]).to(found)
    return found


def _upcast(t):
    """Half precision and small integers overflow when they are multiplied."""
    if t.is_floating_point():
        return t if t.dtype in (torch.float32, torch.float64) else t.float()
    return t if t.dtype in (torch.int32, torch.int64) else t.int()


def _common_and_union(boxes1, boxes2, fmt="xyxy"):
    areas = box_area(boxes1, fmt)[..., :, None] + box_area(boxes2, fmt)[..., None, :]
    if fmt != "xyxy":
        boxes1, boxes2 = box_convert(boxes1, fmt, "xyxy"), box_convert(boxes2, fmt, "xyxy")
    low = torch.max(boxes1[..., :, None, :2], boxes2[..., None, :, :2])
    high = torch.min(boxes1[..., :, None, 2:], boxes2[..., None, :, 2:])
    size = _upcast(high - low).clamp(min=0)
    common = size[..., 0] * size[..., 1]
    return common, areas - common


def _around(boxes1, boxes2):
    low = torch.min(boxes1[..., :, None, :2], boxes2[..., None, :, :2])
    high = torch.max(boxes1[..., :, None, 2:], boxes2[..., None, :, 2:])
    return _upcast(high - low).clamp(min=0).unbind(-1)


def _distance(boxes1, boxes2, eps):
    boxes1, boxes2 = _upcast(boxes1), _upcast(boxes2)
    iou = box_iou(boxes1, boxes2)
    wide, high = _around(boxes1, boxes2)
    centres = [(b[:, :2] + b[:, 2:]) / 2 for b in (boxes1, boxes2)]
    apart = (centres[0][:, None] - centres[1][None]).pow(2).sum(-1)
    return iou - apart / (wide**2 + high**2 + eps), iou
