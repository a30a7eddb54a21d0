from __future__ import annotations

from typing import Any, NamedTuple

import rushlight as torch

from ... import nn
from .googlenet import BasicConv2d, as_published
from .weights import without_weights

__all__ = ["Inception3", "InceptionOutputs", "inception_v3"]


class InceptionOutputs(NamedTuple):
    """What the model gives in training."""

    logits: Any
    aux_logits: Any


# A block is its convolutions by name: inputs (a number, a name, or 0 for the block's), outputs, kernel, stride.
# Its result is, in order, what nobody takes further; "pool" is the pooled input.


def _a(pool):
    return "avg", {
        "branch1x1": (0, 64, 1), "branch5x5_1": (0, 48, 1), "branch5x5_2": ("branch5x5_1", 64, 5),
        "branch3x3dbl_1": (0, 64, 1), "branch3x3dbl_2": ("branch3x3dbl_1", 96, 3),
        "branch3x3dbl_3": ("branch3x3dbl_2", 96, 3), "branch_pool": ("pool", pool, 1),
    }  # fmt: skip


def _b():
    return "max", {
        "branch3x3": (0, 384, 3, 2), "branch3x3dbl_1": (0, 64, 1), "branch3x3dbl_2": ("branch3x3dbl_1", 96, 3),
        "branch3x3dbl_3": ("branch3x3dbl_2", 96, 3, 2),
    }  # fmt: skip


def _c(c):
    return "avg", {
        "branch1x1": (0, 192, 1), "branch7x7_1": (0, c, 1), "branch7x7_2": ("branch7x7_1", c, (1, 7)),
        "branch7x7_3": ("branch7x7_2", 192, (7, 1)), "branch7x7dbl_1": (0, c, 1),
        "branch7x7dbl_2": ("branch7x7dbl_1", c, (7, 1)), "branch7x7dbl_3": ("branch7x7dbl_2", c, (1, 7)),
        "branch7x7dbl_4": ("branch7x7dbl_3", c, (7, 1)), "branch7x7dbl_5": ("branch7x7dbl_4", 192, (1, 7)),
        "branch_pool": ("pool", 192, 1),
    }  # fmt: skip


def _d():
    return "max", {
        "branch3x3_1": (0, 192, 1), "branch3x3_2": ("branch3x3_1", 320, 3, 2), "branch7x7x3_1": (0, 192, 1),
        "branch7x7x3_2": ("branch7x7x3_1", 192, (1, 7)), "branch7x7x3_3": ("branch7x7x3_2", 192, (7, 1)),
        "branch7x7x3_4": ("branch7x7x3_3", 192, 3, 2),
    }  # fmt: skip


def _e():
    return "avg", {
        "branch1x1": (0, 320, 1), "branch3x3_1": (0, 384, 1), "branch3x3_2a": ("branch3x3_1", 384, (1, 3)),
        "branch3x3_2b": ("branch3x3_1", 384, (3, 1)), "branch3x3dbl_1": (0, 448, 1),
        "branch3x3dbl_2": ("branch3x3dbl_1", 384, 3), "branch3x3dbl_3a": ("branch3x3dbl_2", 384, (1, 3)),
        "branch3x3dbl_3b": ("branch3x3dbl_2", 384, (3, 1)), "branch_pool": ("pool", 192, 1),
    }  # fmt: skip


_BLOCKS = {
    "Mixed_5b": (192, _a(32)), "Mixed_5c": (256, _a(64)), "Mixed_5d": (288, _a(64)), "Mixed_6a": (288, _b()),
    "Mixed_6b": (768, _c(128)), "Mixed_6c": (768, _c(160)), "Mixed_6d": (768, _c(160)), "Mixed_6e": (768, _c(192)),
    "Mixed_7a": (768, _d()), "Mixed_7b": (1280, _e()), "Mixed_7c": (2048, _e()),
}  # fmt: skip


