"""Smaller parts: hooks by name, PowerSGD of many matrices, averagers, shared values, roots, parts, on both."""

import os
import warnings
from collections import OrderedDict

import torch
import torch.distributed as dist
import torch.distributed.collective_utils as shared
import torch.nn as nn
from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, powerSGD_hook, register_ddp_comm_hook
from torch.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
from torch.distributed.checkpoint.metadata import MetadataIndex
from torch.distributed.checkpoint.utils import find_state_dict_object, find_tensor_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor, init_device_mesh
from torch.nn.parallel import DistributedDataParallel as DDP

warnings.simplefilter("ignore")
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)


def show(label, call, *args, **kwargs):
    try:
        print(label, call(*args, **kwargs))
    except Exception as error:
        print(label, type(error).__name__, str(error).partition("\n")[0][:90])


def digest(tensors):
    return [f"{t.detach().double().norm():.5f}" for t in tensors]


# -- hooks -------------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    """Matrices of two shapes that take turns, of which the first two have biases."""

    def __init__(self):
        super().__init__()
        self.body = nn.ModuleList(
            [nn.Linear(6, 12), nn.Linear(12, 6), nn.Linear(6, 12, bias=False), nn.Linear(12, 6, bias=False)]
        )

    def forward(self, x):
        for layer in self.body:
            x = torch.tanh(layer(x))
        return x


def gradients(label, prepare, steps=4):
    torch.manual_seed(0)
    ddp = DDP(Net())
    prepare(ddp)
    for step in range(steps):
        torch.manual_seed(100 * RANK + step)
        ddp.zero_grad()
        ddp(torch.randn(4, 6)).pow(2).sum().backward()
        print(label, step, *digest(p.grad for p in ddp.parameters()))


print([kind.name for kind in DDPCommHookType])
for kind in DDPCommHookType:
    if "QUANTIZE" not in kind.name and kind.name != "BF16_COMPRESS":  # not on CPUs in PyTorch
        gradients(kind.name, lambda ddp, kind=kind: register_ddp_comm_hook(kind, ddp, None), steps=2)
for kind in (dist.BuiltinCommHookType.ALLREDUCE, dist.BuiltinCommHookType.FP16_COMPRESS):
    gradients(repr(kind), lambda ddp, kind=kind: ddp._register_builtin_comm_hook(kind), steps=2)
for given in (
    {"matrix_approximation_rank": 1},
    {"matrix_approximation_rank": 2},
    {"matrix_approximation_rank": 2, "batch_tensors_with_same_shape": True},
    {"matrix_approximation_rank": 2, "warm_start": False, "random_seed": 3},
    {"matrix_approximation_rank": 2, "orthogonalization_epsilon": 1e-8, "use_error_feedback": False},
):
    state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, min_compression_rate=0.5, **given)
    exchange = lambda ddp, state=state: ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    gradients(f"PowerSGD {given}", exchange, steps=5)
    print(*state.compression_stats(), state.iter)

# -- averagers ---------------------------------------------------------------------------------------------------------


def levels(periods):
    return {
        period: group.size() for period, group in HierarchicalModelAverager(periods).period_process_group_dict.items()
    }


show("no periods", levels, None)
for periods in ({}, {0: 2}, {2: 1}, {2: SIZE}, {1: 1, 2: SIZE}):
    show(periods, levels, OrderedDict(periods))
show("warm-up", HierarchicalModelAverager, OrderedDict([(2, SIZE)]), warmup_steps=-1)
averager = HierarchicalModelAverager(OrderedDict([(2, 1), (4, SIZE)]), warmup_steps=1)
p = nn.Parameter(torch.tensor([float(RANK)]))
p.grad = torch.zeros(1)
for step in range(10):
    with torch.no_grad():
        p += RANK + step
    averager.average_parameters([p])
    print("averaged", step, averager.step, p.item())

# -- values and failures -----------------------------------------------------------------------------------------------


def bad():
    raise ValueError(f"bad {RANK}")


for group in (None, dist.group.WORLD):
    show("gathered", shared.all_gather, RANK, pg=group)
    show("gathered", shared.all_gather, lambda: RANK * 2, "stage", group)
    show("sent", shared.broadcast, RANK + 5, pg=group)
    show("sent by the last", shared.broadcast, lambda: RANK + 5, rank=SIZE - 1, pg=group)
    show("failed", shared.broadcast, bad, pg=group)
    show("not successful", shared.broadcast, None, success=False, pg=group)
    show("not successful, with a value", shared.broadcast, 1, success=False, pg=group)
show("failed alone", shared.all_gather, bad)
print(shared.SyncPayload(None, True, 3))
found = [None] * SIZE
show("of one type", shared.all_gather_object_enforce_type, dist.group.WORLD, found, RANK)
show("of two", shared.all_gather_object_enforce_type, dist.group.WORLD, found, RANK if RANK else "a")
print(found)

# -- roots that are none -----------------------------------------------------------------------------------------------

for root in (SIZE, SIZE + 3):
    out, parts = torch.zeros(2), [torch.ones(2)] * SIZE
    show("scatter", dist.scatter, out, parts, src=root)
    show("scatter of nothing", dist.scatter, out, src=root)
    show("scatter in a group", dist.scatter, out, parts, group_src=root)
    show("gather", dist.gather, out, parts, dst=root)
    show("gather of nothing", dist.gather, out, dst=root)
    show("objects", dist.gather_object, 3, [None] * SIZE, dst=root)
    show("objects", dist.scatter_object_list, [None], [1] * SIZE, src=root)
    show("broadcast", dist.broadcast, out, src=root)
    show("reduce", dist.reduce, out, dst=root)

# -- parts -------------------------------------------------------------------------------------------------------------

mesh = init_device_mesh("cpu", (SIZE,))
rows = [4, 3][RANK]
laid = DTensor.from_local(torch.full((rows, 2), RANK + 1.0), mesh, [Shard(0)], shape=torch.Size((7, 2)), stride=(2, 1))
print(tuple(laid.shape), tuple(laid.to_local().shape), laid.full_tensor().sum().item())
cut, whole = distribute_tensor(torch.arange(7.0), mesh, [Shard(0)]), torch.arange(3.0)
for index in (MetadataIndex("cut"), MetadataIndex("cut", [4 * RANK]), MetadataIndex("cut", [4 * RANK], 0)):
    show(index, find_tensor_shard, cut, index)
    show(index, find_state_dict_object, {"cut": cut}, index)
for index in (MetadataIndex("whole"), MetadataIndex("whole", [0]), MetadataIndex("other"), MetadataIndex("none")):
    show(index, find_state_dict_object, {"whole": whole, "other": 3}, index)
dist.destroy_process_group()
