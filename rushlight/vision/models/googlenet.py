from __future__ import annotations

from typing import Any, NamedTuple

import rushlight as torch

from ... import nn
from .weights import without_weights

__all__ = ["GoogLeNet", "GoogLeNetOutputs", "googlenet"]

# inputs, then the widths: 1x1; before and after 3x3; before and after the second 3x3; after pooling
_BLOCKS = {
    "3a": (192, 64, 96, 128, 16, 32, 32), "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64), "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64), "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128), "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}  # fmt: skip


class GoogLeNetOutputs(NamedTuple):
    """What the model gives in training."""

    logits: Any
    aux_logits2: Any
    aux_logits1: Any


class BasicConv2d(nn.Module):
    """A convolution, a normalization, a ReLU."""

    def __init__(self, in_channels: int, out_channels: int, **options):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **options)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x):
        return nn.functional.relu(self.bn(self.conv(x)), inplace=True)


class Inception(nn.Module):
    """Four ways side by side, joined by channels."""

    def __init__(self, inp, one, three_in, three, five_in, five, pool):
        super().__init__()
        conv = BasicConv2d
        self.branch1 = conv(inp, one, kernel_size=1)
        self.branch2 = nn.Sequential(
            conv(inp, three_in, kernel_size=1), conv(three_in, three, kernel_size=3, padding=1)
        )
        self.branch3 = nn.Sequential(conv(inp, five_in, kernel_size=1), conv(five_in, five, kernel_size=3, padding=1))
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True), conv(inp, pool, kernel_size=1)
        )

    def forward(self, x):
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionAux(nn.Module):
    """A classifier half-way, for training."""

    def __init__(self, in_channels: int, num_classes: int, dropout: float):
        super().__init__()
        self.conv = BasicConv2d(in_channels, 128, kernel_size=1)
        self.fc1, self.fc2 = nn.Linear(2048, 1024), nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x):
        x = torch.flatten(self.conv(nn.functional.adaptive_avg_pool2d(x, (4, 4))), 1)
        return self.fc2(self.dropout(nn.functional.relu(self.fc1(x), inplace=True)))


class GoogLeNet(nn.Module):
    """Nine blocks of four ways (https://arxiv.org/abs/1409.4842)."""

    def __init__(
        self, num_classes: int = 1000, aux_logits: bool = True, transform_input: bool = False,
        init_weights: bool | None = None, dropout: float = 0.2, dropout_aux: float = 0.7,
    ):  # fmt: skip
        super().__init__()
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.conv1 = BasicConv2d(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = BasicConv2d(64, 64, kernel_size=1)
        self.conv3 = BasicConv2d(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        for name, widths in _BLOCKS.items():
            setattr(self, f"inception{name}", Inception(*widths))
            if name in ("3b", "4e"):
                pool = nn.MaxPool2d(3, stride=2, ceil_mode=True) if name == "3b" else nn.MaxPool2d(2, 2, ceil_mode=True)
                setattr(self, "maxpool3" if name == "3b" else "maxpool4", pool)
        self.aux1 = InceptionAux(512, num_classes, dropout_aux) if aux_logits else None
        self.aux2 = InceptionAux(528, num_classes, dropout_aux) if aux_logits else None
        self.avgpool, self.dropout = nn.AdaptiveAvgPool2d((1, 1)), nn.Dropout(p=dropout)
        self.fc = nn.Linear(1024, num_classes)
        if init_weights is not False:
            for module in self.modules():
                if isinstance(module, nn.Conv2d | nn.Linear):
                    nn.init.trunc_normal_(module.weight, mean=0.0, std=0.01, a=-2, b=2)

    def forward(self, x):
        x = as_published(x) if self.transform_input else x
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        x, aux = self._to_the_blocks(x)
        x = self.fc(self.dropout(torch.flatten(self.avgpool(x), 1)))
        return GoogLeNetOutputs(x, aux.get("aux2"), aux.get("aux1")) if self.training and self.aux_logits else x

    def _to_the_blocks(self, x):
        aux = {}
        for name in _BLOCKS:
            x = getattr(self, f"inception{name}")(x)
            if name in ("3b", "4e"):
                x = (self.maxpool3 if name == "3b" else self.maxpool4)(x)
            if self.training and self.aux_logits and name in ("4a", "4d"):
                aux["aux1" if name == "4a" else "aux2"] = (self.aux1 if name == "4a" else self.aux2)(x)
        return x, aux


def as_published(x):
    """An image normalized as most models want it, normalized as this model's published weights want it."""
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    mean, std = (v.reshape(1, 3, 1, 1).to(x.device) for v in (mean, std))
    return x * (std / 0.5) + (mean - 0.5) / 0.5


def googlenet(weights=None, progress: bool = True, **kwargs) -> GoogLeNet:
    """GoogLeNet."""
    return without_weights(GoogLeNet, "googlenet", weights, kwargs)
