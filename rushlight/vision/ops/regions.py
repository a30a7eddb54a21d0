"""Parts of feature maps, brought to one size: RoIAlign and RoIPool."""

from __future__ import annotations

import math

import numpy as np

import rushlight as torch

from ... import nn
from ...ops.common import known_values

__all__ = ["RoIAlign", "RoIPool", "roi_align", "roi_pool"]


def roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio: int = -1, aligned: bool = False):
    """The mean of interpolated samples in each cell of a grid over each box.

    ``boxes``: (K, 5) with the number of the image first, or a list with (L, 4) for each image. Bilinear interpolation
    is one matrix for the rows and one for the columns, so a box is two small products.
    """
    numbers, corners = _regions(boxes)
    high, wide = _pair(output_size)
    shift = 0.5 if aligned else 0.0
    found = []
    for image, (x1, y1, x2, y2) in zip(numbers, corners * spatial_scale - shift):
        sizes = [y2 - y1, x2 - x1] if aligned else [max(y2 - y1, 1.0), max(x2 - x1, 1.0)]
        rows = _samples(y1, sizes[0], high, input.shape[2], sampling_ratio)
        columns = _samples(x1, sizes[1], wide, input.shape[3], sampling_ratio)
        found.append(_between(input[image], rows, columns))
    if not found:
        return input.new_zeros((0, input.shape[1], high, wide))
    return torch.stack(found)


def roi_pool(input, boxes, output_size, spatial_scale: float = 1.0):
    """The largest value in each cell of a grid over each box; boxes and cells are rounded to whole pixels."""
    numbers, corners = _regions(boxes)
    high, wide = _pair(output_size)
    found = []
    for image, corner in zip(numbers, corners * spatial_scale):
        x1, y1, x2, y2 = (math.floor(abs(v) + 0.5) * (1 if v >= 0 else -1) for v in corner)
        rows = _cells(y1, max(y2 - y1 + 1, 1), high, input.shape[2])
        columns = _cells(x1, max(x2 - x1 + 1, 1), wide, input.shape[3])
        cells = [[_largest(input[image], r, c) for c in columns] for r in rows]
        found.append(torch.stack([torch.stack(line, -1) for line in cells], -2))
    if not found:
        return input.new_zeros((0, input.shape[1], high, wide))
    return torch.stack(found)


class _Region(nn.Module):
    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"

    _shown: tuple = ()


class RoIAlign(_Region):
    """See ``roi_align``."""

    _shown = ("output_size", "spatial_scale", "sampling_ratio", "aligned")

    def __init__(self, output_size, spatial_scale: float, sampling_ratio: int, aligned: bool = False):
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale
        self.sampling_ratio, self.aligned = sampling_ratio, aligned

    def forward(self, input, rois):
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)


class RoIPool(_Region):
    """See ``roi_pool``."""

    _shown = ("output_size", "spatial_scale")

    def __init__(self, output_size, spatial_scale: float):
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def forward(self, input, rois):
        return roi_pool(input, rois, self.output_size, self.spatial_scale)


def _pair(size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def _regions(boxes):
    """(the image of each box, the corners) as NumPy's arrays."""
    if isinstance(boxes, (list, tuple)):
        if any(b.ndim != 2 or b.shape[1] != 4 for b in boxes):
            raise ValueError("The shape of the tensor in the boxes list is not correct as List[Tensor[L, 4]].")
        numbers = np.concatenate([np.full(len(b), i) for i, b in enumerate(boxes)]) if boxes else np.zeros(0, int)
        boxes = torch.cat(list(boxes)) if boxes else torch.zeros(0, 4)
        corners = known_values(boxes.detach())
    elif boxes.ndim == 2 and boxes.shape[1] == 5:
        values = known_values(boxes.detach())
        numbers, corners = (None, None) if values is None else (values[:, 0].astype(int), values[:, 1:])
    else:
        raise ValueError("The boxes tensor shape is not correct as Tensor[K, 5].")
    if corners is None:
        raise RuntimeError("regions are cut out by their boxes' values, which a compiled program does not know")
    return numbers, corners.astype(np.float64)


def _samples(start: float, size: float, count: int, length: int, ratio: int) -> np.ndarray:
    """(count, length): how much each pixel weighs in the mean over each cell."""
    each = ratio if ratio > 0 else max(math.ceil(size / count), 0)
    places = start + (np.arange(count)[:, None] + (np.arange(each) + 0.5) / max(each, 1)) * (size / count)
    weights = np.zeros((count, length))
    inside = (places >= -1.0) & (places <= length)
    at = np.clip(places, 0, None)
    low = np.minimum(at.astype(int), length - 1)
    upper = np.minimum(low + 1, length - 1)
    part = np.where(low >= length - 1, 0.0, at - low)
    cells = np.broadcast_to(np.arange(count)[:, None], places.shape)
    np.add.at(weights, (cells[inside], low[inside]), (1 - part[inside]) / max(each, 1))
    np.add.at(weights, (cells[inside], upper[inside]), part[inside] / max(each, 1))
    return weights


def _between(image, rows: np.ndarray, columns: np.ndarray):
    """The two products, of the pixels that weigh anything."""
    used = [np.flatnonzero(w.any(0)) for w in (rows, columns)]
    if not len(used[0]) or not len(used[1]):
        return image.new_zeros((image.shape[0], len(rows), len(columns)))
    (top, bottom), (left, right) = ((u[0], u[-1] + 1) for u in used)
    cut = image[:, int(top) : int(bottom), int(left) : int(right)]
    down = torch.from_numpy(np.ascontiguousarray(rows[:, top:bottom])).to(cut)
    across = torch.from_numpy(np.ascontiguousarray(columns[:, left:right])).to(cut)
    return down @ (cut @ across.t())


def _cells(start: int, size: int, count: int, length: int) -> list[tuple[int, int]]:
    step = size / count
    ends = [(math.floor(i * step) + start, math.ceil((i + 1) * step) + start) for i in range(count)]
    return [(min(max(a, 0), length), min(max(b, 0), length)) for a, b in ends]


def _largest(image, rows, columns):
    if rows[0] >= rows[1] or columns[0] >= columns[1]:
        return image.new_zeros(image.shape[0])
    return image[:, rows[0] : rows[1], columns[0] : columns[1]].flatten(1).max(1).values
