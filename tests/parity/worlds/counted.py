"""Which collectives a block of code makes: ``CommDebugMode`` on PyTorch and on rushlight."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)
mesh = init_device_mesh("cpu", (SIZE,))


def shown(label, mode):
    print(label, mode, sorted((str(op), count) for op, count in mode.get_comm_counts().items()))


x, many = torch.ones(4), torch.ones(4 * SIZE)
parts = lambda: [torch.empty(4) for _ in range(SIZE)]
here = RANK == 0
for label, call in {
    "all_reduce": lambda: dist.all_reduce(x),
    "async": lambda: dist.all_reduce(x, async_op=True).wait(),
    "broadcast": lambda: dist.broadcast(x, 0),
    "reduce": lambda: dist.reduce(x, 0),
    "all_gather": lambda: dist.all_gather(parts(), x),
    "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(many, x),
    "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(x, many),
    "all_to_all_single": lambda: dist.all_to_all_single(many, many.clone()),
    "gather": lambda: dist.gather(x, parts() if here else None),
    "scatter": lambda: dist.scatter(x, parts() if here else None),
    "barrier": dist.barrier,
    "message": lambda: dist.send(x, 1) if here else dist.recv(x, 0) if RANK == 1 else None,
    "all_gather_object": lambda: dist.all_gather_object([None] * SIZE, 1),
    "broadcast_object_list": lambda: dist.broadcast_object_list([1, 2]),
    "gather_object": lambda: dist.gather_object(1, [None] * SIZE if here else None),
    "scatter_object_list": lambda: dist.scatter_object_list([None], [1] * SIZE),
    "functional all_reduce": lambda: functional.all_reduce(x, "sum", mesh),
    "functional all_gather": lambda: functional.all_gather_tensor(x, 0, mesh),
    "functional reduce_scatter": lambda: functional.reduce_scatter_tensor(many, "sum", 0, mesh),
    "functional all_to_all": lambda: functional.all_to_all_single(many, None, None, mesh),
    "functional broadcast": lambda: functional.broadcast(x, 0, mesh),
    "coalesced": lambda: functional.all_reduce_coalesced([x, x], "sum", mesh),
    "nothing": lambda: x + x,
}.items():
    mode = CommDebugMode()
    with mode:
        result = call()
    if label == "coalesced" or label.startswith("functional"):  # nothing is on its way when a process ends
        for t in result if isinstance(result, list) else [result]:
            functional.wait_tensor(t)
    shown(label, mode)
dist.all_reduce(x)
print("outside", mode.get_total_counts())

name = dist.group.WORLD.group_name
inner = torch.ops._c10d_functional
summed = inner.all_reduce(torch.ones(2), "sum", name)
gathered = inner.all_gather_into_tensor(torch.ones(2), SIZE, name)
print(inner.wait_tensor(summed).tolist(), inner.wait_tensor(gathered).tolist())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)

    def forward(self, x):
        return self.down(self.act(self.up(x)))


torch.manual_seed(0)
model = parallelize_module(Net(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
mode = CommDebugMode()
with mode:
    model(torch.ones(4, 8, requires_grad=True)).sum().backward()
shown("cut", mode)
print(mode.get_comm_counts()[torch.ops.c10d_functional.all_reduce])
print(
    {m: {w: {str(op): n for op, n in c.items()} for w, c in way.items()} for m, way in mode.comm_module_counts.items()}
)
print(mode.get_sharding_info(), {m: sorted(found) for m, found in mode.get_parameter_info().items()})
print(mode.generate_comm_debug_tracing_table(noise_level=0))
mode.log_comm_debug_tracing_table_to_file(f"table{RANK}.txt", noise_level=0)
print(Path(f"table{RANK}.txt").read_text())
with mode:
    laid = distribute_tensor(torch.ones(8, 8), mesh, [Shard(0)], src_data_rank=None)
    laid.redistribute(mesh, [Replicate()])
    laid.full_tensor()
    laid.sum().full_tensor()
shown("laid", mode)
dist.destroy_process_group()
