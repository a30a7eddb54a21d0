"""Image files as tensors (C, H, W) of bytes, and back, under torchvision's names; Pillow reads and writes them."""

from __future__ import annotations

import enum
import io
import os

import numpy as np

from .. import dtypes
from ..ops.join import stack
from ..tensor import Tensor, wrap
from .pillow import pil_image

__all__ = [
    "ImageReadMode", "decode_avif", "decode_gif", "decode_heic", "decode_image", "decode_jpeg", "decode_png",
    "decode_webp", "encode_jpeg", "encode_png", "read_file", "read_image", "write_file", "write_jpeg", "write_png",
]  # fmt: skip


def __dir__():
    return __all__


class ImageReadMode(enum.Enum):
    """Which channels a decoded image has."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


def read_image(path, mode=ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """An image file as a tensor (C, H, W)."""
    return decode_image(read_file(path), mode, apply_exif_orientation)


def read_file(path) -> Tensor:
    """The bytes of a file, as a tensor of one dimension."""
    with open(path, "rb") as file:
        return wrap(np.frombuffer(bytearray(file.read()), np.uint8))


def write_file(filename, data: Tensor) -> None:
    """A tensor of bytes with one dimension as a file."""
    with open(filename, "wb") as file:
        file.write(_bytes(data, "data"))


def decode_image(input, mode=ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """The bytes of an image file, or its path, as a tensor (C, H, W); a GIF of many pictures as (N, C, H, W)."""
    return _decode(read_file(input) if isinstance(input, (str, os.PathLike)) else input, mode, apply_exif_orientation)


def decode_png(input, mode=ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """The bytes of a PNG file as a tensor (C, H, W); 16 bits a channel as uint16."""
    return _decode(input, mode, apply_exif_orientation, "PNG")


def decode_jpeg(input, mode=ImageReadMode.UNCHANGED, device="cpu", apply_exif_orientation: bool = False):
    """The bytes of a JPEG file as a tensor (C, H, W); a list of them as a list."""
    if isinstance(input, list):
        return [decode_jpeg(one, mode, device, apply_exif_orientation) for one in input]
    return _decode(input, mode, apply_exif_orientation, "JPEG").to(device)


def decode_gif(input) -> Tensor:
    """The bytes of a GIF file as a tensor (3, H, W), or (N, 3, H, W) of many pictures."""
    return _decode(input, ImageReadMode.RGB, False, "GIF")


def decode_webp(input, mode=ImageReadMode.UNCHANGED) -> Tensor:
    """The bytes of a WebP file as a tensor (C, H, W)."""
    return _decode(input, mode, False, "WEBP")


def decode_avif(input, mode=ImageReadMode.UNCHANGED) -> Tensor:
    """The bytes of an AVIF file as a tensor (C, H, W)."""
    return _decode(input, mode, False, "AVIF")


def decode_heic(input, mode=ImageReadMode.UNCHANGED) -> Tensor:
    """Pillow reads no HEIC files: this says so."""
    raise RuntimeError("decode_heic: HEIC files cannot be read here; convert them to PNG, JPEG, WebP or AVIF")


def encode_png(input: Tensor, compression_level: int = 6) -> Tensor:
    """An image (C, H, W) as the bytes of a PNG file."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError("Compression level should be between 0 and 9")
    return _encode(input, "PNG", compress_level=compression_level)


def encode_jpeg(input, quality: int = 75):
    """An image (C, H, W) as the bytes of a JPEG file; a list of them as a list."""
    if not 1 <= quality <= 100:
        raise ValueError("Image quality should be a positive number between 1 and 100")
    if isinstance(input, list):
        return [encode_jpeg(image, quality) for image in input]
    return _encode(input, "JPEG", quality=quality)


def write_png(input: Tensor, filename, compression_level: int = 6) -> None:
    """An image (C, H, W) as a PNG file."""
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input: Tensor, filename, quality: int = 75) -> None:
    """An image (C, H, W) as a JPEG file."""
    write_file(filename, encode_jpeg(input, quality))


# -- helpers ---------------------------------------------------------------------------------------------------------

_PIL_MODES = {
    ImageReadMode.GRAY: "L", ImageReadMode.GRAY_ALPHA: "LA", ImageReadMode.RGB: "RGB", ImageReadMode.RGB_ALPHA: "RGBA",
}  # fmt: skip
_KEPT_MODES = ("L", "LA", "RGB", "RGBA", "I;16")  # others (palettes, CMYK, bits) become RGB or gray


def _decode(input: Tensor, mode, apply_exif_orientation: bool, format: str | None = None) -> Tensor:
    data = _bytes(input, "input")
    try:
        file = pil_image().open(io.BytesIO(data), formats=None if format is None else [format])
    except OSError as error:
        kinds = "a PNG, JPEG, GIF, WebP or AVIF" if format is None else f"a {format}"
        raise RuntimeError(f"Unsupported image file. The {len(data)} bytes are not {kinds} file.") from error
    mode = ImageReadMode[mode.upper()] if isinstance(mode, str) else mode
    pictures = []
    for number in range(getattr(file, "n_frames", 1) if file.format == "GIF" else 1):
        file.seek(number)
        pictures.append(_pixels(_turned(file) if apply_exif_orientation else file, mode))
    return stack(pictures) if len(pictures) > 1 else pictures[0]


def _pixels(image, mode) -> Tensor:
    if mode is not ImageReadMode.UNCHANGED:
        image = image.convert(_PIL_MODES[mode])
    elif image.mode not in _KEPT_MODES:
        image = image.convert("L" if image.mode == "1" else "RGBA" if "transparency" in image.info else "RGB")
    array = np.array(image)
    return wrap(array[None] if array.ndim == 2 else np.ascontiguousarray(array.transpose(2, 0, 1)))


def _turned(image):
    from PIL import ImageOps

    return ImageOps.exif_transpose(image)


def _encode(image: Tensor, format: str, **options) -> Tensor:
    if image.dtype is not dtypes.uint8:
        raise RuntimeError(f"Input tensor dtype should be uint8, got {image.dtype}; see v2.ToDtype(uint8, scale=True)")
    if image.ndim != 3:
        raise RuntimeError(f"Input data should be a 3-dimensional tensor (C, H, W), got {image.ndim} dimensions")
    if image.shape[0] not in (1, 3):
        raise RuntimeError(f"The number of channels should be 1 or 3, got: {image.shape[0]}")
    array = image.detach().cpu().numpy()
    made, file = pil_image().fromarray(array[0] if len(array) == 1 else array.transpose(1, 2, 0).copy()), io.BytesIO()
    made.save(file, format, **options)
    return wrap(np.frombuffer(bytearray(file.getvalue()), np.uint8))


def _bytes(data: Tensor, name: str) -> bytes:
    if not isinstance(data, Tensor) or data.dtype is not dtypes.uint8 or data.ndim != 1:
        got = f"{data.dtype} of {data.ndim} dimensions" if isinstance(data, Tensor) else type(data).__name__
        raise RuntimeError(f"{name} must be a 1-dimensional uint8 tensor, the bytes of a file; got {got}")
    return data.cpu().numpy().tobytes()
