"""The benchmark's models, a hundred training steps: compiled and eager are the same numbers.

In float64 rounding cannot hide a difference of formulas: losses agree to nine digits, and so do the weights after the
last step. In float32 training itself amplifies rounding; how much is measured, by an eager run whose first weights are
off by one unit in the last place, and compiled losses may be off by a few times that. ``RUSHLIGHT_PARITY=all`` runs
the models at the size that ``bench/`` measures, without it smaller ones of the same build.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
import models

FULL = os.environ.get("RUSHLIGHT_PARITY") == "all"
SMALL: dict[str, dict] = {
    "tiny_mlp": {},
    "mlp": {},
    "cnn": {"batch": 2},
    "encoder": {"batch": 2, "length": 12, "width": 32},
}
OPTIMIZERS = {
    "tiny_mlp": lambda p: torch.optim.SGD(p, lr=0.1),
    "mlp": lambda p: torch.optim.Adam(p, lr=1e-3),
    "cnn": lambda p: torch.optim.Adam(p, lr=1e-3),
    "encoder": lambda p: torch.optim.AdamW(p, lr=1e-3),
}
STEPS = 100


def drop_nothing(model):
    """Compiled code has a random stream of its own."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        elif isinstance(module, torch.nn.MultiheadAttention):
            module.dropout = 0.0
    return model


def train(name, dtype, compiled, disturbed=False):
    """(the losses of all steps, the weights after the last)."""
    torch.manual_seed(0)
    model, criterion, (x, y) = getattr(models, name)(torch, **({} if FULL else SMALL[name]))
    model, x = drop_nothing(model).to(dtype), x.to(dtype)
    y = y.to(dtype) if y.is_floating_point() else y
    if disturbed:
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.nextafter(p, torch.full_like(p, float("inf"))))
    optimizer = OPTIMIZERS[name](model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = torch.compile(step) if compiled else step
    losses = np.array([run(x, y).item() for _ in range(STEPS)])
    assert not compiled or run.compilations == 1
    return losses, [p.detach().numpy() for p in model.parameters()]


@pytest.mark.parametrize("name", SMALL)
def test_a_hundred_steps_in_double_precision(name):
    losses, weights = train(name, torch.float64, compiled=False)
    got, got_weights = train(name, torch.float64, compiled=True)
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(got, losses, rtol=1e-9, atol=1e-12)
    for a, b in zip(got_weights, weights):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", SMALL)
def test_a_hundred_steps_in_single_precision(name):
    # Losses only: where gradients are nearly zero Adam makes steps of the rounding errors themselves.
    losses, other, got = (
        train(name, torch.float32, compiled, disturbed)[0]
        for compiled, disturbed in ((False, False), (False, True), (True, False))
    )
    assert np.abs(got - losses).max() <= 4 * np.abs(other - losses).max() + 1e-6 * losses.max()
