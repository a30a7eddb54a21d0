from __future__ import annotations

import functools

import rushlight as torch

from ... import nn
from ..ops.misc import Conv2dNormActivation, Permute
from ..ops.stochastic_depth import StochasticDepth
from .weights import without_weights

__all__ = ["ConvNeXt", "convnext_base", "convnext_large", "convnext_small", "convnext_tiny"]


class LayerNorm2d(nn.LayerNorm):
    """Over the channels of each pixel."""

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = nn.functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """A 7x7 filter of each channel, then a small network on each pixel."""

    def __init__(self, dim: int, layer_scale: float, drop: float):
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim, bias=True),
            Permute([0, 2, 3, 1]),
            nn.LayerNorm(dim, eps=1e-6),
            nn.Linear(dim, 4 * dim, bias=True),
            nn.GELU(),
            nn.Linear(4 * dim, dim, bias=True),
            Permute([0, 3, 1, 2]),
        )
        self.layer_scale = nn.Parameter(torch.ones(dim, 1, 1) * layer_scale)
        self.stochastic_depth = StochasticDepth(drop, "row")

    def forward(self, input):
        return self.stochastic_depth(self.layer_scale * self.block(input)) + input


class ConvNeXt(nn.Module):
    """Convolutions in the form of a transformer (https://arxiv.org/abs/2201.03545)."""

    def __init__(
        self, widths, depths, stochastic_depth_prob: float = 0.0, layer_scale: float = 1e-6, num_classes: int = 1000
    ):
        super().__init__()
        norm = functools.partial(LayerNorm2d, eps=1e-6)
        layers: list[nn.Module] = [
            Conv2dNormActivation(
                3, widths[0], kernel_size=4, stride=4, padding=0, norm_layer=norm, activation_layer=None, bias=True
            )
        ]
        total, done = sum(depths), 0
        for i, (dim, depth) in enumerate(zip(widths, depths)):
            stage = []
            for _ in range(depth):
                stage.append(CNBlock(dim, layer_scale, stochastic_depth_prob * done / (total - 1.0)))
                done += 1
            layers.append(nn.Sequential(*stage))
            if i + 1 < len(widths):
                layers.append(nn.Sequential(norm(dim), nn.Conv2d(dim, widths[i + 1], kernel_size=2, stride=2)))
        self.features, self.avgpool = nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(norm(widths[-1]), nn.Flatten(1), nn.Linear(widths[-1], num_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)))


def _model(name: str, widths, depths, drop: float):
    def make(weights=None, progress: bool = True, **kwargs) -> ConvNeXt:
        kwargs = {"stochastic_depth_prob": drop, **kwargs}
        return without_weights(functools.partial(ConvNeXt, widths, depths), name, weights, kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"ConvNeXt, {name.split('_')[1]}."
    return make


convnext_tiny = _model("convnext_tiny", (96, 192, 384, 768), (3, 3, 9, 3), 0.1)
convnext_small = _model("convnext_small", (96, 192, 384, 768), (3, 3, 27, 3), 0.4)
convnext_base = _model("convnext_base", (128, 256, 512, 1024), (3, 3, 27, 3), 0.5)
convnext_large = _model("convnext_large", (192, 384, 768, 1536), (3, 3, 27, 3), 0.5)
