"""Pillow, imported when it is first needed: ``pip install rushlight[vision]``."""

from __future__ import annotations

import sys

__all__ = ["as_image", "is_pil_image", "pil_image"]


def pil_image():
    """The module ``PIL.Image``."""
    try:
        from PIL import Image
    except ImportError as e:
        raise ImportError("images need Pillow, which is not installed: pip install 'rushlight[vision]'") from e
    return Image


def is_pil_image(value) -> bool:
    """A PIL image? No one has any while Pillow is not imported."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def as_image(array):
    """Pixels (H, W) or (H, W, C) as a PIL image. Without Pillow, as they are: ``ToTensor`` takes them just as well."""
    try:
        return pil_image().fromarray(array)
    except ImportError:
        return array
