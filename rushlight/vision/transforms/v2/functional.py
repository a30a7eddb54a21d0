"""Operations on images, videos, masks, boxes and points, under torchvision's names.

Pixels are changed by ``transforms.functional``. A mask moves as its image does, by nearest pixels, and keeps its
values; boxes and points move by matrices (``points.py``); what an operation does not concern comes back unchanged.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .... import dtypes
from ....ops.creation import as_tensor
from ....ops.random import randn_like
from ....tensor import Tensor
from ... import tv_tensors
from ...pillow import is_pil_image
from ...tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, TVTensor, Video
from .. import _tensor
from .. import functional as F
from ..functional import InterpolationMode, pil_to_tensor, to_pil_image, to_tensor
from . import points

__all__ = [
    "InterpolationMode", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation",
    "adjust_sharpness", "affine", "autocontrast", "center_crop", "clamp_bounding_boxes", "clamp_keypoints",
    "convert_bounding_box_format", "convert_image_dtype", "crop", "elastic", "elastic_transform", "equalize", "erase",
    "five_crop", "gaussian_blur", "gaussian_noise", "get_dimensions", "get_image_size", "get_num_channels",
    "get_num_frames", "get_size", "grayscale_to_rgb", "hflip", "horizontal_flip", "invert", "is_pure_tensor", "jpeg",
    "normalize", "pad", "permute_channels", "perspective", "pil_to_tensor", "posterize", "register_kernel", "resize",
    "resized_crop", "rgb_to_grayscale", "rotate", "sanitize_bounding_boxes", "solarize", "ten_crop", "to_dtype",
    "to_grayscale", "to_image", "to_pil_image", "to_tensor", "uniform_temporal_subsample", "vertical_flip", "vflip",
]  # fmt: skip

_registered: dict = {}  # (function's name, class of a user's tensors) -> their kernel


def __dir__():
    return __all__


def register_kernel(functional, tv_tensor_cls):
    """A decorator: the function that does ``functional`` for a class of your own."""
    name = functional if isinstance(functional, str) else functional.__name__
    return lambda kernel: _registered.setdefault((name, tv_tensor_cls), kernel)


def is_pure_tensor(inpt) -> bool:
    """A tensor, but none of ``tv_tensors``?"""
    return isinstance(inpt, Tensor) and not isinstance(inpt, TVTensor)


def _operation(function):
    """Ask first whether the user registered a kernel for this class of tensor."""

    @functools.wraps(function)
    def asking(inpt, *args, **kwargs):
        kernel = _registered.get((function.__name__, type(inpt))) if _registered else None
        return function(inpt, *args, **kwargs) if kernel is None else kernel(inpt, *args, **kwargs)

    return asking


def _change(inpt, pixels, mask=None, move=None, clamp: bool = True):
    """One operation: ``pixels(image)``, ``mask(mask)``, or for boxes and points ``move(height, width)``."""
    if isinstance(inpt, (BoundingBoxes, KeyPoints)):
        if move is None:
            return inpt
        matrix, size = move(*inpt.canvas_size)
        return points.move(inpt, matrix, size, clamp)
    if isinstance(inpt, Mask):
        return inpt if mask is None else tv_tensors.wrap(mask(inpt.as_subclass(Tensor)), like=inpt)
    if isinstance(inpt, TVTensor):
        return tv_tensors.wrap(pixels(inpt.as_subclass(Tensor)), like=inpt)
    if isinstance(inpt, Tensor) or is_pil_image(inpt):
        return pixels(inpt)
    raise TypeError(f"expected an image, a video, a mask, boxes or points, but got {type(inpt)}")


# -- what an input is ------------------------------------------------------------------------------------------------


def get_size(inpt) -> list[int]:
    """Height, width."""
    return list(inpt.canvas_size) if isinstance(inpt, (BoundingBoxes, KeyPoints)) else F.get_dimensions(inpt)[1:]


def get_image_size(inpt) -> list[int]:
    """Width, height."""
    return get_size(inpt)[::-1]


def get_dimensions(inpt) -> list[int]:
    """Channels, height, width."""
    return F.get_dimensions(inpt)


def get_num_channels(inpt) -> int:
    """How many channels an image has."""
    return F.get_dimensions(inpt)[0]


def get_num_frames(inpt) -> int:
    """How many images a video has."""
    return inpt.shape[-4]


def to_image(inpt) -> Image:
    """A PIL image, array (H, W, C) or tensor as an ``Image``."""
    if isinstance(inpt, np.ndarray):
        planes = inpt[:, :, None] if inpt.ndim == 2 else inpt
        inpt = as_tensor(np.ascontiguousarray(planes.transpose(2, 0, 1)))
    elif is_pil_image(inpt):
        inpt = pil_to_tensor(inpt)
    elif not isinstance(inpt, Tensor):
        raise TypeError(f"Input can either be a pure Tensor, a numpy array, or a PIL image, but got {type(inpt)}.")
    return Image(inpt)


@_operation
def to_dtype(inpt, dtype=dtypes.float32, scale: bool = False):
    """Another dtype; with ``scale`` the values of an image are scaled to its range, other inputs stay."""
    if isinstance(inpt, (Mask, BoundingBoxes, KeyPoints)):
        return inpt if scale else inpt.to(dtype)
    return _change(inpt, lambda x: F.convert_image_dtype(x, dtype) if scale else x.to(dtype))


def convert_image_dtype(image, dtype=dtypes.float32):
    """An image in another dtype, its values scaled to that dtype's range."""
    return to_dtype(image, dtype, scale=True)


