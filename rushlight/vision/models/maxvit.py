"""MaxViT: convolutions, attention in windows, attention across them (https://arxiv.org/abs/2204.01697)."""

from __future__ import annotations

import functools
from collections import OrderedDict

import rushlight as torch

from ... import nn
from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from ..ops.stochastic_depth import StochasticDepth
from .swin_transformer import _relative_places
from .weights import without_weights

__all__ = ["MaxVit", "maxvit_t"]


class MBConv(nn.Module):
    """Wide convolutions between narrow ones, weighed by channels, beside a short cut."""

    def __init__(self, in_channels, out_channels, expansion, squeeze, stride, activation_layer, norm_layer, drop):
        super().__init__()
        self.proj: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            shrink = [nn.AvgPool2d(3, stride, padding=1)] if stride == 2 else []
            self.proj = nn.Sequential(*shrink, nn.Conv2d(in_channels, out_channels, 1))
        middle, few = int(out_channels * expansion), int(out_channels * squeeze)
        wide = {"activation_layer": activation_layer, "norm_layer": norm_layer, "inplace": None}
        self.stochastic_depth = StochasticDepth(drop, "row") if drop else nn.Identity()
        self.layers = nn.Sequential(
            OrderedDict(
                pre_norm=norm_layer(in_channels),
                conv_a=Conv2dNormActivation(in_channels, middle, 1, 1, 0, **wide),
                conv_b=Conv2dNormActivation(middle, middle, 3, stride, 1, groups=middle, **wide),
                squeeze_excitation=SqueezeExcitation(middle, few, activation=nn.SiLU),
                conv_c=nn.Conv2d(middle, out_channels, 1),
            )
        )

    def forward(self, x):
        return self.proj(x) + self.stochastic_depth(self.layers(x))


class RelativePositionalMultiHeadAttention(nn.Module):
    """Attention among the pixels of each group, with a bias by their relative places."""

    relative_position_index: torch.Tensor

    def __init__(self, feat_dim: int, head_dim: int, side: int):
        super().__init__()
        if feat_dim % head_dim:
            raise ValueError(f"feat_dim: {feat_dim} must be divisible by head_dim: {head_dim}")
        self.n_heads, self.head_dim, self.scale_factor = feat_dim // head_dim, head_dim, feat_dim**-0.5
        self.to_qkv, self.merge = nn.Linear(feat_dim, 3 * feat_dim), nn.Linear(feat_dim, feat_dim)
        self.relative_position_bias_table = nn.Parameter(torch.empty(((2 * side - 1) ** 2, self.n_heads)))
        self.register_buffer("relative_position_index", _relative_places(side).reshape(side**2, side**2))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def forward(self, x):
        """Of (batch, groups, pixels, channels)."""
        batch, groups, pixels, channels = x.shape
        qkv = self.to_qkv(x).reshape(batch, groups, pixels, 3, self.n_heads, self.head_dim)
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5)
        bias = self.relative_position_bias_table[self.relative_position_index].permute(2, 0, 1)
        y = nn.functional.scaled_dot_product_attention(q, k, v, bias, scale=self.scale_factor)
        return self.merge(y.transpose(2, 3).reshape(batch, groups, pixels, channels))


class PartitionAttentionLayer(nn.Module):
    """Attention among the neighbours in each window, or among pixels a window apart, and a small network."""

    def __init__(
        self, in_channels, head_dim, side, partition_type, grid_size, mlp_ratio, activation_layer, norm_layer,
        attention_dropout, mlp_dropout, drop,
    ):  # fmt: skip
        super().__init__()
        if partition_type not in ("grid", "window"):
            raise ValueError("partition_type must be either 'grid' or 'window'")
        self.grid_size, self.across = grid_size, partition_type == "grid"
        self.p = grid_size[0] // side if self.across else side
        self.attn_layer = nn.Sequential(
            norm_layer(in_channels),
            RelativePositionalMultiHeadAttention(in_channels, head_dim, side),
            nn.Dropout(attention_dropout),
        )
        self.mlp_layer = nn.Sequential(
            nn.LayerNorm(in_channels),
            nn.Linear(in_channels, in_channels * mlp_ratio),
            activation_layer(),
            nn.Linear(in_channels * mlp_ratio, in_channels),
            nn.Dropout(mlp_dropout),
        )
        self.stochastic_dropout = StochasticDepth(drop, "row")

    def forward(self, x):
        batch, channels, height, width = x.shape
        if (height, width) != tuple(self.grid_size):
            raise ValueError(f"Grid size must match: expected {tuple(self.grid_size)}, got {(height, width)}")
        rows, columns = height // self.p, width // self.p
        x = x.reshape(batch, channels, rows, self.p, columns, self.p).permute(0, 2, 4, 3, 5, 1)
        x = x.reshape(batch, rows * columns, self.p * self.p, channels)
        x = x.transpose(1, 2) if self.across else x
        x = x + self.stochastic_dropout(self.attn_layer(x))
        x = x + self.stochastic_dropout(self.mlp_layer(x))
        x = x.transpose(1, 2) if self.across else x
        x = x.reshape(batch, rows, columns, self.p, self.p, channels).permute(0, 5, 1, 3, 2, 4)
        return x.reshape(batch, channels, height, width)


