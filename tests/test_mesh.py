"""Meshes of devices that one process has, in processes of their own: devices8.py, gpt8.py; and FSDP over processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rushlight

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parent))
from worlds import environment, run_world

# XLA needs a thread for each device, or they wait for each other for ever.
EIGHT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "NPROC": "32"}


def run(name: str) -> list[str]:
    script = Path(__file__).with_name(name)
    done = subprocess.run(
        [sys.executable, script], env=environment(**EIGHT), capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_eight_devices():
    assert len(run("devices8.py")) == 6


def test_compiled_functions_over_eight_devices():
    assert len(run("compiled8.py")) == 10


WAYS = ["data_parallel", "fsdp", "hybrid", "tensor_parallel", "fsdp_and_tensor_parallel"]


def test_a_model_cut_in_every_way_learns_the_same():
    assert run("gpt8.py") == WAYS


def test_two_processes_with_four_devices_each(tmp_path, thorough):
    """The same script, started by ``rushlight launch``: meshes of devices that no process has all of."""
    script, out = Path(__file__).with_name("gpt8.py"), tmp_path / "out"
    ways = WAYS if thorough else ["data_parallel", "fsdp_and_tensor_parallel"]
    launch = [sys.executable, "-m", "rushlight", "launch", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launch, "--redirects", "1", "--log-dir", out, script, *ways],
        env=environment(XLA_FLAGS="--xla_force_host_platform_device_count=4", NPROC="32"),
        capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(path.read_text().splitlines() for path in out.rglob("stdout.log")) == [ways] * 2


def test_compiled_functions_over_two_processes(tmp_path):
    """Programs that all processes agree on; the survivor of a killed one is told."""
    ran = [
        "data_parallel", "sharded", "tensor_parallel", "a_process_whose_guards_fail", "a_rank_in_the_arithmetic",
        "what_each_process_has_for_itself", "parts_and_wholes", "a_killed_process",
    ]  # fmt: skip
    script = Path(__file__).with_name("compiled2.py")
    first, second = run_world(tmp_path, 2, script, seconds=400, codes=[3, -9], XLA_FLAGS="")
    assert first.splitlines() == [*ran, "DistBackendError True 20"] and second.splitlines() == ran


WRAPPED = """
import os
import warnings
import rushlight as torch
import rushlight.distributed as dist
from rushlight.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType
from rushlight.distributed.fsdp.wrap import ModuleWrapPolicy
from rushlight.distributed import checkpoint as dcp
from rushlight.distributed.checkpoint.state_dict import (
    StateDictOptions, get_model_state_dict, get_state_dict, set_model_state_dict, set_state_dict
)
from rushlight.distributed.tensor import DTensor, Shard

rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=2)

def net():
    return torch.nn.Sequential(torch.nn.Linear(8, 63), torch.nn.ReLU(), torch.nn.Linear(63, 8))

torch.manual_seed(rank)
by_layer = {"auto_wrap_policy": ModuleWrapPolicy({torch.nn.Linear}), "sync_module_states": True}
cut = FSDP(net(), use_orig_params=True, **by_layer)
torch.manual_seed(0)
whole = net()
optimizers = [torch.optim.AdamW(m.parameters(), lr=0.1) for m in (cut, whole)]
x = torch.randn(16, 8)
for step in range(3):
    losses, norms = [], []
    for model, optimizer, data in zip((cut, whole), optimizers, (x[rank::2], x)):
        optimizer.zero_grad()
        loss = (model(data) ** 2).mean()
        loss.backward()
        clip = torch.nn.utils.clip_grad_norm_
        norms.append(float(cut.clip_grad_norm_(1.0) if model is cut else clip(whole.parameters(), 1.0)))
        optimizer.step()
        losses.append(loss.detach())
    dist.all_reduce(losses[0])
    assert abs(losses[0] / 2 - losses[1]) < 1e-6 and abs(norms[0] - norms[1]) < 1e-6
