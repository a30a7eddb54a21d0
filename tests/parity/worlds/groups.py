"""What groups, stores and optimizers of two processes can do, and how gradients lie: on PyTorch and on rushlight."""

# ruff: noqa: B023 (each function is called at once)

import copy
import datetime
import os
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import distributed_c10d as c10d
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)
from torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication, local_map
from torch.nn.parallel import DistributedDataParallel as DDP

warnings.simplefilter("ignore")
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=size)
group = dist.new_group([0, 1])


def show(name, function):
    try:
        value = function()
    except Exception as error:
        kinds = (TypeError, ValueError, NotImplementedError, RuntimeError, KeyError, IndexError)
        value = next((k.__name__ for k in kinds if isinstance(error, k)), type(error).__name__)
    print(name, value, flush=True)


def numbers(n, start=0):
    return torch.arange(float(n)) + 10 * rank + start


def done(work, *tensors):
    return work.wait(), [t.tolist() for t in tensors]


# -- methods of a group ------------------------------------------------------------------------------------------------

MAX = dist.ReduceOp.MAX


def options(kind, **values):
    made = kind()
    for name, value in values.items():
        setattr(made, name, value)
    return made


KINDS = (
    "AllreduceOptions", "AllreduceCoalescedOptions", "BroadcastOptions", "ReduceOptions", "AllgatherOptions",
    "GatherOptions", "ScatterOptions", "ReduceScatterOptions", "BarrierOptions", "AllToAllOptions",
)  # fmt: skip
for kind in KINDS:
    made = getattr(c10d, kind)()
    shown = [getattr(made, n, "-") for n in ("rootRank", "rootTensor", "timeout", "asyncOp", "device_ids", "device")]
    print(kind, *shown, getattr(made, "reduceOp", None) == dist.ReduceOp.SUM, hasattr(dist, kind))
    show(f"{kind} of something", lambda kind=kind: getattr(c10d, kind)(1))

