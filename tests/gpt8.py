"""Run by test_mesh.py in a process with eight devices: a small GPT, cut in every way, compared with one device."""

from __future__ import annotations

import numpy as np

import rushlight as torch
from rushlight import nn
from rushlight.distributed.device_mesh import init_device_mesh
from rushlight.distributed.fsdp import fully_shard
from rushlight.distributed.tensor import Shard, distribute_module, distribute_tensor
from rushlight.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from rushlight.nn import functional as F

WORDS, WIDTH, HEADS, LENGTH = 64, 32, 8, 8
PLAN = {"q": ColwiseParallel(), "k": ColwiseParallel(), "v": ColwiseParallel(), "o": RowwiseParallel(),
        "up": ColwiseParallel(), "down": RowwiseParallel()}  # fmt: skip


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.before(x)
        q, k, v = [f(y).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for f in (self.q, self.k, self.v)]
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.after(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.block, self.norm, self.head = Block(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, text):
        return self.head(self.norm(self.block(self.words(text) + self.places.weight)))


def one(model):
    return lambda t: t


def data_parallel(model):
    mesh = init_device_mesh("cpu", (8,))
    distribute_module(model, mesh)
    return lambda t: distribute_tensor(t, mesh, [Shard(0)])


def fsdp(model):
    mesh = init_device_mesh("cpu", (8,))
    fully_shard(model.block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return lambda t: t


def hybrid(model):
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replica", "shard"))
    fully_shard(model, mesh=mesh)
    return lambda t: t


def tensor_parallel(model):
    mesh = init_device_mesh("cpu", (8,))
    parallelize_module(model.block, mesh, PLAN)
    return lambda t: t


def fsdp_and_tensor_parallel(model):
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    parallelize_module(model.block, mesh["tp"], PLAN)
    fully_shard(model, mesh=mesh["dp"])
    return lambda t: t


def trained(cut):
    torch.manual_seed(0)
    model = GPT()
    enter = cut(model)
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-2), []
    for _ in range(3):
        text = torch.randint(0, WORDS, (8, LENGTH + 1))
        optimizer.zero_grad()
        logits = model(enter(text[:, :-1].contiguous()))
        loss = F.cross_entropy(logits.flatten(0, 1), enter(text[:, 1:].contiguous()).flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model, optimizer


def share(model, optimizer) -> float:
    """The part of parameters and optimizer state that the first device has."""
    kept = [*model.parameters(), *[v for s in optimizer.state.values() for k, v in s.items() if k != "step"]]
    held = sum(t._array.physical.addressable_shards[0].data.nbytes for t in kept)
    return held / sum(t.nbytes for t in kept)


if __name__ == "__main__":
    plain = trained(one)[0]
    for cut in (data_parallel, fsdp, hybrid, tensor_parallel, fsdp_and_tensor_parallel):
        losses, model, optimizer = trained(cut)
        np.testing.assert_allclose(losses, plain, atol=2e-6, rtol=0)
        if cut is fsdp:
            assert abs(share(model, optimizer) * 8 - 1) < 0.02
        print(cut.__name__, np.abs(np.array(losses) - plain).max(), flush=True)