@_operation
def normalize(inpt, mean, std, inplace: bool = False):
    """``(inpt - mean) / std`` by channel."""
    return _change(inpt, lambda x: F.normalize(x, mean, std, inplace))


# -- size and place --------------------------------------------------------------------------------------------------


@_operation
def resize(inpt, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=True):
    """Height and width ``size``; a single number is the shorter side, None with ``max_size`` the longer."""
    height, width = get_size(inpt)
    size, max_size = _wanted(size, max_size, height, width)

    def move(h, w):
        new = F.resized_size(h, w, size, max_size)
        return points.scale(new[1] / w, new[0] / h), new

    def pixels(x):
        if not isinstance(x, Tensor) or x.dtype is not dtypes.uint8:
            return F.resize(x, size, interpolation, max_size, antialias)
        new = F.resized_size(height, width, size, max_size)
        return _tensor.resize(x, new, F._mode(interpolation), antialias, native=True)

    return _change(
        inpt,
        pixels,
        lambda x: F.resize(x, size, InterpolationMode.NEAREST, max_size),
        move,
        clamp=False,
    )


@_operation
def crop(inpt, top: int, left: int, height: int, width: int):
    """A part of the image; zeros where it reaches outside."""
    cut = functools.partial(F.crop, top=top, left=left, height=height, width=width)
    return _change(inpt, cut, cut, lambda h, w: (points.shift(-left, -top), (height, width)))


@_operation
def center_crop(inpt, output_size):
    """The middle, surrounded by zeros where it is too small."""

    def move(h, w):
        height, width = F._pair(output_size)
        top, left = _middle(h, height), _middle(w, width)
        return points.shift(-left, -top), (height, width)

    cut = functools.partial(F.center_crop, output_size=output_size)
    return _change(inpt, cut, cut, move)


@_operation
def resized_crop(inpt, top, left, height, width, size, interpolation=InterpolationMode.BILINEAR, antialias=True):
    """A part, resized."""
    return resize(crop(inpt, top, left, height, width), size, interpolation, antialias=antialias)