x, y = numbers(3), numbers(3)
show("allreduce", lambda: done(group.allreduce([x]), x))
show("allreduce, options", lambda: done(group.allreduce([y], options(dist.AllreduceOptions, reduceOp=MAX)), y))
x = numbers(3)
show("allreduce, plain", lambda: done(group.allreduce(x, MAX), x))
x = numbers(3)
show("allreduce, named", lambda: done(group.allreduce(tensor=x, op=MAX, timeout=datetime.timedelta(seconds=50)), x))
x, y = numbers(2), numbers(3, 6)
show("allreduce_coalesced", lambda: done(group.allreduce_coalesced([x, y]), x, y))
x, y = numbers(2), numbers(2)
show("broadcast", lambda: done(group.broadcast([x]), x))
show("broadcast, options", lambda: done(group.broadcast([y], options(dist.BroadcastOptions, rootRank=1)), y))
x = numbers(2)
show("broadcast, plain", lambda: done(group.broadcast(x, 1), x))
show("broadcast, plain without a root", lambda: group.broadcast(x))
x = numbers(2)
reduced = group.reduce([x], options(dist.ReduceOptions, rootRank=1))
show("reduce", lambda: (reduced.wait(), x.tolist() if rank == 1 else None))
x = numbers(2)
reduced = group.reduce(x, root=0, op=MAX)
show("reduce, plain", lambda: (reduced.wait(), x.tolist() if rank == 0 else None))
out = [torch.empty(2) for _ in range(2)]
show("allgather", lambda: done(group.allgather([out], [numbers(2)]), *out))
show("allgather, plain", lambda: done(group.allgather(out, numbers(2, 1)), *out))
lists = [[torch.empty(2), torch.empty(3)] for _ in range(2)]
show(
    "allgather_coalesced",
    lambda: done(group.allgather_coalesced(lists, [numbers(2), numbers(3)]), *lists[0], *lists[1]),
)
out = torch.empty(4)
show("_allgather_base", lambda: done(group._allgather_base(out, numbers(2)), out))
show("all_gather_single", lambda: done(group.all_gather_single(out, numbers(2, 3)), out))
outs = [torch.empty(4), torch.empty(2)]
show(
    "allgather_into_tensor_coalesced",
    lambda: done(group.allgather_into_tensor_coalesced(outs, [numbers(2), numbers(1)]), *outs),
)
out = [torch.empty(2) for _ in range(2)]
show("gather", lambda: done(group.gather([out] if rank == 0 else [], [numbers(2)]), *(out if rank == 0 else [])))
show(
    "gather, options",
    lambda: done(
        group.gather([out] if rank == 1 else [], [numbers(2)], options(dist.GatherOptions, rootRank=1)),
        *(out if rank == 1 else []),
    ),
)
show(
    "gather, plain", lambda: done(group.gather(out if rank == 1 else [], numbers(2, 1), 1), *(out if rank == 1 else []))
)
out = torch.empty(2)
show("scatter", lambda: done(group.scatter([out], [[numbers(2), numbers(2, 6)]] if rank == 0 else []), out))
show("scatter, plain", lambda: done(group.scatter(out, [numbers(2), numbers(2, 6)] if rank == 1 else [], 1), out))
show("reduce_scatter", lambda: done(group.reduce_scatter([out], [[numbers(2), numbers(2, 6)]]), out))
show("reduce_scatter, plain", lambda: done(group.reduce_scatter(out, [numbers(2), numbers(2, 6)], MAX), out))
show("_reduce_scatter_base", lambda: done(group._reduce_scatter_base(out, numbers(4)), out))
show(
    "reduce_scatter_single",
    lambda: done(group.reduce_scatter_single(out, numbers(4), options(dist.ReduceScatterOptions, reduceOp=MAX)), out),
)
outs = [torch.empty(2), torch.empty(1)]
show(
    "reduce_scatter_tensor_coalesced",
    lambda: done(group.reduce_scatter_tensor_coalesced(outs, [numbers(4), numbers(2)]), *outs),
)
out = torch.empty(4)
show("alltoall_base", lambda: done(group.alltoall_base(out, numbers(4), [], []), out))
out = torch.empty(3 if rank == 0 else 5)
show(
    "alltoall_base, sizes",
    lambda: done(
        group.alltoall_base(out, numbers(4), [2, 1] if rank == 0 else [2, 3], [2, 2] if rank == 0 else [1, 3]), out
    ),
)
show("barrier", lambda: (group.barrier().wait(), group.barrier(dist.BarrierOptions()).wait()))
show("monitored_barrier", lambda: group.monitored_barrier(datetime.timedelta(seconds=60)))
x = numbers(2)
if rank == 0:
    show("send", lambda: group.send([x], 1, 7).wait())
    show("send", lambda: group.send([x + 1], 1, 8).wait())
else:
    show("recv", lambda: done(group.recv([x], 0, 7), x))
    show("recv_anysource", lambda: done(group.recv_anysource([x], 8), x))
show("future", lambda: [t.tolist() for t in group.allreduce([numbers(2)]).get_future().wait()])
show("result", lambda: [t.tolist() for w in [group.broadcast(numbers(1), 0)] if w.wait() for t in w.result()])
show("not a tensor", lambda: group.allreduce(3))
show("too much", lambda: group.allreduce(numbers(1), MAX, None, None, None))
show("no such word", lambda: group.allreduce(numbers(1), fast=True))
show("names", lambda: (group.name(), group._get_backend_name(), group.rank(), group.size()))
group.get_group_store().set(f"mine{rank}", str(rank))
show("store of a group", lambda: group.get_group_store().get(f"mine{1 - rank}"))

# -- stores ------------------------------------------------------------------------------------------------------------


def pushed(store):
    store.set_timeout(datetime.timedelta(milliseconds=200))
    for value in ("one", b"two"):
        show("push", lambda: store.queue_push("q", value))
    show("length", lambda: (store.queue_len("q"), store.queue_len("none"), store.check(["q"]), store.check(["q", "x"])))
    show("wait", lambda: store.wait(["q"], datetime.timedelta(milliseconds=100)))
    show("pop", lambda: (store.queue_pop("q"), store.queue_pop(key="q", block=False)))
    for block in (True, False):
        try:
            show("pop nothing", store.queue_pop("q", block))
        except dist.DistStoreError as error:
            print(type(error).__name__, str(error).replace("/a/", "/"))
        except NotImplementedError as error:
            print(type(error).__name__, error)
    show("nothing", lambda: (store.queue_len("q"), store.check(["q"])))
    store.set("key", "value")
    show("clone", lambda: (type(store.clone()).__name__, store.clone().get("key")))
    show("barrier", lambda: store.barrier("b", 1))
    show("barrier of two", lambda: store.barrier("c", 2, datetime.timedelta(milliseconds=100)))


