"""A small GPT that writes text."""

from __future__ import annotations

import math
from dataclasses import dataclass

import rushlight as torch
import rushlight.nn as nn
from rushlight.nn import functional as F


@dataclass
class Config:
    vocabulary: int = 12
    context: int = 8
    width: int = 16
    heads: int = 2
    layers: int = 2


class Attention(nn.Module):
    mask: torch.Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.register_buffer("mask", torch.tril(torch.ones(config.context, config.context)).bool())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        scores = scores.masked_fill(~self.mask[:T, :T], float("-inf"))
        mixed = F.softmax(scores, dim=-1) @ v
        y: torch.Tensor = self.out(mixed.transpose(1, 2).contiguous().view(B, T, C))
        return y


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.width, 4 * config.width), nn.GELU(), nn.Linear(4 * config.width, config.width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        y: torch.Tensor = self.mlp(self.norm2(x))
        return x + y


class GPT(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self._init_weights)

    @staticmethod
    def _init_weights(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(
        self, tokens: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        places = torch.arange(tokens.size(1), device=tokens.device)
        x = self.tokens(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(self.norm(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def generate(
        self, tokens: torch.Tensor, n: int, temperature: float = 1.0, top_k: int | None = None
    ) -> torch.Tensor:
        for _ in range(n):
            logits, _ = self(tokens[:, -self.config.context :])
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                kept, _ = torch.topk(logits, top_k)
                logits[logits < kept[:, [-1]]] = -float("inf")
            following = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
            tokens = torch.cat((tokens, following), dim=1)
        return tokens


torch.manual_seed(0)
model = GPT(Config())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95))
data = torch.arange(9).repeat(4, 1)
for _ in range(30):
    _, loss = model(data[:, :-1], data[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model.generate(torch.tensor([[0]]), 5, top_k=1).tolist())
