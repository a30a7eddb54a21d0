"""Features of several sizes made equally meaningful: the coarse ones are added to the fine ones."""

from __future__ import annotations

from collections import OrderedDict

from ... import nn
from ...nn import functional as F
from .misc import Conv2dNormActivation

__all__ = ["ExtraFPNBlock", "FeaturePyramidNetwork", "LastLevelMaxPool", "LastLevelP6P7"]


class ExtraFPNBlock(nn.Module):
    """Makes further, coarser features: ``forward(results, inputs, names)`` gives results and names."""

    def forward(self, results, x, names):
        raise NotImplementedError(f"{type(self).__name__} has no forward(results, x, names)")


class FeaturePyramidNetwork(nn.Module):
    """All features with ``out_channels`` channels, each with what the coarser ones know (arXiv:1612.03144)."""

    def __init__(self, in_channels_list, out_channels: int, extra_blocks=None, norm_layer=None) -> None:
        super().__init__()
        self.inner_blocks, self.layer_blocks = nn.ModuleList(), nn.ModuleList()
        for channels in in_channels_list:
            if channels == 0:
                raise ValueError("in_channels=0 is currently not supported")
            options = {"norm_layer": norm_layer, "activation_layer": None}
            self.inner_blocks.append(
                Conv2dNormActivation(channels, out_channels, kernel_size=1, padding=0, **options)
            )  # fmt: skip
            self.layer_blocks.append(Conv2dNormActivation(out_channels, out_channels, kernel_size=3, **options))
        initialize(self)
        self.extra_blocks = extra_blocks

    def forward(self, x):
        names, features = list(x), list(x.values())
        coarser = self.inner_blocks[-1](features[-1])
        results = [self.layer_blocks[-1](coarser)]
        for i in range(len(features) - 2, -1, -1):
            own = self.inner_blocks[i](features[i])
            coarser = own + F.interpolate(coarser, size=own.shape[-2:], mode="nearest")
            results.insert(0, self.layer_blocks[i](coarser))
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, features, names)
        return OrderedDict(zip(names, results))


class LastLevelMaxPool(ExtraFPNBlock):
    """One more size: every second place of the coarsest."""

    def forward(self, results, x, names):
        return [*results, F.max_pool2d(results[-1], kernel_size=1, stride=2)], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Two more sizes, by convolutions with stride 2."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(in_channels, out_channels, 3, 2, 1)
        self.p7 = nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        initialize(self)
        self.use_P5 = in_channels == out_channels

    def forward(self, results, x, names):
        p6 = self.p6(results[-1] if self.use_P5 else x[-1])
        p7 = self.p7(F.relu(p6))
        return [*results, p6, p7], [*names, "p6", "p7"]


def initialize(module: nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_uniform_(part.weight, a=1)
            if part.bias is not None:
                nn.init.constant_(part.bias, 0)
