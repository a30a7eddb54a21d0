"""What scripts of data-parallel training do besides the plain loop, on PyTorch and on rushlight."""

import copy
import dataclasses
import functools
import io
import os
import pickle
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")
RANK = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=int(os.environ["WORLD_SIZE"]))


def show(name, function, *args, **options):
    try:
        value = function(*args, **options)
    except Exception as error:
        value = f"{type(error).__name__}: {str(error).splitlines()[0][:40]}"
    print(name, value, flush=True)


# -- forward and backward passes that do not take turns ----------------------------------------------------------------


def adversaries(**options):
    """One network judges another: three passes through it, of which two are for one backward."""
    torch.manual_seed(0)
    judge = DDP(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), **options)
    maker = DDP(nn.Linear(2, 3), **options)
    steps = [torch.optim.SGD(m.parameters(), 0.1) for m in (judge, maker)]
    losses = []
    for i in range(3):
        made = maker(torch.ones(2, 2) * (RANK + 1 + i))
        first = judge(torch.ones(2, 3) * RANK).mean() - judge(made.detach()).mean()
        for step, loss in zip(steps, (lambda first=first: first, lambda made=made: judge(made).mean())):
            found = loss()
            step.zero_grad()
            found.backward()
            step.step()
            losses.append(found.item())
    return losses, [p.grad.sum().item() for m in (judge, maker) for p in m.parameters()]


for given in ({}, {"find_unused_parameters": True}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
    show(f"adversaries {given}", adversaries, **given)


def a_frozen_judge():
    """Its parameters are frozen while the other network is trained, and then learn again."""
    torch.manual_seed(0)
    judge, maker = DDP(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))), DDP(nn.Linear(2, 3))
    found = []
    for i in range(3):
        made = maker(torch.ones(2, 2) * (RANK + 1 + i))
        judge.zero_grad()
        judge(made.detach()).mean().backward()
        found += [p.grad.sum().item() for p in judge.parameters()]
        judge.requires_grad_(False)
        judge.module(made).mean().backward()
        judge.requires_grad_(True)
    return found


show("a frozen judge", a_frozen_judge)


class Recomputed(nn.Module):
    """Its layers are computed again in backward passes of their own; one is used twice, one never."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.never = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(1, 1)

    def forward(self, x):
        again = functools.partial(checkpoint, use_reentrant=True)
        return again(self.first, again(self.second, self.first(x)))


def a_static_graph(hook=None):
    torch.manual_seed(0)
    model = DDP(Recomputed(), static_graph=True, bucket_cap_mb=0.00005)
    if hook is not None:
        model.register_comm_hook(None, hook)
    found = []
    for i in range(3):
        model.zero_grad()
        model(torch.ones(2, 4, requires_grad=True) * (RANK + i)).square().mean().backward()
        found += ["-" if p.grad is None else p.grad.sum().item() for p in model.parameters()]
    return found


show("a static graph", a_static_graph)
show("a static graph with a hook", a_static_graph, default_hooks.allreduce_hook)


def line():
    torch.manual_seed(0)
    return DDP(nn.Linear(2, 1))


def gradient(model):
    return model.module.weight.grad.tolist()


def both_then_each():
    model = line()
    first, second = model(torch.ones(1, 2) * (RANK + 1)), model(torch.ones(1, 2) * (RANK + 3))
    first.sum().backward()
    once = gradient(model)
    second.sum().backward()
    return once, gradient(model)


def not_used():
    model = line()
    model(torch.ones(1, 2))
    model(torch.ones(1, 2) * (RANK + 1)).sum().backward()
    return gradient(model)


show("two passes, then two backward", both_then_each)
show("a pass without backward", not_used)

# -- what forward gives ------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Record:
    name: str
    parts: list


class Opaque:
    def __init__(self, x):
        self.x = x


class Gives(nn.Module):
    def __init__(self, wrap):
        super().__init__()
        self.used, self.other, self.wrap = nn.Linear(2, 2), nn.Linear(2, 2), wrap

    def forward(self, x):
        return self.wrap(self.used(x))


def given_as(wrap, unwrap):
    torch.manual_seed(0)
    model = DDP(Gives(wrap), find_unused_parameters=True)
    unwrap(model(torch.ones(1, 2) * (RANK + 1))).sum().backward()
    return [None if p.grad is None else p.grad.tolist() for p in model.parameters()]


show("a dataclass", given_as, lambda y: Record("y", [Record("inside", (y,))]), lambda r: r.parts[0].parts[0])
show("a dictionary", given_as, lambda y: {1: [y]}, lambda r: r[1][0])
show("no tensor to be seen", given_as, Opaque, lambda r: r.x)

# -- sparse gradients --------------------------------------------------------------------------------------------------


def table(optimizer, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(6, 3, sparse=True), nn.Flatten(), nn.Linear(6, 2))
    ddp = DDP(model, **options)
    steps, found = optimizer(ddp.parameters(), lr=0.1), []
    for i in range(3):
        steps.zero_grad()
        ddp(torch.tensor([[RANK, 2 + i]])).pow(2).sum().backward()
        grad = model[0].weight.grad
        found.append((grad.is_sparse, grad.coalesce().indices().tolist()))
        steps.step()
    return found, [p.sum().item() for p in model.parameters()]


show("table", table, torch.optim.SGD)
show("table, Adagrad", table, torch.optim.Adagrad)
show("table, views", table, torch.optim.SGD, gradient_as_bucket_view=True)
show("table, unused", table, torch.optim.SGD, find_unused_parameters=True)


def summed(t, op=dist.ReduceOp.SUM):
    dist.all_reduce(t, op)
    return t.is_coalesced(), t.to_dense().tolist(), t.coalesce().indices().tolist()


def few(dtype=torch.float32):
    return torch.sparse_coo_tensor([[RANK, 2, 2]], torch.tensor([1, 2, 3]).to(dtype), (4,))


for dtype in (torch.float32, torch.int64, torch.bfloat16):
    show(f"sum of sparse tensors, {dtype}", lambda dtype=dtype: summed(few(dtype)))
show("rows", lambda: summed(torch.sparse_coo_tensor([[RANK, RANK]], torch.ones(2, 2), (3, 2))))
show("unlike", lambda: summed(torch.sparse_coo_tensor([[1] * RANK], torch.ones(RANK), (3,))))
show("largest", lambda: summed(few(), dist.ReduceOp.MAX))
show("later", lambda: (lambda t: (dist.all_reduce(t, async_op=True).wait(), t.to_dense().tolist()))(few()))
table_alone = nn.Embedding(4, 2, sparse=True)
table_alone.weight.register_hook(lambda g: g * 2)
table_alone(torch.tensor([1, 1])).sum().backward()
show("hook", lambda: table_alone.weight.grad.to_dense().tolist())

# -- copies ------------------------------------------------------------------------------------------------------------


def reads(model):
    model(torch.ones(1, 2) * (RANK + 1)).sum().backward()
    return type(model).__name__, gradient(model)


def saved(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


show("pickled", lambda: reads(pickle.loads(pickle.dumps(line()))))
show("copied", lambda: reads(copy.deepcopy(line())))
show("saved", lambda: reads(saved(line())))
show("of another group", lambda: copy.deepcopy(DDP(nn.Linear(2, 1), process_group=dist.new_group())))


def ignoring():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    DDP._set_params_and_buffers_to_ignore_for_model(model, ["0.weight"])
    torch.nn.init.constant_(model[0].weight, RANK + 1.0)
    return DDP(model).module[0].weight.tolist()


show("ignored", ignoring)
dist.destroy_process_group()
