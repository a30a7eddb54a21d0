"""Distributions: the same samples, log-probabilities and entropies as PyTorch's for one seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import rushlight


def categorical(t):
    weights = t.rand(4, 5)
    by_probs, by_logits = t.distributions.Categorical(weights), t.distributions.Categorical(logits=weights)
    drawn = by_probs.sample((3,))
    yield from (drawn, by_probs.log_prob(drawn), by_probs.entropy(), by_probs.mode)
    yield from (by_logits.log_prob(drawn), by_logits.probs, t.distributions.kl_divergence(by_probs, by_logits))


def normal(t):
    n, standard = t.distributions.Normal(t.randn(4), t.rand(4) + 0.1), t.distributions.Normal(0.0, 1.0)
    drawn = n.sample((7,))
    yield from (drawn, n.rsample(), n.log_prob(drawn), n.entropy(), n.cdf(drawn), n.variance)
    yield from (standard.sample((5,)), t.distributions.kl_divergence(n, standard))


def bernoulli(t):
    by_probs, by_logits = t.distributions.Bernoulli(t.rand(6)), t.distributions.Bernoulli(logits=t.randn(6))
    drawn = by_probs.sample((20,))
    yield from (drawn, by_probs.log_prob(drawn), by_probs.entropy(), by_logits.log_prob(drawn), by_logits.variance)


def uniform(t):
    u = t.distributions.Uniform(t.zeros(3), t.tensor([1.0, 2.0, 3.0]))
    drawn = u.sample((4,))
    yield from (drawn, u.log_prob(drawn), u.entropy(), u.mean, u.stddev)


@pytest.mark.parametrize("program", [categorical, normal, bernoulli, uniform])
def test_same_numbers(program):
    values = []
    for package in (torch, rushlight):
        package.manual_seed(0)
        values.append([value.numpy() for value in program(package)])
    for theirs, ours in zip(*values, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("package", [torch, rushlight])
def test_bad_parameters_are_refused(package):
    d = package.distributions
    for make in (
        lambda: d.Normal(0.0, -1.0),
        lambda: d.Categorical(package.tensor([-1.0, 2.0])),
        lambda: d.Bernoulli(package.tensor([1.5])),
        lambda: d.Uniform(1.0, 0.0),
        lambda: d.Categorical(),
    ):
        with pytest.raises(ValueError):
            make()
