"""Operators of a program's own on DTensors, on PyTorch and on rushlight."""

import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import register_sharding

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)
mesh = init_device_mesh("cpu", (SIZE,))


@torch.library.custom_op("parity::centred", mutates_args=())
def centred(x: torch.Tensor, weight: torch.Tensor, factor: float) -> torch.Tensor:
    print("given", tuple(x.shape), tuple(weight.shape), type(x).__name__)
    return (x - x.mean(-1, keepdim=True)) * weight * factor


@centred.register_fake
def _(x, weight, factor):
    return torch.empty_like(x)


@torch.library.custom_op("parity::both", mutates_args=())
def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sum(0), x * 2


@both.register_fake
def _(x):
    return x.new_empty(x.shape[1:]), torch.empty_like(x)


@register_sharding(torch.ops.parity.centred.default)
def centred_by_parts(x, weight, factor):
    rows = [([Shard(dim)], [Shard(dim), Replicate(), None]) for dim in range(x.ndim - 1)]
    return [([Replicate()], [Replicate(), Replicate(), None]), *rows]


@register_sharding(torch.ops.parity.both.default)
def both_by_parts(x):
    return [
        ([Replicate(), Replicate()], [Replicate()]),
        ([Partial(), Shard(0)], [Shard(0)]),
        ([Shard(0), Shard(1)], [Shard(1)]),
    ]


x, w = torch.arange(2.0 * SIZE * 3 * 4).view(2 * SIZE, 3, 4).sin(), torch.linspace(1, 2, 4)
for lay in (Shard(0), Shard(1), Shard(2), Replicate()):
    laid = distribute_tensor(x, mesh, [lay])
    weight = distribute_tensor(w, mesh, [Shard(0) if SIZE in (2, 4) else Replicate()])
    out = torch.ops.parity.centred(laid, weight, 0.5)
    print(lay, out.placements, out.shape, [round(v, 4) for v in out.full_tensor().flatten().tolist()])
for lay in (Shard(0), Shard(1), Replicate()):
    total, twice = torch.ops.parity.both(distribute_tensor(torch.arange(4.0 * SIZE).view(SIZE, 4), mesh, [lay]))
    print(lay, total.placements, total.full_tensor().tolist(), twice.placements, twice.full_tensor().tolist())


def keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.factor = inputs[2]


def backward(ctx, g):
    x, weight = ctx.saved_tensors
    scaled = g * weight * ctx.factor
    of_weight = (g * (x - x.mean(-1, keepdim=True)) * ctx.factor).sum((0, 1))
    return scaled - scaled.mean(-1, keepdim=True), of_weight, None


centred.register_autograd(backward, setup_context=keep)
for lay in (Shard(0), Shard(1), Replicate()):
    laid = distribute_tensor(x, mesh, [lay]).requires_grad_()
    weight = distribute_tensor(w, mesh, [Replicate()]).requires_grad_()
    torch.ops.parity.centred(laid, weight, 0.5).square().sum().backward()
    for t in (laid, weight):
        print(lay, [round(v, 4) for v in t.grad.full_tensor().flatten().tolist()])
dist.destroy_process_group()
