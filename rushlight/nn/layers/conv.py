"""Convolution and transposed convolution in one, two and three dimensions, and their lazy forms."""

from __future__ import annotations

import math
from typing import Any

from ...ops.creation import empty
from .. import functional, init
from ..lazy import LazyModuleMixin
from ..module import Module
from ..parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions share; ``dims`` is the number of dimensions they slide over."""

    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels",
        "kernel_size",
    ]  # fmt: skip
    dims: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        _check(in_channels, out_channels, groups, stride, padding, padding_mode)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel_size
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.transposed, self.output_padding = transposed, output_padding
        self.groups, self.padding_mode = groups, padding_mode
        self._reversed_padding_repeated_twice = _both_sides(padding, kernel_size, dilation)
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty((*channels, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty((out_channels,), device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias from U(-1/√fan_in, 1/√fan_in); fan_in is channels / groups times the kernel's size."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * len(self.padding):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.dilation):
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * len(self.output_padding):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _check(in_channels, out_channels, groups, stride, padding, padding_mode) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string '{padding}', should be one of {{'valid', 'same'}}")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _PADDING_MODES:
        raise ValueError(
            f"padding_mode must be one of {{{', '.join(map(repr, _PADDING_MODES))}}}, but got "
            f"padding_mode={padding_mode!r}"
        )


def _both_sides(padding, kernel_size, dilation):
    """The padding as ``functional.pad`` takes it: the last dimension first, two numbers for each."""
    if not isinstance(padding, str):
        return tuple(p for p in reversed(padding) for _ in range(2))
    if padding == "valid":
        return [0] * (2 * len(kernel_size))
    total = [d * (k - 1) for d, k in zip(dilation, kernel_size)]
    return [n for t in reversed(total) for n in (t // 2, t - t // 2)]


def _tuple(value, dims) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * dims


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ):
        kernel_size, stride, dilation = (_tuple(v, self.dims) for v in (kernel_size, stride, dilation))
        padding = padding if isinstance(padding, str) else _tuple(padding, self.dims)
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            False,
            _tuple(0, self.dims),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input, weight, bias):
        conv = _FUNCTIONS[self.dims]
        if self.padding_mode == "zeros":
            return conv(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = functional.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return conv(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


_FUNCTIONS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_TRANSPOSED = {1: functional.conv_transpose1d, 2: functional.conv_transpose2d, 3: functional.conv_transpose3d}


class Conv1d(_Conv):
    """Filters slid along a sequence: (N, C, L) to (N, out_channels, L').

    >>> nn.Conv1d(16, 33, 3, stride=2)(rushlight.zeros(20, 16, 50)).shape
    torch.Size([20, 33, 24])
    """

    dims = 1


class Conv2d(_Conv):
    """Filters slid over an image: (N, C, H, W) to (N, out_channels, H', W').

    >>> nn.Conv2d(16, 33, (3, 5), stride=(2, 1), padding=(4, 2))(rushlight.zeros(20, 16, 50, 100)).shape
    torch.Size([20, 33, 28, 100])
    """

    dims = 2


class Conv3d(_Conv):
    """Filters slid through a volume: (N, C, D, H, W) to (N, out_channels, D', H', W')."""

    dims = 3


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups: int = 1,
        bias: bool = True,
        dilation=1,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        kernel_size, stride, padding, output_padding, dilation = (
            _tuple(v, self.dims) for v in (kernel_size, stride, padding, output_padding, dilation)
        )
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            True,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input, output_size=None):
        extra = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.dims, self.dilation
        )
        return _TRANSPOSED[self.dims](
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None):
        """The output padding that leads to ``output_size``."""
        if output_size is None:
            return _tuple(self.output_padding, num_spatial_dims)
        lead = 2 if input.dim() == num_spatial_dims + 2 else 1
        if len(output_size) == lead + num_spatial_dims:
            output_size = output_size[lead:]
        if len(output_size) != num_spatial_dims:
            raise ValueError(
                f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must have {num_spatial_dims} "
                f"or {lead + num_spatial_dims} elements (got {len(output_size)})"
            )
        dilation = dilation or (1,) * num_spatial_dims
        given = input.shape[lead:]
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(given, stride, padding, dilation, kernel_size)
        ]
        most = [n + s - 1 for n, s in zip(least, stride)]
        if any(not low <= n <= high for n, low, high in zip(output_size, least, most)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for an "
                f"input of {given})"
            )
        return tuple(n - low for n, low in zip(output_size, least))


class ConvTranspose1d(_ConvTransposeNd):
    """The gradient of ``Conv1d`` in its input, as a layer."""

    dims = 1


class ConvTranspose2d(_ConvTransposeNd):
    """The gradient of ``Conv2d`` in its input, as a layer: makes images larger.

    >>> nn.ConvTranspose2d(16, 8, 3, stride=2)(rushlight.zeros(1, 16, 12, 12)).shape
    torch.Size([1, 8, 25, 25])
    """

    dims = 2


class ConvTranspose3d(_ConvTransposeNd):
    """The gradient of ``Conv3d`` in its input, as a layer."""

    dims = 3


# -- lazy --------------------------------------------------------------------------------------------------------------


class _LazyConvXdMixin(LazyModuleMixin):
    """A convolution that learns ``in_channels`` from its first input."""

    weight: Parameter
    bias: Parameter | None

    def __init__(self, out_channels: int, kernel_size, *args, **kwargs):
        super().__init__(0, 0, kernel_size, *args, **kwargs)  # no channels, no weights yet
        place: dict[str, Any] = {"device": self.weight.device, "dtype": self.weight.dtype}
        self.weight = UninitializedParameter(**place)
        self.out_channels = out_channels
        if self.bias is not None:
            self.bias = UninitializedParameter(**place)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]  # of the convolution this is put before

    def initialize_parameters(self, input, *args, **kwargs) -> None:
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        first, second = self.out_channels, self.in_channels // self.groups
        if self.transposed:
            first, second = self.in_channels, self.out_channels // self.groups
        self.weight.materialize((first, second, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input) -> int:
        dims = self._get_num_spatial_dims()
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        return input.shape[1] if input.dim() == dims + 2 else input.shape[0]

    def _get_num_spatial_dims(self) -> int:
        return self.dims


class LazyConv1d(_LazyConvXdMixin, Conv1d):
    """A Conv1d that learns ``in_channels`` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvXdMixin, Conv2d):
    """A Conv2d that learns ``in_channels`` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvXdMixin, Conv3d):
    """A Conv3d that learns ``in_channels`` from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvXdMixin, ConvTranspose1d):
    """A ConvTranspose1d that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvXdMixin, ConvTranspose2d):
    """A ConvTranspose2d that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvXdMixin, ConvTranspose3d):
    """A ConvTranspose3d that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose3d