class InceptionBlock(nn.Module):
    """Several ways side by side, joined by channels."""

    def __init__(self, channels: int, pool: str, convolutions: dict):
        super().__init__()
        self.pool, self.sources = pool, {name: source for name, (source, *_) in convolutions.items()}
        widths = {0: channels, "pool": channels, **{name: width for name, (_, width, *_) in convolutions.items()}}
        for name, (source, width, kernel, *stride) in convolutions.items():
            kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
            padding = (0, 0) if stride else (kernel[0] // 2, kernel[1] // 2)
            setattr(
                self, name,
                BasicConv2d(widths[source], width, kernel_size=kernel, stride=(stride or [1])[0], padding=padding),
            )  # fmt: skip

    def forward(self, x):
        if self.pool == "avg":
            pooled = nn.functional.avg_pool2d(x, kernel_size=3, stride=1, padding=1)
        else:
            pooled = nn.functional.max_pool2d(x, kernel_size=3, stride=2)
        values = {0: x, "pool": pooled}
        for name, source in self.sources.items():
            values[name] = getattr(self, name)(values[source])
        taken = {*self.sources.values(), 0}
        ends = [values[name] for name in self.sources if name not in taken]
        return torch.cat(ends if "pool" in taken else [*ends, pooled], 1)


class InceptionAux(nn.Module):
    """A classifier half-way, for training."""

    def __init__(self, in_channels: int, num_classes: int):
        super().__init__()
        self.conv0 = BasicConv2d(in_channels, 128, kernel_size=1)
        self.conv1 = BasicConv2d(128, 768, kernel_size=5)
        self.fc = nn.Linear(768, num_classes)

    def forward(self, x):
        x = self.conv1(self.conv0(nn.functional.avg_pool2d(x, kernel_size=5, stride=3)))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(x, (1, 1)), 1))


class Inception3(nn.Module):
    """Convolutions taken apart into thin ones (https://arxiv.org/abs/1512.00567)."""

    def __init__(
        self, num_classes: int = 1000, aux_logits: bool = True, transform_input: bool = False,
        init_weights: bool | None = None, dropout: float = 0.5,
    ):  # fmt: skip
        super().__init__()
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.Conv2d_1a_3x3 = BasicConv2d(3, 32, kernel_size=3, stride=2)
        self.Conv2d_2a_3x3 = BasicConv2d(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = BasicConv2d(32, 64, kernel_size=3, padding=1)
        self.maxpool1 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Conv2d_3b_1x1 = BasicConv2d(64, 80, kernel_size=1)
        self.Conv2d_4a_3x3 = BasicConv2d(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.AuxLogits = None
        for name, (channels, block) in _BLOCKS.items():
            if name == "Mixed_7a" and aux_logits:
                self.AuxLogits = InceptionAux(768, num_classes)
            setattr(self, name, InceptionBlock(channels, *block))
        self.avgpool, self.dropout = nn.AdaptiveAvgPool2d((1, 1)), nn.Dropout(p=dropout)
        self.fc = nn.Linear(2048, num_classes)
        if init_weights is not False:
            self._initialize()

    def _initialize(self) -> None:
        special = {} if self.AuxLogits is None else {self.AuxLogits.conv1.conv: 0.01, self.AuxLogits.fc: 0.001}
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.trunc_normal_(module.weight, mean=0.0, std=special.get(module, 0.1), a=-2, b=2)

    def forward(self, x):
        x = as_published(x) if self.transform_input else x
        x = self.maxpool1(self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))))
        x = self.maxpool2(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)))
        aux = None
        for name in _BLOCKS:
            if name == "Mixed_7a" and self.AuxLogits is not None and self.training:
                aux = self.AuxLogits(x)
            x = getattr(self, name)(x)
        x = self.fc(torch.flatten(self.dropout(self.avgpool(x)), 1))
        return InceptionOutputs(x, aux) if self.training and self.aux_logits else x


def inception_v3(weights=None, progress: bool = True, **kwargs) -> Inception3:
    """Inception, version 3; its images have 299 × 299 pixels."""
    return without_weights(Inception3, "inception_v3", weights, kwargs)
