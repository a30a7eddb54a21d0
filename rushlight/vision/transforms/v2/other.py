"""Transforms made of transforms, conversions, and what concerns labels and boxes."""

from __future__ import annotations

import numpy as np

from .... import dtypes
from ....ops.creation import tensor
from ....ops.random import multinomial, rand, randperm
from ....tensor import Tensor
from ....utils._pytree import tree_flatten, tree_unflatten
from ...pillow import is_pil_image
from ...tv_tensors import BoundingBoxes, KeyPoints, Mask, TVTensor, Video, wrap
from . import functional as F
from .transform import Transform, get_bounding_boxes, get_keypoints, is_image

__all__ = [
    "ClampBoundingBoxes", "ClampKeyPoints", "Compose", "ConvertBoundingBoxFormat", "ConvertImageDtype", "Identity",
    "Lambda", "LinearTransformation", "Normalize", "PILToTensor", "RandomApply", "RandomChoice", "RandomOrder",
    "SanitizeBoundingBoxes", "SanitizeKeyPoints", "SetClampingMode", "ToDtype", "ToImage", "ToPILImage",
    "ToPureTensor", "ToTensor", "UniformTemporalSubsample",
]  # fmt: skip


class Compose(Transform):
    """One transform after the other."""

    def __init__(self, transforms) -> None:
        super().__init__()
        if not isinstance(transforms, (list, tuple)):
            raise TypeError("Argument transforms should be a sequence of callables")
        if not transforms:
            raise ValueError("Pass at least one transform")
        self.transforms = transforms

    def forward(self, *inputs):
        for transform in self.transforms:
            made = transform(*inputs)
            inputs = made if len(inputs) > 1 else (made,)
        return made

    def extra_repr(self) -> str:
        return "\n".join(f"    {t}" for t in self.transforms)


