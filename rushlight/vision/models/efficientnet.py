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
    "efficientnet_b5", "efficientnet_b6", "efficientnet_b7", "efficientnet_v2_l", "efficientnet_v2_m",
    "efficientnet_v2_s",
]  # fmt: skip

# expansion, kernel, stride, input, output, how many: of b0, the others to b7 are wider and deeper
_STAGES = [(1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3),
           (6, 5, 1, 80, 112, 3), (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1)]  # fmt: skip

# Of the second version: how many stages are fused, and all stages.
_SMALL = (3, [(1, 3, 1, 24, 24, 2), (4, 3, 2, 24, 48, 4), (4, 3, 2, 48, 64, 4), (4, 3, 2, 64, 128, 6),
              (6, 3, 1, 128, 160, 9), (6, 3, 2, 160, 256, 15)])  # fmt: skip
_MEDIUM = (3, [(1, 3, 1, 24, 24, 3), (4, 3, 2, 24, 48, 5), (4, 3, 2, 48, 80, 5), (4, 3, 2, 80, 160, 7),
               (6, 3, 1, 160, 176, 14), (6, 3, 2, 176, 304, 18), (6, 3, 1, 304, 512, 5)])  # fmt: skip
_LARGE = (3, [(1, 3, 1, 32, 32, 4), (4, 3, 2, 32, 64, 7), (4, 3, 2, 64, 96, 7), (4, 3, 2, 96, 192, 10),
              (6, 3, 1, 192, 224, 19), (6, 3, 2, 224, 384, 25), (6, 3, 1, 384, 640, 7)])  # fmt: skip


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


class FusedMBConv(MBConv):
    """Widens and filters in one convolution, narrows."""

    def __init__(self, expand: int, kernel: int, stride: int, inp: int, oup: int, drop: float, norm):
        nn.Module.__init__(self)
        self.use_res_connect = stride == 1 and inp == oup
        inside = _divisible(inp * expand, 8)
        options = {"norm_layer": norm, "activation_layer": nn.SiLU}
        layers = [Conv2dNormActivation(inp, inside, kernel_size=kernel, stride=stride, **options)]
        if inside != inp:
            layers.append(Conv2dNormActivation(inside, oup, 1, norm_layer=norm, activation_layer=None))
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(drop, "row")
        self.out_channels = oup


class EfficientNet(nn.Module):
    """Width, depth and resolution scaled together (https://arxiv.org/abs/1905.11946, https://arxiv.org/abs/2104.00298)."""

    def __init__(
        self, stages, dropout: float, stochastic_depth_prob: float = 0.2, num_classes: int = 1000, norm_layer=None,
        fused: int = 0, last_channel: int | None = None,
    ):  # fmt: skip
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        total, done = sum(stage[-1] for stage in stages), 0
        layers: list[nn.Module] = [
            Conv2dNormActivation(3, stages[0][3], kernel_size=3, stride=2, norm_layer=norm, activation_layer=nn.SiLU)
        ]
        for number, (expand, kernel, stride, inp, oup, count) in enumerate(stages):
            stage, kind = [], FusedMBConv if number < fused else MBConv
            for i in range(count):
                drop = stochastic_depth_prob * done / total
                stage.append(kind(expand, kernel, stride if i == 0 else 1, inp if i == 0 else oup, oup, drop, norm))
                done += 1
            layers.append(nn.Sequential(*stage))
        last = last_channel or 4 * stages[-1][4]
        layers.append(
            Conv2dNormActivation(stages[-1][4], last, kernel_size=1, norm_layer=norm, activation_layer=nn.SiLU)
        )
        self.features, self.avgpool = nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(last, num_classes))
        initialize(self, _uniform)

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def _uniform(layer: nn.Linear) -> None:
    bound = 1.0 / math.sqrt(layer.out_features)
    nn.init.uniform_(layer.weight, -bound, bound)


def _scaled(width: float, depth: float) -> list:
    wide = lambda channels: _divisible(channels * width, 8)
    return [(e, k, s, wide(i), wide(o), math.ceil(n * depth)) for e, k, s, i, o, n in _STAGES]


def _second(name: str, table, dropout: float):
    fused, stages = table
    options = {"fused": fused, "last_channel": 1280, "norm_layer": functools.partial(nn.BatchNorm2d, eps=1e-3)}

    def make(weights=None, progress: bool = True, **kwargs) -> EfficientNet:
        kwargs = {"dropout": dropout, **options, **kwargs}
        return without_weights(functools.partial(EfficientNet, stages), name, weights, kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"EfficientNetV2, {name[-1].upper()}."
    return make


def _model(name: str, width: float, depth: float, dropout: float, small_eps: bool = False):
    norm = functools.partial(nn.BatchNorm2d, eps=0.001, momentum=0.01) if small_eps else None

    def make(weights=None, progress: bool = True, **kwargs) -> EfficientNet:
        kwargs = {"dropout": dropout, "norm_layer": norm, **kwargs}
        return without_weights(functools.partial(EfficientNet, _scaled(width, depth)), name, weights, kwargs)

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
efficientnet_v2_s = _second("efficientnet_v2_s", _SMALL, 0.2)
efficientnet_v2_m = _second("efficientnet_v2_m", _MEDIUM, 0.3)
efficientnet_v2_l = _second("efficientnet_v2_l", _LARGE, 0.4)
