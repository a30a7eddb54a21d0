"""Transforms: objects that turn one image into another. Random ones draw as torchvision's do."""

from __future__ import annotations

import math
import random

import numpy as np

from ...nn.module import Module
from ...ops.creation import empty
from ...ops.random import rand, randint, randperm
from ...tensor import Tensor, wrap
from . import functional as F
from .functional import InterpolationMode

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "FiveCrop",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "Lambda",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomAffine",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "TenCrop",
    "ToPILImage",
    "ToTensor",
]


# -- combining -------------------------------------------------------------------------------------------------------


class _Several:
    """What transforms made of transforms share: their printed form."""

    def __init__(self, transforms) -> None:
        self.transforms = transforms

    def __repr__(self) -> str:
        return "\n".join([f"{type(self).__name__}(", *(f"    {t}" for t in self.transforms), ")"])


class Compose(_Several):
    """One transform after the other.

    >>> from rushlight.vision.transforms import Compose, Normalize, ToTensor
    >>> Compose([ToTensor(), Normalize((0.5,), (0.5,))])(numpy.zeros((1, 2), "uint8"))
    tensor([[[-1., -1.]]])
    """

    def __call__(self, img):
        for transform in self.transforms:
            img = transform(img)
        return img


class RandomApply(Module):
    """All the transforms with probability ``p``, else none."""

    def __init__(self, transforms, p: float = 0.5) -> None:
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, img):
        if self.p < rand(1).item():
            return img
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}(", f"    p={self.p}", *(f"    {t}" for t in self.transforms), ")"]
        return "\n".join(lines)


class RandomChoice(_Several):
    """One of the transforms, drawn by Python's ``random``."""

    def __init__(self, transforms, p=None) -> None:
        super().__init__(transforms)
        self.p = p

    def __call__(self, *args):
        return random.choices(self.transforms, weights=self.p)[0](*args)

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"


class RandomOrder(_Several):
    """All the transforms in an order drawn by Python's ``random``."""

    def __call__(self, img):
        order = list(range(len(self.transforms)))
        random.shuffle(order)
        for i in order:
            img = self.transforms[i](img)
        return img


class Lambda:
    """Any function of an image."""

    def __init__(self, lambd) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img):
        return self.lambd(img)

    def __repr__(self) -> str:
        return "Lambda()"


# -- between PIL and tensors -----------------------------------------------------------------------------------------


class ToTensor:
    """A PIL image or array (H, W, C) as a float tensor (C, H, W); 8-bit values are scaled to [0, 1]."""

    def __call__(self, pic) -> Tensor:
        return F.to_tensor(pic)

    def __repr__(self) -> str:
        return "ToTensor()"


class PILToTensor:
    """A PIL image as a tensor (C, H, W) of its own values."""

    def __call__(self, pic) -> Tensor:
        return F.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return "PILToTensor()"


class ToPILImage:
    """A tensor (C, H, W) or array (H, W, C) as a PIL image."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic):
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return "ToPILImage()" if self.mode is None else f"ToPILImage(mode={self.mode})"


class ConvertImageDtype(Module):
    """An image in another dtype, its values scaled to that dtype's range."""

    def __init__(self, dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image):
        return F.convert_image_dtype(image, self.dtype)


class Normalize(Module):
    """``(image - mean) / std`` by channel."""

    def __init__(self, mean, std, inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor: Tensor) -> Tensor:
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"


# -- size and place --------------------------------------------------------------------------------------------------


class Resize(Module):
    """The image with height and width ``size``; a single number is the length of the shorter side."""

    def __init__(self, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=True) -> None:
        super().__init__()
        if not isinstance(size, (int, tuple, list)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if not isinstance(size, int) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size, self.interpolation, self.max_size, self.antialias = size, interpolation, max_size, antialias

    def forward(self, img):
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        return (
            f"Resize(size={self.size}, interpolation={_name(self.interpolation)}, max_size={self.max_size}, "
            f"antialias={self.antialias})"
        )


class CenterCrop(Module):
    """The middle of the image."""

    def __init__(self, size) -> None:
        super().__init__()
        self.size = _size(size)

    def forward(self, img):
        return F.center_crop(img, self.size)

    def __repr__(self) -> str:
        return f"CenterCrop(size={self.size})"


class FiveCrop(Module):
    """The four corners and the middle, as a tuple."""

    def __init__(self, size) -> None:
        super().__init__()
        self.size = _size(size)

    def forward(self, img):
        return F.five_crop(img, self.size)

    def __repr__(self) -> str:
        return f"FiveCrop(size={self.size})"


class TenCrop(Module):
    """``FiveCrop`` of the image and of its mirror image."""

    def __init__(self, size, vertical_flip: bool = False) -> None:
        super().__init__()
        self.size, self.vertical_flip = _size(size), vertical_flip

    def forward(self, img):
        return F.ten_crop(img, self.size, self.vertical_flip)

    def __repr__(self) -> str:
        return f"TenCrop(size={self.size}, vertical_flip={self.vertical_flip})"


class Pad(Module):
    """Pixels around the image."""

    def __init__(self, padding, fill=0, padding_mode: str = "constant") -> None:
        super().__init__()
        F._sides(padding)
        if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img):
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self) -> str:
        return f"Pad(padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode})"


