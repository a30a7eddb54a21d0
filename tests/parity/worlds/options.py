"""What can be said when groups are made and modules wrapped, on PyTorch and on rushlight."""

import datetime
import os
import warnings

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.parallel.distributed import _MixedPrecision

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = {"init_method": os.environ["MEETING"], "rank": RANK, "world_size": SIZE}
MIB = 1 << 20


def attempt(label, call, *args, **options):
    """What a call gives, or its error's type; and which kinds of warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = call(*args, **options)
        except Exception as error:
            kind = next(k.__name__ for k in (ValueError, TypeError, RuntimeError) if isinstance(error, k))
            found = kind
    kinds = sorted(w.category.__name__ for w in told if w.category in (FutureWarning, UserWarning))
    print(label, found if isinstance(found, str) else " ".join(map(str, found)), *kinds)


def seen(group):
    if not isinstance(group, dist.ProcessGroup):
        return ["outside"]
    x = torch.tensor([float(RANK)])
    dist.all_reduce(x, group=group)
    return [group.rank(), group.size(), *dist.get_process_group_ranks(group), x.item(), group.group_desc]


# -- groups ------------------------------------------------------------------------------------------------------------

attempt("a device that is none", lambda: dist.init_process_group("gloo", device_id=torch.device("cpu"), **where))
attempt("a word that is none", lambda: dist.init_process_group("gloo", fast=True, **where))
attempt("a timeout that is none", lambda: dist.init_process_group("gloo", timeout=3, **where))
os.environ["MEETING"] += "again"  # the first of these may have begun to meet
where["init_method"] = os.environ["MEETING"]
options = dist.ProcessGroupGloo._Options()
dist.init_process_group("gloo", pg_options=options, group_name="name", _ranks=list(range(SIZE)), **where)
print(options.backend, dist.group.WORLD.bound_device_id, type(options._timeout).__name__)
attempt("a group with a timeout that is none", lambda: dist.new_group(timeout=3))
attempt("a group with a device that is none", lambda: dist.new_group(device_id=torch.device("cpu")))
attempt("a group with options", lambda: seen(dist.new_group(pg_options=dist.ProcessGroupGloo._Options())))
if RANK > 0:  # members only
    attempt("local", lambda: seen(dist.new_group(range(1, SIZE), use_local_synchronization=True)))
attempt("ends", lambda: seen(dist.new_group([0, SIZE - 1], group_desc="ends")))
dist.group.WORLD.set_timeout(datetime.timedelta(seconds=100))
attempt("shrunk", lambda: dist.shrink_group([1]))
attempt("divided into nothing", lambda: dist.split_group(split_ranks=[]))

# -- modules -----------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
        self.never, self.never_either = nn.Linear(5, 5), nn.Linear(2, 2)

    def forward(self, x):
        return self.second(torch.tanh(self.norm(self.first(x))))


class Used(Net):
    def __init__(self):
        super().__init__()
        del self.never, self.never_either


def made(kind=Used):
    torch.manual_seed(RANK)
    model = kind()
    model.norm.running_mean.fill_(RANK)
    return model


torch.manual_seed(10 + RANK)
X = torch.randn(7, 6)


def train(ddp, steps=2):
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ddp(X).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(f"{loss.item():.4f}")
    model = ddp.module
    sums = [f"{t.double().sum().item():.4f}" for t in (*model.parameters(), *model.buffers())]
    return [*losses, *sums, *[p.grad is None for p in model.parameters()]]


def buckets(steps=3, **options):
    """What is exchanged, in the first pass and in later ones, which depend on the order in which gradients come."""
    ddp, found = DDP(made(options.pop("kind", Used)), **options), []

    def hook(state, bucket):
        found.append((bucket.index(), bucket.buffer().numel(), bucket.is_last()))
        future = dist.all_reduce(bucket.buffer().div_(SIZE), async_op=True).get_future()
        return future.then(lambda f: f.value()[0])

    ddp.register_comm_hook(None, hook)
    return [*train(ddp, steps), *found]


def wrapped(kind=Used, **options):
    model = made(kind)
    ddp = DDP(model, **options)
    return [model.norm.running_mean.sum().item(), ddp.will_sync_module_buffers(), *train(ddp)]


for options in (
    {}, {"init_sync": False}, {"broadcast_buffers": False}, {"broadcast_buffers": True},
    {"forward_sync_buffers": False}, {"forward_sync_buffers": True}, {"check_reduction": True},
    {"broadcast_buffers": False, "forward_sync_buffers": True}, {"batched_grad_copy": True}, {"fast": True},
):  # fmt: skip
    attempt(options, wrapped, **options)
attempt("unused", wrapped, Net, find_unused_parameters=True)
attempt("unused, alike", wrapped, Net, find_unused_parameters=True, skip_all_reduce_unused_params=True)

for sizes in (None, [], [64 / MIB], [100 / MIB, 16 / MIB], [8 / MIB, 16 / MIB, 200 / MIB, 20 / MIB], [-1 / MIB, -16]):
    attempt(f"buckets {sizes}", buckets, bucket_cap_mb_list=sizes)
attempt("one size", buckets, bucket_cap_mb=64 / MIB)
attempt("both sizes", buckets, bucket_cap_mb=64 / MIB, bucket_cap_mb_list=[100 / MIB])
for alike in (False, True):
    options = {"kind": Net, "find_unused_parameters": True, "skip_all_reduce_unused_params": alike}
    attempt(f"unused in buckets, {alike}", buckets, bucket_cap_mb=16 / MIB, **options)


def delayed(names, last, **options):
    model = made()
    named = dict(model.named_parameters())
    ddp = DDP(
        model, delay_all_reduce_named_params=None if names is None else [(n, named[n]) for n in names],
        param_to_hook_all_reduce=None if last is None else named[last], **options,
    )  # fmt: skip
    return sorted(ddp.parameters_to_ignore)  # PyTorch does not always wait for these gradients: no numbers


attempt("delayed", delayed, ["second.weight", "norm.bias"], "first.weight", forward_sync_buffers=False)
attempt("delayed without a last one", delayed, ["second.weight"], None)
attempt("a last one without delayed ones", delayed, None, "first.weight")

line, grid = init_device_mesh("cpu", (SIZE,)), init_device_mesh("cpu", (SIZE, 1), mesh_dim_names=("a", "b"))
attempt("mesh", wrapped, device_mesh=line)
attempt("row of a mesh", wrapped, device_mesh=grid["a"])
attempt("mesh of two dimensions", wrapped, device_mesh=grid)
attempt("mesh and group", wrapped, device_mesh=line, process_group=dist.group.WORLD)
attempt("mixed", wrapped, mixed_precision=_MixedPrecision(param_dtype=torch.bfloat16))
dist.destroy_process_group()