base = dist.HashStore()
served = dist.TCPStore("127.0.0.1", 0, 1, True, datetime.timedelta(seconds=60))
for store in (base, dist.PrefixStore("a", dist.HashStore()), served, dist.PrefixStore("a", served)):
    pushed(store)
pushed(dist.FileStore(os.environ["MEETING"].removeprefix("file://") + f"store{rank}", 1))
show("below", lambda: dist.PrefixStore("a", dist.PrefixStore("b", base))._underlying_non_prefix_store is base)

# -- an optimizer whose state is shared out ----------------------------------------------------------------------------


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))


def batch(i):
    data = torch.Generator().manual_seed(100 * i + rank)
    return torch.randn(5, 6, generator=data), torch.randint(0, 3, (5,), generator=data)


def train(model, optimizer, steps, begin=0):
    losses = []
    for i in range(begin, begin + steps):
        optimizer.zero_grad()
        inputs, targets = batch(i)
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 6))
    return losses


def told(state):
    """A state dict in words."""
    for number, values in state["state"].items():
        found = {
            n: (tuple(v.shape), round(v.double().sum().item(), 6)) if torch.is_tensor(v) else v
            for n, v in values.items()
        }
        print("state", number, found)
    for one in state["param_groups"]:
        print("group", dict(one))


for kind, given, views in (
    (torch.optim.Adam, {"lr": 0.01}, False),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}, True),
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}, True),
):
    model = DDP(network())
    zero = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=kind, parameters_as_bucket_view=views, **given)
    print(kind.__name__, train(model, zero, 6))
    print("shares", [[p.numel() for g in share for p in g["params"]] for share in zero._partition_parameters()])
    print("mine", len(zero.optim.state), [len(g["params"]) for g in zero.optim.param_groups])
    show("not consolidated", zero.state_dict)
    zero.consolidate_state_dict(to=1)
    show("on the other", lambda: sorted(zero.state_dict()["state"]))
    zero.consolidate_state_dict()
    if rank == 0:
        told(zero.state_dict())
    everywhere = [copy.deepcopy(zero.state_dict()) if rank == 0 else None]  # PyTorch's has the live tensors
    dist.broadcast_object_list(everywhere, 0)
    weights = {name: p.clone() for name, p in model.module.state_dict().items()}
    after = train(model, zero, 2, 6)
    again = DDP(network())
    again.module.load_state_dict(weights)
    loaded = ZeroRedundancyOptimizer(again.parameters(), kind, parameters_as_bucket_view=not views, **given)
    loaded.load_state_dict(everywhere[0])
    print("again", after, train(again, loaded, 2, 6), round(sum(p.sum().item() for p in again.parameters()), 6))

model = DDP(network())
zero = ZeroRedundancyOptimizer(model.module[0].parameters(), torch.optim.Adam, lr=0.01)
zero.add_param_group({"params": list(model.module[2].parameters()), "lr": 0.05})
zero.add_param_group({"params": list(model.module[4].parameters())})
schedule = torch.optim.lr_scheduler.StepLR(zero, 1, 0.5)
print("groups", train(model, zero, 2))
schedule.step()
print(
    "scheduled",
    train(model, zero, 2, 2),
    [g["lr"] for g in zero.param_groups],
    [g["lr"] for g in zero.optim.param_groups],
)
print("shares", [[[p.numel() for p in g["params"]] for g in share] for share in zero._partition_parameters()])
zero.consolidate_state_dict()
if rank == 0:
    told(zero.state_dict())
show("rank", lambda: (zero.rank, zero.world_size, zero.global_rank, zero.join_device))

model = DDP(network())
zero = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
with Join([model, zero]):
    losses = train(model, zero, 2 + 2 * rank)
print("uneven", losses, round(sum(p.sum().item() for p in model.parameters()), 6))

# -- ways to exchange gradients, or parameters -------------------------------------------------------------------------

alone = dist.new_subgroups(1)[0]
for name, hook, state in (
    ("noop", noop_hook, lambda: None),
    ("local", post_localSGD_hook, lambda: PostLocalSGDState(None, alone, 2)),
    ("local, later nothing", post_localSGD_hook, lambda: PostLocalSGDState(None, alone, 1, False)),
):
    model = DDP(network())
    model.register_comm_hook(state(), hook)
    averager = PeriodicModelAverager(period=3, warmup_steps=1)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), averager)
    show(name, lambda: train(model, optimizer, 6))
    show("step", lambda: (optimizer.state_dict()["step"], averager.step, round(model.module[0].weight.sum().item(), 6)))
