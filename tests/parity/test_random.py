"""The same seed gives PyTorch's CPU numbers, and leaves the generator in PyTorch's state."""

from __future__ import annotations

import convert
import numpy as np
import pytest
import torch
from opdb import MKL

import rushlight

# On Intel CPUs PyTorch takes these from MKL's generator: see engine/streams.py.
mkl_differs = pytest.mark.skipif(MKL, reason="PyTorch draws this from MKL's own generator on this CPU")

FLOATS = ["float32", "float64", "float16", "bfloat16"]
SIZES = [0, 1, 2, 7, 15, 16, 17, 31, 32, 100, 1000]


def both(draw, seed=3):
    """``draw(library)`` from the same seed in both; the values, once the states agree too."""
    results = []
    for library in (rushlight, torch):
        library.manual_seed(seed)
        results.append(draw(library))
    assert rushlight.get_rng_state()._array.tobytes() == torch.get_rng_state().numpy().tobytes()
    return results


def same(draw, seed=3):
    ours, theirs = both(draw, seed)
    assert str(ours.dtype) == str(theirs.dtype)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.requires_grad == theirs.requires_grad
    np.testing.assert_array_equal(convert.array_of(ours), convert.to_numpy(theirs))


def close(draw, seed=3, rtol=2e-6):
    """Through log, cos or tan, which differ by an ulp or two between libraries."""
    ours, theirs = both(draw, seed)
    assert str(ours.dtype) == str(theirs.dtype)
    rtol = {"float16": 1e-3, "bfloat16": 8e-3}.get(ours.dtype.name, rtol)
    a, b = convert.array_of(ours), convert.to_numpy(theirs)
    np.testing.assert_allclose(
        a.astype(np.result_type(a.dtype, np.float32)) if a.dtype.kind == "V" else a, b, rtol=rtol, atol=1e-6
    )


def filled(name, dtype, n, *args, **kwargs):
    return lambda lib: getattr(lib.zeros(n, dtype=getattr(lib, dtype)), name)(*args, **kwargs)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_uniform(n, dtype):
    same(lambda lib: lib.rand(n, dtype=getattr(lib, dtype)))
    same(filled("uniform_", dtype, n, -0.37, 1.9))


def test_half_never_reaches_the_upper_bound():
    same(lambda lib: lib.rand(100_000, dtype=lib.bfloat16))
    same(filled("uniform_", "float16", 100_000, 1, 3))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_normal(n, dtype):
    close(lambda lib: lib.randn(n, dtype=getattr(lib, dtype)))
    close(filled("normal_", dtype, n, 2.0, 3.0))


def test_half_of_a_normal_pair_waits_for_the_next_call():
    close(lambda lib: lib.cat([lib.randn(3), lib.randn(20), lib.randn(1), lib.rand(1), lib.randn(2)]))


@pytest.mark.parametrize("name", ["normal_", "uniform_", "cauchy_", "log_normal_", "random_"])
@pytest.mark.parametrize(
    "part",
    [
        lambda t: t.t(),
        lambda t: t[:, ::2],
        lambda t: t.t()[::2],
        lambda t: t[:, 0],
        lambda t: t.view(2, 4, 3, 2).permute(0, 3, 1, 2),
    ],
    ids=["transposed", "every second", "transposed, every second", "column", "channels last"],
)
def test_views_are_filled_in_the_order_of_memory(part, name):
    def draw(lib):
        t = lib.zeros(8, 6)
        getattr(part(t), name)()
        return t

    close(draw)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(dtype):
    same(lambda lib: lib.rand(9, dtype=getattr(lib, dtype)))
    close(lambda lib: lib.randn(9, dtype=getattr(lib, dtype)))
    close(filled("normal_", dtype, 9, 1.0, 2.0))


@pytest.mark.parametrize("bounds", [(10,), (3, 9), (-5, 5), (2**28 - 1,), (2**28,), (2**40,), (-(2**62), 2**62)])
def test_randint(bounds):
    same(lambda lib: lib.randint(*bounds, (50,)))


