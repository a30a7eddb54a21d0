"""The weights of all convolutions in another memory format."""

from __future__ import annotations

from ..module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module: Module, memory_format) -> Module:
    """Bring the weights of all two-dimensional convolutions within into ``memory_format``."""
    return _convert(module, memory_format, ("Conv2d", "ConvTranspose2d"))


def convert_conv3d_weight_memory_format(module: Module, memory_format) -> Module:
    """Bring the weights of all three-dimensional convolutions within into ``memory_format``."""
    return _convert(module, memory_format, ("Conv3d", "ConvTranspose3d"))


def _convert(module: Module, memory_format, names) -> Module:
    from ... import nn

    kinds = tuple(getattr(nn, name) for name in names)
    for child in module.modules():
        if isinstance(child, kinds):
            child.weight.data = child.weight.detach().clone().contiguous(memory_format=memory_format)
    return module
