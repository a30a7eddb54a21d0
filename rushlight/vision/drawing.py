"""Boxes, masks, points and motion drawn on images (3, H, W). ``vision.utils`` shows these names."""

from __future__ import annotations

import math

import numpy as np

from .. import dtypes
from ..tensor import Tensor, wrap
from .pillow import pil_image
from .transforms.functional import convert_image_dtype

__all__ = ["draw_bounding_boxes", "draw_keypoints", "draw_segmentation_masks", "flow_to_image"]


def draw_bounding_boxes(
    image: Tensor,
    boxes: Tensor,
    labels: list[str | None] | None = None,
    colors=None,
    fill: bool | None = False,
    width: int = 1,
    font: str | None = None,
    font_size: int | None = None,
    label_colors=None,
    label_background_colors=None,
    fill_labels: bool = False,
) -> Tensor:
    """Rectangles (x1, y1, x2, y2) on an image (C, H, W), and a text beside each. Without ``colors`` they differ.

    >>> image = rushlight.zeros(3, 4, 4, dtype=rushlight.uint8)
    >>> rushlight.vision.utils.draw_bounding_boxes(image, rushlight.tensor([[0, 0, 3, 3]]), colors="red")[0]
    tensor([[255, 255, 255, 255],
            [255,   0,   0, 255],
            [255,   0,   0, 255],
            [255, 255, 255, 255]], dtype=torch.uint8)
    """
    _check_image(image)
    corners = boxes.detach().cpu().tolist()
    if any(x1 > x2 or y1 > y2 for x1, y1, x2, y2 in corners):
        raise ValueError("Boxes need to be in (xmin, ymin, xmax, ymax) format. Use torchvision.ops.box_convert.")
    labels = [None] * len(corners) if labels is None else labels
    if len(labels) != len(corners):
        raise ValueError(
            f"Number of boxes ({len(corners)}) and labels ({len(labels)}) mismatch. Please specify labels for each box."
        )
    outlines = _colors(colors, len(corners))
    inks = outlines if label_colors is None else _colors(label_colors, len(corners))
    papers = outlines if label_background_colors is None else _colors(label_background_colors, len(corners))
    canvas = _Canvas(image)
    letters = _font(font, font_size)
    for box, label, outline, ink, paper in zip(corners, labels, outlines, inks, papers):
        canvas.box(box, outline, width, fill)
        if label is not None:
            canvas.text((box[0] + width + 1, box[1] + width + 1), label, ink, letters, paper if fill_labels else None)
    return canvas.image()


def draw_segmentation_masks(image: Tensor, masks: Tensor, alpha: float = 0.8, colors=None) -> Tensor:
    """Masks (H, W) or (N, H, W) as colours laid over an image (3, H, W); ``alpha`` 0 is all image, 1 all colour.

    Where masks overlap it is black.
    """
    _check_image(image, channels=(3,))
    masks = masks[None] if masks.ndim == 2 else masks
    if masks.ndim != 3:
        raise ValueError("masks must be of shape (H, W) or (batch_size, H, W)")
    if masks.dtype is not dtypes.bool_:
        raise ValueError(f"The masks must be of dtype bool. Got {masks.dtype}")
    if masks.shape[-2:] != image.shape[-2:]:
        raise ValueError("The image and the masks must have the same height and width")
    full = 1.0 if image.is_floating_point() else 255.0
    under = image.detach().cpu().numpy().transpose(1, 2, 0).astype(np.float32)
    over, covered = under.copy(), masks.detach().cpu().numpy()
    for mask, color in zip(covered, _colors(colors, len(covered))):
        over[mask] = np.array(color, np.float32) * (full / 255)
    over[covered.sum(0) > 1] = 0
    mixed = under * (1 - alpha) + over * alpha
    return wrap(np.ascontiguousarray(mixed.transpose(2, 0, 1))).to(image.device).to(image.dtype)


def draw_keypoints(
    image: Tensor,
    keypoints: Tensor,
    connectivity: list[tuple[int, int]] | None = None,
    colors=None,
    radius: int = 2,
    width: int = 3,
    visibility: Tensor | None = None,
) -> Tensor:
    """Points (instances, K, 2) as dots on an image (3, H, W), joined by white lines as ``connectivity`` says."""
    _check_image(image, channels=(3,))
    if keypoints.ndim != 3:
        raise ValueError("keypoints must be of shape (num_instances, K, 2)")
    shown = np.ones(keypoints.shape[:2], bool) if visibility is None else visibility.detach().cpu().numpy().astype(bool)
    if shown.ndim == 3:
        shown = shown[..., 0]
    if shown.shape != tuple(keypoints.shape[:2]):
        raise ValueError("keypoints and visibility must have the same dimensionality (num_instances, K)")
    points = keypoints.detach().cpu().numpy()
    canvas = _Canvas(image)
    for body, visible, color in zip(points, shown, _colors("red" if colors is None else colors, len(points))):
        for place, is_shown in zip(body, visible):
            if is_shown:
                canvas.dot(place, radius, color)
        for start, end in connectivity or ():
            if visible[start] and visible[end]:
                canvas.line(body[start], body[end], width)
    return canvas.image()