def test_randint_of_floats():
    same(lambda lib: lib.randint(2**40, (2, 3), dtype=lib.float64))
    same(lambda lib: lib.randint(-3, 9, size=(2, 3), dtype=lib.float32))
    same(lambda lib: lib.randint(high=9, size=(2, 3), dtype=lib.float16))


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_random_(dtype):
    same(filled("random_", dtype, 50))
    same(filled("random_", dtype, 50, 2))
    same(filled("random_", dtype, 50, 0, 2))


def test_random_from_without_to():
    same(filled("random_", "int64", 50, -5, None))
    same(filled("random_", "int64", 50, -(2**63), None))
    same(filled("random_", "float32", 50, -5, None))


@pytest.mark.parametrize("n", [0, 1, 2, 10, 1000])
def test_randperm(n):
    same(lambda lib: lib.randperm(n))
    same(lambda lib: lib.randperm(n, dtype=lib.float32))


@pytest.mark.parametrize("form", [lambda t: t, lambda t: t.t()], ids=["contiguous", "transposed"])
def test_like(form):
    same(lambda lib: lib.rand_like(form(lib.zeros(5, 6))))
    close(lambda lib: lib.randn_like(form(lib.zeros(5, 6))))
    close(lambda lib: lib.randn_like(form(lib.zeros(5, 6)), dtype=lib.float64, requires_grad=True))
    same(lambda lib: lib.randint_like(form(lib.zeros(5, 6)), 3, 20))
    same(lambda lib: lib.randint_like(form(lib.zeros(5, 6)), 7))


def test_normal_of_tensors():
    close(lambda lib: lib.normal(lib.arange(20.0), lib.full((20,), 3.0)))
    close(lambda lib: lib.normal(lib.arange(4.0), lib.ones(5, 1)))
    close(lambda lib: lib.normal(lib.arange(20.0), 3.0))
    close(lambda lib: lib.normal(2.0, lib.arange(20.0)))
    close(lambda lib: lib.normal(mean=lib.zeros(3)))
    close(lambda lib: lib.normal(2.0, 3.0, (5,)))


@mkl_differs
@pytest.mark.parametrize("dtype", [*FLOATS, "bool", "int64"])
def test_bernoulli_with_a_number(dtype):
    same(filled("bernoulli_", dtype, 100, 0.3))
    same(filled("bernoulli_", dtype, 100))
    same(lambda lib: lib.bernoulli(lib.zeros(30), 0.8))


@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli_with_probabilities(dtype):
    same(lambda lib: lib.bernoulli(lib.linspace(0, 1, 50).to(getattr(lib, dtype))))
    same(lambda lib: lib.zeros(50, dtype=lib.int64).bernoulli_(lib.linspace(0, 1, 50).to(getattr(lib, dtype))))


@mkl_differs
@pytest.mark.parametrize("dtype", FLOATS)
def test_exponential(dtype):
    close(filled("exponential_", dtype, 50, 2.0))


@pytest.mark.parametrize("dtype", FLOATS)
def test_cauchy_and_log_normal(dtype):
    close(filled("cauchy_", dtype, 50, 1.0, 2.0))
    close(filled("log_normal_", dtype, 50, 0.3, 0.5))


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64"])
def test_geometric(dtype):
    same(filled("geometric_", dtype, 50, 0.2))


@pytest.mark.parametrize("rate", [0.0, 0.5, 3.0, 9.9, 10.0, 35.0, 1000.0])
def test_poisson(rate):
    same(lambda lib: lib.poisson(lib.full((200,), rate)))
    same(lambda lib: lib.poisson(lib.full((20,), rate, dtype=lib.float64)))


@pytest.mark.parametrize(
    "n, p", [(0, 0.5), (10, 0.3), (10, 0.8), (100, 0.4), (1000, 0.77), (5, 0.0), (5, 1.0), (40, 0.5)]
)
def test_binomial(n, p):
    same(lambda lib: lib.binomial(lib.full((200,), float(n)), lib.full((200,), p)))


