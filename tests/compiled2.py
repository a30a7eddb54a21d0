"""Run by test_mesh.py in two processes: compiled functions of tensors that no process has all of, beside eager ones.

With GPT=1 in the environment what is cut in every way is the model of gpt8.py; that takes a minute.
"""

from __future__ import annotations

import datetime
import os
import signal
import sys
import tempfile
import warnings
from pathlib import Path

import gpt8
import numpy as np

import rushlight as torch
import rushlight.distributed as dist
from rushlight import nn
from rushlight.distributed.device_mesh import init_device_mesh
from rushlight.distributed.fsdp import fully_shard
from rushlight.distributed.tensor import Partial, Replicate, Shard, distribute_module, distribute_tensor
from rushlight.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

RANK = int(os.environ["RANK"])
LATE = datetime.timedelta(seconds=60)


def parts():
    """As many as there are devices: a process has one or several."""
    import jax

    return jax.device_count()


def data_parallel(model):
    mesh = init_device_mesh("cpu", (parts(),))
    distribute_module(model, mesh)
    return lambda t: distribute_tensor(t, mesh, [Shard(0)])


def sharded(model):
    """FSDP by placements: parameters, gradients and moments lie in pieces, and so does the batch."""
    mesh = init_device_mesh("cpu", (parts(),))

    def lay(name, module, mesh):
        for key, p in module._parameters.items():
            module._parameters[key] = nn.Parameter(distribute_tensor(p.detach(), mesh, [Shard(0)]))

    distribute_module(model, mesh, lay)
    return lambda t: distribute_tensor(t, mesh, [Shard(0)])


def tensor_parallel(model):
    """Between the layers are DTensors, not each process's own part of them."""
    mesh, shared = init_device_mesh("cpu", (parts(),)), {"use_local_output": False}
    names = [name for name in gpt8.PLAN if hasattr(model.block, name)]
    plan = {name: (RowwiseParallel if name in ("o", "down") else ColwiseParallel)(**shared) for name in names}
    parallelize_module(model.block, mesh, plan)
    distribute_module(model, mesh)
    return lambda t: distribute_tensor(t, mesh, [Replicate()])


COLLECTIVES = {data_parallel: "all-reduce", sharded: "all-gather", tensor_parallel: "all-reduce"}


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(gpt8.WORDS, 32)
        self.block = nn.Sequential()
        for name, part in (("up", nn.Linear(32, 64)), ("between", nn.Tanh()), ("down", nn.Linear(64, gpt8.WORDS))):
            self.block.add_module(name, part)

    def forward(self, text):
        return self.block(self.words(text))


def trained(cut, compiled=False):
    if "GPT" not in os.environ:
        gpt8.GPT = Small
    return gpt8.trained(cut, compiled)


