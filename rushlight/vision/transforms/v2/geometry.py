"""Transforms of size and place: pixels, masks, boxes and points move together."""

from __future__ import annotations

from ....ops.join import cat
from ....ops.random import rand, randint
from ....tensor import Tensor
from ...ops.boxes import box_iou
from ...tv_tensors import BoundingBoxes, Mask, Video, wrap
from .. import transforms as v1
from ..functional import InterpolationMode
from . import functional as F
from . import points
from .transform import RandomTransform, Transform, by_class, get_bounding_boxes, has_all, has_any, is_image, query_size

__all__ = [
    "CenterCrop", "ElasticTransform", "FiveCrop", "Pad", "RandomAffine", "RandomCrop", "RandomHorizontalFlip",
    "RandomIoUCrop", "RandomPerspective", "RandomResize", "RandomResizedCrop", "RandomRotation", "RandomShortestSize",
    "RandomVerticalFlip", "RandomZoomOut", "Resize", "ScaleJitter", "TenCrop",
]  # fmt: skip


class Resize(Transform):
    """Height and width ``size``; a single number is the length of the shorter side."""

    def __init__(self, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=True) -> None:
        super().__init__()
        if size is None and max_size is None:
            raise ValueError("max_size must be an integer when size is None.")
        if isinstance(size, float) or (size is not None and not isinstance(size, int) and len(size) not in (1, 2)):
            raise ValueError(f"size can be an integer, a sequence of one or two integers, or None, but got {size}")
        self.size = size if size is None else [size] if isinstance(size, int) else list(size)
        self.interpolation, self.max_size, self.antialias = interpolation, max_size, antialias

    def transform(self, inpt, params):
        return F.resize(inpt, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(Transform, v1.CenterCrop):
    """The middle."""

    def transform(self, inpt, params):
        return F.center_crop(inpt, self.size)


class _ManyCrops(Transform):
    def check_inputs(self, flat_inputs):
        if has_any(flat_inputs, BoundingBoxes, Mask):
            raise TypeError(f"BoundingBoxes'es and Mask's are not supported by {type(self).__name__}()")

    def _concerns(self, part):
        return is_image(part) or isinstance(part, Video)


class FiveCrop(_ManyCrops, v1.FiveCrop):
    """The four corners and the middle, as a tuple."""

    def transform(self, inpt, params):
        return F.five_crop(inpt, self.size)


class TenCrop(_ManyCrops, v1.TenCrop):
    """``FiveCrop`` of the image and of its mirror image."""

    def transform(self, inpt, params):
        return F.ten_crop(inpt, self.size, self.vertical_flip)


class Pad(Transform, v1.Pad):
    """Pixels around; ``fill`` may be a dict by class."""

    def transform(self, inpt, params):
        return F.pad(inpt, self.padding, by_class(self.fill, inpt), self.padding_mode)


class RandomHorizontalFlip(RandomTransform):
    """Left and right exchanged, with probability ``p``."""

    def transform(self, inpt, params):
        return F.horizontal_flip(inpt)


class RandomVerticalFlip(RandomTransform):
    """Top and bottom exchanged, with probability ``p``."""

    def transform(self, inpt, params):
        return F.vertical_flip(inpt)


class RandomCrop(Transform, v1.RandomCrop):
    """A part of the given size, anywhere."""

    def __init__(self, size, padding=None, pad_if_needed: bool = False, fill=0, padding_mode: str = "constant") -> None:
        v1.RandomCrop.__init__(self, size, None, pad_if_needed, fill, padding_mode)
        self.padding = None if padding is None else list(F.F._sides(padding))

    def make_params(self, flat_inputs):
        height, width = query_size(flat_inputs)
        left, top, right, bottom = self.padding or (0, 0, 0, 0)
        if self.pad_if_needed:
            across = max(self.size[1] - (width + left + right), 0)
            down = max(self.size[0] - (height + top + bottom), 0)
            left, top, right, bottom = left + across, top + down, right + across, bottom + down
        sides = [left, top, right, bottom]
        h, w = height + top + bottom, width + left + right
        if h < self.size[0] or w < self.size[1]:
            raise ValueError(f"Required crop size {tuple(self.size)} is larger than padded input image size {(h, w)}.")
        row = v1._draw(h - self.size[0] + 1) if h > self.size[0] else 0
        column = v1._draw(w - self.size[1] + 1) if w > self.size[1] else 0
        return {"sides": sides, "place": (row, column, *self.size)}

    def transform(self, inpt, params):
        if any(params["sides"]):
            inpt = F.pad(inpt, params["sides"], by_class(self.fill, inpt), self.padding_mode)
        return F.crop(inpt, *params["place"])


class RandomResizedCrop(Transform, v1.RandomResizedCrop):
    """A part of random area and shape, resized to ``size``."""

    def make_params(self, flat_inputs):
        return {"place": self.place(*query_size(flat_inputs), self.scale, self.ratio)}

    def transform(self, inpt, params):
        return F.resized_crop(inpt, *params["place"], self.size, self.interpolation, self.antialias)


class RandomRotation(Transform, v1.RandomRotation):
    """Turned by an angle from ``(-degrees, degrees)`` or from a range."""

    def make_params(self, flat_inputs):
        return {"angle": self.get_params(self.degrees)}

    def transform(self, inpt, params):
        fill = by_class(self.fill, inpt)
        return F.rotate(inpt, params["angle"], self.interpolation, self.expand, self.center, fill)


class RandomAffine(Transform, v1.RandomAffine):
    """Turned, moved, scaled and sheared by random amounts."""

    def make_params(self, flat_inputs):
        height, width = query_size(flat_inputs)
        return {"drawn": self.get_params(self.degrees, self.translate, self.scale, self.shear, (width, height))}

    def transform(self, inpt, params):
        fill = by_class(self.fill, inpt)
        return F.affine(inpt, *params["drawn"], interpolation=self.interpolation, fill=fill, center=self.center)


class RandomPerspective(RandomTransform):
    """The corners moved inwards by random amounts, at most ``distortion_scale`` of the way to the middle."""

    def __init__(self, distortion_scale=0.5, p=0.5, interpolation=InterpolationMode.BILINEAR, fill=0) -> None:
        super().__init__(p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError("Argument distortion_scale value should be between 0 and 1")
        self.distortion_scale, self.interpolation, self.fill = distortion_scale, interpolation, fill

    def make_params(self, flat_inputs):
        height, width = query_size(flat_inputs)
        across, down = (int(self.distortion_scale * (side // 2)) for side in (width, height))
        near = [(0, across + 1), (0, down + 1)]
        far = [(width - across - 1, width), (height - down - 1, height)]
        corners = [(near[0], near[1]), (far[0], near[1]), (far[0], far[1]), (near[0], far[1])]
        ends = [[randint(low, high, (1,)).item() for low, high in corner] for corner in corners]
        starts = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        return {"startpoints": starts, "endpoints": ends}

    def transform(self, inpt, params):
        fill = by_class(self.fill, inpt)
        return F.perspective(inpt, params["startpoints"], params["endpoints"], self.interpolation, fill)


class ElasticTransform(Transform):
    """Seen through water: pixels move by smooth random amounts."""

    def __init__(self, alpha=50.0, sigma=5.0, interpolation=InterpolationMode.BILINEAR, fill=0) -> None:
        super().__init__()
        self.alpha, self.sigma = ([float(v) for v in F.F._two(values)] for values in (alpha, sigma))
        self.interpolation, self.fill = interpolation, fill

    def make_params(self, flat_inputs):
        size = query_size(flat_inputs)
        moves = []
        for alpha, sigma, side in zip(self.alpha, self.sigma, size[::-1]):
            noise = rand([1, 1, *size]) * 2 - 1
            if sigma > 0.0:
                width = int(8 * sigma + 1)
                width += width % 2 == 0
                noise = F.gaussian_blur(noise, [width, width], [sigma, sigma])
            moves.append(noise * alpha / side)
        return {"displacement": cat(moves, 1).permute(0, 2, 3, 1)}

    def transform(self, inpt, params):
        return F.elastic(inpt, params["displacement"], self.interpolation, by_class(self.fill, inpt))


class RandomZoomOut(RandomTransform):
    """Put anywhere on a larger canvas, filled with ``fill``."""

    def __init__(self, fill=0, side_range=(1.0, 4.0), p: float = 0.5) -> None:
        super().__init__(p)
        if side_range[0] < 1.0 or side_range[0] > side_range[1]:
            raise ValueError(f"Invalid side range provided {side_range}.")
        self.fill, self.side_range = fill, tuple(side_range)

    def make_params(self, flat_inputs):
        height, width = query_size(flat_inputs)
        low, high = self.side_range
        larger = low + rand(1).item() * (high - low)
        canvas_w, canvas_h = int(width * larger), int(height * larger)
        x, y = rand(2).tolist()
        left, top = int((canvas_w - width) * x), int((canvas_h - height) * y)
        return {"padding": [left, top, canvas_w - (left + width), canvas_h - (top + height)]}

    def transform(self, inpt, params):
        return F.pad(inpt, params["padding"], by_class(self.fill, inpt))


class RandomIoUCrop(Transform):
    """A part that overlaps a box by at least a random amount (https://arxiv.org/abs/1512.02325).

    Boxes whose middle is outside become zeros: ``SanitizeBoundingBoxes`` takes them out.
    """

    def __init__(
        self, min_scale=0.3, max_scale=1.0, min_aspect_ratio=0.5, max_aspect_ratio=2.0, sampler_options=None, trials=40
    ) -> None:
        super().__init__()
        self.min_scale, self.max_scale = min_scale, max_scale
        self.min_aspect_ratio, self.max_aspect_ratio = min_aspect_ratio, max_aspect_ratio
        self.options = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0] if sampler_options is None else sampler_options
        self.trials = trials

    def check_inputs(self, flat_inputs):
        if not (has_all(flat_inputs, BoundingBoxes) and has_any(flat_inputs, is_image)):
            raise TypeError(
                f"{type(self).__name__}() requires input sample to contain tensor or PIL images and bounding boxes. "
                "Sample can also contain masks."
            )

    def make_params(self, flat_inputs):
        height, width = query_size(flat_inputs)
        boxes = get_bounding_boxes(flat_inputs)
        corners = points.convert(boxes.as_subclass(Tensor), boxes.format.value, "XYXY")
        while True:
            least = self.options[int(randint(0, len(self.options), (1,)).item())]
            if least >= 1.0:
                return {}
            for _ in range(self.trials):
                found = self._try(height, width, corners, least)
                if found is not None:
                    return found

    def _try(self, height, width, corners, least) -> dict | None:
        a, b = (self.min_scale + (self.max_scale - self.min_scale) * r for r in rand(2).tolist())
        w, h = int(width * a), int(height * b)
        if not self.min_aspect_ratio <= w / h <= self.max_aspect_ratio:
            return None
        x, y = rand(2).tolist()
        left, top = int((width - w) * x), int((height - h) * y)
        if w == 0 or h == 0:
            return None
        cx, cy = 0.5 * (corners[..., 0] + corners[..., 2]), 0.5 * (corners[..., 1] + corners[..., 3])
        inside = (left < cx) & (cx < left + w) & (top < cy) & (cy < top + h)
        if not inside.any():
            return None
        part = corners.new_tensor([[left, top, left + w, top + h]])
        if box_iou(corners[inside], part).max() < least:
            return None
        return {"place": (top, left, h, w), "inside": inside}

    def transform(self, inpt, params):
        if not params:
            return inpt
        made = F.crop(inpt, *params["place"])
        if isinstance(made, BoundingBoxes):
            plain = made.as_subclass(Tensor).clone()
            plain[~params["inside"]] = 0
            return wrap(plain, like=made)
        return made


class _Sized(Transform):
    """Resized to a size that is drawn."""

    interpolation, antialias = InterpolationMode.BILINEAR, True

    def transform(self, inpt, params):
        return F.resize(inpt, params["size"], self.interpolation, antialias=self.antialias)


class ScaleJitter(_Sized):
    """As large as fits into ``target_size``, times a random factor (https://arxiv.org/abs/2012.07177)."""

    def __init__(self, target_size, scale_range=(0.1, 2.0), interpolation=InterpolationMode.BILINEAR, antialias=True):
        super().__init__()
        self.target_size, self.scale_range = tuple(target_size), scale_range
        self.interpolation, self.antialias = interpolation, antialias

    def make_params(self, flat_inputs):
        height, width = query_size(flat_inputs)
        low, high = self.scale_range
        factor = (low + rand(1) * (high - low)).item()
        factor *= min(self.target_size[0] / width, self.target_size[1] / height)
        return {"size": (int(height * factor), int(width * factor))}


class RandomShortestSize(_Sized):
    """The shorter side one of ``min_size``, the longer at most ``max_size``."""

    def __init__(self, min_size, max_size=None, interpolation=InterpolationMode.BILINEAR, antialias=True):
        super().__init__()
        self.min_size = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size, self.interpolation, self.antialias = max_size, interpolation, antialias

    def make_params(self, flat_inputs):
        height, width = query_size(flat_inputs)
        factor = self.min_size[int(randint(len(self.min_size), ()).item())] / min(height, width)
        if self.max_size is not None:
            factor = min(factor, self.max_size / max(height, width))
        return {"size": (int(height * factor), int(width * factor))}


class RandomResize(_Sized):
    """The shorter side from ``min_size`` to below ``max_size``."""

    def __init__(self, min_size: int, max_size: int, interpolation=InterpolationMode.BILINEAR, antialias=True):
        super().__init__()
        self.min_size, self.max_size = min_size, max_size
        self.interpolation, self.antialias = interpolation, antialias

    def make_params(self, flat_inputs):
        return {"size": [int(randint(self.min_size, self.max_size, ()).item())]}
