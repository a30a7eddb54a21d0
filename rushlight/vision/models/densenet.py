from __future__ import annotations

from collections import OrderedDict

import rushlight as torch

from ... import nn
from .weights import without_weights

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201"]


class _DenseLayer(nn.Module):
    """Narrows by 1x1, filters by 3x3; what comes out is added to the list of all before it."""

    def __init__(self, channels: int, growth_rate: int, bn_size: int, drop_rate: float):
        super().__init__()
        self.norm1, self.relu1 = nn.BatchNorm2d(channels), nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(channels, bn_size * growth_rate, kernel_size=1, stride=1, bias=False)
        self.norm2, self.relu2 = nn.BatchNorm2d(bn_size * growth_rate), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, kernel_size=3, stride=1, padding=1, bias=False)
        self.drop_rate = float(drop_rate)

    def forward(self, features):
        x = torch.cat(features if isinstance(features, list) else [features], 1)
        x = self.conv2(self.relu2(self.norm2(self.conv1(self.relu1(self.norm1(x))))))
        return nn.functional.dropout(x, p=self.drop_rate, training=self.training) if self.drop_rate > 0 else x


class _DenseBlock(nn.ModuleDict):
    def __init__(self, count: int, channels: int, bn_size: int, growth_rate: int, drop_rate: float):
        super().__init__()
        for i in range(count):
            self.add_module(
                f"denselayer{i + 1}", _DenseLayer(channels + i * growth_rate, growth_rate, bn_size, drop_rate)
            )

    def forward(self, x):
        features = [x]
        for layer in self.values():
            features.append(layer(features))
        return torch.cat(features, 1)


class _Transition(nn.Sequential):
    def __init__(self, channels: int, output: int):
        super().__init__()
        self.norm, self.relu = nn.BatchNorm2d(channels), nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(channels, output, kernel_size=1, stride=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    """Every layer sees what all layers before it in its block made (https://arxiv.org/abs/1608.06993)."""

    def __init__(
        self,
        growth_rate: int = 32,
        block_config=(6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0,
        num_classes: int = 1000,
    ):
        super().__init__()
        first = [
            ("conv0", nn.Conv2d(3, num_init_features, kernel_size=7, stride=2, padding=3, bias=False)),
            ("norm0", nn.BatchNorm2d(num_init_features)),
            ("relu0", nn.ReLU(inplace=True)),
            ("pool0", nn.MaxPool2d(kernel_size=3, stride=2, padding=1)),
        ]
        self.features = nn.Sequential(OrderedDict(first))
        channels = num_init_features
        for i, count in enumerate(block_config):
            block = _DenseBlock(count, channels, bn_size, growth_rate, drop_rate)
            self.features.add_module(f"denseblock{i + 1}", block)
            channels += count * growth_rate
            if i != len(block_config) - 1:
                self.features.add_module(f"transition{i + 1}", _Transition(channels, channels // 2))
                channels //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
            elif isinstance(module, nn.BatchNorm2d):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
            elif isinstance(module, nn.Linear):
                nn.init.constant_(module.bias, 0)

    def forward(self, x):
        x = nn.functional.relu(self.features(x), inplace=True)
        return self.classifier(torch.flatten(nn.functional.adaptive_avg_pool2d(x, (1, 1)), 1))


def _densenet(growth_rate, block_config, num_init_features):
    def make(**kwargs):
        return DenseNet(growth_rate, block_config, num_init_features, **kwargs)

    return make


def densenet121(weights=None, progress: bool = True, **kwargs) -> DenseNet:
    """DenseNet of 121 layers."""
    return without_weights(_densenet(32, (6, 12, 24, 16), 64), "densenet121", weights, kwargs)


def densenet161(weights=None, progress: bool = True, **kwargs) -> DenseNet:
    """DenseNet of 161 layers."""
    return without_weights(_densenet(48, (6, 12, 36, 24), 96), "densenet161", weights, kwargs)


def densenet169(weights=None, progress: bool = True, **kwargs) -> DenseNet:
    """DenseNet of 169 layers."""
    return without_weights(_densenet(32, (6, 12, 32, 32), 64), "densenet169", weights, kwargs)


def densenet201(weights=None, progress: bool = True, **kwargs) -> DenseNet:
    """DenseNet of 201 layers."""
    return without_weights(_densenet(32, (6, 12, 48, 32), 64), "densenet201", weights, kwargs)
