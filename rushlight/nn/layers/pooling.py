"""Pooling layers; what they do is in ``functional/pool.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import functional
from ..module import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


def _tuple(value, dims) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * dims


class _MaxPoolNd(Module):
    """The largest element of each window."""

    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
    _pool: Callable

    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices: bool = False, ceil_mode: bool = False
    ):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input):
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The largest element of each window of a sequence."""

    _pool = staticmethod(functional.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """The largest element of each window of an image.

    >>> nn.MaxPool2d(3, stride=2)(rushlight.zeros(20, 16, 50, 32)).shape
    torch.Size([20, 16, 24, 15])
    """

    _pool = staticmethod(functional.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """The largest element of each window of a volume."""

    _pool = staticmethod(functional.max_pool3d)


class _MaxUnpoolNd(Module):
    """What a MaxPool took, put back where it was."""

    dims: int
    _unpool: Callable

    def __init__(self, kernel_size, stride=None, padding=0) -> None:
        super().__init__()
        self.kernel_size = _tuple(kernel_size, self.dims)
        self.stride = _tuple(kernel_size if stride is None else stride, self.dims)
        self.padding = _tuple(padding, self.dims)

    def forward(self, input, indices, output_size=None):
        return self._unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Undoes ``MaxPool1d``, given the indices it returned."""

    dims, _unpool = 1, staticmethod(functional.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    """Undoes ``MaxPool2d``, given the indices it returned."""

    dims, _unpool = 2, staticmethod(functional.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    """Undoes ``MaxPool3d``, given the indices it returned."""

    dims, _unpool = 3, staticmethod(functional.max_unpool3d)


class _AvgPoolNd(Module):
    """The mean of each window."""

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]
    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of a sequence."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True):
        super().__init__()
        self.kernel_size, self.padding = _tuple(kernel_size, 1), _tuple(padding, 1)
        self.stride = _tuple(kernel_size if stride is None else stride, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input):
        return functional.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _AvgPoolWithDivisor(_AvgPoolNd):
    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]
    _pool: Callable

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input):
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolWithDivisor):
    """The mean of each window of an image."""

    _pool = staticmethod(functional.avg_pool2d)


class AvgPool3d(_AvgPoolWithDivisor):
    """The mean of each window of a volume."""

    _pool = staticmethod(functional.avg_pool3d)


class _AdaptiveAvgPoolNd(Module):
    """Means of windows that are chosen so that the output has ``output_size``."""

    __constants__ = ["output_size"]
    _pool: Callable

    def __init__(self, output_size) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return self._pool(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """A sequence averaged down to ``output_size``."""

    _pool = staticmethod(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """An image averaged down to ``output_size``; None keeps a side as it is.

    >>> nn.AdaptiveAvgPool2d((5, None))(rushlight.zeros(1, 64, 8, 9)).shape
    torch.Size([1, 64, 5, 9])
    """

    _pool = staticmethod(functional.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """A volume averaged down to ``output_size``."""

    _pool = staticmethod(functional.adaptive_avg_pool3d)


class _AdaptiveMaxPoolNd(Module):
    """Largest elements of windows that are chosen so that the output has ``output_size``."""

    __constants__ = ["output_size", "return_indices"]
    _pool: Callable

    def __init__(self, output_size, return_indices: bool = False):
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input):
        return self._pool(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The largest elements of ``output_size`` stretches of a sequence."""

    _pool = staticmethod(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The largest elements of ``output_size`` parts of an image."""

    _pool = staticmethod(functional.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The largest elements of ``output_size`` parts of a volume."""

    _pool = staticmethod(functional.adaptive_max_pool3d)


class _LPPoolNd(Module):
    """(Σ xᵖ)^(1/p) of each window."""

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    _pool: Callable

    def __init__(self, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, input):
        return self._pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of a sequence."""

    _pool = staticmethod(functional.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of an image."""

    _pool = staticmethod(functional.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of a volume."""

    _pool = staticmethod(functional.lp_pool3d)


class _FractionalMaxPoolNd(Module):
    """Largest elements of windows that begin at random places."""

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    dims: int
    _pool: Callable

    def __init__(
        self, kernel_size, output_size=None, output_ratio=None, return_indices: bool = False, _random_samples=None
    ):
        super().__init__()
        name = type(self).__name__
        self.kernel_size, self.return_indices = _tuple(kernel_size, self.dims), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else _tuple(output_size, self.dims)
        self.output_ratio = None if output_ratio is None else _tuple(output_ratio, self.dims)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        return self._pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Max pooling of images to any smaller size, over windows at random places (https://arxiv.org/abs/1412.6071)."""

    dims, _pool = 2, staticmethod(functional.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Max pooling of volumes to any smaller size, over windows at random places."""

    dims, _pool = 3, staticmethod(functional.fractional_max_pool3d)
