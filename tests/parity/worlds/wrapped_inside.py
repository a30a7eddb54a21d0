"""``FullyShardedDataParallel`` with units inside: names, states, norms and optimizers, on PyTorch and on rushlight."""

import functools
import os
import warnings

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms._comm_hooks import default_hooks
from torch.distributed.fsdp import (
    FlatParameter,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictType,
    fully_shard,
)
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.fully_sharded_data_parallel import OptimStateKeyType
from torch.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    always_wrap_policy,
    enable_wrap,
    lambda_auto_wrap_policy,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
    wrap,
)
from torch.distributed.tensor import DTensor

warnings.simplefilter("ignore")
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)
CPU = torch.device("cpu")


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.blocks = nn.ModuleList([Block(8) for _ in range(2)])
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.table(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x.mean(1)))


def made(**options):
    torch.manual_seed(0)
    options = {"use_orig_params": True, "device_id": CPU, **options}
    return FSDP(Net(), **options)


def show(label, *values):
    print(label, *values)


def digest(values):
    return [f"{name} {tuple(t.shape)} {t.double().norm():.5f}" for name, t in values]


POLICIES = {
    "classes": ModuleWrapPolicy({Block}),
    "several": ModuleWrapPolicy({Block, nn.Linear}),
    "transformer": functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block}),
    "size": functools.partial(size_based_auto_wrap_policy, min_num_params=100),
    "small": functools.partial(size_based_auto_wrap_policy, min_num_params=20),
    "lambda": functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.Linear)),
    "always": always_wrap_policy,
    "custom": CustomPolicy(lambda m: isinstance(m, Block)),
    "options": CustomPolicy(
        lambda m: {"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP} if isinstance(m, Block) else False
    ),
}
for name, policy in POLICIES.items():
    model = made(auto_wrap_policy=policy)
    show(name, model)
    show(name, [type(m.module).__name__ for m in FSDP.fsdp_modules(model)])
    show(name, [type(m.module).__name__ for m in FSDP.fsdp_modules(model, root_only=True)])
    show(name, [n for n, _ in model.named_parameters()])
    show(name, [n for n, _ in model.named_modules()])
    show(name, [n for n, _ in model.named_buffers()])
    show(name, [m.sharding_strategy.name for m in FSDP.fsdp_modules(model)])
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        show(name, list(model.state_dict()))
        show(name, list(model.blocks[0].state_dict()), list(model.blocks.state_dict(prefix="b.")))

model = made(auto_wrap_policy=ModuleWrapPolicy({Block}))
show("isinstance", isinstance(model.blocks[0], FSDP), isinstance(model.head, FSDP), isinstance(model.module, Net))
show("attributes", model.head.in_features, model.blocks[1].up.out_features)
show("root", model.check_is_root(), model.blocks[0].check_is_root())

optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)  # PyTorch gives wrong moments of AdamW on CPUs
torch.manual_seed(10 + RANK)
batches = [(torch.randint(0, 11, (4, 5)), torch.randint(0, 3, (4,))) for _ in range(8)]


def step(i, norm=0.5):
    x, y = batches[i]
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    total = model.clip_grad_norm_(norm)
    optimizer.step()
    optimizer.zero_grad()
    show("step", i, f"{loss.item():.5f} {total.item():.5f}")


for i in range(3):
    step(i)
with model.no_sync():
    nn.functional.cross_entropy(model(batches[3][0]), batches[3][1]).backward()
step(4)
x, y = batches[5]
nn.functional.cross_entropy(model(x), y).backward()
show("inf norm", f"{model.clip_grad_norm_(0.1, norm_type=float('inf')).item():.5f}")
optimizer.zero_grad()

show("type", FSDP.get_state_dict_type(model))
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
    show("type", FSDP.get_state_dict_type(model).state_dict_type)
    full = model.state_dict()
    show("full", *digest(full.items()))
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True)):
    show("rank 0", *digest(model.state_dict().items()))
before = FSDP.set_state_dict_type(model, StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig(offload_to_cpu=True))
show("before", before)
show("now", FSDP.get_state_dict_type(model))
sharded = model.state_dict()
show("sharded", [(k, tuple(v.shape)) for k, v in sharded.items()])
show("sharded", model.load_state_dict(sharded))
FSDP.set_state_dict_type(
    model,
    StateDictType.FULL_STATE_DICT,
    FullStateDictConfig(rank0_only=False),
    FullOptimStateDictConfig(rank0_only=False),
)
state = FSDP.optim_state_dict(model, optimizer)
show("optimizer", list(state), [sorted(g) for g in state["param_groups"]])
show("optimizer", state["param_groups"][0]["params"])
for name, entry in sorted(state["state"].items()):
    show("optimizer", name, *digest((k, v) for k, v in sorted(entry.items())))

