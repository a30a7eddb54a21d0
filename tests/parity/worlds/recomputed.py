"""Layers that are cut and computed again in backward: checkpoints inside of units, on both libraries."""

import functools
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.utils.checkpoint import checkpoint

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)
kept = functools.partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.NO_REENTRANT)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(6), nn.Linear(6, 12), nn.Linear(12, 6)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Inside(nn.Module):
    """A module that checkpoints another, which has no unit of its own."""

    def __init__(self, use_reentrant):
        super().__init__()
        self.block, self.use_reentrant = Block(), use_reentrant

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=self.use_reentrant)


class Function(nn.Module):
    """A module that checkpoints a function of its own."""

    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return checkpoint(lambda y: self.block(y).tanh(), x, use_reentrant=False)


def net(layer):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 6), layer(), layer(), nn.Linear(6, 2))


def train(label, model, whole):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(3):
        torch.manual_seed(step + 10 * RANK)
        optimizer.zero_grad()
        loss = model(torch.randn(4, 6)).pow(2).mean()
        loss.backward()
        optimizer.step()
        print(label, step, f"{loss.item():.5f}", *[f"{t.detach().norm():.5f}" for t in whole()])


for label, layer in (
    ("not recomputed", Block),
    ("wrapped", lambda: kept(Block())),
    ("inside", lambda: Inside(False)),
    ("reentrant", lambda: Inside(True)),
    ("a function", Function),
):
    model = net(layer)
    for part in (model[1], model[2]):
        fully_shard(part)
    fully_shard(model)
    train(label, model, lambda model=model: [p.full_tensor() for p in model.parameters()])
    train(label, model, lambda model=model: [p.grad.full_tensor() for p in model.parameters()])

given = {"use_orig_params": True, "device_id": torch.device("cpu")}
model = FullyShardedDataParallel(net(Block), auto_wrap_policy=ModuleWrapPolicy({Block}), **given)
apply_activation_checkpointing(model, checkpoint_wrapper_fn=kept, check_fn=lambda m: isinstance(m, Block))
print(model)
train("units first", model, lambda: model.state_dict().values())
print(list(model.state_dict()))
model = net(Block)
apply_activation_checkpointing(model, checkpoint_wrapper_fn=kept, check_fn=lambda m: isinstance(m, Block))
model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Block}), **given)
print(model)
train("checkpoints first", model, lambda: model.state_dict().values())
dist.destroy_process_group()