class MaxVitLayer(nn.Module):
    """Convolutions, attention in windows, attention across them."""

    def __init__(
        self, in_channels, out_channels, stride, grid_size, side, head_dim, squeeze_ratio, expansion_ratio, mlp_ratio,
        norm_layer, activation_layer, attention_dropout, mlp_dropout, drop,
    ):  # fmt: skip
        super().__init__()
        convolutions = MBConv(
            in_channels, out_channels, expansion_ratio, squeeze_ratio, stride, activation_layer, norm_layer, drop
        )
        attend = functools.partial(
            PartitionAttentionLayer, out_channels, head_dim, side, grid_size=grid_size, mlp_ratio=mlp_ratio,
            activation_layer=activation_layer, norm_layer=nn.LayerNorm, attention_dropout=attention_dropout,
            mlp_dropout=mlp_dropout, drop=drop,
        )  # fmt: skip
        window, grid = attend(partition_type="window"), attend(partition_type="grid")
        self.layers = nn.Sequential(OrderedDict(MBconv=convolutions, window_attention=window, grid_attention=grid))

    def forward(self, x):
        return self.layers(x)


class MaxVitBlock(nn.Module):
    """Layers of one size; the first halves what comes in."""

    def __init__(self, in_channels, out_channels, grid_size, drops, **options):
        super().__init__()
        self.grid_size = grid_size
        self.layers = nn.ModuleList()
        for i, drop in enumerate(drops):
            self.layers.append(
                MaxVitLayer(
                    out_channels if i else in_channels, out_channels, 1 if i else 2, grid_size, drop=drop, **options
                )
            )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class MaxVit(nn.Module):
    """Images of one size only, ``input_size``, whose windows of ``partition_size`` must fit at every stage."""

    def __init__(
        self, input_size, stem_channels: int, partition_size: int, block_channels, block_layers, head_dim: int,
        stochastic_depth_prob: float, norm_layer=None, activation_layer=nn.GELU, squeeze_ratio: float = 0.25,
        expansion_ratio: float = 4, mlp_ratio: int = 4, mlp_dropout: float = 0.0, attention_dropout: float = 0.0,
        num_classes: int = 1000,
    ):  # fmt: skip
        super().__init__()
        norm_layer = norm_layer or functools.partial(nn.BatchNorm2d, eps=1e-3, momentum=0.01)
        sizes = _halved(input_size, len(block_channels) + 1)
        for i, size in enumerate(sizes[1:]):
            if size[0] % partition_size or size[1] % partition_size:
                raise ValueError(
                    f"Input size {size} of block {i} is not divisible by partition size {partition_size}. "
                    "Consider changing the partition size or the input size."
                )
        self.input_size, self.partition_size = input_size, partition_size
        self.stem = nn.Sequential(
            Conv2dNormActivation(
                3, stem_channels, 3, stride=2, norm_layer=norm_layer, activation_layer=activation_layer, bias=False,
                inplace=None,
            ),
            Conv2dNormActivation(
                stem_channels, stem_channels, 3, stride=1, norm_layer=None, activation_layer=None, bias=True
            ),
        )  # fmt: skip
        total = sum(block_layers)
        drops = [stochastic_depth_prob * i / max(1, total - 1) for i in range(total)]
        self.blocks = nn.ModuleList()
        before = [stem_channels, *block_channels]
        for i, (out_channels, count) in enumerate(zip(block_channels, block_layers)):
            start = sum(block_layers[:i])
            self.blocks.append(
                MaxVitBlock(
                    before[i], out_channels, sizes[i + 1], drops[start : start + count], side=partition_size,
                    head_dim=head_dim, squeeze_ratio=squeeze_ratio, expansion_ratio=expansion_ratio,
                    mlp_ratio=mlp_ratio, norm_layer=norm_layer, activation_layer=activation_layer,
                    attention_dropout=attention_dropout, mlp_dropout=mlp_dropout,
                )
            )  # fmt: skip
        last = block_channels[-1]
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(last), nn.Linear(last, last), nn.Tanh(),
            nn.Linear(last, num_classes, bias=False),
        )  # fmt: skip
        self._initialize()

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(x)

    def _initialize(self) -> None:
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)


def _halved(size, times: int) -> list:
    """The sizes after the stem and after each stage."""
    found = []
    for _ in range(times):
        size = tuple((n - 1) // 2 + 1 for n in size)
        found.append(size)
    return found


def maxvit_t(weights=None, progress: bool = True, **kwargs) -> MaxVit:
    """The smallest MaxViT, for images of 224 by 224."""
    options: dict = {
        "input_size": (224, 224), "stem_channels": 64, "block_channels": [64, 128, 256, 512], "head_dim": 32,
        "block_layers": [2, 2, 5, 2], "stochastic_depth_prob": 0.2, "partition_size": 7,
    }  # fmt: skip
    return without_weights(MaxVit, "maxvit_t", weights, {**options, **kwargs})