def test_multinomial_with_replacement():
    weights = np.random.RandomState(0).rand(3, 10).astype(np.float32)
    same(lambda lib: lib.multinomial(lib.tensor(weights), 40, replacement=True))
    same(lambda lib: lib.multinomial(lib.tensor(weights[0]), 40, replacement=True))
    same(lambda lib: lib.multinomial(lib.tensor(weights[0].astype(np.float64)), 40, replacement=True))


@mkl_differs
def test_multinomial_without_replacement():
    weights = np.random.RandomState(0).rand(3, 10).astype(np.float32)
    same(lambda lib: lib.multinomial(lib.tensor(weights), 5))
    same(lambda lib: lib.multinomial(lib.tensor(weights[0]), 10))
    same(lambda lib: lib.multinomial(lib.tensor(weights), 1))
    same(lambda lib: lib.multinomial(lib.tensor(weights), 1, replacement=True))


@mkl_differs
@pytest.mark.parametrize("name", ["dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"])
@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_dropout(name, p):
    close(lambda lib: getattr(lib, name)(lib.ones(4, 5, 3, 2), p, True))
    close(lambda lib: getattr(lib, name)(lib.ones(4, 5, 3, 2), p, False))
    close(lambda lib: getattr(lib, name + "_")(lib.ones(4, 5, 3, 2), p, True))


@mkl_differs
@pytest.mark.parametrize("p, train", [(0.3, True), (0.3, None), (0.0, True), (1.0, True), (0.3, False)])
def test_native_dropout(p, train):
    close(lambda lib: lib.native_dropout(lib.ones(30), p, train)[0])
    same(lambda lib: lib.native_dropout(lib.ones(30), p, train)[1])


def test_a_generator_of_ones_own():
    same(lambda lib: lib.rand(5, generator=lib.Generator().manual_seed(9)))
    same(lambda lib: lib.rand(5, generator=lib.Generator()))
    close(lambda lib: lib.zeros(5).normal_(generator=lib.Generator().manual_seed(9)))


@pytest.mark.parametrize("before", [0, 1, 623, 624, 625, 1000])
def test_states_travel_both_ways(before):
    torch.manual_seed(11)
    torch.rand(before)
    torch.randn(1)  # leaves the other half of a pair waiting
    state = torch.get_rng_state()
    rushlight.set_rng_state(rushlight.tensor(state.numpy()))
    assert rushlight.get_rng_state()._array.tobytes() == state.numpy().tobytes()
    ours = rushlight.randn(5)
    np.testing.assert_allclose(convert.array_of(ours), torch.randn(5).numpy(), rtol=1e-6)
    torch.set_rng_state(torch.from_numpy(rushlight.get_rng_state().numpy()))
    np.testing.assert_array_equal(convert.array_of(rushlight.rand(700)), torch.rand(700).numpy())


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**40 + 7, 2**64 - 1, -1, -(2**63)])
def test_seeds(seed):
    same(lambda lib: lib.rand(4), seed)
    assert rushlight.initial_seed() == torch.initial_seed()