with FSDP.summon_full_params(model):
    show("summoned", *digest(model.named_parameters()))
    show("summoned", [n for n, _ in model.blocks[0].named_parameters()])
    with torch.no_grad():
        model.head.bias.fill_(0.25)
        model.blocks[0].up.bias.fill_(0.5)
with FSDP.summon_full_params(model, writeback=False):
    show("written", model.head.bias.tolist(), model.blocks[0].up.bias.sum().item())
    with torch.no_grad():
        model.head.bias.fill_(7.0)
with FSDP.summon_full_params(model, recurse=False, writeback=False):
    show("only outer", model.head.bias.tolist(), *digest([("head", model.head.weight)]))
with FSDP.summon_full_params(model.blocks[0], writeback=False):
    show("one unit", *digest(model.blocks[0].named_parameters()))

other = made(auto_wrap_policy=ModuleWrapPolicy({Block}))
with torch.no_grad():
    show("loading", FSDP.get_state_dict_type(other).state_dict_type)
    show("loading", other.load_state_dict(full))
again = torch.optim.SGD(other.parameters(), lr=0.05, momentum=0.9)
again.load_state_dict(FSDP.optim_state_dict_to_load(other, again, state))
model, optimizer = other, again
step(6)
step(7)
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
    show("end", *digest(model.state_dict().items()))

for label, changed in (
    ("a key too few", {name: value for name, value in full.items() if name != "blocks.0.up.bias"}),
    ("a key too many", {**full, "blocks.0.more": torch.ones(1), "more": torch.ones(1)}),
):
    show(label, model.load_state_dict(changed, strict=False))
    try:
        model.load_state_dict(changed)
    except RuntimeError as error:
        show(label, error)
model.load_state_dict(full)

by_number = FSDP.rekey_optim_state_dict(state, OptimStateKeyType.PARAM_ID, model)
show("by number", sorted(by_number["state"]), by_number["param_groups"][0]["params"])

with enable_wrap(wrapper_cls=FSDP, device_id=CPU, use_orig_params=True):
    torch.manual_seed(0)
    parts = nn.Sequential(wrap(nn.Linear(4, 4)), nn.ReLU(), wrap(nn.Linear(4, 2)))
show("by hand", parts)
show("by hand", FSDP(parts, device_id=CPU, use_orig_params=True))
show("units", [type(m.module).__name__ for m in FSDP.fsdp_modules(parts)])

frozen = made(auto_wrap_policy=ModuleWrapPolicy({Block}), ignored_modules=[])
for p in frozen.blocks[0].parameters():
    p.requires_grad_(False)
nn.functional.cross_entropy(frozen(batches[0][0]), batches[0][1]).backward()
show("frozen", f"{frozen.clip_grad_norm_(1e9).item():.5f}")
low = made(auto_wrap_policy=ModuleWrapPolicy({Block}), mixed_precision=MixedPrecision(torch.bfloat16, torch.float32))
show("bfloat16", low(batches[0][0]).dtype, {p.dtype for p in low.parameters()})
show("bfloat16", low)


def told(label, call):
    try:
        call()
    except Exception as error:
        show(label, type(error).__name__, str(error).partition("\n")[0])


def no_sync():
    with model.blocks[0].no_sync():
        pass


told("inner norm", lambda: model.blocks[0].clip_grad_norm_(1.0))
told("inner no_sync", no_sync)
told("policy of a wrapped one", lambda: FSDP(parts, device_id=CPU, auto_wrap_policy=ModuleWrapPolicy({nn.ReLU})))
told("policy that says nothing", lambda: made(auto_wrap_policy=CustomPolicy(lambda m: None)))


def applied(module):
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.weight, 0.125)
        show("applied", tuple(module.weight.shape))


model.apply(applied)
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
    show("applied", *digest(model.state_dict().items()))


def part(value):
    """What a process has of a part of a state: PyTorch's is a ShardedTensor."""
    if hasattr(value, "local_shards"):
        return value.local_shards()[0].tensor
    return value.to_local() if hasattr(value, "to_local") else value


def shapes(state):
    return [(k, tuple(v.shape), f"{part(v).double().norm():.5f}") for k, v in state.items() if hasattr(v, "shape")]


