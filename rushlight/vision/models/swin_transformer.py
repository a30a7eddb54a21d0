from __future__ import annotations

import functools
import math

import rushlight as torch

from ... import nn
from ..ops.misc import MLP, Permute
from ..ops.stochastic_depth import StochasticDepth
from .weights import without_weights

__all__ = ["SwinTransformer", "swin_b", "swin_s", "swin_t", "swin_v2_b", "swin_v2_s", "swin_v2_t"]


class PatchMerging(nn.Module):
    """Four pixels become one with twice the channels."""

    def __init__(self, dim: int):
        super().__init__()
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = nn.LayerNorm(4 * dim)

    def forward(self, x):
        return self.reduction(self.norm(_corners(x)))


class PatchMergingV2(nn.Module):
    """The same, normalized afterwards."""

    def __init__(self, dim: int):
        super().__init__()
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = nn.LayerNorm(2 * dim)

    def forward(self, x):
        return self.norm(self.reduction(_corners(x)))


def _corners(x):
    """The pixels of each square of four, one after the other."""
    height, width = x.shape[-3:-1]
    x = nn.functional.pad(x, (0, 0, 0, width % 2, 0, height % 2))
    return torch.cat([x[..., i::2, j::2, :] for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))], -1)


class ShiftedWindowAttention(nn.Module):
    """Attention among the pixels of each window, with a bias by their relative places; windows may be shifted."""

    def __init__(self, dim: int, window: int, shift: int, heads: int, attention_dropout: float, dropout: float):
        super().__init__()
        self.window_size, self.shift_size, self.num_heads = [window] * 2, [shift] * 2, heads
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.relative_position_index: torch.Tensor
        self._learn_places(window, heads)
        self.register_buffer("relative_position_index", _relative_places(window))

    def _learn_places(self, window: int, heads: int) -> None:
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def forward(self, x):
        batch, height, width, channels = x.shape
        side = self.window_size[0]
        x = nn.functional.pad(x, (0, 0, 0, -width % side, 0, -height % side))
        high, wide = x.shape[1:3]
        shift = [0 if side >= n else s for n, s in zip((high, wide), self.shift_size)]
        if any(shift):
            x = torch.roll(x, (-shift[0], -shift[1]), (1, 2))
        x = x.reshape(batch, high // side, side, wide // side, side, channels).transpose(2, 3)
        windows = x.reshape(batch, -1, side * side, channels)
        y = self._attend(windows, _separate(high, wide, side, shift) if any(shift) else None)
        y = y.reshape(batch, high // side, wide // side, side, side, channels).transpose(2, 3)
        y = y.reshape(batch, high, wide, channels)
        if any(shift):
            y = torch.roll(y, tuple(shift), (1, 2))
        return y[:, :height, :width]

    def _attend(self, windows, apart):
        """Of (batch, windows, pixels, channels); ``apart`` (windows, pixels, pixels) keeps strangers apart."""
        batch, count, pixels, channels = windows.shape
        qkv = self._project(windows).reshape(batch, count, pixels, 3, self.num_heads, -1)
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5)
        bias = self._biases()[self.relative_position_index]
        bias = bias.reshape(pixels, pixels, -1).permute(2, 0, 1)
        if apart is not None:
            bias = bias + apart.to(bias.device)[:, None]
        y = self._look(q, k, v, bias, self.attention_dropout if self.training else 0.0)
        y = self.proj(y.transpose(2, 3).reshape(batch, count, pixels, channels))
        return nn.functional.dropout(y, self.dropout, self.training)

    def _project(self, windows):
        return self.qkv(windows)

    def _biases(self):
        """One for each two places in a window, and each head."""
        return self.relative_position_bias_table

    def _look(self, q, k, v, bias, drop: float):
        return nn.functional.scaled_dot_product_attention(q, k, v, bias, drop)


class ShiftedWindowAttentionV2(ShiftedWindowAttention):
    """By the cosine of queries and keys, times a learned number; a small network says the biases of places."""

    relative_coords_table: torch.Tensor

    def _learn_places(self, window: int, heads: int) -> None:
        self.register_buffer("relative_coords_table", _logarithmic_places(window))

    def __init__(self, dim: int, window: int, shift: int, heads: int, attention_dropout: float, dropout: float):
        super().__init__(dim, window, shift, heads, attention_dropout, dropout)
        self.logit_scale = nn.Parameter(torch.log(10 * torch.ones((heads, 1, 1))))
        self.cpb_mlp = nn.Sequential(nn.Linear(2, 512), nn.ReLU(inplace=True), nn.Linear(512, heads, bias=False))
        self.qkv.bias.data[dim : 2 * dim].zero_()

    def _project(self, windows):
        """Keys have no bias."""
        dim = self.qkv.in_features
        of_keys = torch.arange(3 * dim, device=windows.device).div(dim, rounding_mode="floor") == 1
        return nn.functional.linear(windows, self.qkv.weight, self.qkv.bias.masked_fill(of_keys, 0.0))

    def _biases(self):
        table = self.cpb_mlp(self.relative_coords_table)
        return 16 * torch.sigmoid(table.reshape(-1, self.num_heads))

    def _look(self, q, k, v, bias, drop: float):
        q, k = nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1)
        scale = self.logit_scale.clamp(max=math.log(100.0)).exp()
        return nn.functional.scaled_dot_product_attention(q * scale, k, v, bias, drop, scale=1.0)


