from __future__ import annotations

import functools
import math
from collections import OrderedDict

import rushlight as torch

from ... import nn
from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from .weights import without_weights

# Each model is five numbers: depth, first width, slope, step of widths, width of a group; those named y weigh channels.
_MODELS = {
    "regnet_x_400mf": (22, 24, 24.48, 2.54, 16), "regnet_x_800mf": (16, 56, 35.73, 2.28, 16),
    "regnet_x_1_6gf": (18, 80, 34.01, 2.25, 24), "regnet_x_3_2gf": (25, 88, 26.31, 2.25, 48),
    "regnet_x_8gf": (23, 80, 49.56, 2.88, 120), "regnet_x_16gf": (22, 216, 55.59, 2.1, 128),
    "regnet_x_32gf": (23, 320, 69.86, 2.0, 168),
    "regnet_y_400mf": (16, 48, 27.89, 2.09, 8), "regnet_y_800mf": (14, 56, 38.84, 2.4, 16),
    "regnet_y_1_6gf": (27, 48, 20.71, 2.65, 24), "regnet_y_3_2gf": (21, 80, 42.63, 2.66, 24),
    "regnet_y_8gf": (17, 192, 76.82, 2.19, 56), "regnet_y_16gf": (18, 200, 106.23, 2.48, 112),
    "regnet_y_32gf": (20, 232, 115.89, 2.53, 232), "regnet_y_128gf": (27, 456, 160.83, 2.52, 264),
}  # fmt: skip
__all__ = ["RegNet", *_MODELS]


class ResBottleneckBlock(nn.Module):
    """A 3x3 convolution in groups between two 1x1 ones, beside a short cut that ``proj`` fits where sizes differ."""

    def __init__(self, inp: int, width: int, stride: int, group: int, squeeze: bool):
        super().__init__()
        self.proj = None
        if inp != width or stride != 1:
            self.proj = Conv2dNormActivation(inp, width, kernel_size=1, stride=stride, activation_layer=None)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["a"] = Conv2dNormActivation(inp, width, kernel_size=1)
        layers["b"] = Conv2dNormActivation(width, width, kernel_size=3, stride=stride, groups=width // group)
        if squeeze:
            layers["se"] = SqueezeExcitation(width, round(0.25 * inp))
        layers["c"] = Conv2dNormActivation(width, width, kernel_size=1, activation_layer=None)
        self.f, self.activation = nn.Sequential(layers), nn.ReLU(inplace=True)

    def forward(self, x):
        return self.activation((x if self.proj is None else self.proj(x)) + self.f(x))


class RegNet(nn.Module):
    """Widths of stages from a line (https://arxiv.org/abs/2003.13678)."""

    def __init__(self, depth, first, slope, step, group, squeeze=False, num_classes: int = 1000, stem_width: int = 32):
        super().__init__()
        self.stem = Conv2dNormActivation(3, stem_width, kernel_size=3, stride=2)
        stages, channels = OrderedDict(), stem_width
        for i, (width, count, size) in enumerate(_stages(depth, first, slope, step, group), 1):
            blocks = OrderedDict()
            for j in range(count):
                blocks[f"block{i}-{j}"] = ResBottleneckBlock(
                    channels if j == 0 else width, width, 2 if j == 0 else 1, size, squeeze
                )
            stages[f"block{i}"], channels = nn.Sequential(blocks), width
        self.trunk_output = nn.Sequential(stages)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(channels, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                fan_out = module.kernel_size[0] * module.kernel_size[1] * module.out_channels
                nn.init.normal_(module.weight, mean=0.0, std=math.sqrt(2.0 / fan_out))
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, mean=0.0, std=0.01)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        x = self.avgpool(self.trunk_output(self.stem(x)))
        return self.fc(torch.flatten(x, 1))


def _stages(depth, first, slope, step, group):
    """(width, blocks, group width) of each stage: widths grow along a line, in steps, in multiples of 8."""
    widths = []
    for i in range(depth):
        power = round(math.log((first + slope * i) / first) / math.log(step))
        widths.append(round(first * step**power / 8) * 8)
    for width in sorted(set(widths)):
        size = min(group, width)
        fitting = max(size, int(width + size / 2) // size * size)
        yield fitting + size if fitting < 0.9 * width else fitting, widths.count(width), size


def _model(name: str):
    squeeze = name.startswith("regnet_y")

    def make(weights=None, progress: bool = True, **kwargs) -> RegNet:
        whole = functools.partial(RegNet, *_MODELS[name], squeeze)
        return without_weights(whole, name, weights, kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"RegNet{name[7].upper()}, {name[9:].replace('_', '.')}."
    return make


globals().update({name: _model(name) for name in _MODELS})
