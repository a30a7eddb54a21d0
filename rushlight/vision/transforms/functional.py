"""Image operations on PIL images and tensors (..., C, H, W), under torchvision's names."""

from __future__ import annotations

import enum
import math

import numpy as np

from ... import dtypes
from ...tensor import Tensor, wrap
from ..pillow import is_pil_image, pil_image

__all__ = [
    "InterpolationMode",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "affine",
    "autocontrast",
    "center_crop",
    "convert_image_dtype",
    "crop",
    "elastic_transform",
    "equalize",
    "erase",
    "five_crop",
    "gaussian_blur",
    "get_dimensions",
    "get_image_num_channels",
    "get_image_size",
    "hflip",
    "invert",
    "normalize",
    "pad",
    "perspective",
    "pil_to_tensor",
    "posterize",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "solarize",
    "ten_crop",
    "to_grayscale",
    "to_pil_image",
    "to_tensor",
    "vflip",
]


def __dir__():
    return __all__


class InterpolationMode(enum.Enum):
    """How values between pixels are found."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# -- between PIL, NumPy and tensors ----------------------------------------------------------------------------------


def to_tensor(pic) -> Tensor:
    """A PIL image or array (H, W, C) as a float tensor (C, H, W); 8-bit values are scaled to [0, 1].

    >>> rushlight.vision.transforms.functional.to_tensor(numpy.full((1, 2), 255, "uint8"))
    tensor([[[1., 1.]]])
    """
    array = _array_of(pic)
    planes = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    if planes.dtype != np.uint8:
        return wrap(np.ascontiguousarray(planes))
    dtype = dtypes.get_default_dtype().numpy
    return wrap(np.ascontiguousarray(planes, dtype) / dtype.type(255))


def pil_to_tensor(pic) -> Tensor:
    """A PIL image as a tensor (C, H, W) of its own values."""
    if not is_pil_image(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    array = np.array(pic)
    return wrap(array[None] if array.ndim == 2 else np.ascontiguousarray(array.transpose(2, 0, 1)))


def to_pil_image(pic, mode: str | None = None):
    """A tensor (C, H, W) or array (H, W, C) as a PIL image; floats are scaled from [0, 1]."""
    array = _picture_array(pic)
    if array.shape[2] > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {array.shape[2]} channels.")
    array, default, allowed = _mode_of(array)
    if mode is not None and mode not in allowed:
        raise ValueError(f"Incorrect mode ({mode}) supplied for input type {array.dtype}. Should be one of {allowed}")
    image = pil_image().fromarray(np.ascontiguousarray(array))
    mode = mode or default
    return image if image.mode == mode else _with_mode(image, array, mode)


def convert_image_dtype(image: Tensor, dtype=dtypes.float32) -> Tensor:
    """An image in another dtype, its values scaled to that dtype's range ([0, 1] for floats)."""
    if image.dtype is dtype:
        return image
    if image.is_floating_point():
        if dtype.is_floating_point:
            return image.to(dtype)
        if (image.dtype is dtypes.float32 and dtype in (dtypes.int32, dtypes.int64)) or (
            image.dtype is dtypes.float64 and dtype is dtypes.int64
        ):
            raise RuntimeError(f"The cast from {image.dtype} to {dtype} cannot be performed safely.")
        return (image * (dtypes.iinfo(dtype).max + 1.0 - 1e-3)).to(dtype)
    largest = dtypes.iinfo(image.dtype).max
    if dtype.is_floating_point:
        return image.to(dtype) / largest
    wanted = dtypes.iinfo(dtype).max
    if largest > wanted:
        return image.floor_divide((largest + 1) // (wanted + 1)).to(dtype)
    return image.to(dtype) * ((wanted + 1) // (largest + 1))


def normalize(tensor: Tensor, mean, std, inplace: bool = False) -> Tensor:
    """``(tensor - mean) / std`` by channel."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {tensor.size()}"
        )
    mean, std = (_by_channel(values, tensor) for values in (mean, std))
    if not std._array.all():
        raise ValueError(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
    return tensor.sub_(mean).div_(std) if inplace else (tensor - mean) / std


# -- size and place --------------------------------------------------------------------------------------------------


def get_dimensions(img) -> list[int]:
    """Channels, height, width."""
    return list(_kind(img).dimensions(img))


def get_image_size(img) -> list[int]:
    """Width, height."""
    return get_dimensions(img)[:0:-1]


def get_image_num_channels(img) -> int:
    """How many channels an image has."""
    return get_dimensions(img)[0]


def resize(img, size, interpolation=InterpolationMode.BILINEAR, max_size: int | None = None, antialias=True):
    """The image with height and width ``size``; a single number is the length of the shorter side."""
    _, height, width = get_dimensions(img)
    new = resized_size(height, width, size, max_size)
    return img if [height, width] == new else _kind(img).resize(img, new, _mode(interpolation), antialias)


def resized_size(height: int, width: int, size, max_size: int | None = None) -> list[int]:
    """Height and width after ``resize``."""
    size = [size] if isinstance(size, int) else list(size)
    if len(size) not in (1, 2):
        raise ValueError(f"Size must be an int or a 1 or 2 element tuple/list, not a {len(size)} element tuple/list")
    if max_size is not None and len(size) != 1:
        raise ValueError(
            "max_size should only be passed if size specifies the length of the smaller edge, "
            "i.e. size should be an int or a sequence of length 1 in torchscript mode."
        )
    return _by_shorter_side(height, width, size[0], max_size) if len(size) == 1 else size


def crop(img, top: int, left: int, height: int, width: int):
    """A part of the image; zeros where it reaches outside."""
    return _kind(img).crop(img, top, left, height, width)


def center_crop(img, output_size):
    """The middle of the image, surrounded by zeros where it is too small."""
    height, width = _pair(output_size)
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        across, down = max(width - w, 0), max(height - h, 0)
        img = pad(img, [across // 2, down // 2, (across + 1) // 2, (down + 1) // 2])
        _, h, w = get_dimensions(img)
        if (h, w) == (height, width):
            return img
    return crop(img, round((h - height) / 2.0), round((w - width) / 2.0), height, width)


def resized_crop(img, top, left, height, width, size, interpolation=InterpolationMode.BILINEAR, antialias=True):
    """A part of the image, resized."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def pad(img, padding, fill=0, padding_mode: str = "constant"):
    """Pixels around the image: all sides, (left/right, top/bottom) or (left, top, right, bottom)."""
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    return _kind(img).pad(img, _sides(padding), fill, padding_mode)


def hflip(img):
    """Left and right exchanged."""
    return _kind(img).hflip(img)


def vflip(img):
    """Top and bottom exchanged."""
    return _kind(img).vflip(img)


def five_crop(img, size):
    """The four corners and the middle."""
    height, width = _pair(size)
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        raise ValueError(f"Requested crop size {(height, width)} is bigger than input size {(h, w)}")
    corners = [(0, 0), (0, w - width), (h - height, 0), (h - height, w - width)]
    return (*(crop(img, top, left, height, width) for top, left in corners), center_crop(img, [height, width]))


def ten_crop(img, size, vertical_flip: bool = False):
    """``five_crop`` of the image and of its mirror image."""
    return five_crop(img, size) + five_crop(vflip(img) if vertical_flip else hflip(img), size)


def rotate(img, angle: float, interpolation=InterpolationMode.NEAREST, expand: bool = False, center=None, fill=None):
    """The image turned counter-clockwise by ``angle`` degrees, about its middle or ``center`` (x, y)."""
    if center is not None and len(center) != 2:
        raise ValueError("Argument center should be a sequence of length 2")
    return _kind(img).rotate(img, angle, _mode(interpolation), expand, center, fill)


def affine(img, angle, translate, scale, shear, interpolation=InterpolationMode.NEAREST, fill=None, center=None):
    """The image turned clockwise, moved, scaled and sheared (degrees), its middle staying in place."""
    if scale <= 0.0:
        raise ValueError("Argument scale should be positive")
    _, h, w = get_dimensions(img)
    middle = (w / 2, h / 2) if center is None else center
    inverse = np.linalg.inv(affine_matrix(middle, angle, translate, scale, two_shears(shear)))
    return _kind(img).affine(img, inverse, _mode(interpolation), fill)


def two_shears(shear) -> tuple[float, float]:
    """A shear of x, or of x and y, as both."""
    return (shear, 0.0) if isinstance(shear, (int, float)) else (*shear, 0.0)[:2]


def rotated_size(height: int, width: int, angle: float) -> tuple[int, int]:
    """Height and width of the upright box around an image that was turned."""
    middle = np.array([width / 2, height / 2])
    reach = np.abs(affine_matrix((0, 0), -angle, (0, 0), 1.0, (0, 0))[:2, :2]) @ middle  # of the corners
    ends = np.ceil(np.round(middle + reach, 4)) - np.floor(np.round(middle - reach, 4))
    return int(ends[1]), int(ends[0])


def affine_matrix(center, angle, translate, scale, shear) -> np.ndarray:
    """Shear, scale and turn about a center, then move: 3x3, for columns (x, y, 1)."""
    turn, (shear_x, shear_y) = math.radians(angle), map(math.radians, shear)
    lean = math.cos(turn - shear_y) / math.cos(shear_y), math.sin(turn - shear_y) / math.cos(shear_y)
    linear = scale * np.array(
        [
            [lean[0], -lean[0] * math.tan(shear_x) - math.sin(turn)],
            [lean[1], -lean[1] * math.tan(shear_x) + math.cos(turn)],
        ]
    )
    matrix = np.eye(3)
    matrix[:2, :2] = linear
    matrix[:2, 2] = np.asarray(center) + np.asarray(translate) - linear @ np.asarray(center)
    return matrix


def perspective(img, startpoints, endpoints, interpolation=InterpolationMode.BILINEAR, fill=None):
    """The image bent so that four corners ``startpoints`` (x, y) come to lie on ``endpoints``."""
    return _kind(img).perspective(img, perspective_matrix(endpoints, startpoints), _mode(interpolation), fill)


def perspective_matrix(before, after) -> np.ndarray:
    """The 3x3 matrix that takes four points to four others: (x, y, 1) to (u, v, 1) times a number."""
    rows, wanted = [], []
    for (x, y), (u, v) in zip(before, after):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        wanted += [u, v]
    found = np.linalg.lstsq(np.array(rows, np.float64), np.array(wanted, np.float64), rcond=None)[0]
    return np.append(found.astype(np.float32), 1.0).reshape(3, 3)


def elastic_transform(img, displacement: Tensor, interpolation=InterpolationMode.BILINEAR, fill=None):
    """Every pixel fetched from where ``displacement`` (1, H, W, 2) points, in parts of half the image."""
    from . import _tensor

    _, h, w = get_dimensions(img)
    if not isinstance(displacement, Tensor) or tuple(displacement.shape) != (1, h, w, 2):
        raise ValueError(f"Argument displacement shape should be {(1, h, w, 2)}, but given {displacement.shape}")
    if isinstance(img, Tensor):
        return _tensor.elastic(img, displacement, _mode(interpolation), fill)
    moved = _tensor.elastic(pil_to_tensor(img), displacement, _mode(interpolation), fill)
    return to_pil_image(moved, mode=img.mode)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v, inplace: bool = False) -> Tensor:
    """The image with a rectangle replaced by ``v``."""
    if not isinstance(img, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}")
    img = img if inplace else img.clone()
    img[..., i : i + h, j : j + w] = v
    return img


# -- colour ----------------------------------------------------------------------------------------------------------


def adjust_brightness(img, brightness_factor: float):
    """0 is black, 1 the image, 2 twice as bright."""
    return _kind(img).adjust_brightness(img, brightness_factor)


def adjust_contrast(img, contrast_factor: float):
    """0 is plain gray, 1 the image."""
    return _kind(img).adjust_contrast(img, contrast_factor)


def adjust_saturation(img, saturation_factor: float):
    """0 is black and white, 1 the image."""
    return _kind(img).adjust_saturation(img, saturation_factor)


def adjust_hue(img, hue_factor: float):
    """Colours turned round the colour circle by ``hue_factor`` of it, from -0.5 to 0.5."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    return _kind(img).adjust_hue(img, hue_factor)


def adjust_gamma(img, gamma: float, gain: float = 1):
    """``255 * gain * (value / 255) ** gamma``."""
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    return _kind(img).adjust_gamma(img, gamma, gain)


def rgb_to_grayscale(img, num_output_channels: int = 1):
    """The image in shades of gray, with one channel or three equal ones."""
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    return _kind(img).rgb_to_grayscale(img, num_output_channels)


def to_grayscale(img, num_output_channels: int = 1):
    """``rgb_to_grayscale`` for PIL images."""
    if not is_pil_image(img):
        raise TypeError("Input should be PIL Image")
    return rgb_to_grayscale(img, num_output_channels)


def invert(img):
    """Light and dark exchanged."""
    return _kind(img).invert(img)


def posterize(img, bits: int):
    """Each channel in ``bits`` bits, the lower ones zero."""
    _check_bytes(img)
    return _kind(img).posterize(img, bits)


def solarize(img, threshold: float):
    """What is as light as ``threshold`` or lighter, inverted."""
    return _kind(img).solarize(img, threshold)


def adjust_sharpness(img, sharpness_factor: float):
    """0 is blurred, 1 the image, 2 twice as sharp."""
    if sharpness_factor < 0:
        raise ValueError(f"sharpness_factor ({sharpness_factor}) is not non-negative.")
    return _kind(img).adjust_sharpness(img, sharpness_factor)


def autocontrast(img):
    """Each channel stretched so that its darkest value is black and its lightest full."""
    return _kind(img).autocontrast(img)


def equalize(img):
    """Each channel's values spread so that all are about equally frequent."""
    _check_bytes(img)
    return _kind(img).equalize(img)


def gaussian_blur(img, kernel_size, sigma=None):
    """The image blurred by a bell of the given size (x, y) and width."""
    from . import _tensor

    sizes = _two(kernel_size)
    sigmas = [0.3 * ((k - 1) * 0.5 - 1) + 0.8 for k in sizes] if sigma is None else _two(sigma)
    if any(s <= 0 for s in sigmas):
        raise ValueError(f"sigma should have positive values. Got {sigmas}")
    if any(k % 2 == 0 or k < 0 for k in sizes):
        raise ValueError(f"kernel_size should have odd and positive integers. Got {sizes}")
    kernels = [_bell(k, s) for k, s in zip(sizes, sigmas)]
    if isinstance(img, Tensor):
        return _tensor.blur(img, *kernels)
    return to_pil_image(_tensor.blur(pil_to_tensor(img), *kernels), mode=img.mode)


# -- helpers ---------------------------------------------------------------------------------------------------------


def _kind(img):
    """The module with the operations for this kind of image."""
    if isinstance(img, Tensor):
        from . import _tensor

        return _tensor
    if is_pil_image(img):
        from . import _pil

        return _pil
    if isinstance(img, np.ndarray):
        pil_image()  # datasets hand out arrays where Pillow is missing: then this says so
    raise TypeError(f"Unexpected type {type(img)}")


def _check_bytes(img) -> None:
    if isinstance(img, Tensor) and img.dtype is not dtypes.uint8 and not img.is_floating_point():
        raise TypeError(f"Only torch.uint8 and float image tensors are supported, but found {img.dtype}")


def _mode(interpolation) -> str:
    if isinstance(interpolation, str):
        interpolation = InterpolationMode(interpolation)
    if isinstance(interpolation, int):  # PIL's number
        interpolation = InterpolationMode(_PIL_MODES[interpolation])
    if not isinstance(interpolation, InterpolationMode):
        raise TypeError(
            "Argument interpolation should be a InterpolationMode or a corresponding Pillow integer constant"
        )
    return interpolation.value


_PIL_MODES = {0: "nearest", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming", 1: "lanczos"}


def _array_of(pic) -> np.ndarray:
    if is_pil_image(pic):
        if pic.mode == "1":
            return np.asarray(pic, np.uint8) * 255
        return np.asarray(pic, _WIDE_MODES.get(pic.mode))
    if not isinstance(pic, np.ndarray):
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    if pic.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
    return pic


_WIDE_MODES = {"I": np.int32, "I;16": np.int16, "F": np.float32}


def _picture_array(pic) -> np.ndarray:
    """Height, width, channels; floats of a tensor as bytes."""
    if isinstance(pic, Tensor):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        pic = pic[None] if pic.ndim == 2 else pic
        if pic.is_floating_point():
            pic = (pic * 255).to(dtypes.uint8)
        return pic.detach().cpu().numpy().transpose(1, 2, 0)
    if not isinstance(pic, np.ndarray):
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    if pic.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
    return pic[:, :, None] if pic.ndim == 2 else pic


def _mode_of(array: np.ndarray):
    """The array as PIL wants it, its usual mode, and the modes it may be given."""
    channels = array.shape[2]
    if channels == 1:
        array = array[:, :, 0]
        modes = {"uint8": "L", "int16": "I;16", "int32": "I", "float32": "F"}
        mode = modes.get(str(array.dtype))
        if mode is None:
            raise TypeError(f"Input type {array.dtype} is not supported")
        return (array.view(np.uint16) if mode == "I;16" else array), mode, [mode]
    if array.dtype != np.uint8:
        raise TypeError(f"Input type {array.dtype} is not supported")
    allowed = {2: ["LA"], 3: ["RGB", "YCbCr", "HSV"], 4: ["RGBA", "CMYK", "RGBX"]}[channels]
    return array, allowed[0], allowed


def _with_mode(image, array, mode: str):
    """The same bytes read as other channels."""
    return pil_image().frombytes(mode, image.size, np.ascontiguousarray(array).tobytes())


def _by_channel(values, image: Tensor) -> Tensor:
    if isinstance(values, Tensor):
        values = values.to(image.dtype)
        return values.reshape(-1, 1, 1) if values.ndim == 1 else values
    array = np.asarray(values, image.dtype.numpy)
    made = wrap(array.reshape(-1, 1, 1) if array.ndim == 1 else array)
    return made if image.is_cpu else made.to(image.device)


def _by_shorter_side(height: int, width: int, wanted: int, max_size: int | None) -> list[int]:
    short, long = min(height, width), max(height, width)
    new_short, new_long = wanted, int(wanted * long / short)
    if max_size is not None:
        if max_size <= wanted:
            raise ValueError(
                f"max_size = {max_size} must be strictly greater than the requested size for the smaller edge size = "
                f"{wanted}"
            )
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return [new_long, new_short] if width <= height else [new_short, new_long]


def _sides(padding) -> tuple[int, int, int, int]:
    if isinstance(padding, int):
        padding = (padding,)
    if not isinstance(padding, (tuple, list)):
        raise TypeError("Got inappropriate padding arg")
    if len(padding) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple")
    return tuple(padding * (4 // len(padding)))


def _pair(size) -> tuple[int, int]:
    if isinstance(size, (int, float)):
        return int(size), int(size)
    size = tuple(size)
    return size * 2 if len(size) == 1 else size


def _two(values) -> list:
    values = [values] if isinstance(values, (int, float)) else list(values)
    return values * 2 if len(values) == 1 else values


def _bell(size: int, sigma: float) -> np.ndarray:
    weights = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    return weights / weights.sum()
