"""``nn.utils`` by what must hold of it; tests/parity/test_nn_utils.py compares with PyTorch."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import utils
from rushlight.nn.utils import parametrizations, parametrize, prune


def trained(model):
    model(torch.ones(2, 3)).square().sum().backward()
    return model


def test_clipped_gradients_have_the_norm():
    model = trained(nn.Linear(3, 4))
    before = utils.get_total_norm([p.grad for p in model.parameters()])
    assert utils.clip_grad_norm_(model.parameters(), 0.5) == before
    after = utils.get_total_norm([p.grad for p in model.parameters()])
    assert math.isclose(after.item(), 0.5, rel_tol=1e-4)
    utils.clip_grad_value_(model.parameters(), 0.01)
    assert max(p.grad.abs().max().item() for p in model.parameters()) <= 0.01


def test_clipping_in_a_compiled_step():
    pytest.importorskip("jax")

    def steps(compiled):
        torch.manual_seed(0)
        model = nn.Linear(3, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            norm = utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            return norm

        step = torch.compile(step) if compiled else step
        return [step(torch.ones(2, 3)).item() for _ in range(4)]

    assert steps(True) == pytest.approx(steps(False), rel=1e-5)


def test_a_vector_and_back():
    model = nn.Linear(3, 4)
    vector = utils.parameters_to_vector(model.parameters())
    utils.vector_to_parameters(vector + 1, model.parameters())
    assert torch.equal(utils.parameters_to_vector(model.parameters()), vector.detach() + 1)


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
@pytest.mark.parametrize("way", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_matrices_stay_orthogonal(shape, way):
    layer = parametrizations.orthogonal(nn.Linear(*shape), orthogonal_map=way)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        layer(torch.ones(1, shape[0])).square().sum().backward()
        optimizer.step()
        w = layer.weight.detach()
        gram = w.T @ w if w.shape[0] > w.shape[1] else w @ w.T
        assert torch.allclose(gram, torch.eye(min(shape)), atol=1e-5)


def test_spectral_norm_is_one():
    layer = parametrizations.spectral_norm(nn.Linear(6, 4), n_power_iterations=30)
    assert math.isclose(torch.linalg.matrix_norm(layer.weight, 2).item(), 1, rel_tol=1e-4)


def test_weight_norm_keeps_the_weight():
    layer = nn.Linear(3, 4)
    before = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    assert torch.allclose(layer.weight, before) and [*layer.state_dict()][-1].endswith("original1")
    with torch.no_grad():
        layer.weight = before * 3
    assert torch.allclose(layer.weight, before * 3)


@pytest.mark.parametrize("make", [parametrizations.weight_norm, parametrizations.spectral_norm])
def test_gradients_of_parametrizations(make):
    layer = make(nn.Linear(3, 4).double()).eval()
    names = [n for n, _ in layer.named_parameters()]

    def call(*values):
        return torch.func.functional_call(layer, dict(zip(names, values)), torch.ones(1, 3).double())

    values = [p.detach().requires_grad_() for p in layer.parameters()]
    assert torch.autograd.gradcheck(call, values) and torch.autograd.gradgradcheck(call, values)


def test_cache_holds_within_the_block_only():
    class Double(nn.Module):
        calls = 0

        def forward(self, x):
            Double.calls += 1
            return 2 * x

    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Double())
    Double.calls = 0
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert Double.calls == 1
    assert layer.weight is not layer.weight
    assert Double.calls == 3


def test_pruned_weights_stay_zero_in_training():
    layer = prune.l1_unstructured(nn.Linear(3, 4), "weight", 0.5)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    zeros = layer.weight == 0
    trained(layer)
    optimizer.step()
    layer(torch.ones(1, 3))
    assert zeros.sum() == 6 and (layer.weight[zeros] == 0).all()


def test_functional_call_puts_back_even_after_an_error():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    with pytest.raises(RuntimeError):
        torch.func.functional_call(layer, {"weight": torch.ones(5, 5)}, torch.ones(1, 2))
    assert layer.weight is weight


def test_functional_call_gives_back_new_buffers():
    norm = nn.BatchNorm1d(2)
    state = {name: t.clone() for name, t in norm.named_buffers()}
    torch.func.functional_call(norm, state, torch.rand(4, 2))
    assert state["num_batches_tracked"] == 1 and norm.num_batches_tracked == 0


@pytest.mark.parametrize("order", [2.0, 1.0, float("inf"), 3.0, 0.0])
def test_clipping_recorded_gradients(order):
    pytest.importorskip("jax")
    found = []
    for device in ("cpu", "xla"):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 3)).to(device)
        model(torch.ones(2, 4, device=device)).pow(2).sum().backward()
        kept = model[0].weight.grad
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.3, order)
        assert model[0].weight.grad is kept and kept._version == 1
        found.append([norm.cpu(), *[p.grad.cpu() for p in model.parameters()]])
    for a, b in zip(*found):
        torch.testing.assert_close(a, b)
