from __future__ import annotations

import functools

import rushlight as torch

from ... import nn
from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from .mobilenetv2 import _divisible, initialize
from .weights import without_weights

__all__ = ["MobileNetV3", "mobilenet_v3_large", "mobilenet_v3_small"]

# kernel, width inside, channels, squeeze and excitation, activation, stride
_LARGE = [
    (3, 16, 16, False, "RE", 1), (3, 64, 24, False, "RE", 2), (3, 72, 24, False, "RE", 1), (5, 72, 40, True, "RE", 2),
    (5, 120, 40, True, "RE", 1), (5, 120, 40, True, "RE", 1), (3, 240, 80, False, "HS", 2),
    (3, 200, 80, False, "HS", 1), (3, 184, 80, False, "HS", 1), (3, 184, 80, False, "HS", 1),
    (3, 480, 112, True, "HS", 1),
    (3, 672, 112, True, "HS", 1), (5, 672, 160, True, "HS", 2), (5, 960, 160, True, "HS", 1),
    (5, 960, 160, True, "HS", 1),
]  # fmt: skip
_SMALL = [
    (3, 16, 16, True, "RE", 2), (3, 72, 24, False, "RE", 2), (3, 88, 24, False, "RE", 1), (5, 96, 40, True, "HS", 2),
    (5, 240, 40, True, "HS", 1), (5, 240, 40, True, "HS", 1), (5, 120, 48, True, "HS", 1), (5, 144, 48, True, "HS", 1),
    (5, 288, 96, True, "HS", 2), (5, 576, 96, True, "HS", 1), (5, 576, 96, True, "HS", 1),
]  # fmt: skip


class InvertedResidual(nn.Module):
    """Widens, filters each channel, weighs the channels, narrows."""

    def __init__(
        self,
        inp: int,
        kernel: int,
        inside: int,
        oup: int,
        squeeze: bool,
        activation: str,
        stride: int,
        norm,
        dilation: int = 1,
    ):
        super().__init__()
        act = nn.Hardswish if activation == "HS" else nn.ReLU
        self.use_res_connect = stride == 1 and inp == oup
        layers: list[nn.Module] = []
        if inside != inp:
            layers.append(Conv2dNormActivation(inp, inside, kernel_size=1, norm_layer=norm, activation_layer=act))
        layers.append(
            Conv2dNormActivation(
                inside,
                inside,
                kernel_size=kernel,
                stride=stride if dilation == 1 else 1,
                groups=inside,
                norm_layer=norm,
                activation_layer=act,
                dilation=dilation,
            )
        )
        if squeeze:
            width = _divisible(inside // 4, 8)
            layers.append(SqueezeExcitation(inside, width, scale_activation=nn.Hardsigmoid))
        layers.append(Conv2dNormActivation(inside, oup, kernel_size=1, norm_layer=norm, activation_layer=None))
        self.block = nn.Sequential(*layers)
        self.out_channels, self._is_cn = oup, stride > 1

    def forward(self, input):
        result = self.block(input)
        return result + input if self.use_res_connect else result


class MobileNetV3(nn.Module):
    """Inverted residuals with channels weighed and hard activations (https://arxiv.org/abs/1905.02244)."""

    def __init__(
        self,
        inverted_residual_setting,
        last_channel: int,
        num_classes: int = 1000,
        dropout: float = 0.2,
        dilated: int = 0,
    ):
        super().__init__()
        norm = functools.partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        channels = 16
        layers: list[nn.Module] = [
            Conv2dNormActivation(3, channels, kernel_size=3, stride=2, norm_layer=norm, activation_layer=nn.Hardswish)
        ]
        for i, (kernel, inside, output, squeeze, activation, stride) in enumerate(inverted_residual_setting):
            dilation = 2 if i >= len(inverted_residual_setting) - dilated else 1
            block = (channels, kernel, inside, output, squeeze, activation, stride, norm, dilation)
            layers.append(InvertedResidual(*block))
            channels = output
        layers.append(
            Conv2dNormActivation(channels, 6 * channels, kernel_size=1, norm_layer=norm, activation_layer=nn.Hardswish)
        )
        self.features, self.avgpool = nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * channels, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )
        initialize(self)

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def mobilenet_v3_large(weights=None, progress: bool = True, **kwargs) -> MobileNetV3:
    """MobileNetV3, large."""
    kwargs["dilated"] = 3 if kwargs.get("dilated") else 0  # the last blocks keep their size, for segmentation
    return without_weights(functools.partial(MobileNetV3, _LARGE, 1280), "mobilenet_v3_large", weights, kwargs)


def mobilenet_v3_small(weights=None, progress: bool = True, **kwargs) -> MobileNetV3:
    """MobileNetV3, small."""
    return without_weights(functools.partial(MobileNetV3, _SMALL, 1024), "mobilenet_v3_small", weights, kwargs)