assert cut.module[0].weight.to_local().shape[0] == (32, 31)[rank]
with FSDP.state_dict_type(cut, StateDictType.FULL_STATE_DICT):
    state = cut.state_dict()
assert all(torch.allclose(state[name], value, atol=1e-6) for name, value in whole.state_dict().items())
try:  # six rows are cut into three and three
    DTensor.from_local(torch.ones(4 - 2 * rank, 2), placements=[Shard(0)], shape=torch.Size((6, 2)), stride=(2, 1))
except RuntimeError as error:
    assert "this process has a part of shape (3, 2), but local_tensor has shape" in str(error)
else:
    raise AssertionError("rows that are lost")
get = lambda model, optimizer: dict(zip(("model", "optim"), get_state_dict(model, optimizer)))
saved = get(cut, optimizers[0])
assert isinstance(saved["optim"]["state"]["0.weight"]["exp_avg"], DTensor)
dcp.async_save(saved, checkpoint_id="cut").result()
dcp.save(get(whole, optimizers[1]), checkpoint_id="whole")
dcp.load(saved, checkpoint_id="whole")
set_state_dict(cut, optimizers[0], model_state_dict=saved["model"], optim_state_dict=saved["optim"])
options = StateDictOptions(full_state_dict=True, cpu_offload=True)
full = get_model_state_dict(cut, options=options)
assert list(full) == ([] if rank else list(whole.state_dict()))
assert all(torch.equal(value, whole.state_dict()[name]) for name, value in full.items())
options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
set_model_state_dict(cut, {k: v + 1 for k, v in full.items()}, options=options)
assert torch.allclose(cut.module[2].bias.full_tensor(), whole[2].bias + 1)

fresh = torch.optim.AdamW(cut.parameters(), lr=0.2)
with FSDP.state_dict_type(cut, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True)):
    named = FSDP.optim_state_dict(cut, optimizers[0])
    assert list(cut.state_dict()) == ([] if rank else list(whole.state_dict()))
expected = optimizers[1].state[whole[0].weight]["exp_avg"]
assert torch.equal(named["state"]["0.weight"]["exp_avg"], expected)
fresh.load_state_dict(FSDP.optim_state_dict_to_load(cut, fresh, named))
assert torch.equal(fresh.state[cut.module[0].weight]["exp_avg"].full_tensor(), expected)
assert fresh.param_groups[0]["lr"] == 0.1
with FSDP.summon_full_params(cut):
    assert cut.module[0].weight.shape == (63, 8) and not isinstance(cut.module[0].weight, DTensor)
    with torch.no_grad():
        cut.module[2].bias.fill_(7.0)
assert (cut.module[2].bias.full_tensor() == 7).all()
with FSDP.summon_full_params(cut, writeback=False, rank0_only=True):
    assert isinstance(cut.module[2].bias, DTensor) == bool(rank)
    with torch.no_grad():
        cut.module[2].bias.mul_(0)
assert rank or (cut.module[2].bias.to_local() == 7).all()

cut.load_state_dict(net().state_dict())
with cut.no_sync():
    cut(x[rank::2]).sum().backward()
cut(x[rank::2]).sum().backward()

flat = FSDP(net(), **by_layer)  # loads what another kind has saved, and goes on as it does, compiled or not
cut = FSDP(net(), use_orig_params=True, **by_layer)
models = [(m, torch.optim.AdamW(m.parameters(), lr=0.2)) for m in (flat, cut)]
for model, optimizer in models:
    state = get(model, optimizer)
    dcp.load(state, checkpoint_id="cut")
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
    assert optimizer.param_groups[0]["lr"] == 0.1
assert [tuple(p.shape) for p in flat.parameters()] == [(284,), (256,)]

