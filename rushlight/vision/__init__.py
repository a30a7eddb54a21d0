"""Image datasets, transforms and small helpers, under torchvision's names."""

from . import datasets, transforms, utils

__all__ = ["datasets", "transforms", "utils"]