class RandomCrop(Module):
    """A part of the given size, anywhere in the image."""

    def __init__(self, size, padding=None, pad_if_needed: bool = False, fill=0, padding_mode: str = "constant") -> None:
        super().__init__()
        self.size, self.padding, self.pad_if_needed = _size(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    @staticmethod
    def get_params(img, output_size) -> tuple[int, int, int, int]:
        """Top, left, height and width of the part."""
        _, h, w = F.get_dimensions(img)
        height, width = output_size
        if h < height or w < width:
            raise ValueError(f"Required crop size {(height, width)} is larger than input image size {(h, w)}")
        if (h, w) == (height, width):
            return 0, 0, h, w
        return _draw(h - height + 1), _draw(w - width + 1), height, width

    def forward(self, img):
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        _, h, w = F.get_dimensions(img)
        if self.pad_if_needed and w < self.size[1]:
            img = F.pad(img, [self.size[1] - w, 0], self.fill, self.padding_mode)
        if self.pad_if_needed and h < self.size[0]:
            img = F.pad(img, [0, self.size[0] - h], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))

    def __repr__(self) -> str:
        return f"RandomCrop(size={self.size}, padding={self.padding})"


class RandomResizedCrop(Module):
    """A part of random area and shape, resized to ``size``."""

    def __init__(
        self,
        size,
        scale=(0.08, 1.0),
        ratio=(3.0 / 4.0, 4.0 / 3.0),
        interpolation=InterpolationMode.BILINEAR,
        antialias=True,
    ) -> None:
        super().__init__()
        if not isinstance(scale, (tuple, list)):
            raise TypeError("Scale should be a sequence")
        if not isinstance(ratio, (tuple, list)):
            raise TypeError("Ratio should be a sequence")
        self.size, self.scale, self.ratio = _size(size), scale, ratio
        self.interpolation, self.antialias = interpolation, antialias

    @staticmethod
    def get_params(img, scale, ratio) -> tuple[int, int, int, int]:
        """Top, left, height and width of the part."""
        _, height, width = F.get_dimensions(img)
        return RandomResizedCrop.place(height, width, scale, ratio)

    @staticmethod
    def place(height: int, width: int, scale, ratio) -> tuple[int, int, int, int]:
        """The part of an image of that size: ten tries, then the largest middle part of an allowed shape."""
        for _ in range(10):
            area, aspect = _area_and_aspect(height * width, scale, ratio)
            w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < w <= width and 0 < h <= height:
                return _draw(height - h + 1), _draw(width - w + 1), h, w
        w, h = width, height
        if width / height < min(ratio):
            h = round(w / min(ratio))
        elif width / height > max(ratio):
            w = round(h * max(ratio))
        return (height - h) // 2, (width - w) // 2, h, w

    def forward(self, img):
        place = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *place, self.size, self.interpolation, self.antialias)

    def __repr__(self) -> str:
        scale, ratio = (tuple(round(v, 4) for v in values) for values in (self.scale, self.ratio))
        return (
            f"RandomResizedCrop(size={self.size}, scale={scale}, ratio={ratio}, "
            f"interpolation={_name(self.interpolation)}, antialias={self.antialias})"
        )


class _WithProbability(Module):
    """A change made with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img):
        return self._change(img) if rand(1).item() < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomHorizontalFlip(_WithProbability):
    """Left and right exchanged, with probability ``p``."""

    def _change(self, img):
        return F.hflip(img)


class RandomVerticalFlip(_WithProbability):
    """Top and bottom exchanged, with probability ``p``."""

    def _change(self, img):
        return F.vflip(img)


class RandomInvert(_WithProbability):
    """Light and dark exchanged, with probability ``p``."""

    def _change(self, img):
        return F.invert(img)


class RandomGrayscale(_WithProbability):
    """Shades of gray, with probability ``p``; as many channels as before."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def _change(self, img):
        return F.rgb_to_grayscale(img, F.get_image_num_channels(img))


