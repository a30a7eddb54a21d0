"""Meshes and tensors over them: what PyTorch and rushlight print, in a world of two processes."""

import os
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    ones,
    zeros,
)

warnings.simplefilter("ignore")
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=int(os.environ["WORLD_SIZE"]))


def show(name, function):
    try:
        value = function()
    except Exception as error:
        value = f"{type(error).__name__}: {error}"
    print(name, value, flush=True)


mesh = init_device_mesh("cpu", (2,))
two = init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "tp"))

# -- meshes
show("mesh", lambda: (mesh, two, two["dp"], two["tp"], two["dp", "tp"]))
show("shape", lambda: (two.shape, two.ndim, two.size(), two.size(0), two.size(1), two.mesh_dim_names, two.device_type))
show("where", lambda: (two.get_coordinate(), two.get_rank(), two.get_local_rank("dp"), two["dp"].get_local_rank()))
show("ranks", lambda: (two.mesh, mesh.mesh, DeviceMesh("cpu", [1, 0])))
again = init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "tp"))
show("equal", lambda: (two == again, hash(two) == hash(again), two == mesh, two["dp"] == two["dp"]))
show("groups", lambda: [dist.get_process_group_ranks(g) for g in two.get_all_groups()])
show("group", lambda: (two.get_group("dp").size(), two.get_group(1).size(), mesh.get_group().size()))
show("flat", lambda: (two._flatten("all"), two["all"].size()))
show("no such name", lambda: two["x"])
show("no names", lambda: mesh["x"])
show("which group", lambda: two.get_group())
show("which rank", lambda: two.get_local_rank())
show("too big", lambda: init_device_mesh("cpu", (4,)))
show("same names", lambda: init_device_mesh("cpu", (2, 1), mesh_dim_names=("a", "a")))
show("few names", lambda: init_device_mesh("cpu", (2, 1), mesh_dim_names=("a",)))

# -- placements
show("placements", lambda: [(p, str(p)) for p in (Shard(0), Replicate(), Partial(), Partial("avg"))])
show("which", lambda: (Shard(0) == Shard(0), Shard(0).is_shard(1), Shard(1).is_shard(), Partial().is_partial()))

# -- tensors, even and uneven
x = torch.arange(10.0).reshape(5, 2)
shard = distribute_tensor(x, mesh, [Shard(0)])
show("shard", lambda: shard)
show("other ways", lambda: [distribute_tensor(x, mesh, [p]) for p in (Shard(-1), Replicate(), Partial())])
show("short", lambda: distribute_tensor(torch.arange(1.0), mesh, [Shard(0)]))
show("of two", lambda: distribute_tensor(x, two, [Shard(0), Shard(1)]))
show("leaf", lambda: distribute_tensor(torch.arange(4.0, requires_grad=True), mesh, [Shard(0)]))
show("what", lambda: (shard.shape, shard.stride(), shard.device, shard.dtype, shard.placements, shard.device_mesh))
show("is", lambda: (isinstance(shard, DTensor), isinstance(x, DTensor), shard.is_leaf, shard.numel(), len(shard)))
show("has", lambda: (hasattr(shard, "full_tensor"), hasattr(x, "full_tensor"), hasattr(x, "placements")))
show("local", lambda: (shard.to_local(), shard.full_tensor()))
show("made", lambda: (ones(3, 2, device_mesh=mesh, placements=[Shard(0)]), zeros(2, device_mesh=mesh)))
show("like", lambda: (torch.zeros_like(shard), shard.clone(), shard.new_zeros(2, 2), torch.rand_like(shard).placements))
show("bad dim", lambda: distribute_tensor(x, mesh, [Shard(3)]))
show("bad number", lambda: distribute_tensor(x, mesh, [Shard(0), Shard(1)]))
show("again", lambda: distribute_tensor(shard, mesh, [Replicate()]))

# -- from parts and back
mine = torch.ones(2, 2) * (rank + 1)
for placement in (Replicate(), Shard(0), Shard(1), Partial(), Partial("avg"), Partial("max"), Partial("min")):
    laid = DTensor.from_local(mine, mesh, [placement])
    print(f"from {placement}", laid, None if placement.is_replicate() else laid.full_tensor(), flush=True)
uneven = DTensor.from_local(mine[: 2 - rank], mesh, [Shard(0)], shape=torch.Size((3, 2)), stride=(2, 1))
show("uneven", lambda: (uneven, uneven.full_tensor()))
parts = DTensor.from_local(mine, mesh, [Partial()])
show("sum", lambda: (parts.redistribute(mesh, [Replicate()]), parts.redistribute(mesh, [Shard(0)])))
show("moved", lambda: (shard.redistribute(placements=[Shard(1)]), shard.redistribute(placements=[Replicate()])))
show("to parts", lambda: distribute_tensor(x, mesh).redistribute(mesh, [Partial()]))

# -- operators: values, and placements where nothing is left to be summed
show("plus", lambda: (shard + 1, shard * shard, torch.relu(shard - 3), shard + torch.tensor(1.0)))
show("turned", lambda: (shard.t(), shard.sum(1), shard @ distribute_tensor(torch.ones(2, 3), mesh)))
show("sums", lambda: (shard.sum().full_tensor(), shard.sum(0).full_tensor(), shard.mean().full_tensor()))
show("in place", lambda: (shard.add_(1), shard.mul_(2).full_tensor()))
even = distribute_tensor(torch.arange(16.0).reshape(4, 4), mesh, [Shard(0)])
show("even", lambda: (even.softmax(1), even.exp(), (even + 1).log(), even.view(4, 2, 2), even.unsqueeze(0)))
show("matrix", lambda: (even @ even.redistribute(placements=[Replicate()])).full_tensor())

# -- gradients
w = distribute_tensor(torch.arange(6.0).reshape(3, 2), mesh, [Shard(0)]).requires_grad_()
(w * 2).sum().backward()
show("grad", lambda: w.grad.full_tensor())
w.grad = None
(w.full_tensor() * torch.arange(6.0).reshape(3, 2)).sum().backward()
show("of full", lambda: (w.grad, w.full_tensor()))
w.grad = None
(w.to_local() * (rank + 1)).sum().backward()
show("of local", lambda: (w.grad, w.to_local()))
leaf = (torch.ones(2, 2) * (rank + 1)).requires_grad_()
(DTensor.from_local(leaf, mesh, [Shard(0)]).redistribute(placements=[Replicate()]).to_local() ** 2).sum().backward()
show("of a part", lambda: leaf.grad)

# -- a module whose parameters lie on the mesh
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 3))


def partition(name, module, mesh):
    if name == "0":
        for key, p in list(module.named_parameters()):
            module.register_parameter(key, nn.Parameter(distribute_tensor(p.detach(), mesh, [Shard(0)])))


model = distribute_module(
    model,
    mesh,
    partition,
    input_fn=lambda module, inputs, mesh: DTensor.from_local(inputs[0], mesh, [Replicate()]),
    output_fn=lambda module, output, mesh: output.full_tensor(),
)
show("model", lambda: (model, [p.placements for p in model.parameters()], isinstance(model[0].weight, nn.Parameter)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
data, target = torch.randn(6, 4), torch.randint(0, 3, (6,))
for step in range(4):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(data), target)
    loss.backward()
    optimizer.step()
    print(f"step {step}", f"{loss.item():.5f}", flush=True)
show("weight", lambda: model[0].weight.full_tensor())
show("state", lambda: {k: tuple(v.shape) for k, v in model.state_dict().items()})

dist.destroy_process_group()
