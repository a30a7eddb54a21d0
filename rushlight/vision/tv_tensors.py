"""Tensors that say what they are, under torchvision's names: images, videos, masks, boxes, points.

``transforms.v2`` asks for their class. Arithmetic gives plain tensors; ``clone``, ``to``, ``detach`` and
``requires_grad_`` keep the class. The module is imported when it is first named: a class that overrides costs
every public function one test.
"""

from __future__ import annotations

import contextlib
import enum

from ..autograd.overriding import DisableTorchFunctionSubclass
from ..ops.creation import as_tensor
from ..tensor import Tensor
from .pillow import is_pil_image

__all__ = [
    "BoundingBoxFormat", "BoundingBoxes", "Image", "KeyPoints", "Mask", "TVTensor", "Video",
    "is_rotated_bounding_format", "set_return_type", "wrap",
]  # fmt: skip

_keeps_class = False  # what set_return_type sets


def __dir__():
    return __all__


class TVTensor(Tensor):
    """What the classes below share."""

    _facts: tuple[str, ...] = ()  # attributes beside the values

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with DisableTorchFunctionSubclass():
            output = func(*args, **(kwargs or {}))
        first = next((a for a in args if isinstance(a, TVTensor)), None)
        if first is not None and (_keeps_class or getattr(func, "__name__", "") in _KEEP):
            return wrap(output, like=first) if isinstance(output, Tensor) else output
        return output.as_subclass(Tensor) if isinstance(output, TVTensor) else output

    def __deepcopy__(self, memo):
        return wrap(self.detach().clone().requires_grad_(self.requires_grad), like=self)

    def __repr__(self, *, tensor_contents=None) -> str:  # type: ignore[override]
        facts = ", ".join(f"{name}={getattr(self, name)}" for name in self._facts)
        return f"{super().__repr__()[:-1]}, {facts})"


_KEEP = frozenset({"clone", "to", "detach", "requires_grad_"})


class Image(TVTensor):
    """An image (..., C, H, W), also from a PIL image.

    >>> rushlight.vision.tv_tensors.Image([[1, 2]])
    Image([[[1, 2]]], )
    """

    def __new__(cls, data, *, dtype=None, device=None, requires_grad=None):
        values = _values(data, dtype, device, requires_grad)
        if values.ndim < 2:
            raise ValueError(f"Tensor must be 2D or higher, got {values.ndim}D tensor.")
        return (values[None] if values.ndim == 2 else values).as_subclass(cls)


class Video(TVTensor):
    """Images one after the other (..., T, C, H, W)."""

    def __new__(cls, data, *, dtype=None, device=None, requires_grad=None):
        values = _values(data, dtype, device, requires_grad)
        if values.ndim < 4:
            raise ValueError(f"a Video is (..., T, C, H, W), got a tensor of {values.ndim} dimensions")
        return values.as_subclass(cls)


class Mask(TVTensor):
    """A mask (..., H, W) of an image: for each pixel its class, or for each object yes and no."""

    def __new__(cls, data, *, dtype=None, device=None, requires_grad=None):
        return _values(data, dtype, device, requires_grad).as_subclass(cls)


class BoundingBoxFormat(enum.Enum):
    """What the four numbers of a box are."""

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"


def is_rotated_bounding_format(format) -> bool:
    """Rotated boxes are not there: never."""
    return False


class BoundingBoxes(TVTensor):
    """Boxes (N, 4) in an image of ``canvas_size`` (height, width)."""

    _facts = ("format", "canvas_size", "clamping_mode")

    def __new__(
        cls, data, *, format, canvas_size, clamping_mode="soft", dtype=None, device=None, requires_grad=None
    ):  # fmt: skip
        values = _values(data, dtype, device, requires_grad)
        if values.ndim > 2:
            raise ValueError(f"Expected a 1D or 2D tensor, got {values.ndim}D")
        boxes = (values[None] if values.ndim == 1 else values).as_subclass(cls)
        boxes.format, boxes.canvas_size, boxes.clamping_mode = _format(format), tuple(canvas_size), clamping_mode
        return boxes


class KeyPoints(TVTensor):
    """Points (..., 2), x and y, in an image of ``canvas_size`` (height, width)."""

    _facts = ("canvas_size",)

    def __new__(cls, data, *, canvas_size, dtype=None, device=None, requires_grad=None):
        values = _values(data, dtype, device, requires_grad)
        points = (values[None] if values.ndim == 1 else values).as_subclass(cls)
        points.canvas_size = tuple(canvas_size)
        return points


def wrap(wrappee: Tensor, *, like: TVTensor, **kwargs):
    """A plain tensor as what ``like`` is: its class, and its facts where ``kwargs`` does not give others."""
    with DisableTorchFunctionSubclass():
        made = wrappee.as_subclass(type(like))
    for name in like._facts:
        value = kwargs.get(name)
        setattr(made, name, getattr(like, name) if value is None else _format(value) if name == "format" else value)
    return made


class set_return_type(contextlib.ContextDecorator):
    """With "TVTensor", arithmetic keeps the class too; as a statement, or for the length of a ``with``."""

    def __init__(self, return_type: str) -> None:
        if return_type.lower() not in ("tensor", "tvtensor"):
            raise ValueError(f"return_type must be 'TVTensor' or 'Tensor', but got {return_type}")
        global _keeps_class
        self._before, _keeps_class = _keeps_class, return_type.lower() == "tvtensor"

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error) -> None:
        global _keeps_class
        _keeps_class = self._before


def _values(data, dtype, device, requires_grad) -> Tensor:
    """The data as a plain tensor, sharing memory where it is one."""
    if is_pil_image(data):
        from .transforms.functional import pil_to_tensor

        data = pil_to_tensor(data)
    if requires_grad is None:
        requires_grad = data.requires_grad if isinstance(data, Tensor) else False
    with DisableTorchFunctionSubclass():
        made = as_tensor(data, dtype=dtype, device=device)
        made = made.as_subclass(Tensor) if isinstance(made, TVTensor) else made
    return made.requires_grad_() if requires_grad and made.is_leaf else made


def _format(format) -> BoundingBoxFormat:
    if isinstance(format, str) and format.upper() not in BoundingBoxFormat.__members__:
        raise ValueError(f"format {format!r}: boxes are XYXY, XYWH or CXCYWH here; rotated ones are not there")
    return BoundingBoxFormat[format.upper()] if isinstance(format, str) else format