BAD = {
    "std": lambda lib: lib.zeros(3).normal_(0, -1),
    "bounds": lambda lib: lib.zeros(3).uniform_(2, 1),
    "wide": lambda lib: lib.zeros(3).uniform_(-3.4e38, 3.4e38),
    "p": lambda lib: lib.zeros(3).bernoulli_(2),
    "lambda": lambda lib: lib.zeros(3).exponential_(-1),
    "geometric p": lambda lib: lib.zeros(3).geometric_(2),
    "sigma": lambda lib: lib.zeros(3).cauchy_(0, -1),
    "log std": lambda lib: lib.zeros(3).log_normal_(0, -1),
    "from, to": lambda lib: lib.zeros(3).random_(5, 3),
    "to": lambda lib: lib.zeros(3).random_(0),
    "high": lambda lib: lib.randint(5, 5, (2,)),
    "too high": lambda lib: lib.randint(0, 300, (2,), dtype=lib.uint8),
    "n": lambda lib: lib.randperm(-1),
    "size": lambda lib: lib.rand(-1),
    "negative weight": lambda lib: lib.multinomial(lib.tensor([-1.0, 2.0]), 1),
    "no weight": lambda lib: lib.multinomial(lib.tensor([0.0, 0.0]), 1),
    "more than there are": lambda lib: lib.multinomial(lib.ones(2), 3),
    "none": lambda lib: lib.multinomial(lib.ones(2), 0),
    "dims": lambda lib: lib.multinomial(lib.ones(2, 2, 2), 1),
    "integer weights": lambda lib: lib.multinomial(lib.ones(2, dtype=lib.int64), 1),
    "integer normal": lambda lib: lib.randn(3, dtype=lib.int64),
    "integer uniform": lambda lib: lib.rand(3, dtype=lib.int64),
    "integer exponential": lambda lib: lib.zeros(3, dtype=lib.int64).exponential_(),
    "integer cauchy": lambda lib: lib.zeros(3, dtype=lib.int64).cauchy_(),
    "integer bernoulli": lambda lib: lib.bernoulli(lib.tensor([1])),
    "rate": lambda lib: lib.poisson(lib.tensor([-1.0])),
    "integer rate": lambda lib: lib.poisson(lib.tensor([1])),
    "negative std": lambda lib: lib.normal(lib.zeros(3), -lib.ones(3)),
    "shapes": lambda lib: lib.normal(lib.zeros(3), lib.ones(4)),
    "dropout": lambda lib: lib.dropout(lib.ones(3), -0.1, True),
    "leaf": lambda lib: lib.zeros(3, requires_grad=True).normal_(),
    "seed": lambda lib: lib.manual_seed(2**65),
    "state size": lambda lib: lib.set_rng_state(lib.zeros(3, dtype=lib.uint8)),
    "state dtype": lambda lib: lib.set_rng_state(lib.zeros(3)),
    "integer count": lambda lib: lib.binomial(lib.tensor([3]), lib.tensor([0.5])),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_raise_as_in_pytorch(case):
    with pytest.raises(Exception) as theirs:
        BAD[case](torch)
    before = rushlight.get_rng_state()._array.tobytes()
    with pytest.raises(theirs.type) as ours:
        BAD[case](rushlight)
    assert str(ours.value) == str(theirs.value)
    assert rushlight.get_rng_state()._array.tobytes() == before  # nothing was drawn


NODES = {
    "normal_": lambda x, lib: x.normal_(),
    "uniform_": lambda x, lib: x.uniform_(),
    "bernoulli_": lambda x, lib: x.bernoulli_(0.3),
    "bernoulli_ of a tensor": lambda x, lib: x.bernoulli_(lib.full((4,), 0.3)),
    "exponential_": lambda x, lib: x.exponential_(),
    "geometric_": lambda x, lib: x.geometric_(0.3),
    "cauchy_": lambda x, lib: x.cauchy_(),
    "log_normal_": lambda x, lib: x.log_normal_(),
    "random_": lambda x, lib: x.random_(),
    "random_ to": lambda x, lib: x.random_(3),
    "random_ from, to": lambda x, lib: x.random_(1, 3),
    "bernoulli": lambda x, lib: lib.bernoulli(x),
    "normal of means": lambda x, lib: lib.normal(x, 1.0),
    "normal of stds": lambda x, lib: lib.normal(1.0, x),
    "normal of both": lambda x, lib: lib.normal(x, x),
    "poisson": lambda x, lib: lib.poisson(x),
    "dropout": lambda x, lib: lib.dropout(x, 0.5, True),
    "alpha_dropout": lambda x, lib: lib.alpha_dropout(x, 0.5, True),
    "native_dropout": lambda x, lib: lib.native_dropout(x, 0.5, True)[0],
}


@pytest.mark.parametrize("case", NODES)
def test_graph_and_gradient(case):
    grads, names = [], []
    for lib in (rushlight, torch):
        lib.manual_seed(5)
        x = lib.full((4,), 0.5, requires_grad=True)
        y = NODES[case](x * 1.0, lib)
        names.append(y.grad_fn.name())
        y.sum().backward()
        grads.append(x.grad.numpy())
    assert names[0] == names[1]
    if "dropout" not in case or not MKL:
        np.testing.assert_allclose(grads[0], grads[1], rtol=1e-6)
