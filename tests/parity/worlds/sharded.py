"""Models that are cut: made without values, cut in two ways at once, losses of cut logits; PyTorch's lines and ours."""

import contextlib
import os
import warnings

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

warnings.simplefilter("ignore")
RANK = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=int(os.environ["WORLD_SIZE"]))
line = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
grid = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))


def show(name, function, *args, **options):
    try:
        value = function(*args, **options)
    except Exception as error:
        value = type(error).__name__
    print(name, value, flush=True)


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(n), nn.Linear(n, 2 * n), nn.Linear(2 * n, n)
        self.register_buffer("scale", torch.ones(n))

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x)))) * self.scale


class Net(nn.Module):
    def __init__(self, n=6):
        super().__init__()
        self.table, self.out = nn.Embedding(10, n), nn.Linear(n, 10)
        self.layers = nn.ModuleList(Block(n) for _ in range(2))

    def forward(self, x):
        x = self.table(x)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)

    def restart(self):
        for part in self.modules():
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()
        for layer in self.layers:
            layer.scale.fill_(1.0)


X = torch.arange(12).reshape(2, 6) % 10
Y = (X * 3 + 1) % 10


def network():
    torch.manual_seed(0)
    return Net()


def cut(model, **options):
    for layer in model.layers:
        fully_shard(layer, **options)
    return fully_shard(model, **options)


def without_values():
    with torch.device("meta"):
        return Net()


def train(model, context=contextlib.nullcontext, **options):
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=0.01, **options), []
    for _ in range(3):
        with context():
            loss = F.cross_entropy(model(X).flatten(0, 1), Y.flatten())
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append((loss.full_tensor() if isinstance(loss, DTensor) else loss).item())
    return losses


# -- models without values ---------------------------------------------------------------------------------------------


def begun():
    model = cut(without_values())
    shapes = [tuple(p.to_local().shape) for p in model.parameters()]
    model.to_empty(device="cpu")
    model.restart()
    model(X).sum().backward()
    return shapes, {str(p.device) for p in model.parameters()}, {p.grad.placements for p in model.parameters()}


def begun_in_columns():
    model = without_values()
    for layer in model.layers:
        parallelize_module(layer, line, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    model.to_empty(device="cpu")
    with torch.no_grad():
        model.restart()
        nn.init.constant_(model.layers[0].down.bias, 0.5)
        nn.init.trunc_normal_(model.layers[0].up.weight, std=0.02)
    kinds = [p.placements if isinstance(p, DTensor) else None for p in model.parameters()]
    return kinds, model(X).shape, model.layers[0].down.bias.full_tensor().tolist()


def assigned():
    model, whole = cut(without_values()), network().state_dict()
    own = model.state_dict()
    parts = {
        name: distribute_tensor(t, own[name].device_mesh, own[name].placements) if isinstance(own[name], DTensor) else t
        for name, t in whole.items()
    }
    return model.load_state_dict(parts, assign=True), train(model)


def loaded():
    model = cut(without_values())
    model.to_empty(device="cpu")
    set_model_state_dict(model, network().state_dict(), options=StateDictOptions(full_state_dict=True))
    return train(model)


show("begun", begun)
show("begun in columns", begun_in_columns)
show("assigned", assigned)
show("loaded", loaded)
for name in ("zeros_like", "ones_like", "empty_like"):
    laid = distribute_tensor(torch.ones(4, 2), line, [Shard(0)])
    show(name, lambda name=name, laid=laid: getattr(torch, name)(laid, device="cpu").placements)

# -- some parameters cut in two ways, some in one ----------------------------------------------------------------------


def both_ways(**options):
    model = network()
    for layer in model.layers:
        parallelize_module(layer, grid["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return train(cut(model, mesh=grid["dp"]), **options)


show("alone", lambda: train(network()))
show("both ways", both_ways)
show("both ways, one by one", both_ways, foreach=False)

# -- losses of logits that are cut along classes -----------------------------------------------------------------------


def cut_logits():
    model = network()
    plan = {"table": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))}
    plan["out"] = ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)
    for layer in model.layers:
        parallelize_module(layer, line, {"norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1))})
        parallelize_module(layer, line, {"down": RowwiseParallel(output_layouts=Shard(1))})
    return train(parallelize_module(model, line, plan), loss_parallel)


def loss_of(**options):
    logits = distribute_tensor(torch.arange(12.0).reshape(3, 4) / 3, line, [Shard(1)]).requires_grad_()
    with loss_parallel():
        loss = F.cross_entropy(logits, torch.tensor([0, -100, 2]), **options)
        (loss if loss.dim() == 0 else loss.sum()).backward()
    return (
        loss.placements,
        loss.full_tensor().tolist(),
        logits.grad.placements,
        logits.grad.full_tensor().abs().tolist(),
    )


show("cut logits", cut_logits)
for reduction in ("mean", "sum", "none"):
    show(reduction, loss_of, reduction=reduction)
show("outside", lambda: F.cross_entropy(distribute_tensor(torch.ones(3, 4), line, [Shard(1)]), torch.tensor([0, 1, 2])))
show("rows by an index", lambda: distribute_tensor(torch.ones(3, 4), line, [Shard(0)])[torch.tensor([0, 2])])
show("shape alone", lambda: DTensor.from_local(torch.ones(1, 2), line, [Shard(0)], shape=torch.Size((2, 2))))
dist.destroy_process_group()
