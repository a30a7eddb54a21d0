"""Operations on PIL images; ``_tensor.py`` has the same ones for tensors."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

_RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "nearest-exact": Image.Resampling.NEAREST,  # PIL's nearest is the exact one
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
    "lanczos": Image.Resampling.LANCZOS,
}


def dimensions(image) -> tuple[int, int, int]:
    """Channels, height, width."""
    return len(image.getbands()), image.height, image.width


def resize(image, size, interpolation: str, antialias):
    return image.resize(tuple(size[::-1]), _RESAMPLING[interpolation])


def crop(image, top, left, height, width):
    return image.crop((left, top, left + width, top + height))


def pad(image, sides, fill, mode):
    left, top, right, bottom = sides
    if mode == "constant":
        return ImageOps.expand(image, border=(left, top, right, bottom), fill=_fill(image, fill))
    palette = image.getpalette() if image.mode == "P" else None
    array = np.asarray(image)
    around = [(top, bottom), (left, right)] + [(0, 0)] * (array.ndim - 2)
    padded = Image.fromarray(np.pad(array, around, mode=mode))
    if palette is not None:
        padded.putpalette(palette)
    return padded


def hflip(image):
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def vflip(image):
    return image.transpose(Image.Transpose.FLIP_TOP_BOTTOM)


def rotate(image, angle, interpolation: str, expand: bool, center, fill):
    return image.rotate(angle, _RESAMPLING[interpolation], expand, center, fillcolor=_fill(image, fill or 0))


def affine(image, inverse: np.ndarray, interpolation: str, fill):
    return image.transform(
        image.size,
        Image.Transform.AFFINE,
        inverse[:2].ravel().tolist(),
        _RESAMPLING[interpolation],
        fillcolor=_fill(image, fill or 0),
    )


def perspective(image, inverse: np.ndarray, interpolation: str, fill):
    return image.transform(
        image.size,
        Image.Transform.PERSPECTIVE,
        inverse.ravel()[:8].tolist(),
        _RESAMPLING[interpolation],
        fillcolor=_fill(image, fill or 0),
    )


def rgb_to_grayscale(image, channels: int):
    gray = image.convert("L")
    return gray if channels == 1 else Image.merge("RGB", [gray] * 3)


def adjust_brightness(image, factor):
    return ImageEnhance.Brightness(image).enhance(factor)


def adjust_contrast(image, factor):
    return ImageEnhance.Contrast(image).enhance(factor)


def adjust_saturation(image, factor):
    return ImageEnhance.Color(image).enhance(factor)


def adjust_hue(image, factor):
    if image.mode in {"L", "1", "I", "F"}:
        return image
    hue, saturation, value = image.convert("HSV").split()
    turned = (np.asarray(hue).astype(np.int32) + int(factor * 255)) % 256
    return Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8)), saturation, value)).convert(image.mode)


def adjust_gamma(image, gamma, gain):
    table = [int((255 + 1 - 1e-3) * gain * (value / 255.0) ** gamma) for value in range(256)]
    bands = len(image.convert("RGB").getbands())
    return image.convert("RGB").point(table * bands).convert(image.mode)


def invert(image):
    return ImageOps.invert(image)


def posterize(image, bits: int):
    return ImageOps.posterize(image, bits)


def solarize(image, threshold):
    return ImageOps.solarize(image, threshold)


def adjust_sharpness(image, factor):
    return ImageEnhance.Sharpness(image).enhance(factor)


def autocontrast(image):
    return ImageOps.autocontrast(image)


def equalize(image):
    return ImageOps.equalize(image)


def _fill(image, fill):
    """A fill value with one number per channel."""
    channels = len(image.getbands())
    if isinstance(fill, (int, float)):
        return fill if channels == 1 else (fill,) * channels
    fill = tuple(fill)
    if len(fill) not in (1, channels):
        raise ValueError(f"The number of elements in 'fill' does not match the number of channels: {fill}, {channels}")
    if channels == 1:
        return fill[0]
    return fill * channels if len(fill) == 1 else fill
