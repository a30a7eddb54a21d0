"""Torchvision's second transforms: of samples of any form, with images, videos, masks, boxes and points.

Each transform draws once for all parts of a sample and hands them to ``functional``, which knows what they are.
"""

from ..functional import InterpolationMode
from . import auto_augment, color, functional, geometry, mixing, other
from .auto_augment import *
from .color import *
from .geometry import *
from .mixing import *
from .other import *
from .transform import Transform, check_type, get_bounding_boxes, get_keypoints, has_all, has_any, query_chw, query_size

__all__ = [
    "InterpolationMode", "Transform", "check_type", "functional", "get_bounding_boxes", "get_keypoints", "has_all",
    "has_any", "query_chw", "query_size", *auto_augment.__all__, *color.__all__, *geometry.__all__, *mixing.__all__,
    *other.__all__,
]  # fmt: skip


def __dir__():
    return __all__
