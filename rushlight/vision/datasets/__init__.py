"""Image datasets under torchvision's names, and ``Digits``, which ships with the package."""

from .digits import Digits
from .vision import VisionDataset

__all__ = ["Digits", "VisionDataset"]
