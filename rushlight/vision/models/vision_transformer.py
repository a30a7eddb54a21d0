from __future__ import annotations

import functools
import math
from collections import OrderedDict

import rushlight as torch

from ... import nn
from ..ops.misc import MLP
from .weights import without_weights

__all__ = ["VisionTransformer", "vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32"]


class EncoderBlock(nn.Module):
    """Attention and a small network, each after a normalization and beside a short cut."""

    def __init__(self, num_heads: int, hidden_dim: int, mlp_dim: int, dropout: float, attention_dropout: float):
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = nn.LayerNorm(hidden_dim, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = nn.LayerNorm(hidden_dim, eps=1e-6)
        self.mlp = MLP(hidden_dim, [mlp_dim, hidden_dim], activation_layer=nn.GELU, dropout=dropout)
        for layer in self.mlp:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.normal_(layer.bias, std=1e-6)

    def forward(self, input):
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    def __init__(self, length: int, layers: int, heads: int, dim: int, mlp_dim: int, dropout: float, attention: float):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, length, dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        blocks = {f"encoder_layer_{i}": EncoderBlock(heads, dim, mlp_dim, dropout, attention) for i in range(layers)}
        self.layers = nn.Sequential(OrderedDict(blocks))
        self.ln = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, input):
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """A transformer over patches of the image (https://arxiv.org/abs/2010.11929)."""

    def __init__(
        self, image_size: int, patch_size: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int,
        dropout: float = 0.0, attention_dropout: float = 0.0, num_classes: int = 1000,
    ):  # fmt: skip
        super().__init__()
        if image_size % patch_size:
            raise ValueError("Input shape indivisible by patch size!")
        self.image_size, self.patch_size, self.hidden_dim = image_size, patch_size, hidden_dim
        self.conv_proj = nn.Conv2d(3, hidden_dim, kernel_size=patch_size, stride=patch_size)
        length = (image_size // patch_size) ** 2 + 1  # and one for the class
        self.class_token = nn.Parameter(torch.zeros(1, 1, hidden_dim))
        self.encoder = Encoder(length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout)
        self.seq_length = length
        head = nn.Linear(hidden_dim, num_classes)
        self.heads = nn.Sequential(OrderedDict([("head", head)]))
        fan_in = 3 * patch_size * patch_size
        nn.init.trunc_normal_(self.conv_proj.weight, std=math.sqrt(1 / fan_in))
        nn.init.zeros_(self.conv_proj.bias)
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)

    def forward(self, x):
        n, _, height, width = x.shape
        if (height, width) != (self.image_size, self.image_size):
            raise ValueError(f"Wrong image height or width! Expected {self.image_size} but got {height} x {width}!")
        x = self.conv_proj(x).reshape(n, self.hidden_dim, -1).permute(0, 2, 1)
        x = self.encoder(torch.cat([self.class_token.expand(n, -1, -1), x], dim=1))
        return self.heads(x[:, 0])


def _model(name: str, patch: int, layers: int, heads: int, dim: int, mlp_dim: int):
    def make(weights=None, progress: bool = True, **kwargs) -> VisionTransformer:
        size = kwargs.pop("image_size", 224)
        whole = functools.partial(VisionTransformer, size, patch, layers, heads, dim, mlp_dim)
        return without_weights(whole, name, weights, kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A vision transformer with patches of {patch} × {patch} and {layers} layers."
    return make


vit_b_16 = _model("vit_b_16", 16, 12, 12, 768, 3072)
vit_b_32 = _model("vit_b_32", 32, 12, 12, 768, 3072)
vit_l_16 = _model("vit_l_16", 16, 24, 16, 1024, 4096)
vit_l_32 = _model("vit_l_32", 32, 24, 16, 1024, 4096)
