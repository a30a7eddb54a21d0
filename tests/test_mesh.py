"""Meshes of devices that one process has, in processes of their own: devices8.py, gpt8.py; and FSDP over processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    assert len(run("devices8.py")) == 4


def test_a_model_cut_in_every_way_learns_the_same():
    assert len(run("gpt8.py")) == 5


WRAPPED = """
import os
import rushlight as torch
import rushlight.distributed as dist
from rushlight.distributed.fsdp import FullyShardedDataParallel as FSDP, StateDictType
from rushlight.distributed.fsdp.wrap import ModuleWrapPolicy

rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=2)

def net():
    return torch.nn.Sequential(torch.nn.Linear(8, 63), torch.nn.ReLU(), torch.nn.Linear(63, 8))

torch.manual_seed(rank)
cut = FSDP(net(), auto_wrap_policy=ModuleWrapPolicy({torch.nn.Linear}), sync_module_states=True)
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
cut.load_state_dict(net().state_dict())
with cut.no_sync():
    cut(x[rank::2]).sum().backward()
cut(x[rank::2]).sum().backward()
print("done")
"""


def test_the_older_face_over_two_processes(tmp_path):
    (tmp_path / "wrapped.py").write_text(WRAPPED)
    assert run_world(tmp_path, 2, "wrapped.py") == ["done\n"] * 2
