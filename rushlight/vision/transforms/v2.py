"""Torchvision's second transforms, for images without boxes or masks: those of ``transforms``, and three more."""

from __future__ import annotations

import sys

import numpy as np

from ...nn.module import Module
from ...tensor import Tensor
from . import functional
from .transforms import *  # noqa: F403
from .transforms import __all__ as _names

__all__ = ["Identity", "ToDtype", "ToImage", "functional", *_names]


class ToImage(Module):
    """A PIL image or array (H, W, C) as a tensor (C, H, W) of its own values."""

    def forward(self, image) -> Tensor:
        if isinstance(image, Tensor):
            return image
        if isinstance(image, np.ndarray):
            from ...ops.creation import from_numpy

            planes = image[:, :, None] if image.ndim == 2 else image
            return from_numpy(np.ascontiguousarray(planes.transpose(2, 0, 1)))
        return functional.pil_to_tensor(image)


class ToDtype(Module):
    """Another dtype; with ``scale``, its values scaled to that dtype's range."""

    def __init__(self, dtype, scale: bool = False) -> None:
        super().__init__()
        self.dtype, self.scale = dtype, scale

    def forward(self, image):
        if not isinstance(image, Tensor):
            return image
        return functional.convert_image_dtype(image, self.dtype) if self.scale else image.to(self.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}"


class Identity(Module):
    """Leaves everything as it is."""

    def forward(self, *inputs):
        return inputs if len(inputs) > 1 else inputs[0]


__path__: list[str] = []  # a package to the import system: `import torchvision.transforms.v2.functional`
sys.modules[f"{__name__}.functional"] = functional