def a_model_is_one_program(cut, plain, folder: Path):
    """The first step is eager; what three steps leave is what they leave on one device."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses, *made = trained(cut, compiled=True)
    program = gpt8.collectives(folder)["jit__final"]
    assert program[COLLECTIVES[cut]] > 0, program
    np.testing.assert_allclose(losses, plain[0], atol=2e-6, rtol=0)
    for a, b in zip(gpt8.state_of(*made), gpt8.state_of(*plain[1:]), strict=True):
        a = a.full_tensor() if isinstance(a, gpt8.DTensor) else a
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=2e-6)


def training(compiled: bool):
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (parts(),))
    model = distribute_module(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8)), mesh)
    model.doubled = False
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(x, again=False):
        optimizer.zero_grad()
        y = model(x)
        if model.doubled:  # the same numbers by another program
            y = (y + y) / 2
        loss = (y * 1.0 if again else y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return mesh, model, torch.compile(step) if compiled else step


def a_process_whose_guards_fail():
    """All call the function as it is until all have one program again; numbers are right throughout."""
    (mesh, model, step), (_, expected, plain) = training(True), training(False)
    made = []
    for number in range(14):
        model.doubled = RANK == 1 and 4 <= number < 7
        options = {"again": True} if RANK == 0 and number == 8 else {}
        if RANK == 1 and number == 10:
            model[0].weight.grad = None  # another world of gradients, here only
        x = distribute_tensor(torch.randn(8, 8), mesh, [Shard(0)])
        loss = step(x, **options)
        made.append(step._together.launched - sum(made))
        np.testing.assert_allclose(loss.full_tensor().item(), plain(x).full_tensor().item(), atol=1e-6)
    for p, q in zip(model.parameters(), expected.parameters()):
        np.testing.assert_allclose(p.full_tensor().detach().numpy(), q.full_tensor().detach().numpy(), atol=2e-6)
    assert made == [0, 1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1], made


def a_rank_in_the_arithmetic():
    """Then processes never have the same program: the function is called as it is, and they are told."""
    x = distribute_tensor(torch.ones(4), init_device_mesh("cpu", (parts(),)), [Shard(0)])
    compiled = torch.compile(lambda x: x.to_local() + RANK)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(6):
            assert compiled(x).tolist() == [1 + RANK] * len(x.to_local())
    assert [w for w in found if "different programs" in str(w.message)], [str(w.message) for w in found]


def own_model():
    torch.manual_seed(0)
    layers = ("norm", nn.BatchNorm1d(8)), ("up", nn.Linear(8, 16)), ("between", nn.Tanh()), ("down", nn.Linear(16, 8))
    model = nn.Sequential()
    for name, layer in layers:
        model.add_module(name, layer)
    return model


def fully_sharded(model):
    mesh = init_device_mesh("cpu", (parts(),))
    fully_shard(model.up, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return RANK  # each process has a batch of its own


def with_local_outputs(model):
    parallelize_module(model, init_device_mesh("cpu", (parts(),)), {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return 0


def trained_apart(cut, compiled: str):
    """Losses, and what steps leave; ``compiled``: nothing, the whole "step", or the "model" alone."""
    model = own_model()
    data = torch.Generator().manual_seed(cut(model))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)
    forward = torch.compile(model) if compiled == "model" else model

    def step(x):
        optimizer.zero_grad()
        y = forward(x)
        loss = nn.functional.cross_entropy(y, y.detach().argmax(1)) + y.square().mean()
        loss.backward()
        optimizer.step()
        return loss

    run = torch.compile(step) if compiled == "step" else step
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = [run(torch.randn(4, 8, generator=data)).item() for _ in range(5)]
    if compiled:
        made = run if compiled == "step" else forward._compiled
        assert (made.compilations, made._together.launched) == (1, 4), (made.compilations, made._together.launched)
    return losses, [*gpt8.state_of(model, optimizer), *model.buffers()]


def what_each_process_has_for_itself():
    """Local outputs, ordinary buffers, a batch of each process's own: one program, and the numbers of eager code."""
    for cut in (fully_sharded, with_local_outputs):
        expected = trained_apart(cut, "")
        for compiled in ("step", "model"):
            losses, state = trained_apart(cut, compiled)
            np.testing.assert_allclose(losses, expected[0], atol=2e-6, rtol=0)
            for a, b in zip(state, expected[1], strict=True):
                assert isinstance(a, gpt8.DTensor) == isinstance(b, gpt8.DTensor)
                a, b = (t.full_tensor() if isinstance(t, gpt8.DTensor) else t for t in (a, b))
                np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=2e-6)


def parts_and_wholes():
    """To local parts and back in every way, and a branch that one process takes alone: then all call it as it is."""
    mesh = init_device_mesh("cpu", (parts(),))
    total = torch.zeros(())
    weight = distribute_tensor(torch.arange(32.0).reshape(8, 4), mesh, [Shard(0)])

    def function(x):
        total.add_(x.sum())
        rows = gpt8.DTensor.from_local(x, mesh, [Shard(0)])
        summed = gpt8.DTensor.from_local(x, mesh, [Partial()]).redistribute(mesh, [Replicate()])
        product = (rows @ weight).redistribute(mesh, [Shard(1)])
        mine = product.to_local() * (total + 1)
        if mine.sum() < 0:
            mine = mine * 2
        return mine, summed.to_local() + mine.mean(), product.full_tensor() * x.mean(), rows.sum() * total.clamp(7, 7)

    compiled = torch.compile(function)
    for number in range(7):
        x = (torch.arange(8.0 * parts()).reshape(parts(), 8) + RANK) * (-1 if RANK == 1 and number == 4 else 1)
        before = total.clone()
        expected = function(x)
        after = total.clone()
        total.copy_(before)
        for a, b in zip(compiled(x), expected, strict=True):
            assert isinstance(a, gpt8.DTensor) == isinstance(b, gpt8.DTensor)
            a, b = (t.full_tensor() if isinstance(t, gpt8.DTensor) else t for t in (a, b))
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
        np.testing.assert_allclose(total.item(), after.item())
    assert compiled._together.launched >= 5, compiled._together.launched


def a_killed_process():
    mesh, _, step = training(True)
    x = distribute_tensor(torch.randn(8, 8), mesh, [Shard(0)])
    for number in range(1000):
        if RANK == 1 and number == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            step(x)
        except RuntimeError as error:
            print(type(error).__name__, "Connection closed by peer" in str(error), number, flush=True)
            sys.exit(3)


def main(folder: Path) -> None:
    dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=2, timeout=LATE)
    plain = trained(gpt8.one)
    for cut in COLLECTIVES:
        a_model_is_one_program(cut, plain, folder)
        print(cut.__name__, flush=True)
    for check in (
        a_process_whose_guards_fail, a_rank_in_the_arithmetic, what_each_process_has_for_itself, parts_and_wholes,
        a_killed_process,
    ):  # fmt: skip
        print(check.__name__, flush=True)
        check()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"
        flags = f"--xla_dump_to={name} --xla_dump_hlo_as_text --xla_dump_hlo_module_re=.*final"  # each has its own
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"
        main(Path(name))
