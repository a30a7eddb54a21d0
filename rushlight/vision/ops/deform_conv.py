"""Convolutions that choose where they look."""

from __future__ import annotations

import math

import rushlight as torch

from ... import nn

__all__ = ["DeformConv2d", "deform_conv2d"]


def deform_conv2d(input, offset, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), mask=None):
    """A convolution whose every kernel element is moved by ``offset``, and scaled by ``mask``.

    ``offset`` (N, 2 · groups · kh · kw, H, W) holds (y, x) for each kernel element; values between pixels are
    interpolated, outside of the image they are zero (https://arxiv.org/abs/1811.11168).
    """
    out_channels, part, kh, kw = weight.shape
    stride, padding, dilation = (_pair(v) for v in (stride, padding, dilation))
    n, channels, height, width = input.shape
    groups, count = offset.shape[1] // (2 * kh * kw), kh * kw
    if offset.shape[1] != 2 * groups * count or groups == 0:
        raise RuntimeError(f"offset: dimension 1 must be a multiple of 2 · {count}, for y and x, got {offset.shape[1]}")
    out_h, out_w = offset.shape[2:]
    wanted = [(s + 2 * p - d * (k - 1) - 1) // t + 1
              for s, p, d, k, t in zip((height, width), padding, dilation, (kh, kw), stride)]  # fmt: skip
    if [out_h, out_w] != wanted:
        raise RuntimeError(f"offset output dims: ({out_h}, {out_w}) - output dims: ({wanted[0]}, {wanted[1]})")
    moves = offset.reshape(n, groups, count, 2, out_h, out_w)
    y, x = (_grid(axis, moves[:, :, :, axis], (kh, kw), stride, padding, dilation) for axis in (0, 1))
    columns = _sampled(input.reshape(n, groups, channels // groups, height, width), y, x)
    if mask is not None:
        columns = columns * mask.reshape(n, groups, 1, count, out_h, out_w)
    blocks = channels // part  # groups of the convolution itself
    columns = columns.reshape(n, blocks, part * count, out_h * out_w)
    kernels = weight.reshape(1, blocks, out_channels // blocks, part * count)
    made = (kernels @ columns).reshape(n, out_channels, out_h, out_w)
    return made if bias is None else made + bias.reshape(1, -1, 1, 1)


class DeformConv2d(nn.Module):
    """See ``deform_conv2d``: the offsets come with the input."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True
    ):  # fmt: skip
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError("in_channels and out_channels must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.padding, self.dilation = map(
            _pair, (kernel_size, stride, padding, dilation)
        )
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels // groups, *self.kernel_size))
        if bias:
            self.bias = nn.Parameter(torch.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input, offset, mask=None):
        return deform_conv2d(input, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask)


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def _grid(axis, moves, kernel, stride, padding, dilation):
    """Where each kernel element looks along an axis: (N, groups, kh · kw, H, W)."""
    out = torch.arange(moves.shape[-2 + axis], device=moves.device).to(moves) * stride[axis] - padding[axis]
    inner = torch.arange(kernel[axis], device=moves.device).to(moves) * dilation[axis]
    inner = inner[:, None].expand(kernel) if axis == 0 else inner[None].expand(kernel)
    out = out[:, None] if axis == 0 else out[None]
    return inner.reshape(-1, 1, 1) + out + moves


def _sampled(images, y, x):
    """(N, groups, channels, kh · kw, H, W): images between their pixels."""
    n, groups, channels, height, width = images.shape
    flat = images.reshape(n, groups, channels, height * width)
    low_y, low_x = y.detach().floor(), x.detach().floor()
    part_y, part_x = y - low_y, x - low_x
    total = None
    for down in (0, 1):
        for right in (0, 1):
            row, column = low_y + down, low_x + right
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).long()
            index = place.reshape(n, groups, 1, -1).expand(n, groups, channels, -1)
            values = flat.gather(3, index).reshape(n, groups, channels, *y.shape[2:])
            weight = (part_y if down else 1 - part_y) * (part_x if right else 1 - part_x) * inside
            corner = values * weight.unsqueeze(2)
            total = corner if total is None else total + corner
    return total
