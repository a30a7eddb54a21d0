"""Detectors under torchvision's names, with its state-dict keys: FCOS and RetinaNet."""

from .anchors import AnchorGenerator
from .fcos import FCOS, FCOSHead, fcos_resnet50_fpn
from .retinanet import RetinaNet, RetinaNetHead, retinanet_resnet50_fpn
from .transform import GeneralizedRCNNTransform, ImageList

__all__ = [
    "FCOS", "AnchorGenerator", "FCOSHead", "GeneralizedRCNNTransform", "ImageList", "RetinaNet", "RetinaNetHead",
    "fcos_resnet50_fpn", "retinanet_resnet50_fpn",
]  # fmt: skip


def __dir__():
    return [*__all__, "fcos", "retinanet", "transform"]