show("averager", lambda: PeriodicModelAverager(period=0))
show("averager", lambda: PeriodicModelAverager(period=2, warmup_steps=-1))
plain = nn.Linear(2, 2)
show("no parameters", lambda: ZeroRedundancyOptimizer([], torch.optim.SGD, lr=0.1))
show("a tensor", lambda: ZeroRedundancyOptimizer(plain.weight, torch.optim.SGD, lr=0.1))
show("a number", lambda: ZeroRedundancyOptimizer(3, torch.optim.SGD, lr=0.1))
show("numbers", lambda: ZeroRedundancyOptimizer([1, 2], torch.optim.SGD, lr=0.1))
show("no params", lambda: ZeroRedundancyOptimizer([{"lr": 1}], torch.optim.SGD, lr=0.1))
show(
    "two types", lambda: ZeroRedundancyOptimizer([plain.weight, nn.Parameter(torch.ones(2).double())], torch.optim.SGD)
)
show("an unknown option", lambda: ZeroRedundancyOptimizer(plain.parameters(), torch.optim.SGD, lr=0.1, speed=3))

# -- gradients of DTensors ---------------------------------------------------------------------------------------------

mesh = init_device_mesh("cpu", (2,))
for placements in ([Replicate()], [Shard(0)], [Partial()]):
    for wanted in (None, [Replicate()], [Shard(0)], [Partial()]):
        part = (numbers(4) + 1).requires_grad_()

        def passed(placements=placements, wanted=wanted, part=part):
            whole = DTensor.from_local(part, mesh, placements, grad_placements=wanted)
            (
                whole.redistribute(placements=[Replicate()]).to_local() * (torch.arange(1.0, 9.0)[: len(whole)])
            ).sum().backward()
            return part.grad.tolist()

        if wanted != [Partial()]:
            show(f"from_local {placements} {wanted}", passed)

        x = distribute_tensor(torch.arange(4.0), mesh, [Shard(0)]).requires_grad_()

        def taken(wanted=wanted, x=x):
            whole = x.redistribute(placements=[Replicate()])
            (whole.to_local(grad_placements=wanted) * (rank + 1)).sum().backward()
            return x.grad.full_tensor().tolist()

        if placements == [Replicate()] and wanted != [Shard(0)]:
            show(f"to_local {wanted}", taken)


def scaled(a, b, factor):
    return a * factor + b, factor


def mapped(**options):
    a = distribute_tensor(torch.arange(4.0), mesh, [Shard(0)])
    b = distribute_tensor(torch.ones(4), mesh, [Replicate()])
    found, factor = local_map(scaled, ([Shard(0)], None), **options)(a, b, 3.0)
    return found.full_tensor().tolist(), found.placements, factor


AS_CUT = ([Shard(0)], [Shard(0)], None)
show("local_map", lambda: mapped(in_placements=AS_CUT, redistribute_inputs=True))
show("local_map, laid otherwise", lambda: mapped(in_placements=AS_CUT))
show("local_map, too few placements", lambda: mapped(in_placements=AS_CUT[:1]))
show("local_map of plain tensors", lambda: local_map(scaled, ([Shard(0)], None))(numbers(2), numbers(2), 2.0))
with implicit_replication():
    show(
        "plain and DTensor",
        lambda: (distribute_tensor(torch.ones(4), mesh, [Shard(0)]) + torch.arange(4.0)).full_tensor(),
    )

# -- modules that compute again ----------------------------------------------------------------------------------------


def wrapped(wrapper, **options):
    model = network()
    apply_activation_checkpointing(model, wrapper, **options)
    model(batch(0)[0]).sum().backward()
    print([type(m).__name__ for m in model.modules()])
    print([(name, tuple(p.shape)) for name, p in model[2].named_parameters()], list(model.state_dict()))
    network().load_state_dict(model.state_dict())
    model.load_state_dict(network().state_dict())
    return round(sum(p.grad.abs().sum().item() for p in model.parameters()), 6), model[0].in_features