@_operation
def pad(inpt, padding, fill=None, padding_mode: str = "constant"):
    """Pixels around: all sides, (left/right, top/bottom) or (left, top, right, bottom)."""
    left, top, right, bottom = F._sides(padding)
    if padding_mode != "constant" and isinstance(inpt, (BoundingBoxes, KeyPoints)):
        raise ValueError(f"Padding mode '{padding_mode}' is not supported with bounding boxes")
    widen = functools.partial(F.pad, padding=padding, fill=0 if fill is None else fill, padding_mode=padding_mode)
    return _change(inpt, widen, widen, lambda h, w: (points.shift(left, top), (h + top + bottom, w + left + right)))


@_operation
def horizontal_flip(inpt):
    """Left and right exchanged."""
    return _change(inpt, F.hflip, F.hflip, lambda h, w: (_mirror(inpt, w, 0), (h, w)), clamp=False)


@_operation
def vertical_flip(inpt):
    """Top and bottom exchanged."""
    return _change(inpt, F.vflip, F.vflip, lambda h, w: (_mirror(inpt, 0, h), (h, w)), clamp=False)


def _mirror(inpt, across: int, down: int) -> np.ndarray:
    """Key points are pixels, and the last is one less than the width; boxes are measured between pixels."""
    last = isinstance(inpt, KeyPoints)
    if across:
        return points.shift(across - last, 0) @ points.scale(-1, 1)
    return points.shift(0, down - last) @ points.scale(1, -1)


hflip, vflip = horizontal_flip, vertical_flip


@_operation
def rotate(inpt, angle: float, interpolation=InterpolationMode.NEAREST, expand: bool = False, center=None, fill=None):
    """Turned counter-clockwise by ``angle`` degrees, about the middle or ``center`` (x, y)."""

    def move(h, w):
        turn = F.affine_matrix((w / 2, h / 2) if center is None or expand else center, -angle, (0, 0), 1.0, (0, 0))
        if not expand:
            return turn, (h, w)
        corners = turn @ np.array([[0.0, w, w, 0], [0, 0, h, h], [1, 1, 1, 1]])
        return points.shift(-corners[0].min(), -corners[1].min()) @ turn, F.rotated_size(h, w, angle)

    return _change(
        inpt,
        lambda x: F.rotate(x, angle, interpolation, expand, center, fill),
        lambda x: F.rotate(x, angle, InterpolationMode.NEAREST, expand, center, fill),
        move,
    )


@_operation
def affine(inpt, angle, translate, scale, shear, interpolation=InterpolationMode.NEAREST, fill=None, center=None):
    """Turned clockwise, moved, scaled and sheared (degrees), the middle staying in place."""

    def move(h, w):
        middle = (w / 2, h / 2) if center is None else center
        return F.affine_matrix(middle, angle, translate, scale, F.two_shears(shear)), (h, w)

    def pixels(x, mode=interpolation):
        return F.affine(x, angle, translate, scale, shear, mode, fill, center)

    return _change(inpt, pixels, lambda x: pixels(x, InterpolationMode.NEAREST), move)


@_operation
def perspective(
    inpt, startpoints, endpoints, interpolation=InterpolationMode.BILINEAR, fill=None, coefficients=None
):  # fmt: skip
    """Bent so that four corners ``startpoints`` (x, y) come to lie on ``endpoints``."""

    def pixels(x, mode=interpolation):
        return F.perspective(x, startpoints, endpoints, mode, fill)

    def move(h, w):
        return F.perspective_matrix(startpoints, endpoints), (h, w)

    return _change(inpt, pixels, lambda x: pixels(x, InterpolationMode.NEAREST), move)


@_operation
def elastic(inpt, displacement, interpolation=InterpolationMode.BILINEAR, fill=None):
    """Every pixel fetched from where ``displacement`` (1, H, W, 2) points; boxes and points are refused."""
    if isinstance(inpt, (BoundingBoxes, KeyPoints)):
        raise TypeError(f"elastic moves pixels only, not {type(inpt).__name__}; move them with affine or perspective")

    def pixels(x, mode=interpolation):
        return F.elastic_transform(x, displacement, mode, fill)

    return _change(inpt, pixels, lambda x: pixels(x, InterpolationMode.NEAREST))


