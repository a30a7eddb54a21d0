from __future__ import annotations

import functools

import rushlight as torch

from ... import nn
from .weights import without_weights

__all__ = ["ShuffleNetV2", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0"]


def _pointwise(inp: int, oup: int) -> list:
    return [nn.Conv2d(inp, oup, 1, bias=False), nn.BatchNorm2d(oup), nn.ReLU(inplace=True)]


def _depthwise(channels: int, stride: int) -> list:
    return [
        nn.Conv2d(channels, channels, 3, stride, padding=1, bias=False, groups=channels), nn.BatchNorm2d(channels)
    ]  # fmt: skip


class InvertedResidual(nn.Module):
    """Half of the channels pass through, or all are halved in size; then the halves are shuffled."""

    def __init__(self, inp: int, oup: int, stride: int):
        super().__init__()
        half = oup // 2
        self.stride = stride
        self.branch1 = nn.Sequential(*([*_depthwise(inp, stride), *_pointwise(inp, half)] if stride > 1 else []))
        self.branch2 = nn.Sequential(
            *_pointwise(inp if stride > 1 else half, half), *_depthwise(half, stride), *_pointwise(half, half)
        )

    def forward(self, x):
        kept, changed = (x, x) if self.stride > 1 else x.chunk(2, dim=1)
        out = torch.cat((self.branch1(kept), self.branch2(changed)), dim=1)
        n, channels, height, width = out.shape
        return out.view(n, 2, channels // 2, height, width).transpose(1, 2).reshape(n, channels, height, width)


class ShuffleNetV2(nn.Module):
    """Channels split and shuffled (https://arxiv.org/abs/1807.11164)."""

    def __init__(self, stages_repeats, stages_out_channels, num_classes: int = 1000):
        super().__init__()
        first, *stages, last = stages_out_channels
        self.conv1 = nn.Sequential(
            nn.Conv2d(3, first, 3, 2, 1, bias=False), nn.BatchNorm2d(first), nn.ReLU(inplace=True)
        )
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for i, (repeats, channels) in enumerate(zip(stages_repeats, stages), 2):
            rest = [InvertedResidual(channels, channels, 1) for _ in range(repeats - 1)]
            setattr(self, f"stage{i}", nn.Sequential(InvertedResidual(first, channels, 2), *rest))
            first = channels
        self.conv5, self.fc = nn.Sequential(*_pointwise(first, last)), nn.Linear(last, num_classes)

    def forward(self, x):
        x = self.stage4(self.stage3(self.stage2(self.maxpool(self.conv1(x)))))
        return self.fc(self.conv5(x).mean([2, 3]))


def _model(name: str, *channels: int):
    def make(weights=None, progress: bool = True, **kwargs) -> ShuffleNetV2:
        return without_weights(functools.partial(ShuffleNetV2, (4, 8, 4), channels), name, weights, kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"ShuffleNetV2, {name[-4:].replace('_', '.')}."
    return make


shufflenet_v2_x0_5 = _model("shufflenet_v2_x0_5", 24, 48, 96, 192, 1024)
shufflenet_v2_x1_0 = _model("shufflenet_v2_x1_0", 24, 116, 232, 464, 1024)
shufflenet_v2_x1_5 = _model("shufflenet_v2_x1_5", 24, 176, 352, 704, 1024)
shufflenet_v2_x2_0 = _model("shufflenet_v2_x2_0", 24, 244, 488, 976, 2048)
