"""What eager code refuses, compiled code refuses: same exception, same words, and the state is as it was."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

pytestmark = pytest.mark.usefixtures("either_way")

x = torch.arange(12.0).reshape(3, 4) / 7 - 0.6
good, high, low = torch.tensor([0, 1, 2]), torch.tensor([0, 1, 9]), torch.tensor([0, -1, 2])
column = lambda i: i.reshape(3, 1)
divisor, zero = torch.tensor([1, 2]), torch.tensor([1, 0])
half, outside = torch.tensor([0.5, 0.5]), torch.tensor([0.5, -2.0])

# (function, an argument that is fine, one that is refused)
REFUSED = {
    "cross_entropy": (lambda i: F.cross_entropy(x, i), good, high),
    "cross_entropy, negative": (lambda i: F.cross_entropy(x, i), good, low),
    "nll_loss of images": (lambda i: F.nll_loss(x.reshape(1, 4, 3), i.reshape(1, 3)), good, high),
    "multi_margin_loss": (lambda i: F.multi_margin_loss(x, i), good, high),
    "multilabel_margin_loss": (lambda i: F.multilabel_margin_loss(x[0, :3], i), good, high),
    "binary_cross_entropy": (lambda p: F.binary_cross_entropy(p, torch.ones(2)), half, outside),
    "gaussian_nll_loss": (lambda v: F.gaussian_nll_loss(torch.ones(2), torch.ones(2), v), half, outside),
    "embedding": (lambda i: F.embedding(i, x), good, high),
    "embedding, negative": (lambda i: F.embedding(i, x), good, low),
    "embedding_bag": (lambda i: F.embedding_bag(i, x, torch.tensor([0])), good, high),
    "one_hot": (lambda i: F.one_hot(i, 4), good, high),
    "max_unpool1d": (lambda i: F.max_unpool1d(torch.ones(1, 1, 3), i.reshape(1, 1, 3), 2), good, high),
    "x[i]": (lambda i: x[i], good, high),
    "x[i], negative": (lambda i: x[i], good, torch.tensor([0, -9, 2])),
    "x[i, j]": (lambda i: x[i, i], good, high),
    "index_put": (lambda i: x.index_put((i,), torch.tensor(1.0)), good, high),
    "gather": (lambda i: x.gather(0, column(i)), good, low),
    "scatter": (lambda i: x.scatter(0, column(i), 1.0), good, high),
    "scatter_add": (lambda i: x.scatter_add(0, column(i), torch.ones(3, 1)), good, high),
    "scatter_reduce": (lambda i: x.scatter_reduce(0, column(i), torch.ones(3, 1), "amax"), good, high),
    "take_along_dim": (lambda i: x.take_along_dim(column(i), 0), good, high),
    "index_select": (lambda i: x.index_select(0, i), good, high),
    "index_add": (lambda i: x.index_add(0, i, torch.ones(3, 4)), good, high),
    "index_copy": (lambda i: x.index_copy(0, i, torch.ones(3, 4)), good, high),
    "index_fill": (lambda i: x.index_fill(0, i, 1.0), good, high),
    "take": (lambda i: x.take(i), good, torch.tensor([0, 1, 99])),
    "put": (lambda i: x.put(i, torch.ones(3)), good, torch.tensor([0, 1, 99])),
    "masked_scatter": (
        lambda m: torch.zeros(2).masked_scatter(m, torch.ones(1)),
        torch.tensor([True, False]),
        torch.tensor([True, True]),
    ),
    "//": (lambda i: 5 // i, divisor, zero),
    "%": (lambda i: torch.tensor([5, 5]) % i, divisor, zero),
    "fmod": (lambda i: torch.fmod(torch.tensor([5, 5]), i), divisor, zero),
    "inv": (lambda m: torch.linalg.inv(m), torch.eye(2), torch.ones(2, 2)),
    "solve": (lambda m: torch.linalg.solve(m, torch.ones(2)), torch.eye(2), torch.ones(2, 2)),
    "cholesky": (lambda m: torch.linalg.cholesky(m), torch.eye(2), -torch.eye(2)),
    "bernoulli": (lambda p: torch.bernoulli(p), half, outside),
    "poisson": (lambda p: torch.poisson(p), half, outside),
    "normal": (lambda s: torch.normal(torch.zeros(2), s), half, outside),
    "multinomial": (lambda p: torch.multinomial(p, 1), half, outside),
    "multinomial of nothing": (lambda p: torch.multinomial(p, 1), half, torch.zeros(2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_eager_code_refuses(name):
    function, fine, refused = REFUSED[name]
    with pytest.raises(Exception) as expected:
        function(refused)
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(3):
        compiled(fine)
    assert compiled.compilations == 1
    for _ in range(2):
        with pytest.raises(type(expected.value)) as found:
            compiled(refused)
        assert str(found.value) == str(expected.value)
    compiled(fine)


def language_model(wrap, shifted):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(300, 64), nn.BatchNorm1d(64), nn.Linear(64, 200))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model.register_buffer("shift", torch.zeros((), dtype=torch.int64))

    def step(tokens, target):
        if shifted:  # then the arguments alone do not say whether it is refused
            tokens, target = tokens + model.shift, target + model.shift
        loss = F.cross_entropy(model(tokens), target)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, wrap(step)


def state(model, optimizer):
    tensors = [*model.state_dict().values(), *(p.grad for p in model.parameters())]
    tensors += [v for s in optimizer.state.values() for v in s.values()]
    return [t.detach().numpy().copy() for t in tensors]


@pytest.mark.parametrize("shifted", [False, True])
def test_a_training_step_that_is_refused_is_as_in_eager_code(shifted):
    """The second target is out of range: parameters, gradients, moments and statistics, large and small."""
    results = []
    tokens, target = torch.arange(8), torch.arange(8)
    for wrap in (torch.compile, lambda f: f):
        model, optimizer, step = language_model(wrap, shifted)
        losses = [step(tokens, target).item() for _ in range(4)]
        with pytest.raises(IndexError, match=r"Target 200 is out of bounds"):
            step(tokens, target + 193)
        after = state(model, optimizer)
        with pytest.raises(IndexError, match="index out of range in self"):
            step(tokens + 293, target)
        losses += [step(tokens, target).item() for _ in range(3)]
        results.append((losses, after, state(model, optimizer)))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-4)
    for a, b in zip([*results[0][1], *results[0][2]], [*results[1][1], *results[1][2]]):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