elastic_transform = elastic


def five_crop(inpt, size):
    """The four corners and the middle."""
    return tuple(_like(part, inpt) for part in F.five_crop(_plain(inpt), size))


def ten_crop(inpt, size, vertical_flip: bool = False):
    """``five_crop`` of the image and of its mirror image."""
    return tuple(_like(part, inpt) for part in F.ten_crop(_plain(inpt), size, vertical_flip))


@_operation
def erase(inpt, i: int, j: int, h: int, w: int, v, inplace: bool = False):
    """A rectangle replaced by ``v``."""
    if is_pil_image(inpt):
        return to_pil_image(F.erase(pil_to_tensor(inpt), i, j, h, w, v), mode=inpt.mode)
    return _change(inpt, lambda x: F.erase(x, i, j, h, w, v, inplace))


# -- colour: masks, boxes and points stay ------------------------------------------------------------------------------


def _colour(function):
    """An operation on pixels alone, from ``transforms.functional``."""

    @functools.wraps(function)
    def change(inpt, *args, **kwargs):
        return _change(inpt, lambda x: function(x, *args, **kwargs))

    return _operation(change)


adjust_brightness, adjust_contrast = _colour(F.adjust_brightness), _colour(F.adjust_contrast)
adjust_saturation, adjust_hue, adjust_gamma = (
    _colour(F.adjust_saturation),
    _colour(F.adjust_hue),
    _colour(F.adjust_gamma),
)
adjust_sharpness, autocontrast, equalize = _colour(F.adjust_sharpness), _colour(F.autocontrast), _colour(F.equalize)
invert, posterize, solarize = _colour(F.invert), _colour(F.posterize), _colour(F.solarize)
rgb_to_grayscale, gaussian_blur = _colour(F.rgb_to_grayscale), _colour(F.gaussian_blur)
to_grayscale = F.to_grayscale


@_operation
def grayscale_to_rgb(inpt):
    """Three channels: a gray image three times, a coloured one as it is."""

    def pixels(x):
        if is_pil_image(x):
            return x.convert("RGB")
        return x if x.shape[-3] >= 3 else F.rgb_to_grayscale(x, 3)

    return _change(inpt, pixels)


@_operation
def gaussian_noise(inpt, mean: float = 0.0, sigma: float = 0.1, clip: bool = True):
    """Random numbers added to a float image, and with ``clip`` kept in [0, 1]; to bytes, scaled by 255."""
    if is_pil_image(inpt):
        raise ValueError("Gaussian Noise is not implemented for PIL images.")
    if sigma < 0:
        raise ValueError(f"sigma shouldn't be negative. Got {sigma}")

    def pixels(x):
        if x.is_floating_point():
            noisy = x + mean + randn_like(x) * sigma
            return noisy.clamp(0, 1) if clip else noisy
        noisy = x.to(dtypes.int16) + ((mean + randn_like(x.float()) * sigma) * 255).to(dtypes.int16)
        return (noisy.clamp(0, 255) if clip else noisy).to(dtypes.uint8)

    return _change(inpt, pixels)


@_operation
def permute_channels(inpt, permutation: list[int]):
    """The channels in another order."""

    def pixels(x):
        if is_pil_image(x):
            return to_pil_image(pil_to_tensor(x)[permutation])
        return x[..., permutation, :, :]

    return _change(inpt, pixels)


@_operation
def jpeg(inpt, quality: int):
    """What JPEG leaves of an image of bytes."""
    from ...io import decode_jpeg, encode_jpeg

    def pixels(x):
        if is_pil_image(x):
            return to_pil_image(pixels(pil_to_tensor(x)), mode=x.mode)
        planes = x.reshape(-1, *x.shape[-3:])
        return as_tensor(np.stack([decode_jpeg(encode_jpeg(p, quality)).numpy() for p in planes])).reshape(x.shape)

    return _change(inpt, pixels)