show("checkpoint_wrapper", lambda: wrapped(checkpoint_wrapper, check_fn=lambda m: isinstance(m, nn.Linear)))
show("offload_wrapper", lambda: wrapped(offload_wrapper, auto_wrap_policy=ModuleWrapPolicy({nn.Tanh, nn.Linear})))
again = checkpoint_wrapper(nn.Bilinear(2, 2, 1), CheckpointImpl.REENTRANT)
given = torch.ones(1, 2, requires_grad=True)
show("with keywords", lambda: (again(given, input2=given).sum().backward(), tuple(given.grad.shape)))

# -- meshes ------------------------------------------------------------------------------------------------------------

show("no ranks", lambda: DeviceMesh("cpu"))
show("an unknown word", lambda: DeviceMesh("cpu", [0, 1], fast=True))
show("an unknown word of from_group", lambda: DeviceMesh.from_group(dist.group.WORLD, "cpu", fast=True))
show("backends", lambda: DeviceMesh("cpu", [0, 1], backend_override=(("gloo", None),)).get_group().name())
show("too few backends", lambda: DeviceMesh("cpu", [0, 1], backend_override=()))
for override in (
    {0: "gloo"},
    {"x": "gloo"},
    {"x": ("gloo", None)},
    {1: "gloo"},
    {"y": "gloo"},
    {"x": "gloo", 0: "gloo"},
    {"x": 3},
):
    show(
        f"override {override}", lambda: init_device_mesh("cpu", (2,), mesh_dim_names=("x",), backend_override=override)
    )
show("number of a name", lambda: mesh._get_mesh_dim_by_name("x"))

# -- fully_shard -------------------------------------------------------------------------------------------------------


class Half(nn.Module):
    """A model one layer of which is not used."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two, self.never = nn.Linear(6, 4), nn.Linear(4, 2), nn.Linear(3, 3)

    def forward(self, x):
        return self.two(torch.tanh(self.one(x)))


def gradients(model):
    return [
        None if p.grad is None else [round(v, 6) for v in p.grad.to_local().flatten().tolist()]
        for p in model.parameters()
    ]


def cut(change, steps=1, **options):
    model = Half()
    fully_shard(model.one, **options)
    fully_shard(model, **options)
    change(model)
    for i in range(steps):
        model(batch(i)[0]).square().sum().backward()
    return model


def show_cut(name, change, **options):
    show(name, lambda: gradients(cut(change, **options)))


seen = []
show_cut("cut", lambda m: None)


def divided(model):
    for part in (model, model.one):
        part.set_force_sum_reduction_for_comms(True)  # gloo knows no other
    model.set_gradient_divide_factor(4.0)
    model.one.set_reduce_scatter_divide_factor(1.0)


show_cut("divide factor", divided)
show_cut("hook", lambda m: m.set_all_reduce_hook(lambda g: (seen.append(g.ndim), g.mul_(3))))
print("seen", seen)
show_cut("unused parameters", lambda m: m.set_reduce_scatter_unused_params(True))
two = init_device_mesh("cpu", (2, 1), mesh_dim_names=("replicate", "shard"))


def accumulated():
    model = cut(lambda m: m.set_requires_all_reduce(False), mesh=two)
    print("not yet", gradients(model))
    model.set_requires_all_reduce(True)
    model(batch(1)[0]).square().sum().backward()
    return gradients(model)


show("replicas, later", accumulated)
model = cut(lambda m: None)
for name, given in (
    ("set_is_last_backward", (True,)), ("set_reshard_after_forward", (True,)),
    ("set_unshard_in_backward", (True,)), ("set_modules_to_forward_prefetch", ([model.one],)),
    ("set_modules_to_backward_prefetch", ([model.one],)), ("set_requires_gradient_sync", (True,)),
    ("set_force_sum_reduction_for_comms", (True,)), ("set_reduce_scatter_max_input_buffers", (2,)),
    ("set_reduce_scatter_max_input_buffers", (0,)), ("set_reduce_scatter_max_input_buffers", (True,)),
    ("reset_iter_state", ()),
):  # fmt: skip
    show(name, lambda: getattr(model, name)(*given))
model.zero_grad()
model(batch(3)[0]).square().sum().backward()
show("after all of these", lambda: gradients(model))
show("set_reshard_after_backward", lambda: model.set_reshard_after_backward(False))
dist.destroy_process_group()
