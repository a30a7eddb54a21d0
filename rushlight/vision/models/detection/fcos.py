"""FCOS: at every place of a pyramid of features a class, a box and how near its middle is (arXiv 1904.01355)."""

from __future__ import annotations

import math
from functools import partial

import rushlight as torch

from .... import nn
from ....nn import functional as F
from ...ops.losses import generalized_box_iou_loss, sigmoid_focal_loss
from ..weights import ResNet50_Weights, without_weights
from .anchors import AnchorGenerator
from .retinanet import OneStage, resnet_pyramid

__all__ = ["FCOS", "FCOSHead", "fcos_resnet50_fpn"]


class BoxLinearCoder:
    """Boxes measured from the middle of an anchor to the four sides, in anchors."""

    def encode(self, anchors, boxes):
        x, y, size = _middles(anchors)
        sides = (x - boxes[..., 0], y - boxes[..., 1], boxes[..., 2] - x, boxes[..., 3] - y)
        return torch.stack(sides, dim=-1) / size

    def decode_single(self, codes, anchors):
        x, y, size = _middles(anchors)
        left, top, right, bottom = (codes * size).unbind(-1)
        return torch.stack((x - left, y - top, x + right, y + bottom), dim=-1)


def _middles(anchors):
    x, y = ((anchors[..., i] + anchors[..., i + 2]) / 2 for i in (0, 1))
    wide, high = (anchors[..., i + 2] - anchors[..., i] for i in (0, 1))
    return x, y, torch.stack((wide, high, wide, high), dim=-1)


class FCOS(OneStage):
    """A place answers for the smallest object that it lies in, near the middle of, at the level of its size."""

    answers = ("cls_logits", "bbox_regression", "bbox_ctrness")

    def __init__(
        self, backbone, num_classes: int, min_size=800, max_size: int = 1333, image_mean=None, image_std=None,
        anchor_generator=None, head=None, center_sampling_radius: float = 1.5, score_thresh: float = 0.2,
        nms_thresh: float = 0.6, detections_per_img: int = 100, topk_candidates: int = 1000, **kwargs,
    ) -> None:  # fmt: skip
        generator = anchor_generator or AnchorGenerator(((8,), (16,), (32,), (64,), (128,)), ((1.0,),) * 5)
        super().__init__(
            backbone, generator, lambda channels, anchors: head or FCOSHead(channels, anchors, num_classes),
            BoxLinearCoder(), min_size, max_size, image_mean, image_std, **kwargs,
        )  # fmt: skip
        if self.anchor_generator.num_anchors_per_location()[0] != 1:
            raise ValueError(
                "anchor_generator.num_anchors_per_location()[0] should be 1: FCOS has one anchor at each place"
            )
        self.center_sampling_radius = center_sampling_radius
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates

    def compute_loss(self, targets, head_outputs, anchors, num_anchors_per_level) -> dict:
        matches = [self._matched(a, t["boxes"], num_anchors_per_level) for a, t in zip(anchors, targets)]
        return self.head.compute_loss(targets, head_outputs, anchors, matches)

    def _matched(self, anchors, boxes, counts):
        """The object of each place, or -1."""
        if boxes.numel() == 0:
            return torch.full((len(anchors),), -1, dtype=torch.int64, device=anchors.device)
        x, y, _ = _middles(anchors)
        places, size = torch.stack((x, y), dim=1), anchors[:, 2] - anchors[:, 0]
        middles = (boxes[:, :2] + boxes[:, 2:]) / 2
        near = (places[:, None] - middles).abs().amax(dim=2) < self.center_sampling_radius * size[:, None]
        sides = torch.cat((places[:, None] - boxes[:, :2], boxes[:, 2:] - places[:, None]), dim=2)
        least, most = size * 4, size * 8  # of the farthest side, at this level
        least[: counts[0]], most[-counts[-1] :] = 0, math.inf
        farthest = sides.amax(dim=2)
        fits = near & (sides.amin(dim=2) > 0) & (farthest > least[:, None]) & (farthest < most[:, None])
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        best, which = (fits * (1e8 - areas)).max(dim=1)
        which[best < 1e-5] = -1
        return which

    def _scores(self, logits, centered):
        return torch.sqrt(torch.sigmoid(logits) * torch.sigmoid(centered))


