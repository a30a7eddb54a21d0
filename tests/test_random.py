"""Random state and random ops, without the oracle: fixed numbers, states, keys, gradients."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rushlight


def test_numbers_that_pytorch_prints():
    rushlight.manual_seed(0)
    assert rushlight.rand(3).tolist() == pytest.approx([0.49625658988952637, 0.7682217955589294, 0.08847743272781372])
    rushlight.manual_seed(0)
    assert rushlight.randn(2).tolist() == pytest.approx([1.5409960746765137, -0.293428897857666])
    rushlight.manual_seed(0)
    assert rushlight.randn(20)[:2].tolist() == pytest.approx([-1.1258398294448853, -1.152360200881958])


@pytest.mark.parametrize("before", [0, 3, 624])
def test_state_goes_back_in_time(before):
    rushlight.rand(before)
    rushlight.randn(1)
    state = rushlight.get_rng_state()
    assert state.dtype is rushlight.uint8 and state.shape == (5056,)
    first = rushlight.randn(7).tolist(), rushlight.rand(9).tolist()
    rushlight.set_rng_state(state)
    assert (rushlight.randn(7).tolist(), rushlight.rand(9).tolist()) == first


def test_fork_rng_puts_the_state_back():
    state = rushlight.get_rng_state().tolist()
    with rushlight.random.fork_rng():
        rushlight.rand(5)
        assert rushlight.get_rng_state().tolist() != state
    assert rushlight.get_rng_state().tolist() == state
    with pytest.raises(ZeroDivisionError), rushlight.random.fork_rng():
        rushlight.rand(5)
        raise ZeroDivisionError
    assert rushlight.get_rng_state().tolist() == state


def test_generators_are_independent_and_can_be_copied():
    g = rushlight.Generator().manual_seed(1)
    state = rushlight.get_rng_state().tolist()
    rushlight.rand(3, generator=g)
    assert rushlight.get_rng_state().tolist() == state
    twins = [g.clone_state(), pickle.loads(pickle.dumps(g)), copy.deepcopy(g)]
    expected = rushlight.randn(5, generator=g).tolist()
    assert all(rushlight.randn(5, generator=twin).tolist() == expected for twin in twins)


def test_seed_is_new_every_time():
    assert rushlight.seed() != rushlight.seed()
    assert rushlight.initial_seed() == rushlight.default_generator.initial_seed()


def test_samples_have_their_distributions_moments():
    n = 40_000
    draws = {
        "normal": (rushlight.empty(n).normal_(2.0, 3.0), 2.0, 3.0),
        "uniform": (rushlight.empty(n).uniform_(-1.0, 3.0), 1.0, 4 / 12**0.5),
        "exponential": (rushlight.empty(n).exponential_(2.0), 0.5, 0.5),
        "geometric": (rushlight.empty(n).geometric_(0.25), 4.0, 12**0.5),
        "bernoulli": (rushlight.empty(n).bernoulli_(0.3), 0.3, 0.21**0.5),
        "poisson": (rushlight.poisson(rushlight.full((n,), 20.0)), 20.0, 20**0.5),
        "binomial": (rushlight.binomial(rushlight.full((n,), 50.0), rushlight.full((n,), 0.4)), 20.0, 12**0.5),
    }
    for name, (sample, mean, std) in draws.items():
        values = sample.numpy()
        assert values.mean() == pytest.approx(mean, abs=5 * std / n**0.5), name
        assert values.std() == pytest.approx(std, rel=0.05), name


def test_multinomial_never_draws_what_has_no_weight():
    weights = rushlight.tensor([0.0, 1.0, 0.0, 3.0])
    assert set(rushlight.multinomial(weights, 1000, replacement=True).tolist()) == {1, 3}
    assert sorted(rushlight.multinomial(weights, 2).tolist()) == [1, 3]


def test_a_refused_call_changes_nothing():
    t, state = rushlight.ones(3), rushlight.get_rng_state().tolist()
    leaf = rushlight.ones(3, requires_grad=True)
    for call in (lambda: t.uniform_(2, 1), lambda: t.normal_(0, -1), lambda: t.bernoulli_(2.0), lambda: leaf.normal_()):
        with pytest.raises(RuntimeError):
            call()
    assert t.tolist() == [1, 1, 1] and leaf.tolist() == [1, 1, 1]
    assert rushlight.get_rng_state().tolist() == state


def test_filling_counts_as_a_write():
    x = rushlight.ones(3, requires_grad=True)
    y = x * 1.0
    z = y * y
    y.normal_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("engine", ["numpy", "xla"])
def test_dropout_keeps_or_drops(engine):
    pytest.importorskip("jax")
    x = rushlight.ones(1000, device="xla" if engine == "xla" else "cpu").requires_grad_()
    y = rushlight.dropout(x, 0.25, True)
    y.sum().backward()
    values, gradient = (np.asarray(t.detach().cpu().numpy()) for t in (y, x.grad))
    np.testing.assert_array_equal(values, gradient)  # the same mask both ways
    assert set(np.unique(values)) == {0.0, np.float32(1 / 0.75)}
    assert (values == 0).mean() == pytest.approx(0.25, abs=0.07)


def test_accelerators_draw_from_the_same_seed():
    pytest.importorskip("jax")

    def draw():
        rushlight.manual_seed(3)
        return [rushlight.randn(4, device="xla").tolist(), rushlight.rand(2, device="xla").tolist()]

    first = draw()
    assert draw() == first and first[0] != rushlight.randn(4, device="xla").tolist()


def test_compiled_code_draws_new_numbers_at_every_call():
    pytest.importorskip("jax")
    from rushlight import compile

    @compile
    def noisy(x):
        return rushlight.dropout(x, 0.5, True) + rushlight.randn(64)

    x = rushlight.ones(64)
    noisy(x)
    assert noisy(x).tolist() != noisy(x).tolist()
    results = []
    for _ in range(2):
        rushlight.manual_seed(3)
        results.append(noisy(x).tolist())
    assert results[0] == results[1]


@pytest.mark.parametrize("count", [16, 3])
def test_threads_share_a_generator_without_repeating(count):
    """Each draw of a thread is one of those that one thread alone gets, and every one of these comes once."""
    import sys
    import threading

    def draw(generator):
        return tuple(rushlight.randn(count, generator=generator).tolist())

    def work(generator, drawn, start):
        start.wait()
        drawn.extend(draw(generator) for _ in range(25))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for seed in range(5):
            generator, drawn, start = rushlight.Generator().manual_seed(seed), [], threading.Barrier(4)
            threads = [threading.Thread(target=work, args=(generator, drawn, start)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            generator.manual_seed(seed)
            assert sorted(drawn) == sorted(draw(generator) for _ in range(100))
    finally:
        sys.setswitchinterval(interval)


def test_a_damaged_state_changes_nothing():
    generator = rushlight.Generator().manual_seed(3)
    state = generator.get_state()
    before = rushlight.rand(2, generator=generator).tolist()
    generator.set_state(state)
    broken = state.clone()
    broken[8:12] = 255  # how many words are left
    with pytest.raises(RuntimeError, match="RNG state is damaged"):
        generator.set_state(broken)
    assert rushlight.rand(2, generator=generator).tolist() == before