class RandomRotation(Module):
    """The image turned by an angle from ``(-degrees, degrees)`` or from a range."""

    def __init__(self, degrees, interpolation=InterpolationMode.NEAREST, expand=False, center=None, fill=0) -> None:
        super().__init__()
        self.degrees, self.interpolation = _angles(degrees, "degrees"), interpolation
        self.expand, self.fill, self.center = expand, fill, center

    @staticmethod
    def get_params(degrees) -> float:
        return _uniform(float(degrees[0]), float(degrees[1]))

    def forward(self, img):
        angle = self.get_params(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)

    def __repr__(self) -> str:
        text = f"degrees={self.degrees}, interpolation={_name(self.interpolation)}, expand={self.expand}"
        if self.center is not None:
            text += f", center={self.center}"
        return f"RandomRotation({text}, fill={self.fill})"


class RandomAffine(Module):
    """The image turned, moved, scaled and sheared by random amounts."""

    def __init__(
        self,
        degrees,
        translate=None,
        scale=None,
        shear=None,
        interpolation=InterpolationMode.NEAREST,
        fill=0,
        center=None,
    ) -> None:
        super().__init__()
        if translate is not None and not all(0.0 <= t <= 1.0 for t in translate):
            raise ValueError("translation values should be between 0 and 1")
        if scale is not None and not all(s > 0 for s in scale):
            raise ValueError("scale values should be positive")
        self.degrees, self.translate, self.scale = _angles(degrees, "degrees"), translate, scale
        self.shear = None if shear is None else _angles(shear, "shear")
        self.interpolation, self.fill, self.center = interpolation, fill, center

    @staticmethod
    def get_params(degrees, translate, scale_ranges, shears, img_size):
        """Angle, (x, y) to move by, scale, (x, y) shear; ``img_size`` is (width, height)."""
        angle = _uniform(float(degrees[0]), float(degrees[1]))
        move, scale, shear = (0, 0), 1.0, (0.0, 0.0)
        if translate is not None:
            most = [float(t * side) for t, side in zip(translate, img_size)]
            move = tuple(round(_uniform(-m, m)) for m in most)
        if scale_ranges is not None:
            scale = _uniform(*scale_ranges)
        if shears is not None:
            shear = (_uniform(*shears[:2]), _uniform(*shears[2:]) if len(shears) == 4 else 0.0)
        return angle, move, scale, shear

    def forward(self, img):
        size = F.get_image_size(img)
        params = self.get_params(self.degrees, self.translate, self.scale, self.shear, size)
        return F.affine(img, *params, interpolation=self.interpolation, fill=self.fill, center=self.center)

    def __repr__(self) -> str:
        text = f"degrees={self.degrees}"
        for name in ("translate", "scale", "shear"):
            if getattr(self, name) is not None:
                text += f", {name}={getattr(self, name)}"
        if self.interpolation is not InterpolationMode.NEAREST:
            text += f", interpolation={_name(self.interpolation)}"
        return f"RandomAffine({text}{f', fill={self.fill}' if self.fill != 0 else ''})"


# -- colour ----------------------------------------------------------------------------------------------------------


class ColorJitter(Module):
    """Brightness, contrast, saturation and hue changed by random amounts, in random order."""

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0) -> None:
        super().__init__()
        self.brightness = _factors(brightness, "brightness")
        self.contrast = _factors(contrast, "contrast")
        self.saturation = _factors(saturation, "saturation")
        self.hue = _factors(hue, "hue", center=0.0, bound=(-0.5, 0.5), clip=False)

    @staticmethod
    def get_params(brightness, contrast, saturation, hue):
        """The order of the four changes, and their factors (None: left as it is)."""
        order = randperm(4)
        ranges = (brightness, contrast, saturation, hue)
        return (order, *(None if bounds is None else _uniform(*bounds) for bounds in ranges))

    def forward(self, img):
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for i in order.tolist():
            if factors[i] is not None:
                img = changes[i](img, factors[i])
        return img

    def __repr__(self) -> str:
        return (
            f"ColorJitter(brightness={self.brightness}, contrast={self.contrast}, saturation={self.saturation}, "
            f"hue={self.hue})"
        )


