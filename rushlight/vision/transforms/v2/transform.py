"""What the transforms share: one call for samples of any form, images, boxes, masks and all."""

from __future__ import annotations

from enum import Enum

from ....nn.module import Module
from ....ops.random import rand
from ....tensor import Tensor
from ....utils._pytree import tree_flatten, tree_unflatten
from ...pillow import is_pil_image
from ...tv_tensors import BoundingBoxes, Image, KeyPoints, TVTensor, Video
from . import functional as F

__all__ = [
    "Transform", "check_type", "get_bounding_boxes", "get_keypoints", "has_all", "has_any", "is_image", "query_chw",
    "query_size",
]  # fmt: skip


class Transform(Module):
    """Base class: override ``transform(inpt, params)``, and ``make_params(flat_inputs)`` where it draws.

    A plain tensor counts as the image only where the sample has no image or video, and only the first one.
    """

    def check_inputs(self, flat_inputs: list) -> None:
        """Raise where a sample cannot be transformed."""

    def make_params(self, flat_inputs: list) -> dict:
        """What is drawn once for all parts of a sample."""
        return {}

    def transform(self, inpt, params: dict):
        """One part of a sample."""
        raise NotImplementedError(f"{type(self).__name__} has no transform(inpt, params)")

    def forward(self, *inputs):
        flat, form = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        self.check_inputs(flat)
        if not self._happens():
            return inputs if len(inputs) > 1 else inputs[0]
        concerned = self._concerned(flat)
        params = self.make_params([part for part, is_one in zip(flat, concerned) if is_one])
        made = [self.transform(part, params) if is_one else part for part, is_one in zip(flat, concerned)]
        return tree_unflatten(made, form)

    def _happens(self) -> bool:
        return True

    def _concerns(self, part) -> bool:
        return isinstance(part, Tensor) or is_pil_image(part)

    def _concerned(self, flat: list) -> list[bool]:
        takes_plain = not has_any(flat, Image, Video, is_pil_image)
        answers = []
        for part in flat:
            answer = self._concerns(part)
            if answer and F.is_pure_tensor(part):
                answer, takes_plain = takes_plain, False
            answers.append(answer)
        return answers

    def extra_repr(self) -> str:
        shown = (
            f"{name}={value.value if isinstance(value, Enum) else value}"
            for name, value in self.__dict__.items()
            if not name.startswith("_")
            and name != "training"
            and isinstance(value, (bool, int, float, str, tuple, list, Enum))
        )
        return ", ".join(shown)

    __repr__ = Module.__repr__  # not that of the first transforms, which some classes inherit too


class RandomTransform(Transform):
    """One that happens with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        super().__init__()
        self.p = p

    def _happens(self) -> bool:
        return not rand(1).item() >= self.p


def is_image(part) -> bool:
    """An image: one of ``tv_tensors``, a PIL image, or a plain tensor."""
    return isinstance(part, Image) or is_pil_image(part) or F.is_pure_tensor(part)


def check_type(part, types) -> bool:
    """Is it one of these classes, or does one of these functions say so?"""
    return any(isinstance(part, t) if isinstance(t, type) else t(part) for t in types)


def has_any(flat_inputs: list, *types) -> bool:
    """Is there a part of one of these classes?"""
    return any(check_type(part, types) for part in flat_inputs)


def has_all(flat_inputs: list, *types) -> bool:
    """Is there a part of each of these classes?"""
    return all(has_any(flat_inputs, t) for t in types)


def query_size(flat_inputs: list) -> tuple[int, int]:
    """Height and width, which all parts of a sample have to share."""
    placed = [p for p in flat_inputs if isinstance(p, (TVTensor, Tensor)) or is_pil_image(p)]
    sizes = {tuple(F.get_size(p)) for p in placed}
    if not sizes:
        raise TypeError("No image, video, mask, bounding box of keypoint was found in the sample")
    if len(sizes) > 1:
        raise ValueError(f"Found multiple HxW dimensions in the sample: {sorted(sizes)}")
    height, width = sizes.pop()
    return height, width


def query_chw(flat_inputs: list) -> tuple[int, int, int]:
    """Channels, height and width of the images of a sample."""
    found = {tuple(F.get_dimensions(p)) for p in flat_inputs if is_image(p) or isinstance(p, Video)}
    if not found:
        raise TypeError("No image or video was found in the sample")
    if len(found) > 1:
        raise ValueError(f"Found multiple CxHxW dimensions in the sample: {sorted(found)}")
    channels, height, width = found.pop()
    return channels, height, width


def get_bounding_boxes(flat_inputs: list) -> BoundingBoxes:
    """The boxes of a sample."""
    found = next((p for p in flat_inputs if isinstance(p, BoundingBoxes)), None)
    if found is None:
        raise ValueError("No bounding boxes were found in the sample")
    return found


def get_keypoints(flat_inputs: list) -> KeyPoints:
    """The key points of a sample."""
    found = next((p for p in flat_inputs if isinstance(p, KeyPoints)), None)
    if found is None:
        raise ValueError("No keypoints were found in the sample")
    return found


def by_class(values, part):
    """What a dict by class (or "others") says of a part; anything else counts for all."""
    if not isinstance(values, dict):
        return values
    found = values.get(type(part), values.get("others"))
    if found is None and F.is_pure_tensor(part):
        return values.get(Image)
    return found
