"""What is refused, and in which words: run by two processes, on PyTorch (gloo) and on rushlight."""

import os
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed import fsdp
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

warnings.simplefilter("ignore")
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=size)
x = torch.ones(2)


def show(name, function, words=True):
    """The error's kind and, where the words are PyTorch's Python code's own, its first line."""
    try:
        print(name, function())
    except Exception as error:
        print(name, type(error).__name__, (str(error).splitlines() or [""])[0] if words else "")


# -- collectives -------------------------------------------------------------------------------------------------------

show("no tensor", lambda: dist.all_reduce([1.0]))
show("no list", lambda: dist.all_gather(x, x))
show("dtypes", lambda: dist.all_gather([x.double()] * size, x))
show("dtypes of one", lambda: dist.all_gather_into_tensor(torch.ones(2 * size).double(), x), words=False)
show("shapes", lambda: dist.all_gather([torch.ones(3)] * size, x))
show("no root", lambda: dist.broadcast(x))
show("a root outside", lambda: dist.broadcast(x, size + 3))
show("a word as op", lambda: dist.all_reduce(x, "sum"), words=False)
show("bits of floats", lambda: dist.all_reduce(x, dist.ReduceOp.BAND))
show("to itself", lambda: dist.send(x, rank))
show("a number as group", lambda: dist.all_reduce(x, group=3))
show("splits", lambda: dist.all_to_all_single(torch.ones(size), torch.ones(size), [1], [1]))
show("sums of splits", lambda: dist.all_to_all_single(torch.ones(size), torch.ones(size), [2] * size, [1] * size))
show("a rank twice", lambda: dist.new_group([0, 0]))
show("a rank too high", lambda: dist.new_group([size + 3]))
show("too large subgroups", lambda: dist.new_subgroups(group_size=size + 1))
show("no operation", lambda: dist.batch_isend_irecv([3]))
show("an operation of another kind", lambda: dist.P2POp(dist.all_reduce, x, 0))
show("no list of objects", lambda: dist.scatter_object_list(3, [1] * size, src=0))
show("an unknown op", lambda: functional.all_reduce(x, "nope", dist.group.WORLD))
show("joining twice", lambda: dist.init_process_group("gloo"))

# -- data parallel modules ---------------------------------------------------------------------------------------------


def annotated(bucket=dist.GradBucket, result=torch.futures.Future[torch.Tensor]):
    def hook(state, bucket):
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future()

    hook.__annotations__ = {"bucket": bucket, "return": result}
    return hook


class OneOfTwo(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.other = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return self.used(x)


def unused():
    model = DDP(OneOfTwo())
    model(torch.ones(1, 2)).sum().backward()
    try:
        model(torch.ones(1, 2))
    except RuntimeError as error:
        return str(error)


show("nothing to train", lambda: DDP(nn.ReLU()))
show("two devices", lambda: DDP(nn.Linear(2, 2), device_ids=[0, 1]))
show("a device for a CPU's module", lambda: DDP(nn.Linear(2, 2), device_ids=[0]))
show("a place for outputs", lambda: DDP(nn.Linear(2, 2), output_device=1))
show("a lazy module", lambda: DDP(nn.LazyLinear(3)))
show("no hook", lambda: DDP(nn.Linear(2, 2)).register_comm_hook(None, 3))
show("a good hook", lambda: DDP(nn.Linear(2, 2)).register_comm_hook(None, annotated()))
show("a hook of ints", lambda: DDP(nn.Linear(2, 2)).register_comm_hook(None, annotated(bucket=int)))
show("a hook that gives ints", lambda: DDP(nn.Linear(2, 2)).register_comm_hook(None, annotated(result=int)))
show("parameters that are not used", unused)
told = DDP(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))._get_ddp_logging_data()
for name in ("backend_name", "module_name", "num_parameter_tensors", "total_parameter_size_bytes", "has_sync_bn"):
    print(name, told[name])

# -- meshes ------------------------------------------------------------------------------------------------------------

mesh = init_device_mesh("cpu", (1, size), mesh_dim_names=("a", "b"))
show("a name twice", lambda: mesh["b", "b"])
show("no such name", lambda: mesh["c"])
show("several groups", lambda: DeviceMesh.from_group([dist.group.WORLD], "cpu"))
show("a part of the ranks", lambda: fully_shard(nn.Linear(4, 4), reshard_after_forward=3))
show("cut twice", lambda: fully_shard(fully_shard(nn.Linear(4, 4))))

# -- types of state dicts ----------------------------------------------------------------------------------------------

model = FullyShardedDataParallel(nn.Linear(4, 4), device_id=torch.device("cpu"))
for kind in fsdp.StateDictType:
    with FullyShardedDataParallel.state_dict_type(model, kind):
        print(FullyShardedDataParallel.get_state_dict_type(model))
set_type, full = FullyShardedDataParallel.set_state_dict_type, fsdp.StateDictType.FULL_STATE_DICT
show("another type's settings", lambda: set_type(model, full, fsdp.ShardedStateDictConfig()), words=False)
dist.destroy_process_group()
