"""A state space model in the manner of the minimal rewrites of Mamba: a selective scan in a Python loop, einsum and
einops. It is no package; the code is written here for this test."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from harness import main, section
from torch import nn


class Mixer(nn.Module):
    def __init__(self, width, states=4, inner=2, kernel=4):
        super().__init__()
        self.inner, self.states, self.rank = inner * width, states, math.ceil(width / 16)
        self.enter = nn.Linear(width, 2 * self.inner, bias=False)
        self.conv = nn.Conv1d(self.inner, self.inner, kernel, groups=self.inner, padding=kernel - 1)
        self.select = nn.Linear(self.inner, self.rank + 2 * states, bias=False)
        self.rate = nn.Linear(self.rank, self.inner)
        self.log_decay = nn.Parameter(torch.log(repeat(torch.arange(1.0, states + 1), "n -> d n", d=self.inner)))
        self.skip = nn.Parameter(torch.ones(self.inner))
        self.leave = nn.Linear(self.inner, width, bias=False)

    def forward(self, x):
        length = x.shape[1]
        x, gate = self.enter(x).split([self.inner, self.inner], dim=-1)
        x = rearrange(self.conv(rearrange(x, "b l d -> b d l"))[..., :length], "b d l -> b l d")
        return self.leave(self.scan(F.silu(x)) * F.silu(gate))

    def scan(self, x):
        rate, enter, leave = self.select(x).split([self.rank, self.states, self.states], dim=-1)
        rate = F.softplus(self.rate(rate))
        decay = torch.exp(torch.einsum("bld,dn->bldn", rate, -torch.exp(self.log_decay.float())))
        entering = torch.einsum("bld,bln,bld->bldn", rate, enter, x)
        state, seen = torch.zeros_like(decay[:, 0]), []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + entering[:, t]
            seen.append(torch.einsum("bdn,bn->bd", state, leave[:, t]))
        return torch.stack(seen, dim=1) + x * self.skip


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.mixer = nn.RMSNorm(width, eps=1e-5), Mixer(width)

    def forward(self, x):
        return x + self.mixer(self.norm(x))


class Language(nn.Module):
    def __init__(self, words=48, width=32, depth=2):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(words, width), nn.RMSNorm(width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


@section
def training():
    model, losses = Language(), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=4)
    for _ in range(4):
        tokens = torch.randint(0, 48, (2, 12))
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@section
def generation():
    model, tokens = Language().eval(), torch.tensor([[1, 2, 3]])
    with torch.inference_mode():
        for _ in range(6):
            chances = model(tokens)[:, -1].softmax(-1)
            best, _ = torch.topk(chances, 10)
            chances[chances < best[:, -1, None]] = 0
            tokens = torch.cat([tokens, torch.multinomial(chances / chances.sum(), 1)], dim=1)
    return tokens


main()
