"""Image datasets, transforms, models and small helpers, under torchvision's names."""

from .. import version
from . import datasets, models, ops, transforms, utils

__version__ = f"0.28.0+rushlight{version.rushlight}"  # the torchvision whose names these are
__all__ = ["datasets", "models", "ops", "transforms", "utils"]
