from __future__ import annotations

import functools
import math

import rushlight as torch

from ... import nn
from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from ..ops.stochastic_depth import StochasticDepth
from .mobilenetv2 import _divisible, initialize
from .weights import without_weights

__all__ = [
    "EfficientNet", "efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4",
    "efficientnet_b5", "efficientnet_b6", "efficientnet_b7",
]  # fmt: skip

# expansion, kernel, stride, input, output, how many: of b0, the others are wider and deeper
_STAGES = [(1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3),
           (6, 5, 1, 80, 112, 3), (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1)]  # fmt: skip


class MBConv(nn.Module):
    """Widens, filters each channel, weighs the channels, narrows; dropped as a whole now and then."""

    def __init__(self, expand: int, kernel: int, stride: int, inp: int, oup: int, drop: float, norm):
        super().__init__()
        self.use_res_connect = stride == 1 and inp == oup
        inside = _divisible(inp * expand, 8)
        layers: list[nn.Module] = []
        if inside != inp:
            layers.append(Conv2dNormActivation(inp, inside, kernel_size=1, norm_layer=norm, activation_layer=nn.SiLU))
        layers += [
            Conv2dNormActivation(
                inside, inside, kernel_size=kernel, stride=stride, groups=inside, norm_layer=norm,
                activation_layer=nn.SiLU,
            ),
            SqueezeExcitation(inside, max(1, inp // 4), activation=functools.partial(nn.SiLU, inplace=True)),
            Conv2dNormActivation(inside, oup, kernel_size=1, norm_layer=norm, activation_layer=None),
        ]  # fmt: skip
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(drop, "row")
        self.out_channels = oup

    def forward(self, input):
        result = self.block(input)
        return self.stochastic_depth(result) + input if self.use_res_connect else result


class EfficientNet(nn.Module):
    """Width, depth and resolution scaled together (https://arxiv.org/abs/1905.11946)."""

    def __init__(
        self, width_mult: float, depth_mult: float, dropout: float, stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000, norm_layer=None,
    ):  # fmt: skip
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        wide = lambda channels: _divisible(channels * width_mult, 8)
        stages = [(e, k, s, wide(i), wide(o), math.ceil(n * depth_mult)) for e, k, s, i, o, n in _STAGES]
        total, done = sum(stage[-1] for stage in stages), 0
        layers: list[nn.Module] = [
            Conv2dNormActivation(3, stages[0][3], kernel_size=3, stride=2, norm_layer=norm, activation_layer=nn.SiLU)
        ]
        for expand, kernel, stride, inp, oup, count in stages:
            stage = []
            for i in range(count):
                drop = stochastic_depth_prob * done / total
                stage.append(MBConv(expand, kernel, stride if i == 0 else 1, inp if i == 0 else oup, oup, drop, norm))
                done += 1
            layers.append(nn.Sequential(*stage))
        last = stages[-1][4]
        layers.append(Conv2dNormActivation(last, 4 * last, kernel_size=1, norm_layer=norm, activation_layer=nn.SiLU))
        self.features, self.avgpool = nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(4 * last, num_classes))
        initialize(self, _uniform)

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def _uniform(layer: nn.Linear) -> None:
    bound = 1.0 / math.sqrt(layer.out_features)
    nn.init.uniform_(layer.weight, -bound, bound)


def _model(name: str, width: float, depth: float, dropout: float, small_eps: bool = False):
    norm = functools.partial(nn.BatchNorm2d, eps=0.001, momentum=0.01) if small_eps else None

    def make(weights=None, progress: bool = True, **kwargs) -> EfficientNet:
        kwargs = {"dropout": dropout, "norm_layer": norm, **kwargs}
        return without_weights(functools.partial(EfficientNet, width, depth), name, weights, kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"EfficientNet {name[-2:].upper()}."
    return make


efficientnet_b0 = _model("efficientnet_b0", 1.0, 1.0, 0.2)
efficientnet_b1 = _model("efficientnet_b1", 1.0, 1.1, 0.2)
efficientnet_b2 = _model("efficientnet_b2", 1.1, 1.2, 0.3)
efficientnet_b3 = _model("efficientnet_b3", 1.2, 1.4, 0.3)
efficientnet_b4 = _model("efficientnet_b4", 1.4, 1.8, 0.4)
efficientnet_b5 = _model("efficientnet_b5", 1.6, 2.2, 0.4, True)
efficientnet_b6 = _model("efficientnet_b6", 1.8, 2.6, 0.5, True)
efficientnet_b7 = _model("efficientnet_b7", 2.0, 3.1, 0.5, True)