class Grayscale(Module):
    """The image in shades of gray."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img):
        return F.rgb_to_grayscale(img, self.num_output_channels)

    def __repr__(self) -> str:
        return f"Grayscale(num_output_channels={self.num_output_channels})"


class GaussianBlur(Module):
    """The image blurred by a bell of random width."""

    def __init__(self, kernel_size, sigma=(0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = F._pair(kernel_size)
        if any(k <= 0 or k % 2 == 0 for k in self.kernel_size):
            raise ValueError("Kernel size value should be an odd and positive number.")
        self.sigma = (sigma, sigma) if isinstance(sigma, (int, float)) else tuple(sigma)
        if not 0.0 < self.sigma[0] <= self.sigma[1]:
            raise ValueError(f"sigma values should be positive and of the form (min, max). Got {sigma}")

    def forward(self, img):
        sigma = _uniform(*self.sigma)
        return F.gaussian_blur(img, self.kernel_size, [sigma, sigma])

    def __repr__(self) -> str:
        return f"GaussianBlur(kernel_size={self.kernel_size}, sigma={self.sigma})"


class RandomErasing(Module):
    """A random rectangle replaced by ``value`` (a number, one per channel, or "random"), with probability ``p``."""

    def __init__(self, p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace: bool = False) -> None:
        super().__init__()
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if p < 0 or p > 1:
            raise ValueError("Random erasing probability should be between 0 and 1")
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    @staticmethod
    def get_params(img, scale, ratio, value=None):
        """Top, left, height, width and values of the rectangle; the whole image, unchanged, after ten failed tries."""
        found = RandomErasing.place(*img.shape[-3:], scale, ratio, value)
        return (0, 0, *img.shape[-2:], img) if found is None else found

    @staticmethod
    def place(channels: int, height: int, width: int, scale, ratio, value=None):
        """``get_params`` for an image of that size; None after ten failed tries."""
        for _ in range(10):
            area, aspect = _area_and_aspect(height * width, scale, ratio)
            h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if not (h < height and w < width):
                continue
            if value is None:
                filling = empty([channels, h, w]).normal_()
            else:
                filling = wrap(np.asarray(value, np.float32))[:, None, None]
            return _draw(height - h + 1), _draw(width - w + 1), h, w, filling
        return None

    def forward(self, img):
        if rand(1).item() >= self.p:
            return img
        value = [float(self.value)] if isinstance(self.value, (int, float)) else self.value
        value = None if isinstance(value, str) else list(value)
        if value is not None and len(value) not in (1, img.shape[-3]):
            raise ValueError(
                f"If value is a sequence, it should have either a single value or {img.shape[-3]} (number of input "
                "channels)"
            )
        x, y, h, w, filling = self.get_params(img, self.scale, self.ratio, value)
        return F.erase(img, x, y, h, w, filling, self.inplace)

    def __repr__(self) -> str:
        return (
            f"RandomErasing(p={self.p}, scale={self.scale}, ratio={self.ratio}, value={self.value}, "
            f"inplace={self.inplace})"
        )


# -- helpers ---------------------------------------------------------------------------------------------------------


def _draw(n: int) -> int:
    return randint(0, n, size=(1,)).item()


def _uniform(low: float, high: float) -> float:
    return empty(1).uniform_(low, high).item()


def _area_and_aspect(total: int, scale, ratio) -> tuple[float, float]:
    """A part of an area, and a ratio of sides that is as often 2 as it is 1/2."""
    area = total * _uniform(scale[0], scale[1])
    bounds = wrap(np.asarray(ratio, np.float32)).log()
    return area, empty(1).uniform_(bounds[0].item(), bounds[1].item()).exp().item()


def _name(interpolation) -> str:
    return interpolation.value if isinstance(interpolation, InterpolationMode) else str(interpolation)


def _size(size) -> tuple[int, int]:
    if isinstance(size, (int, float)):
        return int(size), int(size)
    if len(size) not in (1, 2):
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    return (size[0], size[0]) if len(size) == 1 else tuple(size)


def _angles(values, name: str) -> list[float]:
    if isinstance(values, (int, float)):
        if values < 0:
            raise ValueError(f"If {name} is a single number, it must be positive.")
        return [-float(values), float(values)]
    if len(values) != 2 and not (name == "shear" and len(values) == 4):
        raise ValueError(f"{name} should be a sequence of length 2{' or 4' if name == 'shear' else ''}.")
    return [float(v) for v in values]


def _factors(value, name: str, center: float = 1.0, bound=(0, float("inf")), clip: bool = True):
    """The range of a factor; None where it would never change anything."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        value = [center - float(value), center + float(value)]
        if clip:
            value[0] = max(value[0], 0.0)
    elif isinstance(value, (tuple, list)) and len(value) == 2:
        value = [float(value[0]), float(value[1])]
    else:
        raise TypeError(f"{name} should be a single number or a list/tuple with length 2.")
    if not bound[0] <= value[0] <= value[1] <= bound[1]:
        raise ValueError(f"{name} values should be between {bound}, but got {value}.")
    return None if value[0] == value[1] == center else tuple(value)
