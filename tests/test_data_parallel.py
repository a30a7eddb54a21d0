"""``nn.DataParallel`` and its parts, over simulated devices in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rushlight

sys.path.insert(0, str(Path(__file__).parent))

from worlds import environment

BODY = """
import rushlight as torch
from rushlight import nn
from rushlight.nn.parallel import gather, parallel_apply, replicate, scatter

places = ["xla:0", "xla:1", "xla:2"]
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5, track_running_stats=False), nn.Tanh(), nn.Linear(5, 2))
model = model.double().to("xla:0")
x = torch.randn(8, 4, dtype=torch.float64, device="xla:0")

wide = nn.DataParallel(model, places)
assert list(wide.state_dict()) == ["module." + n for n in model.state_dict()]
out = wide(x)
assert out.device == torch.device("xla:0"), out.device
parts = [model(p) for p in x.chunk(3)]
torch.testing.assert_close(out, torch.cat(parts))
everywhere = nn.DataParallel(model)
assert [str(d) for d in everywhere.device_ids] == places and torch.equal(everywhere(x), out)
(out * out).sum().backward()
found = [p.grad.clone() for p in model.parameters()]
model.zero_grad()
(torch.cat(parts) ** 2).sum().backward()
for a, p in zip(found, model.parameters()):
    torch.testing.assert_close(a, p.grad)
    assert a.device == p.device

seen = []
class Shows(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, device="xla:0"))
        self.register_buffer("count", torch.zeros(1, device="xla:0"))
    def forward(self, x, *, scale):
        self.count += 1
        seen.append((str(x.device), str(self.weight.device), tuple(x.shape), scale))
        return {"y": x * self.weight * scale, "same": (x.sum().reshape(1),)}

shows = Shows()
out = nn.DataParallel(shows, places, output_device="xla:1")(torch.arange(5.0, device="xla:0"), scale=2)
assert seen == [("xla:0", "xla:0", (2,), 2), ("xla:1", "xla:1", (2,), 2), ("xla:2", "xla:2", (1,), 2)], seen
assert out["y"].tolist() == [0.0, 2.0, 4.0, 6.0, 8.0] and str(out["y"].device) == "xla:1"
assert out["same"][0].tolist() == [1.0, 5.0, 4.0] and shows.count.item() == 1
from rushlight.nn.parallel import comm

t = torch.arange(5.0)
assert [str(b.device) for b in comm.broadcast(t, places)] == places
assert [[str(b.device) for b in row] for row in comm.broadcast_coalesced([t, t], places[:2])] == [
    ["xla:0"] * 2, ["xla:1"] * 2,
]
parts = comm.scatter(t, places[:2], [2, 3])
assert [p.tolist() for p in parts] == [[0, 1], [2, 3, 4]] and str(parts[1].device) == "xla:1"
whole = comm.gather(parts, destination="xla:2")
assert whole.tolist() == t.tolist() and str(whole.device) == "xla:2"
total = comm.reduce_add(comm.broadcast(t, places), "xla:1")
assert total.tolist() == (3 * t).tolist() and str(total.device) == "xla:1"
assert [s.tolist() for s in comm.reduce_add_coalesced([[t, t + 1], [t, t]])] == [(2 * t).tolist(), (2 * t + 1).tolist()]
try:
    comm.reduce_add([t, t[1:]])
except ValueError as error:
    assert str(error) == "input 1 has invalid size: got 4, but expected 5"
else:
    raise AssertionError("sizes that differ")

few = nn.DataParallel(nn.Linear(2, 4).to("xla:0"), places)(torch.ones(2, 2, device="xla:0"))
assert few.shape == (2, 4)

copies = replicate(nn.Linear(2, 2).to("xla:0"), places)
assert [str(c.weight.device) for c in copies] == places and not list(copies[1].parameters())
cut = scatter(torch.arange(6.0).reshape(3, 2), places)
assert [str(c.device) for c in cut] == places
assert gather(parallel_apply(copies, cut), "xla:0").shape == (3, 2)
try:
    nn.DataParallel(nn.Linear(2, 2), places)(torch.ones(2, 2))
except RuntimeError as error:
    print(error)
"""


def test_over_three_devices(tmp_path):
    pytest.importorskip("jax")
    (tmp_path / "script.py").write_text(BODY)
    env = environment(XLA_FLAGS="--xla_force_host_platform_device_count=3", NPROC="32")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "module must have its parameters and buffers on device xla:0 (device_ids[0]) but found one of them on "
        "device: cpu\n"
    )


def test_without_devices():
    """On the CPU alone it calls the module, and keeps PyTorch's names."""
    module = rushlight.nn.Linear(3, 2)
    wrapped = rushlight.nn.DataParallel(module)
    x = rushlight.randn(4, 3)
    assert wrapped.device_ids == [] and rushlight.equal(wrapped(x), module(x))
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    assert rushlight.equal(rushlight.nn.parallel.data_parallel(module, x), module(x))


@pytest.mark.parametrize("rank, exact", [(6, True), (1, False)])
def test_batched_power_sgd(rank, exact):
    """A bucket as a square matrix: of full rank it is the gradient, of rank one it is that after many steps.

    PyTorch 2.13's own hook fails with an AssertionError, so there is nothing to compare with.
    """
    from rushlight import distributed as dist
    from rushlight.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        rushlight.manual_seed(0)
        model = rushlight.nn.Linear(6, 5)  # 35 numbers: a matrix of 6 by 6
        x = rushlight.randn(4, 6)
        model(x).square().sum().backward()
        expected = model.weight.grad.clone()
        ddp = rushlight.nn.parallel.DistributedDataParallel(model)
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=2)
        ddp.register_comm_hook(state, powerSGD_hook.batched_powerSGD_hook)
        found = []
        for _ in range(200):
            ddp.zero_grad()
            ddp(x).square().sum().backward()
            found.append(model.weight.grad.clone())
        assert rushlight.allclose(found[2], expected, atol=1e-4) is exact
        mean = rushlight.stack(found[2:]).mean(0)
        assert (mean - expected).norm() < 0.05 * expected.norm()
        assert state.compression_stats()[1:] == (35 * 198, 12 * rank * 198)
    finally:
        dist.destroy_process_group()
