"""Batches mixed with themselves: labels become probabilities."""

from __future__ import annotations

import math

from .... import dtypes
from ....nn.functional import one_hot
from ....ops.creation import tensor
from ....ops.random import randint
from ....utils._pytree import tree_flatten, tree_unflatten
from ...pillow import is_pil_image
from ...tv_tensors import BoundingBoxes, Mask, Video
from . import functional as F
from .other import _labels
from .transform import Transform, has_any, is_image, query_size

__all__ = ["CutMix", "MixUp"]


class _Mixing(Transform):
    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None, labels_getter="default") -> None:
        super().__init__()
        from ....distributions import Beta  # it stands above vision

        self.alpha, self.num_classes = float(alpha), num_classes
        self._labels_getter = labels_getter
        self._dist = Beta(tensor([self.alpha]), tensor([self.alpha]))

    def forward(self, *inputs):
        sample = inputs if len(inputs) > 1 else inputs[0]
        labels = _labels(self._labels_getter, sample)
        flat, form = tree_flatten(sample)
        if has_any(flat, is_pil_image, BoundingBoxes, Mask):
            raise ValueError(f"{type(self).__name__}() does not support PIL images, bounding boxes and masks.")
        images = [p for p in flat if (is_image(p) or isinstance(p, Video)) and not any(p is one for one in labels)]
        self._check(images, labels)
        params = self.make_params(images)
        return tree_unflatten([self._part(part, labels, images, params) for part in flat], form)

    def _check(self, images, labels) -> None:
        for image in images:
            dims = 5 if isinstance(image, Video) else 4
            if image.ndim != dims:
                raise ValueError(f"Expected a batched input with {dims} dims, but got {image.ndim} dimensions instead.")
            for one in labels:
                if len(one) != len(image):
                    raise ValueError(
                        "The batch size of the image or video does not match the batch size of the labels: "
                        f"{len(image)} != {len(one)}."
                    )

    def _part(self, part, labels, images, params):
        if any(part is one for one in labels):
            return self._mixed_labels(part, params["lam"])
        if any(part is one for one in images):
            return F._like(self._mixed(F._plain(part), params), part)
        return part

    def _mixed_labels(self, label, lam: float):
        if label.ndim == 1:
            if self.num_classes is None:
                raise ValueError("num_classes must be passed if the labels are index-based (1D)")
            label = one_hot(label, num_classes=self.num_classes)
        label = label if label.is_floating_point() else label.to(dtypes.float32)
        return label.roll(1, 0) * (1.0 - lam) + label * lam


class MixUp(_Mixing):
    """Each image and its neighbour in the batch, laid over each other (https://arxiv.org/abs/1710.09412)."""

    def make_params(self, flat_inputs):
        return {"lam": float(self._dist.sample(()))}

    def _mixed(self, image, params):
        return image.roll(1, 0) * (1.0 - params["lam"]) + image * params["lam"]


class CutMix(_Mixing):
    """A rectangle of each image from its neighbour in the batch (https://arxiv.org/abs/1905.04899)."""

    def make_params(self, flat_inputs):
        lam = float(self._dist.sample(()))
        height, width = query_size(flat_inputs)
        x, y = randint(width, size=(1,)).item(), randint(height, size=(1,)).item()
        half = 0.5 * math.sqrt(1.0 - lam)
        across, down = int(half * width), int(half * height)
        x1, y1, x2, y2 = max(x - across, 0), max(y - down, 0), min(x + across, width), min(y + down, height)
        return {"lam": float(1.0 - (x2 - x1) * (y2 - y1) / (width * height)), "box": (x1, y1, x2, y2)}

    def _mixed(self, image, params):
        x1, y1, x2, y2 = params["box"]
        made = image.clone()
        made[..., y1:y2, x1:x2] = image.roll(1, 0)[..., y1:y2, x1:x2]
        return made