model = made(auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=False)
show("flat", model)
show("flat", [(n, tuple(p.shape), p.is_leaf, isinstance(p, FlatParameter)) for n, p in model.named_parameters()])
show("flat", sum(p.numel() for p in model.parameters()), model._flat_param._fqns, tuple(model.head.weight.shape))
inside = []
model.head.register_forward_pre_hook(
    lambda m, args: inside.append((isinstance(m.weight, nn.Parameter), tuple(m.weight.shape), list(m._parameters)))
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for i in range(3):
    if i == 1:
        with model.no_sync():
            nn.functional.cross_entropy(model(batches[3][0]), batches[3][1]).backward()
    step(i)
show("flat", inside[0])
x, y = batches[5]
nn.functional.cross_entropy(model(x), y).backward()
show("flat gradients", *digest((n, p.grad) for n, p in model.named_parameters()))
show("flat norms", f"{model.clip_grad_norm_(0.1, norm_type=float('inf')).item():.5f}")
show("flat optimizer", optimizer.state_dict()["param_groups"][0]["params"])
show("flat optimizer", [shapes(v) for v in optimizer.state_dict()["state"].values()])
optimizer.zero_grad()
for kind in StateDictType:
    FSDP.set_state_dict_type(model, kind)
    state, moments = model.state_dict(), FSDP.optim_state_dict(model, optimizer)
    show(kind, *shapes(state))
    show(kind, *shapes(model.blocks[0].state_dict()))
    show(kind, moments["param_groups"][0]["params"], *[(k, shapes(v)) for k, v in moments["state"].items()])
    other = made(auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=False)
    FSDP.set_state_dict_type(other, kind)
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
    show(kind, other.load_state_dict(state), *digest(other.named_parameters()))
    again = torch.optim.SGD(other.parameters(), lr=0.05, momentum=0.9)
    own = FSDP.optim_state_dict_to_load(other, again, moments)
    show(kind, [(k, shapes(v)) for k, v in own["state"].items()], own["param_groups"][0]["params"])
    again.load_state_dict(own)
model, optimizer = other, again
step(4)
with FSDP.summon_full_params(model):
    show("flat summoned", *digest(model.named_parameters()))
    with torch.no_grad():
        model.head.bias.fill_(0.25)
with FSDP.summon_full_params(model, recurse=False, writeback=False):
    show("flat only outer", *digest(model.named_parameters()))
with FSDP.summon_full_params(model.blocks[0]):
    show("flat one unit", *digest(model.named_parameters()))
step(5)
model.apply(lambda m: nn.init.constant_(m.weight, 0.5) if isinstance(m, nn.Linear) else None)
show("flat applied", *digest(model.named_parameters()))
FSDP.set_state_dict_type(model, StateDictType.FULL_STATE_DICT)
state = model.state_dict()
told("flat too few", lambda: model.load_state_dict({k: v for k, v in state.items() if k != "head.bias"}))
told("flat dtypes", lambda: FSDP(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()), device_id=CPU))
told("flat frozen", lambda: FSDP(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).requires_grad_(False)), device_id=CPU))
tied = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
tied[2].weight = tied[0].weight
tied = FSDP(tied, device_id=CPU, ignored_states=[tied[2].bias])
tied(torch.ones(2, 3) + RANK).square().sum().backward()
show("flat tied", [(n, tuple(p.shape)) for n, p in tied.named_parameters()], sorted(tied.state_dict()))
with FSDP.summon_full_params(tied):
    show("flat tied", [n for n, _ in tied.named_parameters()], tied[0].weight is tied[2].weight)
show("flat nothing", FSDP(nn.Sequential(nn.Tanh()), device_id=CPU)(torch.ones(1)).tolist())


def reduce(state, gradients, mine=None):
    show("hook", state, tuple(gradients.shape), gradients.dtype, f"{gradients.double().sum():.5f}")
    dist.all_reduce(gradients) if mine is None else dist.reduce_scatter_tensor(mine, gradients)


for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.NO_SHARD):
    model = made(auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=False, sharding_strategy=strategy)
    model.register_comm_hook("state", reduce)
    told("inner hook", functools.partial(model.blocks[0].register_comm_hook, "state", reduce))
    told("second hook", functools.partial(model.register_comm_hook, "state", reduce))
    nn.functional.cross_entropy(model(batches[0][0]), batches[0][1]).backward()
    show("hook", *digest((n, p.grad) for n, p in model.named_parameters()))
    with FSDP.summon_full_params(model, writeback=False):
        show("hook", len(list(model.named_parameters())))
    model = made(use_orig_params=False, sharding_strategy=strategy)
    state = default_hooks.DefaultState(dist.group.WORLD)
    whole = strategy is ShardingStrategy.NO_SHARD
    model.register_comm_hook(state, default_hooks.allreduce_hook if whole else default_hooks.reduce_scatter_hook)
    show("default hook", state.gradient_predivide_factor, state.gradient_postdivide_factor)
    nn.functional.cross_entropy(model(batches[0][0]), batches[0][1]).backward()
    show(
        "default hook",
        f"{model.clip_grad_norm_(1e9).item():.5f}",
        *digest((n, p.grad) for n, p in model.named_parameters()),
    )

model = Net()
fully_shard(model.blocks[0])
fully_shard(model)
model.unshard()
show(
    "unshard",
    [(n, isinstance(p, nn.Parameter), tuple(p.shape), isinstance(p, DTensor)) for n, p in model.named_parameters()],
)
model.reshard()
show("reshard", {isinstance(p, DTensor) for p in model.parameters()})
dist.destroy_process_group()
