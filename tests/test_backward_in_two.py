"""A backward pass that computes the gradients of inputs first, and those of parameters when it is asked to."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd.in_two import inputs_first

torch.manual_seed(0)
SHARED = nn.Linear(4, 4)


class Branches(nn.Module):
    """Parameters in many places: shared, transposed, beside the input, in an output that does not need the input."""

    def __init__(self):
        super().__init__()
        self.weight, self.scale = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(4))

    def forward(self, x):
        shared = SHARED(torch.tanh(SHARED(x)))
        return shared @ (self.weight * self.scale.exp()).T + self.scale, self.scale.square().sum()


MODELS = {
    "perceptron": (nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.GELU(), nn.Linear(7, 3)), (2, 5)),
    "transformer": (nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (2, 3, 8)),
    "convolution": (nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten()), (3, 2, 4, 4)),
    "recurrent": (nn.LSTM(4, 4, batch_first=True), (2, 3, 4)),
    "branches": (Branches(), (3, 4)),
}


def outputs_of(model, x):
    y = model(x)
    found = list(torch.utils._pytree.tree_leaves(y))
    return found, [torch.full_like(t, 0.5) for t in found]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("hook", [None, "parameter", "activation"])
def test_both_parts_are_the_whole(name, hook):
    model, shape = MODELS[name]
    parameters = list(dict.fromkeys([*model.parameters(), *SHARED.parameters()]))
    x = torch.randn(*shape, requires_grad=True)
    seen = []
    handles = []
    if hook == "parameter":
        handles = [p.register_hook(seen.append) for p in parameters]
    elif hook == "activation":
        handles = [m.register_full_backward_hook(lambda *_: seen.append(_)) for m in model.children()]

    def run(compute):
        x.grad, seen[:] = None, []
        for p in parameters:
            p.grad = None
        outputs, gradients = outputs_of(model, x)
        found = compute(outputs, gradients)
        return found, [p.grad for p in parameters], len(seen)

    def whole(outputs, gradients):
        torch.autograd.backward(outputs, gradients)
        return x.grad

    def halves(outputs, gradients):
        (found,), rest = inputs_first(outputs, gradients, [x])
        assert x.grad is None
        if hook is None:
            assert all(p.grad is None for p in parameters)
        rest()
        assert x.grad is None
        return found

    expected, found = run(whole), run(halves)
    for handle in handles:
        handle.remove()
    assert expected[2] == found[2]
    torch.testing.assert_close(found[0], expected[0])
    assert [g is None for g in found[1]] == [g is None for g in expected[1]]
    for a, b in zip(found[1], expected[1]):
        if b is not None:
            torch.testing.assert_close(a, b)


def test_nothing_is_computed_twice():
    """Of a function of two, each half computes one gradient."""
    calls = []
    w, x = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    y = torch.atan2(w, x)
    plan = y.grad_fn.plan
    rules = plan.rules
    plan.rules = [(i, lambda *a, i=i, f=f: (calls.append(i), f(*a))[1], places) for i, f, places in rules]
    try:
        _, rest = inputs_first([y], [torch.ones(2, 2)], [x])
        before = list(calls)
        rest()
    finally:
        plan.rules = rules
    assert (before, calls) == ([1], [1, 0])
