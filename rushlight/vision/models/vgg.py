from __future__ import annotations

from ... import nn
from ...ops.shape import flatten
from . import weights as all_weights

__all__ = ["VGG", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn"]


class VGG(nn.Module):
    """3x3 convolutions in blocks, then three dense layers (https://arxiv.org/abs/1409.1556)."""

    def __init__(self, features, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(True), nn.Dropout(p=dropout),
            nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )  # fmt: skip
        if init_weights:
            self.apply(_initialize)

    def forward(self, x):
        return self.classifier(flatten(self.avgpool(self.features(x)), 1))


def _initialize(module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        nn.init.constant_(module.bias, 0)
    elif isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, 0, 0.01)
        nn.init.constant_(module.bias, 0)


# How many convolutions the five blocks have, of 64, 128, 256, 512 and 512 channels.
_BLOCKS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def _features(depth: int, batch_norm: bool):
    parts: list[int | str] = []
    for count, width in zip(_BLOCKS[depth], (64, 128, 256, 512, 512)):
        parts += [*[width] * count, "M"]
    return make_layers(parts, batch_norm)


def make_layers(cfg: list[int | str], batch_norm: bool = False):
    """A convolution for each width in ``cfg``, a pooling layer for each ``"M"``."""
    layers: list[nn.Module] = []
    channels = 3
    for width in cfg:
        if isinstance(width, str):
            layers.append(nn.MaxPool2d(2, stride=2))
            continue
        layers.append(nn.Conv2d(channels, width, 3, padding=1))
        layers += [nn.BatchNorm2d(width)] if batch_norm else []
        layers.append(nn.ReLU(inplace=True))
        channels = width
    return nn.Sequential(*layers)


def _builder(depth: int, batch_norm: bool):
    name = f"vgg{depth}{'_bn' * batch_norm}"
    weights_enum = getattr(all_weights, f"{name.upper()}_Weights")

    def vgg(weights=None, progress: bool = True, **kwargs) -> VGG:
        return all_weights.build(
            lambda **options: VGG(_features(depth, batch_norm), **options), weights_enum, weights, progress, kwargs
        )

    vgg.__name__ = vgg.__qualname__ = name
    vgg.__doc__ = f"VGG of {depth} layers{', with batch normalization' * batch_norm}."
    return vgg


vgg11, vgg11_bn = _builder(11, False), _builder(11, True)
vgg13, vgg13_bn = _builder(13, False), _builder(13, True)
vgg16, vgg16_bn = _builder(16, False), _builder(16, True)
vgg19, vgg19_bn = _builder(19, False), _builder(19, True)
