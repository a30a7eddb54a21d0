"""Distributions: samples have the moments that are promised, gradients reach parameters, compiled code draws too."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight import distributions as d

T = torch.tensor
SOME = [
    d.Beta(T(2.0), T(3.0)), d.Gamma(T(0.4), T(2.0)), d.Gamma(T(30.0), T(2.0)), d.Dirichlet(T([0.5, 2.0, 4.0])),
    d.Laplace(T(1.0), T(0.5)), d.StudentT(T(9.0)), d.Gumbel(T(0.0), T(1.0)), d.Weibull(T(1.0), T(1.5)),
    d.LogNormal(T(0.0), T(0.3)), d.Poisson(T(4.0)), d.NegativeBinomial(4, T(0.4)), d.Geometric(T(0.3)),
    d.Multinomial(6, T([1.0, 2.0])), d.MultivariateNormal(T([0.0, 1.0]), T([[2.0, 0.6], [0.6, 1.0]])),
    d.MixtureSameFamily(d.Categorical(T([1.0, 3.0])), d.Normal(T([-2.0, 1.0]), T([0.5, 1.0]))),
]  # fmt: skip


@pytest.mark.parametrize("distribution", SOME, ids=repr)
def test_moments(distribution):
    torch.manual_seed(0)
    drawn = distribution.sample((8000,)).numpy()
    spread = distribution.stddev.numpy()
    assert np.all(abs(drawn.mean(0) - distribution.mean.numpy()) < 5 * spread / 8000**0.5)
    np.testing.assert_allclose(drawn.std(0), spread, rtol=0.15)


@pytest.mark.parametrize(("a", "mean"), [(0.3, 0.3), (2.0, 2.0), (40.0, 40.0)])
def test_gamma_moves_with_its_shape(a, mean):
    """The mean of a standard gamma value is its shape, so its slope is 1."""
    torch.manual_seed(0)
    shape = T(a, dtype=torch.float64, requires_grad=True)
    drawn = d.Gamma(shape.expand(4000), 1.0).rsample()
    drawn.mean().backward()
    assert abs(drawn.mean().item() - mean) < 0.1 * mean and abs(shape.grad.item() - 1) < 0.1


def test_gamma_slope_is_the_derivative_of_its_place():
    from scipy.special import gammainc, gammaincinv

    from rushlight.engine.special import gamma_slope

    a, x = (g.ravel() for g in np.meshgrid([0.05, 0.7, 3.0, 50.0, 900.0], [0.001, 0.2, 0.5, 0.9, 0.999]))
    x = gammaincinv(a, x)
    h = 1e-6 * a
    expected = (gammaincinv(a + h, gammainc(a, x)) - gammaincinv(a - h, gammainc(a, x))) / (2 * h)
    np.testing.assert_allclose(gamma_slope(a, x), expected, rtol=1e-4, atol=1e-12)


def test_dirichlet_slope_is_the_derivative_of_its_place():
    from scipy.special import betainc, betaincinv

    a, b, place = (g.ravel() for g in np.meshgrid([0.3, 1.0, 7.0, 400.0], [2.0, 5.0, 900.0], [0.001, 0.3, 0.7, 0.999]))
    x = betaincinv(a, b, place)
    h = 1e-6 * a
    expected = (betaincinv(a + h, b, betainc(a, b, x)) - betaincinv(a - h, b, betainc(a, b, x))) / (2 * h) / (1 - x)
    for device in ("cpu", "xla"):
        three = (T(v, device=device) for v in (x, a, a + b))
        np.testing.assert_allclose(torch._dirichlet_grad(*three).cpu().numpy(), expected, rtol=1e-5)


def test_shares_move_with_their_concentrations():
    """The mean of a share is its part of the concentrations, whose slopes are known."""
    torch.manual_seed(0)
    a = T([0.5, 2.0, 4.0], dtype=torch.float64, requires_grad=True)
    d.Dirichlet(a.expand(4000, 3)).rsample()[:, 0].mean().backward()
    np.testing.assert_allclose(a.grad.numpy(), (np.array([6.5, 0, 0]) - 0.5 * np.array([1, 1, 1])) / 6.5**2, atol=0.006)


def test_a_transform_that_remembers_goes_back_exactly():
    policy = d.TransformedDistribution(d.Normal(T(8.0), T(1.0)), d.TanhTransform(cache_size=1))
    torch.manual_seed(0)
    drawn = policy.rsample((100,))  # most are 1.0 in float32, whose inverse would be infinite
    assert policy.transforms[0].inv(drawn).isfinite().all()
    assert policy.log_prob(drawn).isfinite().all()


def test_compiled():
    pytest.importorskip("jax")

    @torch.compile
    def step(loc):
        normal, gamma = d.Normal(loc, 1.0), d.Gamma(loc.exp(), 1.0)
        return normal.log_prob(normal.rsample()) + gamma.rsample() + d.kl_divergence(normal, d.Normal(0.0, 1.0))

    loc = torch.zeros(3, requires_grad=True)
    for _ in range(3):
        values = step(loc)
    assert step.compilations == 1 and values.isfinite().all()


def test_rules_of_your_own():
    class Point(d.Normal):
        pass

    @d.register_kl(Point, Point)
    def between(p, q):
        return (p.loc - q.loc).abs()

    assert d.kl_divergence(Point(1.0, 1.0), Point(3.0, 1.0)).item() == 2
    assert d.kl_divergence(Point(1.0, 1.0), d.Normal(1.0, 1.0)).item() == 0


def test_gradients_of_several_matrices():
    df, scale = torch.tensor([5.0, 6.0], requires_grad=True), torch.eye(3)
    torch.distributions.Wishart(df, scale).rsample((4,)).sum().backward()
    assert bool((df.grad.isfinite() & (df.grad != 0)).all())


def test_an_exponential_family_needs_its_normalizer_alone():
    class Waiting(d.ExponentialFamily):
        arg_constraints = {}
        _mean_carrier_measure = 0

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape, validate_args=False)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, x):
            return -torch.log(-x)

    p, q = Waiting(T([1.0, 2.0])), Waiting(T([3.0, 0.5]))
    torch.testing.assert_close(p.entropy().detach(), d.Exponential(p.rate).entropy())
    found, expected = d.kl_divergence(p, q), d.kl_divergence(d.Exponential(p.rate), d.Exponential(q.rate))
    torch.testing.assert_close(found.detach(), expected)
    wishart = [d.Wishart(T(df), torch.eye(2) * s) for df, s in ((3.0, 1.0), (4.0, 2.0))]
    assert d.kl_divergence(*wishart).item() == pytest.approx(1.5430, abs=1e-4)  # PyTorch's
    with pytest.raises(NotImplementedError, match="between different exponential families"):
        d.kl_divergence(d.Beta(T(2.0), T(3.0)), d.Poisson(T(1.0)))


def test_a_copied_inverse_keeps_what_it_inverts():
    import copy

    transform = d.ExpTransform()
    assert repr(copy.deepcopy(transform.inv)) == repr(transform.inv)
