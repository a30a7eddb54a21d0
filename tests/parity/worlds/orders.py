"""Sums of numbers of which the last bit shows in which order they were added, by three processes."""

import os
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.distributed.nn.functional as F

warnings.simplefilter("ignore")
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)
SUM, AVG = dist.ReduceOp.SUM, dist.ReduceOp.AVG


def show(label, x):
    places = torch.arange(1, x.numel() + 1) % 97
    print(
        label,
        x.flatten()[:4].tolist(),
        (x.reshape(-1).view(torch.uint8).view(x.numel(), -1).T * places).sum(1).tolist(),
    )


def rows(dtype, *shape):
    torch.manual_seed(10 * RANK + shape[0])
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


for dtype in (torch.float32, torch.float64, torch.float16):
    for op in (SUM, AVG):
        for n in (1, 3, 5, 64, 1001):
            label = f"{dtype} {op} {n}"
            x = rows(dtype, n)
            dist.all_reduce(x, op)
            show(f"all_reduce {label}", x)
            x = rows(dtype, n)
            dist.reduce(x, 1, op)
            show(f"reduce {label}", x if RANK == 1 else torch.zeros(1))
            x, out = rows(dtype, SIZE, n), torch.zeros(n, dtype=dtype)
            dist.reduce_scatter(out, list(x), op)
            show(f"reduce_scatter {label}", out)
            dist.reduce_scatter_tensor(out, x.flatten(), op)
            show(f"reduce_scatter_tensor {label}", out)
for n in (5, 64):
    x = rows(torch.float32, SIZE, n)
    show("with gradients", F.reduce_scatter(torch.zeros(n), list(x)))
    show("functional", funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD) + 0)
dist.barrier()
dist.destroy_process_group()
