"""Run by test_mesh.py in a process with eight devices: compiled functions of tensors over meshes, beside eager ones."""

from __future__ import annotations

import warnings

import numpy as np

import rushlight as torch
from rushlight import nn
from rushlight.distributed.device_mesh import init_device_mesh
from rushlight.distributed.fsdp import fully_shard
from rushlight.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from rushlight.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

MESH = init_device_mesh("cpu", (8,))
GRID = init_device_mesh("cpu", (2, 4), mesh_dim_names=("a", "b"))


def same(found, expected, tolerance=1e-6):
    """Values, and how they lie."""
    assert isinstance(found, DTensor) == isinstance(expected, DTensor)
    if isinstance(found, DTensor):
        assert found.placements == expected.placements
    np.testing.assert_allclose(whole(found), whole(expected), atol=tolerance, rtol=tolerance)


def whole(t):
    return (t.full_tensor() if isinstance(t, DTensor) else t).detach().numpy()


def laid(*shape, mesh=MESH, placements=None):
    return distribute_tensor(torch.randn(*shape), mesh, placements or [Shard(0)])


def compare(function, *calls, tolerance=1e-6):
    """Each call, eagerly and compiled, until it is a program that has run twice."""
    compiled = torch.compile(function, fullgraph=True)
    for args in calls:
        for _ in range(4):
            for found, expected in zip(compiled(*args), function(*args), strict=True):
                same(found, expected, tolerance)
    assert compiled.compilations == len(calls)


def results_lie_as_in_eager_code():
    def function(x, y):
        return x @ y.t(), (x * 2).sum(), x.t(), y.redistribute(placements=[Replicate()])

    x, y = laid(16, 8), laid(24, 8)
    compare(function, (x, y), (x.redistribute(placements=[Shard(1)]), y))


def uneven_tensors():
    def function(x, y):
        return x @ y.t(), x.sum(0), x.t(), torch.tanh(x) * x, x.reshape(-1)

    both, turned = (Shard(0), Shard(1)), (Shard(1), Shard(0))
    calls = [
        (laid(*shape, mesh=GRID, placements=both), laid(6, shape[1], mesh=GRID, placements=turned))
        for shape in ((13, 5), (3, 5), (7, 9))
    ]
    compare(function, *calls, tolerance=1e-5)


def parts_of_a_sum():
    x = DTensor.from_local(torch.randn(4, 4), MESH, [Partial()])
    compare(lambda x: (x * 2, x.redistribute(placements=[Shard(0)])), (x,))


def wholes_and_pieces_inside():
    def function(x):
        joined = DTensor.from_local(x.to_local(), MESH, [Shard(0)])
        return x.full_tensor().sum(), x.to_local() * 2, joined, distribute_tensor(torch.ones(8), MESH, [Shard(0)]) + 1

    compare(function, (laid(16, 8),), tolerance=1e-5)


def a_compiled_forward_and_an_eager_backward():
    compare_forwards(lambda model: parallelize_module(model, MESH, {"0": ColwiseParallel(), "2": RowwiseParallel()}))
    compare_forwards(lambda model: fully_shard(model, mesh=MESH))


def compare_forwards(cut):
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8)) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    for model in models:
        cut(model)
    called = models[0], torch.compile(models[1], fullgraph=True)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    for _ in range(4):
        x = torch.randn(16, 8)
        for model, optimizer in zip(called, optimizers):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        for p, q in zip(*[model.parameters() for model in models]):
            same(q, p)
            same(q.grad, p.grad)


def random_numbers_are_new_in_each_call():
    compiled = torch.compile(lambda x: nn.functional.dropout(x, 0.5), fullgraph=True)
    x = distribute_tensor(torch.ones(64, 64), MESH, [Shard(0)])
    _, _, one, other = [compiled(x) for _ in range(4)]
    assert one.placements == (Shard(0),) and not np.array_equal(whole(one), whole(other))
    assert set(np.unique(whole(one))) == {0.0, 2.0} and abs(whole(one).mean() - 1) < 0.1


def buffers_are_written():
    cut, plain = distribute_module(nn.BatchNorm1d(8), MESH), nn.BatchNorm1d(8)
    compiled = torch.compile(cut, fullgraph=True)
    for count in range(1, 5):
        x = torch.randn(16, 8)
        with torch.no_grad():
            found, expected = compiled(distribute_tensor(x, MESH, [Shard(0)])), plain(x)
        np.testing.assert_allclose(whole(found), whole(expected), atol=1e-5)
        np.testing.assert_allclose(whole(cut.running_mean), whole(plain.running_mean), atol=1e-6)
        assert whole(cut.num_batches_tracked) == count


def arguments_are_written():
    def function(x, y):
        x.add_(y)
        return x * 2

    compiled, x = torch.compile(function, fullgraph=True), laid(16, 8)
    y, expected = laid(16, 8, placements=[Shard(1)]), whole(x)
    for _ in range(4):
        doubled = compiled(x, y)
        expected = expected + whole(y)
    np.testing.assert_allclose(whole(x), expected, atol=1e-6)
    np.testing.assert_allclose(whole(doubled), 2 * expected, atol=1e-6)
    assert x.placements == (Shard(0),)


def branches_depend_on_values():
    def function(x):
        return x * 2 if x.sum() > 0 else x - 1

    compiled = torch.compile(function)
    for value in (1.0, 1.0, -1.0, 1.0, -1.0, -1.0, 1.0):
        x = distribute_tensor(torch.full((16, 8), value), MESH, [Shard(0)])
        same(compiled(x), function(x))
    assert compiled.compilations == 2


def a_schedule_and_a_look_between_steps():
    def made():
        torch.manual_seed(1)
        return nn.Linear(8, 8)

    def training(model):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            return loss

        return step, torch.optim.lr_scheduler.StepLR(optimizer, 2), optimizer

    cut, plain = distribute_module(made(), MESH), made()
    (step, schedule, optimizer), (other, others, _) = training(cut), training(plain)
    compiled = torch.compile(step, fullgraph=True)
    for number in range(8):
        x = torch.randn(16, 8)
        found, expected = compiled(distribute_tensor(x, MESH, [Shard(0)])), other(x)
        np.testing.assert_allclose(whole(found), whole(expected), atol=1e-5)
        schedule.step()
        others.step()
        if number == 4:
            np.testing.assert_allclose(whole(cut.state_dict()["weight"]), whole(plain.weight), atol=1e-4)
            with torch.no_grad():
                cut.weight.mul_(0.5)
                plain.weight.mul_(0.5)
    assert compiled.compilations == 1 and optimizer.state[cut.weight]["step"] == 8


if __name__ == "__main__":
    warnings.simplefilter("error")
    for check in (results_lie_as_in_eager_code, uneven_tensors, parts_of_a_sum, wholes_and_pieces_inside,
                  a_compiled_forward_and_an_eager_backward, random_numbers_are_new_in_each_call, buffers_are_written,
                  arguments_are_written, branches_depend_on_values,
                  a_schedule_and_a_look_between_steps):  # fmt: skip
        check()
        print(check.__name__, flush=True)
