from __future__ import annotations

from ... import nn
from ...ops.shape import flatten
from .weights import MobileNet_V2_Weights, build

__all__ = ["MobileNetV2", "mobilenet_v2"]


class Conv2dNormActivation(nn.Sequential):
    """Convolution, batch normalization, relu6."""

    def __init__(self, in_channels, out_channels, kernel_size=3, stride=1, groups=1, norm_layer=nn.BatchNorm2d) -> None:
        super().__init__(
            nn.Conv2d(
                in_channels, out_channels, kernel_size, stride, (kernel_size - 1) // 2, groups=groups, bias=False
            ),
            norm_layer(out_channels),
            nn.ReLU6(inplace=True),
        )
        self.out_channels = out_channels


class InvertedResidual(nn.Module):
    """Widens by 1x1, filters each channel by 3x3, narrows by 1x1 without activation."""

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int, norm_layer=nn.BatchNorm2d) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        self.stride, self.out_channels = stride, oup
        hidden = round(inp * expand_ratio)
        self.use_res_connect = stride == 1 and inp == oup
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(Conv2dNormActivation(inp, hidden, kernel_size=1, norm_layer=norm_layer))
        layers += [
            Conv2dNormActivation(hidden, hidden, stride=stride, groups=hidden, norm_layer=norm_layer),
            nn.Conv2d(hidden, oup, 1, 1, 0, bias=False),
            norm_layer(oup),
        ]
        self.conv = nn.Sequential(*layers)
        self._is_cn = stride > 1

    def forward(self, x):
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


# expansion, channels, how many, stride of the first
_SETTING = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2], [6, 320, 1, 1]]


class MobileNetV2(nn.Module):
    """Inverted residuals with linear bottlenecks (https://arxiv.org/abs/1801.04381)."""

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting=None,
        round_nearest: int = 8,
        block=None,
        norm_layer=None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        block, norm_layer = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        channels = _divisible(32 * width_mult, round_nearest)
        self.last_channel = _divisible(1280 * max(1.0, width_mult), round_nearest)
        features: list[nn.Module] = [Conv2dNormActivation(3, channels, stride=2, norm_layer=norm_layer)]
        for ratio, width, count, stride in inverted_residual_setting or _SETTING:
            output = _divisible(width * width_mult, round_nearest)
            for i in range(count):
                features.append(
                    block(channels, output, stride if i == 0 else 1, expand_ratio=ratio, norm_layer=norm_layer)
                )
                channels = output
        features.append(Conv2dNormActivation(channels, self.last_channel, kernel_size=1, norm_layer=norm_layer))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes))
        initialize(self)

    def forward(self, x):
        x = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(flatten(x, 1))


def initialize(model: nn.Module, linear=lambda layer: nn.init.normal_(layer.weight, 0, 0.01)) -> None:
    """Fresh weights for the mobile networks and their kin, which differ in what they do with ``linear`` layers."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm2d | nn.GroupNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            linear(module)
            nn.init.zeros_(module.bias)


def _divisible(value: float, divisor: int) -> int:
    """The nearest multiple of ``divisor`` that is not more than a tenth below ``value``."""
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


def mobilenet_v2(weights=None, progress: bool = True, **kwargs) -> MobileNetV2:
    """MobileNetV2."""
    return build(MobileNetV2, MobileNet_V2_Weights, weights, progress, kwargs)
