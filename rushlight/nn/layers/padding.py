"""Layers that add elements around their input, in one, two and three dimensions."""

from __future__ import annotations

from .. import functional
from ..module import Module

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _PadNd(Module):
    """``padding``: one number for all sides, or (left, right, top, bottom, front, back) as far as there are sides."""

    __constants__ = ["padding"]
    dims: int
    mode: str

    def __init__(self, padding) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * (2 * self.dims)

    def forward(self, input):
        return functional.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """``value`` around a sequence."""

    dims = 1


class ConstantPad2d(_ConstantPadNd):
    """``value`` around an image."""

    dims = 2


class ConstantPad3d(_ConstantPadNd):
    """``value`` around a volume."""

    dims = 3


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Zeros around a sequence."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Zeros around an image."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Zeros around a volume."""


class _ReflectionPadNd(_PadNd):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """A sequence continued by its mirror image; the end elements are not repeated."""

    dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """An image continued by its mirror image."""

    dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """A volume continued by its mirror image."""

    dims = 3


class _ReplicationPadNd(_PadNd):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """A sequence continued by its end elements."""

    dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """An image continued by its border."""

    dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """A volume continued by its border."""

    dims = 3


class _CircularPadNd(_PadNd):
    mode = "circular"

    def forward(self, input):
        if input.ndim not in (self.dims + 1, self.dims + 2):
            wanted = f"{self.dims + 1}D or {self.dims + 2}D"
            raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """A sequence continued by its other end."""

    dims = 1


class CircularPad2d(_CircularPadNd):
    """An image continued by its other side."""

    dims = 2


class CircularPad3d(_CircularPadNd):
    """A volume continued by its other side."""

    dims = 3
