"""RetinaNet: at every place of a pyramid of features, classes and boxes at once (https://arxiv.org/abs/1708.02002)."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial

import rushlight as torch

from .... import nn
from ....nn import functional as F
from ...ops.boxes import batched_nms, clip_boxes_to_image
from ...ops.feature_pyramid_network import FeaturePyramidNetwork, LastLevelP6P7
from ...ops.losses import sigmoid_focal_loss
from ...ops.misc import Conv2dNormActivation, FrozenBatchNorm2d
from .._utils import IntermediateLayerGetter
from ..resnet import resnet50
from ..weights import ResNet50_Weights, without_weights
from .anchors import AnchorGenerator, BoxCoder, Matcher, matched
from .transform import GeneralizedRCNNTransform

__all__ = ["BackboneWithFPN", "RetinaNet", "RetinaNetHead", "retinanet_resnet50_fpn"]


class OneStage(nn.Module):
    """Boxes of objects. In training ``model(images, targets)`` gives losses, else ``model(images)`` what was found.

    ``images`` is a list of (3, H, W) from 0 to 1; a target has ``boxes`` (N, 4) and ``labels`` (N,); what was found has
    ``scores`` too. ``backbone`` gives features by name and has ``out_channels``.
    """

    answers: tuple[str, ...] = ("cls_logits", "bbox_regression")  # of the head
    score_thresh: float
    nms_thresh: float
    detections_per_img: int
    topk_candidates: int

    def __init__(
        self, backbone, anchor_generator, head, box_coder, min_size, max_size, image_mean, image_std, **kwargs
    ) -> None:
        super().__init__()
        if not hasattr(backbone, "out_channels"):
            raise ValueError("backbone should contain an attribute out_channels: the channels of all its features")
        self.backbone, self.anchor_generator = backbone, anchor_generator
        anchors = anchor_generator.num_anchors_per_location()[0]
        self.head, self.box_coder = head(backbone.out_channels, anchors), box_coder
        image_mean = [0.485, 0.456, 0.406] if image_mean is None else image_mean
        image_std = [0.229, 0.224, 0.225] if image_std is None else image_std
        self.transform = GeneralizedRCNNTransform(min_size, max_size, image_mean, image_std, **kwargs)

    def forward(self, images, targets=None):
        if self.training:
            _check_targets(targets)
        before = [tuple(image.shape[-2:]) for image in images]
        images, targets = self.transform(images, targets)
        features = self.backbone(images.tensors)
        features = list(features.values()) if isinstance(features, dict) else [features]
        outputs = self.head(features)
        anchors = self.anchor_generator(images, features)
        counts = [f.shape[-2] * f.shape[-1] * self.anchor_generator.num_anchors_per_location()[0] for f in features]
        if self.training:
            return self.compute_loss(targets, outputs, anchors, counts)
        found = self.postprocess_detections(outputs, anchors, images.image_sizes, counts)
        return self.transform.postprocess(found, images.image_sizes, before)

    def postprocess_detections(self, head_outputs, anchors, image_shapes, counts) -> list[dict]:
        """The best boxes of every level, and of those that overlap the best alone."""
        found = []
        for i, shape in enumerate(image_shapes):
            levels = zip(anchors[i].split(counts), *(head_outputs[name][i].split(counts) for name in self.answers))
            boxes, scores, labels = (torch.cat(p) for p in zip(*(self._best(shape, *level) for level in levels)))
            kept = batched_nms(boxes, scores, labels, self.nms_thresh)[: self.detections_per_img]
            found.append({"boxes": boxes[kept], "scores": scores[kept], "labels": labels[kept]})
        return found

    def _best(self, shape, anchors, logits, codes, *more):
        """Boxes, scores and labels of one level of one image."""
        classes = logits.shape[-1]
        scores = self._scores(logits, *more).flatten()
        places = torch.where(scores > self.score_thresh)[0]
        scores, order = scores[places].topk(min(len(places), self.topk_candidates))
        places = places[order]
        which = torch.div(places, classes, rounding_mode="floor")
        boxes = self.box_coder.decode_single(codes[which], anchors[which])
        return clip_boxes_to_image(boxes, shape), scores, places % classes

    def _scores(self, logits):
        return torch.sigmoid(logits)


class RetinaNet(OneStage):
    """Each anchor answers for the object that it overlaps most."""

    def __init__(
        self,
        backbone,
        num_classes: int,
        min_size=800,
        max_size: int = 1333,
        image_mean=None,
        image_std=None,
        anchor_generator=None,
        head=None,
        proposal_matcher=None,
        score_thresh: float = 0.05,
        nms_thresh: float = 0.5,
        detections_per_img: int = 300,
        fg_iou_thresh: float = 0.5,
        bg_iou_thresh: float = 0.4,
        topk_candidates: int = 1000,
        **kwargs,
    ) -> None:
        super().__init__(
            backbone, anchor_generator or _anchors(),
            lambda channels, anchors: head or RetinaNetHead(channels, anchors, num_classes),
            BoxCoder(weights=(1.0, 1.0, 1.0, 1.0)), min_size, max_size, image_mean, image_std, **kwargs,
        )  # fmt: skip
        self.proposal_matcher = proposal_matcher or Matcher(fg_iou_thresh, bg_iou_thresh, True)
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates

    def compute_loss(self, targets, head_outputs, anchors, counts=None) -> dict:
        """How wrong the classes and boxes are."""
        matches = [matched(self.proposal_matcher, t["boxes"], a) for t, a in zip(targets, anchors)]
        return self.head.compute_loss(targets, head_outputs, anchors, matches)


class RetinaNetHead(nn.Module):
    """A class and a box for every anchor, by two rows of convolutions."""

    def __init__(self, in_channels: int, num_anchors: int, num_classes: int, norm_layer=None) -> None:
        super().__init__()
        self.classification_head = RetinaNetClassificationHead(in_channels, num_anchors, num_classes, norm_layer)
        self.regression_head = RetinaNetRegressionHead(in_channels, num_anchors, norm_layer)

    def compute_loss(self, targets, head_outputs, anchors, matched_idxs) -> dict:
        return {
            "classification": self.classification_head.compute_loss(targets, head_outputs, matched_idxs),
            "bbox_regression": self.regression_head.compute_loss(targets, head_outputs, anchors, matched_idxs),
        }

    def forward(self, x) -> dict:
        return {"cls_logits": self.classification_head(x), "bbox_regression": self.regression_head(x)}


class _Head(nn.Module):
    """Four convolutions and one that answers; all levels share them."""

    def __init__(self, in_channels: int, norm_layer) -> None:
        super().__init__()
        layers = [Conv2dNormActivation(in_channels, in_channels, norm_layer=norm_layer) for _ in range(4)]
        self.conv = nn.Sequential(*layers)

    def _initialize(self) -> None:
        for part in self.conv.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.normal_(part.weight, std=0.01)
                if part.bias is not None:
                    nn.init.constant_(part.bias, 0)

    def _answers(self, features, last, values: int):
        """(images, anchors of all levels, values)"""
        made = []
        for feature in features:
            x = last(self.conv(feature))
            n, _, h, w = x.shape
            made.append(x.view(n, -1, values, h, w).permute(0, 3, 4, 1, 2).reshape(n, -1, values))
        return torch.cat(made, dim=1)


class RetinaNetClassificationHead(_Head):
    """How much each anchor looks like each class."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, norm_layer=None, prior_probability: float = 0.01
    ) -> None:
        super().__init__(in_channels, norm_layer)
        self._initialize()
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, 3, 1, 1)
        nn.init.normal_(self.cls_logits.weight, std=0.01)
        # Most anchors are background: so they say at the start.
        nn.init.constant_(self.cls_logits.bias, -math.log((1 - prior_probability) / prior_probability))
        self.num_classes, self.num_anchors = num_classes, num_anchors

    def forward(self, x):
        return self._answers(x, self.cls_logits, self.num_classes)

    def compute_loss(self, targets, head_outputs, matched_idxs):
        losses = []
        for target, logits, matches in zip(targets, head_outputs["cls_logits"], matched_idxs):
            is_object, counts = matches >= 0, matches != Matcher.BETWEEN_THRESHOLDS
            wanted = torch.zeros_like(logits)
            wanted[is_object, target["labels"][matches[is_object]]] = 1.0
            loss = sigmoid_focal_loss(logits[counts], wanted[counts], reduction="sum")
            losses.append(loss / max(1, int(is_object.sum())))
        return sum(losses) / len(targets)


