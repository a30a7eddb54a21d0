from __future__ import annotations

import functools

import rushlight as torch

from ... import nn
from ..ops.misc import MLP, Permute
from ..ops.stochastic_depth import StochasticDepth
from .weights import without_weights

__all__ = ["SwinTransformer", "swin_b", "swin_s", "swin_t"]


class PatchMerging(nn.Module):
    """Four pixels become one with twice the channels."""

    def __init__(self, dim: int):
        super().__init__()
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = nn.LayerNorm(4 * dim)

    def forward(self, x):
        height, width = x.shape[-3:-1]
        x = nn.functional.pad(x, (0, 0, 0, width % 2, 0, height % 2))
        corners = [x[..., i::2, j::2, :] for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))]
        return self.reduction(self.norm(torch.cat(corners, -1)))


class ShiftedWindowAttention(nn.Module):
    """Attention among the pixels of each window, with a bias by their relative places; windows may be shifted."""

    def __init__(self, dim: int, window: int, shift: int, heads: int, attention_dropout: float, dropout: float):
        super().__init__()
        self.window_size, self.shift_size, self.num_heads = [window] * 2, [shift] * 2, heads
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.relative_position_index: torch.Tensor
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        self.register_buffer("relative_position_index", _relative_places(window))
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
        qkv = self.qkv(windows).reshape(batch, count, pixels, 3, self.num_heads, -1)
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5)
        bias = self.relative_position_bias_table[self.relative_position_index]
        bias = bias.reshape(pixels, pixels, -1).permute(2, 0, 1)
        if apart is not None:
            bias = bias + apart.to(bias.device)[:, None]
        drop = self.attention_dropout if self.training else 0.0
        y = nn.functional.scaled_dot_product_attention(q, k, v, bias, drop)
        y = self.proj(y.transpose(2, 3).reshape(batch, count, pixels, channels))
        return nn.functional.dropout(y, self.dropout, self.training)


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

    def __init__(self, dim, heads, window, shift, mlp_ratio, dropout, attention_dropout, drop):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-5)
        self.attn = ShiftedWindowAttention(dim, window, shift, heads, attention_dropout, dropout)
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


class SwinTransformer(nn.Module):
    """Transformers in windows that shift from layer to layer (https://arxiv.org/abs/2103.14030)."""

    def __init__(
        self, embed_dim: int, depths, num_heads, window_size: int = 7, mlp_ratio: float = 4.0, dropout: float = 0.0,
        attention_dropout: float = 0.0, stochastic_depth_prob: float = 0.1, num_classes: int = 1000,
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
                stage.append(
                    SwinTransformerBlock(dim, heads, window_size, shift, mlp_ratio, dropout, attention_dropout, drop)
                )
                done += 1
            layers.append(nn.Sequential(*stage))
            if i + 1 < len(depths):
                layers.append(PatchMerging(dim))
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


def _model(name: str, dim: int, depths, heads, drop: float):
    def make(weights=None, progress: bool = True, **kwargs) -> SwinTransformer:
        kwargs = {"stochastic_depth_prob": drop, **kwargs}
        return without_weights(functools.partial(SwinTransformer, dim, depths, heads), name, weights, kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A Swin transformer of {depths} layers."
    return make


swin_t = _model("swin_t", 96, (2, 2, 6, 2), (3, 6, 12, 24), 0.2)
swin_s = _model("swin_s", 96, (2, 2, 18, 2), (3, 6, 12, 24), 0.3)
swin_b = _model("swin_b", 128, (2, 2, 18, 2), (4, 8, 16, 32), 0.5)
