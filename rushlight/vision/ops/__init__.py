"""Operators on boxes and regions, and blocks of detectors, under torchvision's names."""

from __future__ import annotations

from ...compat import missing as _missing
from .boxes import (
    batched_nms,
    box_area,
    box_convert,
    box_iou,
    clip_boxes_to_image,
    complete_box_iou,
    distance_box_iou,
    generalized_box_iou,
    masks_to_boxes,
    nms,
    remove_small_boxes,
)
from .deform_conv import DeformConv2d, deform_conv2d
from .feature_pyramid_network import FeaturePyramidNetwork
from .losses import complete_box_iou_loss, distance_box_iou_loss, generalized_box_iou_loss, sigmoid_focal_loss
from .misc import MLP, Conv2dNormActivation, Conv3dNormActivation, FrozenBatchNorm2d, Permute, SqueezeExcitation
from .regions import RoIAlign, RoIPool, roi_align, roi_pool
from .stochastic_depth import StochasticDepth, stochastic_depth

__all__ = [
    "MLP", "Conv2dNormActivation", "Conv3dNormActivation", "DeformConv2d", "FeaturePyramidNetwork",
    "FrozenBatchNorm2d", "Permute", "RoIAlign", "RoIPool", "SqueezeExcitation", "StochasticDepth", "batched_nms",
    "box_area", "box_convert", "box_iou",
    "clip_boxes_to_image", "complete_box_iou", "complete_box_iou_loss", "deform_conv2d", "distance_box_iou",
    "distance_box_iou_loss", "generalized_box_iou", "generalized_box_iou_loss", "masks_to_boxes", "nms",
    "remove_small_boxes", "roi_align", "roi_pool", "sigmoid_focal_loss", "stochastic_depth",
]  # fmt: skip
__getattr__ = _missing(__name__)


def __dir__():
    return [*__all__, "boxes", "deform_conv", "feature_pyramid_network", "misc"]
