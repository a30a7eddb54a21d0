"""Checkpoints of many processes, beside PyTorch: each reads what the other wrote, whole or in chunks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as theirs
from torch.distributed.checkpoint import state_dict as their_states

import rushlight
from rushlight.distributed import checkpoint as ours
from rushlight.distributed.checkpoint import state_dict as our_states

sys.path.insert(0, str(Path(__file__).parents[1]))
from worlds import run_world

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:Detected an existing")


def state(lib, fill: float = 1.0) -> dict:
    """Values of many kinds, the same in both; with ``fill`` 0.0 the same kinds to load into."""
    whole = lambda shape, dtype: (lib.arange(24).reshape(shape) * fill).to(getattr(lib, dtype))
    return {
        "f32": whole((4, 6), "float32"), "bf16": whole((24,), "bfloat16"), "i64": whole((2, 3, 4), "int64"),
        "turned": whole((4, 6), "float32").t(), "part": whole((24,), "float64")[3:9], "empty": lib.ones(0, 2),
        "scalar": lib.tensor(3 * fill), "bool": whole((24,), "bool"), "list": [int(fill), lib.ones(2) * fill],
        "nested": {"a": {"b": "text" if fill else "", "c": fill}, "pair": (1, 2.5) if fill else None},
    }  # fmt: skip


def same(a, b) -> bool:
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (torch.Tensor, rushlight.Tensor)):
        return str(a.dtype) == str(b.dtype) and a.shape == b.shape and a.tolist() == b.tolist()
    return a == b


@pytest.mark.parametrize("several", [False, True], ids=["one file", "a file each"])
def test_each_reads_the_other(tmp_path, several):
    theirs.save(state(torch), storage_writer=theirs.FileSystemWriter(tmp_path / "t", single_file_per_rank=not several))
    ours.save(state(rushlight), storage_writer=ours.FileSystemWriter(tmp_path / "r", single_file_per_rank=not several))
    here, there = state(rushlight, 0.0), state(torch, 0.0)
    ours.load(here, checkpoint_id=tmp_path / "t")
    theirs.load(there, checkpoint_id=tmp_path / "r")
    assert same(here, state(rushlight)) and same(there, state(torch))
    mine, other = (lib.FileSystemReader(tmp_path / n).read_metadata() for lib, n in ((ours, "r"), (theirs, "t")))
    assert mine.planner_data == other.planner_data and mine.version == other.version
    shown = lambda found: {name: str(entry) for name, entry in found.state_dict_metadata.items()}
    assert shown(mine) == shown(other)


@pytest.mark.parametrize("flat", [False, True])
def test_states_have_the_same_names_and_values(tmp_path, flat):
    found = []
    for lib, states in ((torch, their_states), (rushlight, our_states)):
        lib.manual_seed(0)
        model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3))
        model[0].bias.requires_grad_(False)
        optimizer = lib.optim.AdamW([{"params": [model[0].weight], "lr": 0.1}, {"params": model[1].parameters()}])
        options = states.StateDictOptions(flatten_optimizer_state_dict=flat, ignore_frozen_params=True)
        found.append([dict(part) for part in states.get_state_dict(model, optimizer, options=options)])
    assert same(*found)


CHUNKS = """
import os
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.tensor import init_device_mesh, distribute_tensor, Shard, Replicate
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
rows = torch.arange(35.0).reshape(7, 5)
lay = {"r": Shard(0), "c": Shard(1), "w": Replicate()}
laid = {n: distribute_tensor(rows.clone(), mesh, [p]) for n, p in lay.items()}
dcp.save({**laid, "plain": rows + 1, "n": 3}, checkpoint_id="theirs")
dcp.load({n: t for n, t in laid.items()}, checkpoint_id="ours")
assert all(torch.equal(t.full_tensor(), rows * 2) for t in laid.values())
print("done", flush=True)
dist.barrier()
os._exit(0)  # PyTorch's threads may abort a process that ends while they wait
"""


def test_chunks_of_many_processes(tmp_path):
    """PyTorch with two processes reads what eight devices wrote, and what the two write is read here whole."""
    (tmp_path / "chunks.py").write_text(CHUNKS)
    (tmp_path / "eight.py").write_text(EIGHT)
    eight = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "NPROC": "32"}
    assert run_world(tmp_path, 1, "eight.py", **eight) == ["done\n"]
    assert run_world(tmp_path, 2, "chunks.py") == ["done\n"] * 2
    rows, loaded = rushlight.arange(35.0).reshape(7, 5), {n: rushlight.zeros(7, 5) for n in ("r", "c", "w", "plain")}
    ours.load(loaded, checkpoint_id=tmp_path / "theirs")
    assert rushlight.equal(loaded.pop("plain"), rows + 1)
    assert all(rushlight.equal(value, rows) for value in loaded.values())


EIGHT = """
import os
del os.environ["RANK"]  # it is alone
import rushlight as torch, rushlight.distributed.checkpoint as dcp
from rushlight.distributed.tensor import init_device_mesh, distribute_tensor, Shard, Replicate
mesh = init_device_mesh("cpu", (4, 2))
rows = torch.arange(35.0).reshape(7, 5) * 2
lay = {"r": [Shard(0), Shard(1)], "c": [Replicate(), Shard(0)], "w": [Replicate(), Replicate()]}
dcp.save({n: distribute_tensor(rows, mesh, p) for n, p in lay.items()}, checkpoint_id="ours")
print("done")
"""