class RetinaNetRegressionHead(_Head):
    """Where the object of each anchor is."""

    def __init__(self, in_channels: int, num_anchors: int, norm_layer=None) -> None:
        super().__init__(in_channels, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, 3, 1, 1)
        nn.init.normal_(self.bbox_reg.weight, std=0.01)
        nn.init.zeros_(self.bbox_reg.bias)
        self._initialize()  # after the last layer, as torchvision draws
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))

    def forward(self, x):
        return self._answers(x, self.bbox_reg, 4)

    def compute_loss(self, targets, head_outputs, anchors, matched_idxs):
        losses = []
        for target, codes, own, matches in zip(targets, head_outputs["bbox_regression"], anchors, matched_idxs):
            is_object = torch.where(matches >= 0)[0]
            wanted = self.box_coder.encode_single(target["boxes"][matches[is_object]], own[is_object])
            losses.append(F.l1_loss(codes[is_object], wanted, reduction="sum") / max(1, len(is_object)))
        return sum(losses) / max(1, len(targets))


class BackboneWithFPN(nn.Module):
    """Layers of a classifier, and a pyramid over their features."""

    def __init__(self, backbone, return_layers, in_channels_list, out_channels: int, extra_blocks=None) -> None:
        super().__init__()
        self.body = IntermediateLayerGetter(backbone, return_layers)
        self.fpn = FeaturePyramidNetwork(in_channels_list, out_channels, extra_blocks)
        self.out_channels = out_channels

    def forward(self, x) -> OrderedDict:
        return self.fpn(self.body(x))