class FCOSHead(nn.Module):
    """A class, a box and its centredness for every place, by two rows of convolutions."""

    def __init__(self, in_channels: int, num_anchors: int, num_classes: int, num_convs: int = 4) -> None:
        super().__init__()
        self.box_coder = BoxLinearCoder()
        self.classification_head = FCOSClassificationHead(in_channels, num_anchors, num_classes, num_convs)
        self.regression_head = FCOSRegressionHead(in_channels, num_anchors, num_convs)

    def forward(self, x) -> dict:
        boxes, centered = self.regression_head(x)
        return {"cls_logits": self.classification_head(x), "bbox_regression": boxes, "bbox_ctrness": centered}

    def compute_loss(self, targets, head_outputs, anchors, matched_idxs) -> dict:
        logits, codes, centered = (head_outputs[name] for name in FCOS.answers)
        labels, boxes = (torch.stack(found) for found in zip(*map(_wanted, targets, matched_idxs)))
        objects, anchors = labels >= 0, torch.stack(list(anchors))
        wanted = torch.zeros_like(logits)
        wanted[objects, labels[objects]] = 1.0
        found = self.box_coder.decode_single(codes, anchors)
        sides = self.box_coder.encode(anchors, boxes)[objects]
        across, down = sides[:, [0, 2]], sides[:, [1, 3]]
        share = across.amin(-1) / across.amax(-1) * (down.amin(-1) / down.amax(-1)) if len(sides) else sides.sum(-1)
        losses = {
            "classification": sigmoid_focal_loss(logits, wanted, reduction="sum"),
            "bbox_regression": generalized_box_iou_loss(found[objects], boxes[objects], reduction="sum"),
            "bbox_ctrness": F.binary_cross_entropy_with_logits(
                centered.squeeze(dim=2)[objects], torch.sqrt(share), reduction="sum"
            ),
        }
        return {name: loss / max(1, int(objects.sum())) for name, loss in losses.items()}


def _wanted(target, matches):
    """The label (-1 for none) and the box of the object of each place."""
    if len(target["labels"]) == 0:
        return target["labels"].new_full((len(matches),), -1), target["boxes"].new_zeros((len(matches), 4))
    which = matches.clip(min=0)
    return target["labels"][which].masked_fill(matches < 0, -1), target["boxes"][which]


class _Head(nn.Module):
    """Convolutions, normalized by groups, that all levels share."""

    def __init__(self, in_channels: int, num_convs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(num_convs):
            layers += [nn.Conv2d(in_channels, in_channels, 3, 1, 1), nn.GroupNorm(32, in_channels), nn.ReLU()]
        self.conv = nn.Sequential(*layers)

    def _initialize(self, *layers) -> None:
        for layer in layers:
            if isinstance(layer, nn.Conv2d):
                nn.init.normal_(layer.weight, std=0.01)
                nn.init.zeros_(layer.bias)


def _by_places(levels, values: int):
    """(images, anchors of all levels, values)"""
    made = [x.view(len(x), -1, values, *x.shape[2:]).permute(0, 3, 4, 1, 2).reshape(len(x), -1, values) for x in levels]
    return torch.cat(made, dim=1)


class FCOSClassificationHead(_Head):
    """How much each place looks like each class."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, num_convs: int = 4, prior_probability: float = 0.01
    ) -> None:
        super().__init__(in_channels, num_convs)
        self._initialize(*self.conv)
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, 3, 1, 1)
        self._initialize(self.cls_logits)
        nn.init.constant_(self.cls_logits.bias, -math.log((1 - prior_probability) / prior_probability))
        self.num_classes, self.num_anchors = num_classes, num_anchors

    def forward(self, x):
        return _by_places([self.cls_logits(self.conv(feature)) for feature in x], self.num_classes)


class FCOSRegressionHead(_Head):
    """How far the sides of each place's object are, and how near its middle is."""

    def __init__(self, in_channels: int, num_anchors: int, num_convs: int = 4) -> None:
        super().__init__(in_channels, num_convs)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, 3, 1, 1)
        self.bbox_ctrness = nn.Conv2d(in_channels, num_anchors, 3, 1, 1)
        self._initialize(self.bbox_reg, self.bbox_ctrness, *self.conv)

    def forward(self, x):
        features = [self.conv(feature) for feature in x]
        boxes = _by_places([F.relu(self.bbox_reg(feature)) for feature in features], 4)
        return boxes, _by_places([self.bbox_ctrness(feature) for feature in features], 1)


def fcos_resnet50_fpn(
    *, weights=None, progress: bool = True, num_classes: int | None = None,
    weights_backbone=ResNet50_Weights.IMAGENET1K_V1, trainable_backbone_layers: int | None = None, **kwargs,
) -> FCOS:  # fmt: skip
    """FCOS on ResNet-50. With trained ``weights_backbone`` its norms stay, and its last three stages learn.

    Differs from PyTorch: the weights of the whole detector are not fetched.
    """
    build = partial(_build, weights_backbone, trainable_backbone_layers, progress)
    options = {"num_classes": 91 if num_classes is None else num_classes, **kwargs}
    return without_weights(build, "fcos_resnet50_fpn", weights, options)


def _build(weights_backbone, learning: int | None, progress: bool, num_classes: int, **kwargs) -> FCOS:
    return FCOS(resnet_pyramid(weights_backbone, learning, progress), num_classes, **kwargs)
