"""Gradients through collectives, on PyTorch and on rushlight."""

import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.distributed.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)


def leaf(*shape, seed=0):
    torch.manual_seed(10 * RANK + seed)
    return torch.randint(-4, 5, shape).float().requires_grad_()


def show(label, out, *leaves):
    outs = out if isinstance(out, (tuple, list)) else [out]
    loss = sum(((i + 1 + RANK) * o * o).sum() for i, o in enumerate(outs))
    grads = torch.autograd.grad(loss, leaves, allow_unused=True)
    print(label, [o.tolist() for o in outs], [None if g is None else g.tolist() for g in grads])


x = leaf(3)
show("all_reduce", F.all_reduce(x), x)
show("broadcast", F.broadcast(x, 1), x)
show("all_gather", F.all_gather(x), x)
xs = [leaf(2, seed=i) for i in range(SIZE)]
show("reduce_scatter", F.reduce_scatter(torch.zeros(2), xs), *xs)
show("all_to_all", F.all_to_all([torch.zeros(2) for _ in xs], xs), *xs)
y = leaf(2 * SIZE)
show("all_to_all_single", F.all_to_all_single(torch.zeros(2 * SIZE), y), y)
show("scatter", F.scatter(xs, 0), *xs)
show("gather", F.gather(x, 0), x)
total = F.reduce(x, 0)  # elsewhere its values are not defined
show("reduce", total if RANK == 0 else total * 0, x)
twice = F.all_reduce(F.all_reduce(x) * x)
show("nested", twice, x)

# -- collectives that give new tensors ---------------------------------------------------------------------------------

world, mesh = dist.group.WORLD, init_device_mesh("cpu", (SIZE, 1), mesh_dim_names=("a", "b"))
for name, group in (("group", world), ("ranks", list(range(SIZE))), ("mesh", mesh["a"]), ("dimension", (mesh, 0))):
    show(f"sum, {name}", funcol.all_reduce(x, "sum", group), x)
show("gathered", funcol.all_gather_tensor_autograd(y.reshape(SIZE, 2), 1, world), y)
show("scattered", funcol.reduce_scatter_tensor_autograd(y.reshape(SIZE, 2), "sum", 0, world), y)
show("scattered along 1", funcol.reduce_scatter_tensor_autograd(y.reshape(2, SIZE), "sum", 1, world), y)
show("exchanged", funcol.all_to_all_single_autograd(y, [2] * SIZE, [2] * SIZE, world), y)
with torch.no_grad():
    print("several", [(t + 0).tolist() for t in funcol.all_reduce_coalesced([x, y], "sum", world)])
    print("several", [(t + 0).tolist() for t in funcol.all_gather_into_tensor_coalesced([x, y], world)])
    print("several", [(t + 0).tolist() for t in funcol.reduce_scatter_tensor_coalesced([y, y], "sum", [0, 0], world)])
dist.destroy_process_group()
