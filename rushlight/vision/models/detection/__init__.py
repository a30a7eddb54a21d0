"""Detectors under torchvision's names, with its state-dict keys: RetinaNet."""

from .anchors import AnchorGenerator
from .retinanet import RetinaNet, RetinaNetHead, retinanet_resnet50_fpn
from .transform import GeneralizedRCNNTransform, ImageList

__all__ = [
    "AnchorGenerator", "GeneralizedRCNNTransform", "ImageList", "RetinaNet", "RetinaNetHead", "retinanet_resnet50_fpn",
]  # fmt: skip


def __dir__():
    return [*__all__, "retinanet", "transform"]
