from __future__ import annotations

from functools import partial

from ... import nn
from ...ops.join import cat
from ...ops.shape import flatten
from .weights import SqueezeNet1_0_Weights, SqueezeNet1_1_Weights, build

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]


class Fire(nn.Module):
    """A 1x1 convolution that squeezes, then 1x1 and 3x3 ones side by side that expand."""

    def __init__(self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int) -> None:
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, kernel_size=1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, kernel_size=1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, kernel_size=3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.squeeze_activation(self.squeeze(x))
        parts = [self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))]
        return cat(parts, 1)


# (input, squeezed, expanded by each) channels of the eight modules
_FIRES = [(64, 16, 64), (128, 16, 64), (128, 32, 128), (256, 32, 128), (256, 48, 192), (384, 48, 192), (384, 64, 256), (512, 64, 256)]  # fmt: skip  # noqa: E501


class SqueezeNet(nn.Module):
    """A network of few parameters (https://arxiv.org/abs/1602.07360)."""

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.num_classes = num_classes
        if version not in ("1_0", "1_1"):
            raise ValueError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        old = version == "1_0"
        first = nn.Conv2d(3, 96, 7, stride=2) if old else nn.Conv2d(3, 64, 3, stride=2)
        layers: list[nn.Module] = [first, nn.ReLU(inplace=True), _pool()]
        for i, (inside, squeezed, expanded) in enumerate(_FIRES):
            layers.append(Fire(96 if old and i == 0 else inside, squeezed, expanded, expanded))
            if i in ((2, 6) if old else (1, 3)):
                layers.append(_pool())
        self.features = nn.Sequential(*layers)
        final = nn.Conv2d(512, num_classes, kernel_size=1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), final, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                if module is final:
                    nn.init.normal_(module.weight, mean=0.0, std=0.01)
                else:
                    nn.init.kaiming_uniform_(module.weight)
                nn.init.constant_(module.bias, 0)

    def forward(self, x):
        return flatten(self.classifier(self.features(x)), 1)


def _pool():
    return nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True)


def squeezenet1_0(weights=None, progress: bool = True, **kwargs) -> SqueezeNet:
    """SqueezeNet 1.0."""
    return build(partial(SqueezeNet, "1_0"), SqueezeNet1_0_Weights, weights, progress, kwargs)


def squeezenet1_1(weights=None, progress: bool = True, **kwargs) -> SqueezeNet:
    """SqueezeNet 1.1, with fewer computations."""
    return build(partial(SqueezeNet, "1_1"), SqueezeNet1_1_Weights, weights, progress, kwargs)