def step(model, optimizer, data):
    optimizer.zero_grad()
    loss = (model(data) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss.detach()

mine = x[rank::2].clone()
warnings.simplefilter("error")  # that processes have different programs, say
for run in (step, torch.compile(step)):
    for _ in range(3):
        losses = [run(model, optimizer, mine) for model, optimizer in models]
        assert abs(losses[0] - losses[1]) < 1e-6
whole, other = [get_model_state_dict(m, options=StateDictOptions(full_state_dict=True)) for m, _ in models]
assert all(torch.allclose(value, other[name], atol=1e-6) for name, value in whole.items()) and len(whole) == 4
moments = FSDP.optim_state_dict(flat, models[0][1])["state"].values()
assert len({id(entry["step"]) for entry in moments}) == len(moments) == 4

for keeps in (False, True):  # the first process's values, but for what another wrapper has
    torch.manual_seed(rank)
    inner = FSDP(torch.nn.BatchNorm1d(7), use_orig_params=keeps)
    inner.module.running_mean.fill_(rank)
    torch.nn.init.constant_(next(inner.parameters()), rank)
    before = [getattr(p, "_local_tensor", p).clone() for p in inner.parameters()]
    left = torch.nn.Linear(7, 2)
    own = left.weight.clone()
    outer = FSDP(
        torch.nn.Sequential(torch.nn.Linear(3, 7), torch.nn.BatchNorm1d(7), inner, left), use_orig_params=keeps,
        sync_module_states=True, ignored_modules=[left],
    )
    assert all(torch.equal(getattr(p, "_local_tensor", p), b) for p, b in zip(inner.parameters(), before))
    assert torch.equal(left.weight, own) and inner.module.running_mean[0] == rank
    torch.manual_seed(0)
    firsts = [torch.nn.Linear(7, 2), torch.nn.Linear(3, 7)]
    assert torch.equal(outer.state_dict()["0.weight"], firsts[1].weight)

from rushlight.distributed.fsdp import _fully_shard
counted, gather = [], _fully_shard.Unit.whole
_fully_shard.Unit.whole = lambda unit, arrays: counted.append(unit) or gather(unit, arrays)
for frozen in (False, True):  # once forward and once backward, whatever of it backward needs
    cut = FSDP(net().requires_grad_(not frozen))
    out = cut(x[:1].clone().requires_grad_())
    assert len(counted) == 1
    out.sum().backward()
    assert len(counted) == 2 and out.grad_fn is not None
    counted.clear()
print("done")
"""


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_the_older_face_over_two_processes(tmp_path):
    (tmp_path / "wrapped.py").write_text(WRAPPED)
    assert run_world(tmp_path, 2, "wrapped.py") == ["done\n"] * 2
    from rushlight.distributed import checkpoint as dcp

    files = sorted(p.name for p in (tmp_path / "cut").iterdir())
    assert files == [".metadata", "__0_0.distcp", "__1_0.distcp"]
    loaded = [{"model": {"0.weight": rushlight.zeros(63, 8), "2.bias": rushlight.zeros(8)}} for _ in range(2)]
    for state, name in zip(loaded, ("cut", "whole")):
        dcp.load(state, checkpoint_id=tmp_path / name, no_dist=True)
    for a, b in zip(loaded[0]["model"].values(), loaded[1]["model"].values()):
        assert a.abs().sum() > 0 and rushlight.allclose(a, b, atol=1e-6)


AGAIN = """
import copy
import os
import warnings
import rushlight as torch
import rushlight.distributed as dist
from rushlight.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from rushlight.distributed.fsdp import fully_shard
from rushlight.nn.parallel import DistributedDataParallel

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=size)
warnings.simplefilter("error")
torch.manual_seed(rank)
batches = torch.randn(8, 4, 8)

def training(wrap):
    torch.manual_seed(0)
    first, last = torch.nn.Linear(8, 33), torch.nn.Linear(33, 8)
    model = wrap(torch.nn.Sequential(first, torch.nn.Dropout(0.2), torch.nn.Tanh(), last))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()

    return model, optimizer, step

