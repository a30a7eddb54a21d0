"""Run by test_mesh.py in a process with eight devices: tensors over meshes of them, compared with one device."""

from __future__ import annotations

import tempfile
import warnings

import numpy as np

import rushlight as torch
from rushlight import nn
from rushlight.distributed import checkpoint as dcp
from rushlight.distributed.device_mesh import init_device_mesh
from rushlight.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor


def same(laid, plain, tolerance=0.0):
    assert isinstance(laid, DTensor)
    np.testing.assert_allclose(
        laid.full_tensor().detach().numpy(), plain.detach().numpy(), atol=tolerance, rtol=tolerance
    )


def placements_and_values():
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    for shape in ((8, 8), (13, 4)):
        x = torch.randn(shape)
        for a, b in ((Replicate(), Shard(1)), (Shard(0), Shard(0)), (Shard(1), Shard(0))):
            laid = distribute_tensor(x, mesh, [a, b])
            assert laid.placements == (laid * 2).placements == (a, b)
            same(laid.redistribute(placements=[b, a]), x)
            same(laid * 2, x * 2)
    same(laid.t() @ laid, x.t() @ x, 1e-5)
    empty = distribute_tensor(torch.ones(0, 3), mesh, [Shard(0), Replicate()])
    same(empty + 1, torch.ones(0, 3))
    pieces = [
        s.data.shape
        for s in distribute_tensor(torch.ones(16, 8), mesh, [Shard(0), Shard(1)])._array.physical.addressable_shards
    ]
    assert pieces == [(8, 2)] * 8


def one_process_has_all():
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    assert (mesh.size(), mesh["tp"].size(), mesh.get_coordinate()) == (8, 4, (0, 0))
    x = torch.arange(8.0)
    laid = DTensor.from_local(x, mesh["tp"], [Shard(0)])
    assert laid.placements == (Shard(0),)
    same(laid, x)
    same(laid.to_local(), x)
    same(DTensor.from_local(x, mesh["tp"], [Partial()]), x)
    other = distribute_tensor(x, mesh["dp"], [Shard(0)])
    same(laid + other, x + x)  # all devices are one process's: parts of one mesh go together
    same(laid + x, x + x)  # and what is not spread is known to all
    plain = torch.ones(8, requires_grad=True)
    (laid * plain).sum().backward()
    assert torch.equal(plain.grad, x) and not isinstance(plain.grad, DTensor)
    assert mesh._flatten("all").size() == 8
    assert distribute_tensor(x, mesh["all"], [Shard(0)]).placements == (Shard(0),)


def random_numbers_do_not_depend_on_the_mesh():
    x = torch.ones(6, 10)
    torch.manual_seed(3)
    plain = torch.rand_like(x), nn.functional.dropout(x, 0.5), torch.randn_like(x)
    for shape in ((8,), (2, 4)):
        mesh = init_device_mesh("cpu", shape)
        laid = distribute_tensor(x, mesh, [Shard(0), Shard(1)][: len(shape)])
        torch.manual_seed(3)
        for a, b in zip((torch.rand_like(laid), nn.functional.dropout(laid, 0.5), torch.randn_like(laid)), plain):
            same(a, b)


def a_module_with_uneven_parameters():
    def trained(mesh):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
        if mesh is not None:
            cut = lambda name, m, mesh: [
                m.register_parameter(k, nn.Parameter(distribute_tensor(p.detach(), mesh, [Shard(0)])))
                for k, p in m._parameters.items()
            ]
            distribute_module(model, mesh, cut)
        optimizer, losses = torch.optim.AdamW(model.parameters(), lr=0.01), []
        for _ in range(3):
            x, y = torch.randn(8, 5), torch.randn(8, 3)
            if mesh is not None:
                x, y = distribute_tensor(x, mesh, [Shard(0)]), distribute_tensor(y, mesh, [Shard(0)])
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, model, optimizer

    plain, _, _ = trained(None)
    losses, model, optimizer = trained(init_device_mesh("cpu", (8,)))
    np.testing.assert_allclose(losses, plain, rtol=2e-6)
    for p in model.parameters():
        assert p.placements == optimizer.state[p]["exp_avg"].placements == (Shard(0),)
        assert optimizer.state[p]["step"].mul_(2) == 6  # each parameter's own, and not read-only


def checkpoints_outlive_a_mesh():
    def model(shape, placements):
        mesh = init_device_mesh("cpu", shape) if shape else None
        made = {"even": torch.randn(8, 16), "odd": torch.randn(13, 3), "few": torch.randn(3), "one": torch.randn(())}
        lay = lambda x: distribute_tensor(
            x, mesh, [p if x.ndim > getattr(p, "dim", -1) else Replicate() for p in placements]
        )
        return {name: lay(x) if shape else x for name, x in made.items()} | {"plain": torch.randn(4)}

    meshes = [((8,), [Shard(0)]), ((2, 4), [Shard(0), Shard(1)]), ((2, 4), [Replicate(), Shard(0)]), (None, None)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, saved in enumerate(meshes):
            before = model(*saved)
            dcp.save(before, checkpoint_id=f"{folder}/{i}")
            for other in meshes:
                after = model(*other)
                dcp.load(after, checkpoint_id=f"{folder}/{i}")
                for name, value in after.items():
                    whole = lambda t: t.full_tensor() if isinstance(t, DTensor) else t
                    assert torch.equal(whole(value), whole(before[name])), (name, saved, other)
                    assert not isinstance(value, DTensor) or value.placements == model(*other)[name].placements


def devices_share_no_memory():
    mesh = init_device_mesh("cpu", (8,))
    addresses = lambda t: {s.data.unsafe_buffer_pointer() for s in t._array.physical.addressable_shards}
    for size in (3, 64, 1000):
        whole = distribute_tensor(torch.ones(size, size), mesh, [Replicate()])
        assert len(addresses(whole)) == len(addresses(torch.zeros_like(whole))) == 8
    for _ in range(20):  # an ordinary tensor may be written as soon as an operator has returned
        other = torch.ones(size, size)
        total = whole + other
        other.zero_()
        assert all((np.asarray(s.data) == 2).all() for s in total._array.physical.addressable_shards)


if __name__ == "__main__":
    for check in (devices_share_no_memory, placements_and_values, one_process_has_all,
                  random_numbers_do_not_depend_on_the_mesh, a_module_with_uneven_parameters,
                  checkpoints_outlive_a_mesh):  # fmt: skip
        check()
        print(check.__name__, flush=True)
