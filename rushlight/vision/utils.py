"""Pictures out of tensors: many images as one grid, as a file, and with boxes, masks and points drawn on them."""

from __future__ import annotations

import math

import numpy as np

from ..ops.creation import full
from ..ops.join import cat, stack
from ..tensor import Tensor
from .drawing import draw_bounding_boxes, draw_keypoints, draw_segmentation_masks, flow_to_image
from .pillow import pil_image

__all__ = [
    "draw_bounding_boxes", "draw_keypoints", "draw_segmentation_masks", "flow_to_image", "make_grid", "save_image",
]  # fmt: skip


def __dir__():
    return __all__


def make_grid(
    tensor,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Images (B, C, H, W), or a list of them, as one image with ``nrow`` in a row.

    >>> rushlight.vision.utils.make_grid(rushlight.zeros(4, 3, 5, 5), nrow=2).shape
    torch.Size([3, 16, 16])
    """
    images = _batch(tensor)
    if normalize:
        images = _normalized(images, value_range, scale_each)
    if images.shape[0] == 1:
        return images[0]
    count, channels, height, width = images.shape
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    high, wide = height + padding, width + padding
    grid = full((channels, high * rows + padding, wide * columns + padding), pad_value, dtype=images.dtype)
    for i in range(count):
        top, left = i // columns * high + padding, i % columns * wide + padding
        grid[:, top : top + height, left : left + width] = images[i]
    return grid


def save_image(tensor, fp, format: str | None = None, **kwargs) -> None:
    """Write an image, or the grid of several (options as for ``make_grid``), to a file."""
    grid = make_grid(tensor, **kwargs)
    pixels = (grid.detach() * 255 + 0.5).clamp(0, 255).cpu().numpy().astype(np.uint8).transpose(1, 2, 0)
    pil_image().fromarray(np.ascontiguousarray(pixels)).save(fp, format=format)


def _batch(tensor) -> Tensor:
    """Any tensor or list of tensors as images (B, 3, H, W)."""
    if isinstance(tensor, list):
        tensor = stack(tensor, 0)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    if tensor.ndim == 2:
        tensor = tensor.unsqueeze(0)
    if tensor.ndim == 3:
        tensor = tensor.unsqueeze(0)
    return cat([tensor] * 3, 1) if tensor.shape[1] == 1 else tensor


def _normalized(images: Tensor, value_range, scale_each: bool) -> Tensor:
    if value_range is not None and not isinstance(value_range, tuple):
        raise TypeError("value_range has to be a tuple (min, max) if specified. min and max are numbers")
    if scale_each:
        return stack([_scaled(image, value_range) for image in images], 0)
    return _scaled(images, value_range)


def _scaled(image: Tensor, value_range) -> Tensor:
    low, high = value_range or (image.min().item(), image.max().item())
    return (image.clamp(low, high) - low) / max(high - low, 1e-5)