def flow_to_image(flow: Tensor) -> Tensor:
    """Motion (2, H, W) or (N, 2, H, W) as colours: the hue is the direction, white is at rest.

    The colours are the wheel of the Middlebury benchmark; the fastest motion has the strongest ones.
    """
    if flow.dtype is not dtypes.float32:
        raise ValueError(f"Flow should be of dtype torch.float, got {flow.dtype}.")
    if flow.ndim not in (3, 4) or flow.shape[-3] != 2:
        raise ValueError(f"Input flow should have shape (2, H, W) or (N, 2, H, W), got {tuple(flow.shape)}.")
    across, down = np.moveaxis(flow.detach().cpu().numpy(), -3, 0)
    longest = np.sqrt(across**2 + down**2).max()
    across, down = across / (longest + np.finfo(np.float32).eps), down / (longest + np.finfo(np.float32).eps)
    wheel = _color_wheel()
    place = (np.arctan2(-down, -across) / math.pi + 1) / 2 * (len(wheel) - 1)
    first = np.floor(place).astype(np.int64)
    part = (place - first)[..., None]
    color = ((1 - part) * wheel[first] + part * wheel[(first + 1) % len(wheel)]) / 255
    speed = np.sqrt(across**2 + down**2)[..., None]
    made = np.floor(255 * (1 - speed * (1 - color))).astype(np.uint8)
    return wrap(np.ascontiguousarray(np.moveaxis(made, -1, -3))).to(flow.device)


# -- helpers ---------------------------------------------------------------------------------------------------------


class _Canvas:
    """A PIL image to draw on; what it was made of says what it becomes again."""

    def __init__(self, image: Tensor) -> None:
        from PIL import ImageDraw

        pixels = _as_bytes(image)
        pixels = pixels.repeat(3, 1, 1) if image.shape[0] == 1 else pixels
        self._of = image
        self._made = pil_image().fromarray(pixels.cpu().numpy().transpose(1, 2, 0).copy())
        self._pen = ImageDraw.Draw(self._made, "RGBA")

    def box(self, corners, color, width: int, fill) -> None:
        self._pen.rectangle(corners, width=width, outline=color, fill=(*color, 100) if fill else None)

    def text(self, place, text: str, color, font, paper) -> None:
        if paper is not None:
            self._pen.rectangle(self._pen.textbbox(place, text, font=font), fill=paper)
            color = (0, 0, 0) if sum(paper) > 382 and paper == color else (255, 255, 255) if paper == color else color
        self._pen.text(place, text, fill=color, font=font)

    def dot(self, place, radius: int, color) -> None:
        x, y = (float(v) for v in place)
        self._pen.ellipse([x - radius, y - radius, x + radius, y + radius], fill=color, outline=None, width=0)

    def line(self, start, end, width: int) -> None:
        self._pen.line([*map(float, start), *map(float, end)], width=width, fill=(255, 255, 255))

    def image(self) -> Tensor:
        return _like(np.array(self._made), self._of)


def _check_image(image, channels=(1, 3)) -> None:
    if not isinstance(image, Tensor):
        raise TypeError(f"The image must be a tensor, got {type(image)}")
    if image.dtype is not dtypes.uint8 and not image.is_floating_point():
        raise ValueError(f"The image dtype must be uint8 or float, got {image.dtype}")
    if image.ndim != 3:
        raise ValueError(f"Pass an individual image (C, H, W), not a tensor of {image.ndim} dimensions")
    if image.shape[0] not in channels:
        raise ValueError(f"Pass an image with {' or '.join(map(str, channels))} channels, got {image.shape[0]}")


def _as_bytes(image: Tensor) -> Tensor:
    image = image.detach()
    return convert_image_dtype(image.clamp(0, 1), dtypes.uint8) if image.is_floating_point() else image


def _like(pixels: np.ndarray, image: Tensor) -> Tensor:
    """Pixels (H, W, 3) as a tensor with the image's dtype and device."""
    made = wrap(np.ascontiguousarray(pixels.transpose(2, 0, 1))).to(image.device)
    return convert_image_dtype(made, image.dtype) if image.is_floating_point() else made


def _colors(colors, count: int) -> list[tuple[int, ...]]:
    """A colour (red, green, blue) for each of ``count`` things, from names or triples; else they differ."""
    if colors is None:
        return [(i % 255, i * 127 % 255, i * 31 % 255) for i in range(count)]
    if isinstance(colors, (str, tuple)):
        colors = [colors] * count
    if len(colors) < count:
        raise ValueError(f"There are {count} things to draw but only {len(colors)} colors; give one for each")
    from PIL import ImageColor

    return [ImageColor.getrgb(c)[:3] if isinstance(c, str) else tuple(c) for c in colors[:count]]


def _font(font: str | None, size: int | None):
    from PIL import ImageFont

    return ImageFont.load_default() if font is None else ImageFont.truetype(font, size or 10)


def _color_wheel() -> np.ndarray:
    """Colours (55, 3) round the circle, closer together where the eye tells fewer of them apart."""
    rows = []
    # From colour to colour: the channel that moves, whether it rises, which others are full, and in how many steps.
    for steps, moving, rises, full in (
        (15, 1, 1, 0),
        (6, 0, 0, 1),
        (4, 2, 1, 1),
        (11, 1, 0, 2),
        (13, 0, 1, 2),
        (6, 2, 0, 0),
    ):
        part = np.zeros((steps, 3))
        part[:, full] = 255
        ramp = np.floor(255 * np.arange(steps) / steps)
        part[:, moving] = ramp if rises else 255 - ramp
        rows.append(part)
    return np.concatenate(rows)