def _logarithmic_places(window: int):
    """How far apart two pixels of a window can be, from -1 to 1 and denser near 0."""
    apart = torch.arange(1 - window, window, dtype=torch.float32) / (window - 1) * 8
    apart = torch.sign(apart) * torch.log2(apart.abs() + 1.0) / 3.0
    return torch.stack(torch.meshgrid(apart, apart, indexing="ij"), dim=-1)[None]


def _relative_places(window: int):
    """For each pair of pixels in a window, which bias is theirs."""
    at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
    apart = at[:, :, None] - at[:, None, :] + window - 1
    return (apart[0] * (2 * window - 1) + apart[1]).flatten()


def _separate(high: int, wide: int, side: int, shift):
    """-100 between pixels that meet in a window only because the image was rolled."""
    rows, columns = (_thirds(size, side, by) for size, by in zip((high, wide), shift))
    regions = 3 * rows[:, None] + columns
    regions = regions.reshape(high // side, side, wide // side, side).transpose(1, 2).reshape(-1, side * side)
    return (regions[:, None, :] != regions[:, :, None]) * -100.0


def _thirds(size: int, side: int, shift: int):
    """0, in the last window 1, and 2 for what was rolled into it."""
    at = torch.arange(size)
    return (at >= size - side).int() + (at >= size - shift).int()


class SwinTransformerBlock(nn.Module):
    """Attention in windows and a small network, each after a normalization and beside a short cut."""

    attention: type[ShiftedWindowAttention] = ShiftedWindowAttention

    def __init__(self, dim, heads, window, shift, mlp_ratio, dropout, attention_dropout, drop):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-5)
        self.attn = self.attention(dim, window, shift, heads, attention_dropout, dropout)
        self.stochastic_depth = StochasticDepth(drop, "row")
        self.norm2 = nn.LayerNorm(dim, eps=1e-5)
        self.mlp = MLP(dim, [int(dim * mlp_ratio), dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for layer in self.mlp.modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.normal_(layer.bias, std=1e-6)

    def forward(self, x):
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class SwinTransformerBlockV2(SwinTransformerBlock):
    """The same, each normalized afterwards."""

    attention = ShiftedWindowAttentionV2

    def forward(self, x):
        x = x + self.stochastic_depth(self.norm1(self.attn(x)))
        return x + self.stochastic_depth(self.norm2(self.mlp(x)))


class SwinTransformer(nn.Module):
    """Transformers in windows that shift from layer to layer (https://arxiv.org/abs/2103.14030, and 2111.09883)."""

    def __init__(
        self, embed_dim: int, depths, num_heads, window_size: int = 7, mlp_ratio: float = 4.0, dropout: float = 0.0,
        attention_dropout: float = 0.0, stochastic_depth_prob: float = 0.1, num_classes: int = 1000,
        block=SwinTransformerBlock, downsample_layer=PatchMerging,
    ):  # fmt: skip
        super().__init__()
        layers: list[nn.Module] = [
            nn.Sequential(nn.Conv2d(3, embed_dim, 4, 4), Permute([0, 2, 3, 1]), nn.LayerNorm(embed_dim, eps=1e-5))
        ]
        total, done, dim = sum(depths), 0, embed_dim
        for i, (depth, heads) in enumerate(zip(depths, num_heads)):
            stage = []
            for j in range(depth):
                drop = stochastic_depth_prob * done / (total - 1)
                shift = window_size // 2 if j % 2 else 0
                stage.append(block(dim, heads, window_size, shift, mlp_ratio, dropout, attention_dropout, drop))
                done += 1
            layers.append(nn.Sequential(*stage))
            if i + 1 < len(depths):
                layers.append(downsample_layer(dim))
                dim *= 2
        self.features, self.norm = nn.Sequential(*layers), nn.LayerNorm(dim, eps=1e-5)
        self.permute, self.avgpool = Permute([0, 3, 1, 2]), nn.AdaptiveAvgPool2d(1)
        self.flatten, self.head = nn.Flatten(1), nn.Linear(dim, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x):
        x = self.permute(self.norm(self.features(x)))
        return self.head(self.flatten(self.avgpool(x)))


def _model(name: str, dim: int, depths, heads, drop: float, **options):
    def make(weights=None, progress: bool = True, **kwargs) -> SwinTransformer:
        kwargs = {"stochastic_depth_prob": drop, **options, **kwargs}
        return without_weights(functools.partial(SwinTransformer, dim, depths, heads), name, weights, kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A Swin transformer of {depths} layers."
    return make


swin_t = _model("swin_t", 96, (2, 2, 6, 2), (3, 6, 12, 24), 0.2)
swin_s = _model("swin_s", 96, (2, 2, 18, 2), (3, 6, 12, 24), 0.3)
swin_b = _model("swin_b", 128, (2, 2, 18, 2), (4, 8, 16, 32), 0.5)
_SECOND = {"window_size": 8, "block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2}
swin_v2_t = _model("swin_v2_t", 96, (2, 2, 6, 2), (3, 6, 12, 24), 0.2, **_SECOND)
swin_v2_s = _model("swin_v2_s", 96, (2, 2, 18, 2), (3, 6, 12, 24), 0.3, **_SECOND)
swin_v2_b = _model("swin_v2_b", 128, (2, 2, 18, 2), (4, 8, 16, 32), 0.5, **_SECOND)
