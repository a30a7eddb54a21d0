"""Image datasets, transforms, models and small helpers, under torchvision's names."""

from . import datasets, models, transforms, utils

__all__ = ["datasets", "models", "transforms", "utils"]
