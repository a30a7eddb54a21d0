"""Gradients of convolutions as functions: what ``backward`` gives the input, or the weight."""

from __future__ import annotations

from ..autograd.op import differentiable as xp
from ..ops.dims import for_dims, is_int

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def __dir__():
    return __all__


def _conv_input(dims, input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    static = _static(dims, stride, padding, dilation, groups)
    return xp.conv_input(grad_output, weight.conj(), size=tuple(input_size)[2:], **static)


def _conv_weight(dims, input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    static = _static(dims, stride, padding, dilation, groups)
    return xp.conv_weight(input.conj(), grad_output, size=tuple(weight_size)[2:], **static)


def _static(dims, stride, padding, dilation, groups):
    sizes = {"stride": stride, "padding": padding, "dilation": dilation}
    return {"groups": groups, **{k: (v,) * dims if is_int(v) else tuple(v) for k, v in sizes.items()}}


conv1d_input, conv2d_input, conv3d_input = for_dims(
    _conv_input, "conv{}d_input", doc="The gradient of a convolution over {} dimension(s) in its input."
)
conv1d_weight, conv2d_weight, conv3d_weight = for_dims(
    _conv_weight, "conv{}d_weight", doc="The gradient of a convolution over {} dimension(s) in its weight."
)