@_operation
def uniform_temporal_subsample(inpt, num_samples: int):
    """As many images of a video, at equal distances."""
    count = inpt.shape[-4]
    chosen = np.linspace(0, count - 1, num_samples).astype(np.int64).tolist()
    return _change(inpt, lambda x: x[..., chosen, :, :, :])


# -- boxes and points ------------------------------------------------------------------------------------------------


def convert_bounding_box_format(inpt, old_format=None, new_format=None, inplace: bool = False):
    """Boxes in another format: XYXY, XYWH or CXCYWH. Of a plain tensor the old one has to be said."""
    new = tv_tensors._format(new_format)
    if isinstance(inpt, BoundingBoxes):
        return tv_tensors.wrap(
            points.convert(inpt.as_subclass(Tensor), inpt.format.value, new.value), like=inpt, format=new
        )  # fmt: skip
    if old_format is None:
        raise ValueError("For pure tensor inputs, `old_format` has to be passed.")
    return points.convert(inpt, tv_tensors._format(old_format).value, new.value)


def clamp_bounding_boxes(inpt, format=None, canvas_size=None, clamping_mode="auto"):
    """Boxes cut off at the borders of the image. Of a plain tensor, format and canvas have to be said."""
    if isinstance(inpt, BoundingBoxes):
        return points.clamp_boxes(inpt)
    if format is None or canvas_size is None:
        raise ValueError("For pure tensor inputs, `format` and `canvas_size` have to be passed.")
    return points.clamp_boxes(BoundingBoxes(inpt, format=format, canvas_size=canvas_size)).as_subclass(Tensor)


def clamp_keypoints(inpt, canvas_size=None):
    """Points outside of the image moved to its last pixel."""
    if isinstance(inpt, KeyPoints):
        return points.clamp_points(inpt)
    return points.clamp_points(KeyPoints(inpt, canvas_size=canvas_size)).as_subclass(Tensor)


def sanitize_bounding_boxes(
    bounding_boxes, format=None, canvas_size=None, min_size: float = 1.0, min_area: float = 1.0
):  # fmt: skip
    """The boxes that lie in the image and are not too small, and which those are."""
    boxes = bounding_boxes
    if not isinstance(boxes, BoundingBoxes):
        boxes = BoundingBoxes(boxes, format=format, canvas_size=canvas_size)
    height, width = boxes.canvas_size
    x1, y1, x2, y2 = points.convert(boxes.as_subclass(Tensor), boxes.format.value, "XYXY").unbind(-1)
    wide, high = x2 - x1, y2 - y1
    valid = (wide >= min_size) & (high >= min_size) & (wide * high >= min_area)
    valid = valid & (x1 >= 0) & (y1 >= 0) & (x2 >= 0) & (y2 >= 0)
    valid = valid & (x1 <= width) & (x2 <= width) & (y1 <= height) & (y2 <= height)
    kept = bounding_boxes[valid]
    return (tv_tensors.wrap(kept, like=boxes) if isinstance(bounding_boxes, BoundingBoxes) else kept), valid


# -- helpers ---------------------------------------------------------------------------------------------------------


def _plain(inpt):
    return inpt.as_subclass(Tensor) if isinstance(inpt, TVTensor) else inpt


def _like(made, inpt):
    return tv_tensors.wrap(made, like=inpt) if isinstance(inpt, (Image, Video, Mask)) else made


def _middle(have: int, want: int) -> int:
    """Where the middle part begins; before 0 where there is too little."""
    return -((want - have) // 2) if want > have else round((have - want) / 2.0)


def _wanted(size, max_size, height: int, width: int):
    """A size of None means: as large as ``max_size`` allows."""
    if size is not None:
        return size, max_size
    if max_size is None:
        raise ValueError("max_size must be an integer when size is None.")
    part = max_size / max(height, width)
    return [math.floor(height * part) or 1, math.floor(width * part) or 1], None