def retinanet_resnet50_fpn(
    *,
    weights=None,
    progress: bool = True,
    num_classes: int | None = None,
    weights_backbone=ResNet50_Weights.IMAGENET1K_V1,
    trainable_backbone_layers: int | None = None,
    **kwargs,
) -> RetinaNet:
    """RetinaNet on ResNet-50. With trained ``weights_backbone`` its norms stay, and its last three stages learn.

    Differs from PyTorch: the weights of the whole detector are not fetched.
    """
    shape = {"weights_backbone": weights_backbone, "learning": trainable_backbone_layers, "progress": progress}
    options = {"num_classes": 91 if num_classes is None else num_classes, **kwargs}
    return without_weights(partial(_build, **shape), "retinanet_resnet50_fpn", weights, options)


def _build(weights_backbone, learning: int | None, progress: bool, num_classes: int, **kwargs) -> RetinaNet:
    return RetinaNet(resnet_pyramid(weights_backbone, learning, progress), num_classes, **kwargs)


def resnet_pyramid(weights, learning: int | None, progress: bool) -> BackboneWithFPN:
    """ResNet-50 and a pyramid over its last three stages, with two more levels; ``learning`` stages learn."""
    norm = nn.BatchNorm2d if weights is None else FrozenBatchNorm2d
    body = resnet50(weights=weights, progress=progress, norm_layer=norm)
    learning = 5 if weights is None else 3 if learning is None else learning
    if not 0 <= learning <= 5:
        raise ValueError(f"Trainable layers should be in the range [0,5], got {learning} ")
    stages = ("layer4", "layer3", "layer2", "layer1", "conv1")[:learning] + (("bn1",) if learning == 5 else ())
    for name, parameter in body.named_parameters():
        parameter.requires_grad_(name.startswith(stages))
    channels = [body.inplanes // 8 * 2**i for i in (1, 2, 3)]
    layers = {f"layer{i + 2}": str(i) for i in range(3)}
    return BackboneWithFPN(body, layers, channels, 256, LastLevelP6P7(256, 256))


def _anchors() -> AnchorGenerator:
    sizes = tuple((x, int(x * 2 ** (1 / 3)), int(x * 2 ** (2 / 3))) for x in (32, 64, 128, 256, 512))
    return AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * len(sizes))


def _check_targets(targets) -> None:
    if targets is None:
        raise AssertionError("targets should not be none when in training mode")
    for number, target in enumerate(targets):
        boxes = target["boxes"]
        if not isinstance(boxes, torch.Tensor) or boxes.ndim != 2 or boxes.shape[-1] != 4:
            shape = list(boxes.shape) if isinstance(boxes, torch.Tensor) else type(boxes)
            raise AssertionError(f"Expected target boxes to be a tensor of shape [N, 4], got {shape}.")
        flat = (boxes[:, 2:] <= boxes[:, :2]).any(dim=1)
        if flat.any():
            worst = boxes[torch.where(flat)[0][0]].tolist()
            raise AssertionError(
                "All bounding boxes should have positive height and width. "
                f"Found invalid box {worst} for target at index {number}."
            )
