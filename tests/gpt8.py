"""Run by test_mesh.py with eight devices, of one process or two: a small GPT, cut in every way, beside one device."""

from __future__ import annotations

import collections
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import rushlight as torch
from rushlight import nn
from rushlight.distributed.device_mesh import init_device_mesh
from rushlight.distributed.fsdp import fully_shard
from rushlight.distributed.tensor import DTensor, Shard, distribute_module, distribute_tensor
from rushlight.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from rushlight.nn import functional as F

WORDS, WIDTH, HEADS, LENGTH = 64, 32, 8, 8
PLAN = {"q": ColwiseParallel(), "k": ColwiseParallel(), "v": ColwiseParallel(), "o": RowwiseParallel(),
        "up": ColwiseParallel(), "down": RowwiseParallel()}  # fmt: skip


class Block(nn.Module):
    """Biases are in two layers alone, one cut by columns, one by rows: each is a program more for every step."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.before(x)
        q, k, v = [f(y).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for f in (self.q, self.k, self.v)]
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.after(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.block, self.norm, self.head = Block(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, text):
        return self.head(self.norm(self.block(self.words(text) + self.places.weight)))


def one(model):
    return lambda t: t


def data_parallel(model):
    mesh = init_device_mesh("cpu", (8,))
    distribute_module(model, mesh)
    return lambda t: distribute_tensor(t, mesh, [Shard(0)])


def fsdp(model):
    mesh = init_device_mesh("cpu", (8,))
    fully_shard(model.block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return lambda t: t


def hybrid(model):
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replica", "shard"))
    fully_shard(model, mesh=mesh)
    return lambda t: t


def tensor_parallel(model):
    mesh = init_device_mesh("cpu", (8,))
    parallelize_module(model.block, mesh, PLAN)
    return lambda t: t


def fsdp_and_tensor_parallel(model):
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    parallelize_module(model.block, mesh["tp"], PLAN)
    fully_shard(model, mesh=mesh["dp"])
    return lambda t: t


def trained(cut, compiled=False):
    torch.manual_seed(0)
    model = GPT()
    enter = cut(model)
    # Where a gradient is nothing but rounding Adam would make steps of it, without a large eps.
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3), []

    def step(text, target):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(text).flatten(0, 1), target.flatten())
        loss.backward()
        optimizer.step()
        return loss

    run = torch.compile(step, fullgraph=True) if compiled else step
    for _ in range(3):
        text = torch.randint(0, WORDS, (8, LENGTH + 1))
        losses.append(run(enter(text[:, :-1].contiguous()), enter(text[:, 1:].contiguous())).item())
    assert not compiled or run.compilations == 1
    assert not (compiled and run._together) or run._together.launched == 2  # all but the first call
    return losses, model, optimizer


COLLECTIVES = re.compile(r" (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)\(")


def collectives(folder: Path) -> dict[str, collections.Counter]:
    """{name of a program: the collectives in it}, of what XLA has compiled since this was last asked."""
    found = collections.defaultdict(collections.Counter)
    for text in folder.glob("*after_optimizations.txt"):
        found[text.name.split(".")[1]].update(COLLECTIVES.findall(text.read_text()))
        text.unlink()
    return {name: kinds for name, kinds in found.items() if kinds}


def share(model, optimizer) -> float:
    """The part of parameters and optimizer state that the first device has."""
    kept = [*model.parameters(), *[v for s in optimizer.state.values() for k, v in s.items() if k != "step"]]
    held = sum(t._array.physical.addressable_shards[0].data.nbytes for t in kept)
    return held / sum(t.nbytes for t in kept)


def state_of(model, optimizer) -> list:
    """All that a step leaves: parameters, gradients, moments, counts."""
    parameters = list(model.parameters())
    state = [value for p in parameters for value in optimizer.state[p].values()]
    return [*parameters, *[p.grad for p in parameters], *state]


def compare_compiled(cut, eager, folder: Path) -> None:
    """A compiled step is one program, and leaves what the step leaves, laid in the same way."""
    losses, *made = trained(cut, compiled=True)
    found = collectives(folder)
    np.testing.assert_allclose(losses, eager[0], atol=2e-6, rtol=0)
    for a, b in zip(state_of(*made), state_of(*eager[1:])):
        assert isinstance(a, DTensor) == isinstance(b, DTensor)
        if isinstance(b, DTensor):
            assert a.placements == b.placements
            a, b = a.full_tensor(), b.full_tensor()
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=2e-6)
    assert {*found} - {"jit__all_gather"} == {"jit__final"}, found  # processes agree on it first
    expected = COMPILED[cut] | (APART.get(cut, {}) if "RANK" in os.environ else {})
    for kind, count in expected.items():
        assert found["jit__final"][kind] == count, (cut.__name__, found)
    collectives(folder)  # of this comparison


# (name of the cut, the collectives that its programs may have, {program: one that it must have})
EXPECTED = (
    (data_parallel, {"all-reduce"}, {"jit_EmbeddingBackward0": "all-reduce"}),
    (fsdp, {"all-gather", "all-reduce", "reduce-scatter"}, {"jit_move": "all-gather"}),
    (hybrid, {"all-gather", "all-reduce", "reduce-scatter"}, {"jit_move": "all-gather"}),
    (tensor_parallel, {"all-reduce"}, {"jit_linear": "all-reduce", "jit_ViewBackward0": "all-reduce"}),
    (
        fsdp_and_tensor_parallel, {"all-gather", "all-reduce", "reduce-scatter", "collective-permute"},
        {"jit_linear": "all-reduce", "jit_move": "all-gather"},
    ),
)  # fmt: skip
# Of one step: a data-parallel model's loss and all its gradients; each of the parameters; four in a layer.
COMPILED = {
    data_parallel: {"all-reduce": 2, "all-gather": 0}, fsdp: {"all-gather": 17}, hybrid: {"all-gather": 17},
    tensor_parallel: {"all-reduce": 4, "all-gather": 0}, fsdp_and_tensor_parallel: {"all-gather": 17},
}  # fmt: skip
# Over processes: attention's mask, which each computes in parts on its own devices.
APART = {tensor_parallel: {"all-gather": 1}, fsdp_and_tensor_parallel: {"all-gather": 18}}
SHARES = {fsdp: 8, hybrid: 4}  # of all state, on each device


def a_loop_is_not_compiled() -> None:
    """Of what each process has for itself, where it has several devices: it is called as it is, with a warning."""
    torch.manual_seed(0)
    model, x = nn.LSTM(4, 8), torch.randn(3, 2, 4)
    expected = model(x)[0].detach()
    fully_shard(model, mesh=init_device_mesh("cpu", (8,)))
    compiled = torch.compile(lambda x: model(x)[0])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(2):
            np.testing.assert_allclose(compiled(x).tolist(), expected.tolist(), atol=2e-6)
    assert [w for w in found if "called as it is" in str(w.message)]


def main(folder: Path) -> None:
    plain = trained(one)[0]
    for cut, allowed, needed in EXPECTED:
        if sys.argv[1:] and cut.__name__ not in sys.argv[1:]:
            continue
        losses, model, optimizer = eager = trained(cut)
        np.testing.assert_allclose(losses, plain, atol=2e-6, rtol=0)
        found = collectives(folder)
        assert set().union(*found.values()) <= allowed, (cut.__name__, found)
        assert all(kind in found[program] for program, kind in needed.items()), (cut.__name__, found)
        if cut in SHARES:
            assert abs(share(model, optimizer) * SHARES[cut] - 1) < 0.02
        compare_compiled(cut, eager, folder)
        print(cut.__name__, flush=True)
    if "RANK" in os.environ:
        a_loop_is_not_compiled()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"  # or there is nothing to read
        os.environ["XLA_FLAGS"] += f" --xla_dump_to={name} --xla_dump_hlo_as_text"  # each process has its own
        # Nearly all of the time is LLVM's; what is looked at is done before it.
        os.environ["XLA_FLAGS"] += " --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
        main(Path(name))
