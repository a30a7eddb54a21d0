"""Transforms of images under torchvision's names: of PIL images, arrays and tensors."""

from . import functional
from .transforms import *
from .transforms import __all__ as _names

__all__ = ["functional", *_names]


def __dir__():
    return [*__all__, "transforms"]
