"""Where the points of an image go. Each change of place is a 3x3 matrix on (x, y, 1) and the new (height, width).

Boxes move by their corners, key points as they are; pixels are moved by ``transforms.functional``.
"""

from __future__ import annotations

import numpy as np

from ....tensor import Tensor
from ....tensor import wrap as as_plain
from ...ops.boxes import box_convert, clip_boxes_to_image
from ...tv_tensors import BoundingBoxes, KeyPoints, wrap


def shift(across: float, down: float) -> np.ndarray:
    """Every point moved by the same."""
    return np.array([[1.0, 0, across], [0, 1.0, down], [0, 0, 1.0]])


def scale(across: float, down: float) -> np.ndarray:
    """Every point further from the upper left corner, by factors."""
    return np.diag([across, down, 1.0])


def move(inpt: BoundingBoxes | KeyPoints, matrix: np.ndarray, size, clamp: bool) -> Tensor:
    """Boxes or key points moved by a matrix into a canvas of ``size``; with ``clamp``, boxes are cut off there."""
    plain, size = inpt.as_subclass(Tensor), tuple(int(n) for n in size)
    if isinstance(inpt, KeyPoints):
        moved = _through(plain.reshape(-1, 2), matrix).reshape(plain.shape)
        return wrap(moved.to(plain.dtype), like=inpt, canvas_size=size)
    x1, y1, x2, y2 = convert(plain, inpt.format.value, "XYXY").unbind(-1)
    corners = [_through(_pairs(x, y), matrix) for x, y in ((x1, y1), (x2, y1), (x2, y2), (x1, y2))]
    around = _around(corners)
    made = wrap(convert(around.to(plain.dtype), "XYXY", inpt.format.value), like=inpt, canvas_size=size)
    return clamp_boxes(made) if clamp else made


def clamp_boxes(boxes: BoundingBoxes) -> Tensor:
    """Boxes cut off at the borders of their canvas."""
    if boxes.clamping_mode is None:
        return boxes
    corners = convert(boxes.as_subclass(Tensor), boxes.format.value, "XYXY")
    inside = clip_boxes_to_image(corners, boxes.canvas_size)
    return wrap(convert(inside, "XYXY", boxes.format.value), like=boxes)


def clamp_points(points: KeyPoints) -> Tensor:
    """Points outside of their canvas moved to its last pixel."""
    plain, (height, width) = points.as_subclass(Tensor).clone(), points.canvas_size
    plain[..., 0] = plain[..., 0].clamp(0, width - 1)
    plain[..., 1] = plain[..., 1].clamp(0, height - 1)
    return wrap(plain, like=points)


def convert(boxes: Tensor, before: str, after: str) -> Tensor:
    """``ops.box_convert``, for whole numbers too: they stay what they are."""
    made = box_convert(boxes, before.lower(), after.lower())
    return made if made.dtype is boxes.dtype else made.to(boxes.dtype)


def _through(points: Tensor, matrix: np.ndarray) -> Tensor:
    values = points if points.is_floating_point() else points.float()
    m = as_plain(matrix.astype(values.dtype.numpy)).to(values.device)
    moved = values @ m[:2, :2].T + m[:2, 2]
    if matrix[2, 0] == 0 == matrix[2, 1]:
        return moved
    return moved / (values @ m[2, :2] + m[2, 2]).unsqueeze(-1)


def _pairs(x: Tensor, y: Tensor) -> Tensor:
    from ....ops.join import stack

    return stack((x, y), -1)


def _around(corners: list[Tensor]) -> Tensor:
    """The boxes (N, 4) around four corners each."""
    from ....ops.join import cat, stack

    many = stack(corners)
    return cat((many.amin(0), many.amax(0)), -1)