class RandomApply(Compose):
    """All the transforms with probability ``p``, else none."""

    def __init__(self, transforms, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        Transform.__init__(self)
        self.transforms, self.p = transforms, p

    def forward(self, *inputs):
        if rand(1).item() >= self.p:
            return inputs if len(inputs) > 1 else inputs[0]
        return super().forward(*inputs)


class RandomChoice(Transform):
    """One of the transforms."""

    def __init__(self, transforms, p=None) -> None:
        if p is not None and len(p) != len(transforms):
            raise ValueError(f"Length of p doesn't match the number of transforms: {len(p)} != {len(transforms)}")
        super().__init__()
        p = [1] * len(transforms) if p is None else p
        self.transforms, self.p = transforms, [one / sum(p) for one in p]

    def forward(self, *inputs):
        return self.transforms[int(multinomial(tensor(self.p), 1).item())](*inputs)


class RandomOrder(Compose):
    """All the transforms in a random order."""

    extra_repr = Transform.extra_repr

    def forward(self, *inputs):
        for i in randperm(len(self.transforms)).tolist():
            made = self.transforms[i](*inputs)
            inputs = made if len(inputs) > 1 else (made,)
        return made


class Lambda(Transform):
    """Any function, of the parts of the classes ``types``."""

    def __init__(self, lambd, *types: type) -> None:
        super().__init__()
        self.lambd, self.types = lambd, types or (object,)

    def _concerned(self, flat):
        return [isinstance(part, self.types) for part in flat]

    def transform(self, inpt, params):
        return self.lambd(inpt)

    def extra_repr(self) -> str:
        name = getattr(self.lambd, "__name__", "")
        return ", ".join([*([name] if name else []), f"types={[t.__name__ for t in self.types]}"])


class Identity(Transform):
    """Leaves everything as it is."""

    def transform(self, inpt, params):
        return inpt


# -- conversions -----------------------------------------------------------------------------------------------------


class ToImage(Transform):
    """A PIL image, array (H, W, C) or tensor as an ``Image``."""

    def _concerns(self, part):
        return is_image(part) or isinstance(part, np.ndarray)

    def transform(self, inpt, params):
        return F.to_image(inpt)


class PILToTensor(Transform):
    """A PIL image as a tensor (C, H, W) of its own values."""

    def _concerns(self, part):
        return is_pil_image(part)

    def transform(self, inpt, params):
        return F.pil_to_tensor(inpt)


class ToTensor(PILToTensor):
    """A PIL image or array as a float tensor; ``ToImage`` and ``ToDtype(float32, scale=True)`` say it better."""

    def _concerns(self, part):
        return is_pil_image(part) or isinstance(part, np.ndarray)

    def transform(self, inpt, params):
        return F.to_tensor(inpt)


class ToPILImage(Transform):
    """A tensor or array as a PIL image."""

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def _concerns(self, part):
        return is_image(part) or isinstance(part, np.ndarray)

    def transform(self, inpt, params):
        return inpt if is_pil_image(inpt) else F.to_pil_image(F._plain(inpt), self.mode)


class ToPureTensor(Transform):
    """Plain tensors of all ``tv_tensors``."""

    def _concerns(self, part):
        return isinstance(part, TVTensor)

    def transform(self, inpt, params):
        return inpt.as_subclass(Tensor)


class ToDtype(Transform):
    """Another dtype for images and videos, or by class; with ``scale``, images scaled to that dtype's range."""

    def __init__(self, dtype, scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, (dict, dtypes.dtype)):
            raise ValueError(f"dtype must be a dict or a torch.dtype, got {type(dtype)} instead")
        self.dtype, self.scale = dtype, scale

    def transform(self, inpt, params):
        if not isinstance(self.dtype, dict):
            wanted = self.dtype if is_image(inpt) or isinstance(inpt, Video) else None
        elif type(inpt) in self.dtype:
            wanted = self.dtype[type(inpt)]
        elif "others" in self.dtype:
            wanted = self.dtype["others"]
        elif is_image(inpt) or isinstance(inpt, Video):
            wanted = None
        else:
            raise ValueError(
                f"No dtype was specified for type {type(inpt)}. If you only need to convert the dtype of images or "
                "videos, you can just pass e.g. dtype=torch.float32. If you're passing a dict as dtype, you can use "
                '"others" as a catch-all key e.g. dtype={tv_tensors.Mask: torch.int64, "others": None} to pass-through '
                "the rest of the inputs."
            )
        if wanted is None or is_pil_image(inpt):
            return inpt
        return F.to_dtype(inpt, wanted, self.scale)


class ConvertImageDtype(Transform):
    """An image in another dtype, its values scaled to that dtype's range."""

    def __init__(self, dtype=dtypes.float32) -> None:
        super().__init__()
        self.dtype = dtype

    def transform(self, inpt, params):
        return F.to_dtype(inpt, self.dtype, scale=True)


class ConvertBoundingBoxFormat(Transform):
    """Boxes in another format: "XYXY", "XYWH" or "CXCYWH"."""

    def __init__(self, format) -> None:
        super().__init__()
        self.format = format

    def _concerns(self, part):
        return isinstance(part, BoundingBoxes)

    def transform(self, inpt, params):
        return F.convert_bounding_box_format(inpt, new_format=self.format)


# -- the rest --------------------------------------------------------------------------------------------------------


class Normalize(Transform):
    """``(image - mean) / std`` by channel."""

    def __init__(self, mean, std, inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = list(mean), list(std), inplace

    def check_inputs(self, flat_inputs):
        if any(is_pil_image(part) for part in flat_inputs):
            raise TypeError(f"{type(self).__name__}() does not support PIL images.")

    def transform(self, inpt, params):
        return F.normalize(inpt, self.mean, self.std, self.inplace)


class LinearTransformation(Transform):
    """All values of an image, less a mean, times a matrix: whitening."""

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        if transformation_matrix.shape[0] != transformation_matrix.shape[1]:
            raise ValueError(f"transformation_matrix should be square. Got {tuple(transformation_matrix.size())}.")
        if mean_vector.shape[0] != transformation_matrix.shape[0]:
            raise ValueError(
                f"mean_vector should have the same length {mean_vector.shape[0]} as any one of the dimensions of the "
                f"transformation_matrix [{tuple(transformation_matrix.size())}]"
            )
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def transform(self, inpt, params):
        values = F._plain(inpt)
        flat = values.reshape(-1, self.mean_vector.shape[0]) - self.mean_vector
        return F._like((flat @ self.transformation_matrix).reshape(values.shape), inpt)


class UniformTemporalSubsample(Transform):
    """As many images of a video, at equal distances."""

    def __init__(self, num_samples: int) -> None:
        super().__init__()
        self.num_samples = num_samples

    def _concerns(self, part):
        return isinstance(part, Video) or F.is_pure_tensor(part)

    def transform(self, inpt, params):
        return F.uniform_temporal_subsample(inpt, self.num_samples)


class ClampBoundingBoxes(Transform):
    """Boxes cut off at the borders of the image."""

    def __init__(self, clamping_mode: str | None = "auto") -> None:
        super().__init__()
        self.clamping_mode = clamping_mode

    def _concerns(self, part):
        return isinstance(part, BoundingBoxes)

    def transform(self, inpt, params):
        return F.clamp_bounding_boxes(inpt)


class ClampKeyPoints(Transform):
    """Points outside of the image moved to its last pixel."""

    def _concerns(self, part):
        return isinstance(part, KeyPoints)

    def transform(self, inpt, params):
        return F.clamp_keypoints(inpt)


class SetClampingMode(ClampBoundingBoxes):
    """Whether later transforms cut boxes off at the borders ("soft", "hard") or not (None)."""

    def __init__(self, clamping_mode: str | None) -> None:
        super().__init__(clamping_mode)

    def transform(self, inpt, params):
        made = wrap(inpt.as_subclass(Tensor), like=inpt)
        made.clamping_mode = self.clamping_mode
        return made


class SanitizeBoundingBoxes(Transform):
    """Takes out boxes that are too small or outside, with their masks and labels.

    ``labels_getter`` finds the labels in a sample: by default the entry of a dict whose name has "label" in it.
    """

    def __init__(self, min_size: float = 1.0, min_area: float = 1.0, labels_getter="default") -> None:
        super().__init__()
        if min_size < 1:
            raise ValueError(f"min_size must be >= 1, got {min_size}.")
        if min_area < 1:
            raise ValueError(f"min_area must be >= 1, got {min_area}.")
        self.min_size, self.min_area, self.labels_getter = min_size, min_area, labels_getter

    def _kept(self, flat: list) -> Tensor:
        return F.sanitize_bounding_boxes(get_bounding_boxes(flat), min_size=self.min_size, min_area=self.min_area)[1]

    def forward(self, *inputs):
        sample = inputs if len(inputs) > 1 else inputs[0]
        labels = _labels(self.labels_getter, sample)
        flat, form = tree_flatten(sample)
        kept = self._kept(flat)
        for one in labels:
            if len(one) != len(kept):
                raise ValueError(f"Number of boxes (shape={len(kept)}) and must match the number of labels {len(one)}.")
        return tree_unflatten([self._sifted(part, kept, labels) for part in flat], form)

    def _sifted(self, part, kept: Tensor, labels):
        if any(part is one for one in labels) and not isinstance(part, TVTensor):
            return part[kept]
        if isinstance(part, BoundingBoxes) or (isinstance(part, Mask) and len(part) == len(kept)):
            return wrap(part.as_subclass(Tensor)[kept], like=part)
        return part


class SanitizeKeyPoints(SanitizeBoundingBoxes):
    """Takes out points outside of the image, with their labels."""

    def __init__(self, labels_getter=None) -> None:
        Transform.__init__(self)
        self.labels_getter = labels_getter

    def _kept(self, flat):
        found = get_keypoints(flat)
        (height, width), plain = found.canvas_size, found.as_subclass(Tensor)
        x, y = plain[..., 0], plain[..., 1]
        inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        return inside.reshape(len(plain), -1).all(1)

    def _sifted(self, part, kept, labels):
        if isinstance(part, KeyPoints):
            return wrap(part.as_subclass(Tensor)[kept], like=part)
        return part[kept] if any(part is one for one in labels) else part


def _labels(getter, sample) -> tuple:
    """The labels of a sample, as a tuple of tensors."""
    if getter is None:
        return ()
    found = default_labels(sample) if getter == "default" else getter(sample)
    return found if isinstance(found, tuple) else () if found is None else (found,)


def default_labels(sample):
    """The entry "labels" of a dict, else the first with "label" in its name; of a tuple, in its second part."""
    if isinstance(sample, (tuple, list)):
        sample = sample[1] if len(sample) > 1 else None
    if isinstance(sample, Tensor):
        return sample
    if not isinstance(sample, dict):
        raise ValueError(
            "When using the default labels_getter, the input passed to forward must be a dictionary or a two-tuple "
            f"whose second item is a dictionary or a tensor, but got {sample} instead."
        )
    names = [name for name in sample if isinstance(name, str) and "label" in name.lower()]
    name = next((name for name in names if name.lower() == "labels"), names[0] if names else None)
    if name is None:
        raise ValueError(
            "Could not infer where the labels are in the sample. Try passing a callable as the labels_getter parameter?"
            "If there are no labels in the sample by design, pass labels_getter=None."
        )
    return sample[name]