def copied(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    return {k: copied(v) for k, v in value.items()} if isinstance(value, dict) else copy.deepcopy(value)

for wrap in (DistributedDataParallel, fully_shard):
    model, optimizer, step = training(wrap)
    for x in batches[:4]:
        step(x)
    saved, random = copied(get_state_dict(model, optimizer)[0]), torch.get_rng_state()
    moments = copied(get_state_dict(model, optimizer)[1])
    for x in batches[4:]:
        step(x)
    expected = [getattr(p, "_local_tensor", p).detach().clone() for p in model.parameters()]
    model, optimizer, step = training(wrap)
    step(batches[0])  # eagerly: the calls that count have programs, as they had
    set_state_dict(model, optimizer, model_state_dict=saved, optim_state_dict=moments)
    torch.set_rng_state(random)
    for x in batches[4:]:
        step(x)
    assert step.compilations == 1
    found = [getattr(p, "_local_tensor", p).detach() for p in model.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(found, expected)), wrap
print("done")
"""


def test_compiled_trainings_that_start_again_after_a_call(tmp_path):
    """Called once before the checkpoint is loaded, as ``docs/many.md`` says, a step has all bits as before."""
    script = tmp_path / "again.py"
    script.write_text(AGAIN)
    assert run_world(tmp_path, 2, script) == ["done\n"] * 2


BESIDE = """
import os
import torch, torch.distributed as dist
from torch import nn
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.checkpoint.staging import DefaultStager
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

where = {"rank": int(os.environ["RANK"]), "world_size": 2}
dist.init_process_group("gloo", os.environ["MEETING"], **where)
given = dist.new_group(backend="gloo")


def trained(wrap, compiled):
    torch.manual_seed(dist.get_rank() if wrap is fully_shard else 0)
    model = wrap(nn.Sequential(nn.Linear(16, 31), nn.Tanh(), nn.Linear(31, 8)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    step = torch.compile(step) if compiled else step
    return model, optimizer, lambda: [step(torch.randn(8, 16)) for _ in range(3)]


def flat(model, optimizer, like=lambda t: t):
    weights, steps = get_state_dict(model, optimizer)
    found = {"model." + name: t for name, t in weights.items()}
    found |= {f"{n}.{k}": t for n, entry in steps["state"].items() for k, t in entry.items()}
    return {name: like(t) for name, t in found.items()}


def here(t):
    return (t.to_local() if hasattr(t, "to_local") else t).clone()


for wrap in (fully_shard, DDP):
    for compiled in (False, True):
        model, optimizer, train = trained(wrap, compiled)
        train()
        for turn in range(4):
            expected, folder = flat(model, optimizer, here), f"{wrap.__name__}{compiled}{turn}"
            more = {"process_group": given} if turn % 2 else {}
            saved = dcp.async_save(flat(model, optimizer), checkpoint_id=folder, **more)
            train()
            saved.result()
            loaded = flat(model, optimizer, torch.zeros_like)
            dcp.load(loaded, checkpoint_id=folder)
            for name, t in loaded.items():
                assert torch.equal(here(t), expected[name]), (folder, name)
class Odd(Exception):
    def __init__(self, one, other):  # pickle brings it to the other process, where it cannot be made
        super().__init__(f"{one} and {other}")


class Failing(dcp.FileSystemWriter):
    def write_data(self, plan, planner):
        if dist.get_rank() == 1:
            raise Odd("this", "that")
        return super().write_data(plan, planner)


for save in (dcp.save, lambda *state, **more: dcp.async_save(*state, **more).result()):
    try:
        save({"x": torch.ones(2)}, storage_writer=Failing("never"))
    except CheckpointException as error:
        assert list(error.failures) == [1] and "Odd: this and that" in str(error)
    else:
        raise AssertionError("a save of which one part failed")
dist.barrier()  # whoever was last has tidied up
left = [key for key in dist.group.WORLD.get_group_store()._underlying_non_prefix_store._keys() if "board/" in key]
assert not left or dist.get_rank(), left
dist.destroy_process_group()
print("done")
"""


def test_checkpoints_that_are_written_while_training_goes_on(tmp_path):
    """What is saved is what was there at the call, and what processes say of it never meets training's collectives."""
    script = tmp_path / "beside.py"
    script.write_text(BESIDE)
    assert run_world(tmp_path, 2, "-m", "rushlight", "run", script) == ["done\n"] * 2
