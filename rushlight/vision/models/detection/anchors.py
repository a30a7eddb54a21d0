"""Boxes laid over an image in a grid, what is measured from them, and which object each of them answers for."""

from __future__ import annotations

import math

import rushlight as torch

from .... import nn
from ...ops.boxes import box_convert, box_iou

__all__ = ["AnchorGenerator", "BoxCoder", "Matcher"]


class AnchorGenerator(nn.Module):
    """At every place of every level a box of each size and shape."""

    def __init__(self, sizes=((128, 256, 512),), aspect_ratios=((0.5, 1.0, 2.0),)) -> None:
        super().__init__()
        if not isinstance(sizes[0], (list, tuple)):
            sizes = tuple((size,) for size in sizes)
        if not isinstance(aspect_ratios[0], (list, tuple)):
            aspect_ratios = (aspect_ratios,) * len(sizes)
        self.sizes, self.aspect_ratios = sizes, aspect_ratios
        self.cell_anchors = [self.generate_anchors(s, a) for s, a in zip(sizes, aspect_ratios)]

    def generate_anchors(self, scales, aspect_ratios, dtype=torch.float32, device="cpu"):
        """The boxes (shapes by sizes) of one place, about its corner."""
        scales = torch.tensor(scales, dtype=dtype, device=device)
        high = torch.sqrt(torch.tensor(aspect_ratios, dtype=dtype, device=device))
        w, h = ((1 / high)[:, None] * scales).reshape(-1), (high[:, None] * scales).reshape(-1)
        return (torch.stack([-w, -h, w, h], dim=1) / 2).round()

    def num_anchors_per_location(self) -> list[int]:
        return [len(s) * len(a) for s, a in zip(self.sizes, self.aspect_ratios)]

    def forward(self, image_list, feature_maps):
        """The boxes of all levels, once for each image."""
        height, width = image_list.tensors.shape[-2:]
        if len(feature_maps) != len(self.sizes):
            raise ValueError(
                f"There are {len(feature_maps)} feature maps, and sizes and aspect ratios for {len(self.sizes)}; give "
                "one tuple of each for every feature map"
            )
        levels = []
        for cell, feature in zip(self.cell_anchors, feature_maps):
            rows, columns = feature.shape[-2:]
            x = torch.arange(columns, device=feature.device) * (width // columns)
            y = torch.arange(rows, device=feature.device) * (height // rows)
            down, across = torch.meshgrid(y, x, indexing="ij")
            places = torch.stack([across, down, across, down], dim=-1).reshape(-1, 1, 4)
            levels.append((places + cell.to(feature)).reshape(-1, 4))
        return [torch.cat(levels)] * len(image_list.image_sizes)


class BoxCoder:
    """Boxes measured from anchors: how far the middle is, in anchors, and the logarithm of how much larger."""

    def __init__(self, weights, bbox_xform_clip: float = math.log(1000.0 / 16)) -> None:
        self.weights, self.bbox_xform_clip = weights, bbox_xform_clip

    def encode_single(self, reference_boxes, proposals):
        boxes, anchors = (box_convert(b, "xyxy", "cxcywh") for b in (reference_boxes, proposals))
        weights = torch.as_tensor(self.weights, dtype=boxes.dtype, device=boxes.device)
        moved = (boxes[:, :2] - anchors[:, :2]) / anchors[:, 2:]
        return torch.cat((moved, torch.log(boxes[:, 2:] / anchors[:, 2:])), dim=1) * weights

    def decode_single(self, rel_codes, boxes):
        anchors = box_convert(boxes.to(rel_codes.dtype), "xyxy", "cxcywh")
        codes = rel_codes / torch.as_tensor(self.weights, dtype=rel_codes.dtype, device=rel_codes.device)
        middle = codes[:, :2] * anchors[:, 2:] + anchors[:, :2]
        size = torch.exp(codes[:, 2:].clamp(max=self.bbox_xform_clip)) * anchors[:, 2:]
        return box_convert(torch.cat((middle, size), dim=1), "cxcywh", "xyxy")


class Matcher:
    """For each anchor the object it overlaps most: its number, -1 below the lower threshold, -2 between them."""

    BELOW_LOW_THRESHOLD, BETWEEN_THRESHOLDS = -1, -2

    def __init__(self, high_threshold: float, low_threshold: float, allow_low_quality_matches: bool = False) -> None:
        if low_threshold > high_threshold:
            raise ValueError("low_threshold should be <= high_threshold")
        self.high_threshold, self.low_threshold = high_threshold, low_threshold
        self.allow_low_quality_matches = allow_low_quality_matches

    def __call__(self, match_quality_matrix):
        if match_quality_matrix.numel() == 0:
            raise ValueError("no objects or no anchors: there is nothing to match")
        best, matches = match_quality_matrix.max(dim=0)
        all_matches = matches.clone()
        matches[best < self.low_threshold] = self.BELOW_LOW_THRESHOLD
        matches[(best >= self.low_threshold) & (best < self.high_threshold)] = self.BETWEEN_THRESHOLDS
        if self.allow_low_quality_matches:  # every object has at least the anchors nearest to it
            nearest = match_quality_matrix == match_quality_matrix.max(dim=1, keepdim=True).values
            chosen = nearest.any(dim=0)
            matches[chosen] = all_matches[chosen]
        return matches


def matched(matcher: Matcher, boxes, anchors):
    """The object of each anchor; without objects all are background."""
    if boxes.numel() == 0:
        return torch.full((len(anchors),), -1, dtype=torch.int64, device=anchors.device)
    return matcher(box_iou(boxes, anchors))
