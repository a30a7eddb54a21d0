"""Convolutions, and the columns they are products of: ``unfold`` and ``fold``."""

from __future__ import annotations

from ...autograd.op import differentiable as xp
from ...ops.common import check_tensor, refuse
from ...ops.conv import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from ...ops.dims import as_ints, is_int, wrap_dim
from ...ops.pool import offsets_of

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fold",
    "unfold",
]  # fmt: skip


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of an image as columns: (N, C, H, W) to (N, C * window, number of windows).

    >>> F.unfold(rushlight.zeros(2, 3, 8, 8), 3).shape
    torch.Size([2, 27, 36])
    """
    check_tensor("im2col", input)
    kernel, dilation, padding, stride = _blocks(kernel_size, dilation, padding, stride)
    shape = input._array.shape
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        for dim in (1, 2):  # which says that there is no such dimension, unless one before it is empty
            if shape[1:dim] != (0,):
                wrap_dim(dim, len(shape))
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(shape)}"
        )
    size = _windows(shape[-2:], kernel, dilation, padding, stride)
    if any(n < 1 for n in size):
        raise RuntimeError(
            f"Given input with spatial size {_pair(shape[-2:])}, kernel_size={_pair(kernel)}, "
            f"dilation={_pair(dilation)}, padding={_pair(padding)}, calculated shape of the array of sliding blocks as "
            f"{_pair(size)}, but its components must be at least one."
        )
    refuse("im2col_out_cpu", lambda d: not (d.is_floating_point or d.is_complex or d.name == "bool"), input)
    return xp.im2col(input, offsets=offsets_of(kernel, dilation, padding), size=size, step=stride)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns put back as windows of an image of ``output_size``, adding up where they overlap.

    >>> F.fold(rushlight.zeros(2, 27, 36), (8, 8), 3).shape
    torch.Size([2, 3, 8, 8])
    """
    check_tensor("col2im", input)
    full = _two(output_size, "output_size")
    kernel, dilation, padding, stride = _blocks(kernel_size, dilation, padding, stride)
    shape = input._array.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(shape)}"
        )
    window, first = kernel[0] * kernel[1], len(shape) - 2
    if shape[-2] % window:
        raise RuntimeError(
            f"Expected size of input's dimension {first} to be divisible by the product of kernel_size, but got "
            f"input.size({first})={shape[-2]} and kernel_size={_pair(kernel)}."
        )
    size = _windows(full, kernel, dilation, padding, stride)
    if size[0] * size[1] != shape[-1] or min(size) < 1:
        raise RuntimeError(
            f"Given output_size={_pair(full)}, kernel_size={_pair(kernel)}, dilation={_pair(dilation)}, "
            f"padding={_pair(padding)}, stride={_pair(stride)}, expected size of input's dimension {first + 1} to "
            f"match the calculated number of sliding blocks {size[0]} * {size[1]} = {size[0] * size[1]}, but got "
            f"input.size({first + 1})={shape[-1]}."
        )
    return xp.col2im(input, offsets=offsets_of(kernel, dilation, padding), size=size, step=stride, full=full)


def _blocks(kernel_size, dilation, padding, stride):
    kernel, dilation = _two(kernel_size, "kernel_size"), _two(dilation, "dilation")
    padding, stride = _two(padding, "padding"), _two(stride, "stride")
    for name, short, values in (
        ("kernel size", "kernel", kernel), ("stride", "stride", stride), ("dilation", "dilation", dilation),
    ):  # fmt: skip
        if min(values) <= 0:
            raise RuntimeError(
                f"{name} should be greater than zero, but got {short}_height: {values[0]} {short}_width: {values[1]}"
            )
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")
    return kernel, dilation, padding, stride


def _two(value, name) -> tuple:
    values = (value,) * 2 if is_int(value) else tuple(value)
    if len(values) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    return as_ints(values, name)


def _windows(full, kernel, dilation, padding, stride) -> tuple:
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(full, kernel, dilation, padding, stride)
    )


def _pair(values) -> str:
    return f"({values[0]}, {values[1]})"
