"""Distributions: the same samples, densities, moments, gradients and texts as PyTorch's for one seed."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore:Singular sample detected")  # PyTorch says it of good ones

# Each is made from the package, positive numbers (4, 3), and any numbers (4, 3).
MAKE = {
    "Bernoulli": lambda t, p, r: t.distributions.Bernoulli(p / 2),
    "Bernoulli logits": lambda t, p, r: t.distributions.Bernoulli(logits=r),
    "Beta": lambda t, p, r: t.distributions.Beta(p, p.flip(0)),
    "Binomial": lambda t, p, r: t.distributions.Binomial(7, p / 2),
    "Binomial logits": lambda t, p, r: t.distributions.Binomial(7, logits=r),
    "Categorical": lambda t, p, r: t.distributions.Categorical(p),
    "Categorical logits": lambda t, p, r: t.distributions.Categorical(logits=r),
    "Cauchy": lambda t, p, r: t.distributions.Cauchy(r, p),
    "Chi2": lambda t, p, r: t.distributions.Chi2(p),
    "ContinuousBernoulli": lambda t, p, r: t.distributions.ContinuousBernoulli(p / 5),
    "ContinuousBernoulli logits": lambda t, p, r: t.distributions.ContinuousBernoulli(logits=r + 3.5 * r.sign()),
    "ContinuousBernoulli of a half": lambda t, p, r: t.distributions.ContinuousBernoulli(0.5 + r / 10000),
    "Dirichlet": lambda t, p, r: t.distributions.Dirichlet(p),
    "Exponential": lambda t, p, r: t.distributions.Exponential(p),
    "FisherSnedecor": lambda t, p, r: t.distributions.FisherSnedecor(p + 4, p.flip(0) + 4),
    "Gamma": lambda t, p, r: t.distributions.Gamma(p, p.flip(0)),
    "GeneralizedPareto": lambda t, p, r: t.distributions.GeneralizedPareto(r, p, p / 4),
    "GeneralizedPareto of 0": lambda t, p, r: t.distributions.GeneralizedPareto(r, p, t.zeros(4, 3)),
    "Geometric": lambda t, p, r: t.distributions.Geometric(p / 2),
    "Geometric logits": lambda t, p, r: t.distributions.Geometric(logits=r),
    "Gumbel": lambda t, p, r: t.distributions.Gumbel(r, p),
    "HalfCauchy": lambda t, p, r: t.distributions.HalfCauchy(p),
    "HalfNormal": lambda t, p, r: t.distributions.HalfNormal(p),
    "Independent": lambda t, p, r: t.distributions.Independent(t.distributions.Normal(r, p), 1),
    "InverseGamma": lambda t, p, r: t.distributions.InverseGamma(p + 2, p),
    "Kumaraswamy": lambda t, p, r: t.distributions.Kumaraswamy(p, p.flip(0)),
    "LKJCholesky": lambda t, p, r: t.distributions.LKJCholesky(3, p[0]),
    "Laplace": lambda t, p, r: t.distributions.Laplace(r, p),
    "LogNormal": lambda t, p, r: t.distributions.LogNormal(r, p),
    "LogisticNormal": lambda t, p, r: t.distributions.LogisticNormal(r, p),
    "LowRankMultivariateNormal": lambda t, p, r: t.distributions.LowRankMultivariateNormal(r, r.unsqueeze(-1), p),
    "MixtureSameFamily": lambda t, p, r: t.distributions.MixtureSameFamily(
        t.distributions.Categorical(p), t.distributions.Normal(r, p)
    ),
    "Mixture of vectors": lambda t, p, r: t.distributions.MixtureSameFamily(
        t.distributions.Categorical(p[:, 0]), t.distributions.Independent(t.distributions.Normal(r, p), 1)
    ),
    "Multinomial": lambda t, p, r: t.distributions.Multinomial(5, p),
    "MultivariateNormal": lambda t, p, r: t.distributions.MultivariateNormal(r, _definite(t, r)),
    "MultivariateNormal precision": lambda t, p, r: t.distributions.MultivariateNormal(
        r, precision_matrix=_definite(t, r)
    ),
    "MultivariateNormal tril": lambda t, p, r: t.distributions.MultivariateNormal(
        r, scale_tril=t.linalg.cholesky(_definite(t, r))
    ),
    "NegativeBinomial": lambda t, p, r: t.distributions.NegativeBinomial(3, p / 3),
    "Normal": lambda t, p, r: t.distributions.Normal(r, p),
    "Normal of numbers": lambda t, p, r: t.distributions.Normal(0.5, 2.0),
    "OneHotCategorical": lambda t, p, r: t.distributions.OneHotCategorical(p),
    "OneHotCategoricalStraightThrough": lambda t, p, r: t.distributions.OneHotCategoricalStraightThrough(p),
    "Pareto": lambda t, p, r: t.distributions.Pareto(p, p.flip(0) + 2),
    "Poisson": lambda t, p, r: t.distributions.Poisson(p),
    "RelaxedBernoulli": lambda t, p, r: t.distributions.RelaxedBernoulli(t.tensor(0.7), p / 2),
    "RelaxedOneHotCategorical": lambda t, p, r: t.distributions.RelaxedOneHotCategorical(t.tensor(0.7), p),
    "StudentT": lambda t, p, r: t.distributions.StudentT(p + 2, r, p),
    "TransformedDistribution": lambda t, p, r: t.distributions.TransformedDistribution(
        t.distributions.Normal(r, p),
        [t.distributions.TanhTransform(cache_size=1), t.distributions.AffineTransform(1.0, 2.0)],
    ),
    "Transformed vectors": lambda t, p, r: t.distributions.TransformedDistribution(
        t.distributions.MultivariateNormal(r, _definite(t, r)),
        [t.distributions.SigmoidTransform(), t.distributions.ReshapeTransform((3,), (3, 1))],
    ),
    "Uniform": lambda t, p, r: t.distributions.Uniform(r - p, r + p),
    "VonMises": lambda t, p, r: t.distributions.VonMises(r, p * 4),
    "Wishart": lambda t, p, r: t.distributions.Wishart(p[:, 0] + 4, _definite(t, r)),
    "Wishart tril": lambda t, p, r: t.distributions.Wishart(
        t.tensor(5.0), scale_tril=t.linalg.cholesky(_definite(t, r))
    ),
    "Weibull": lambda t, p, r: t.distributions.Weibull(p, p.flip(0)),
}
# docs/differences.md: PyTorch's gradient of Wishart fails for several samples.
NOTED = {"Wishart", "Wishart tril"}


def _definite(t, r):
    return t.eye(3) + r.unsqueeze(-1) * r.unsqueeze(-2)


def made(t, name):
    t.manual_seed(1)
    positive, real = t.rand(4, 3) + 0.5, t.randn(4, 3)
    parameters = positive.requires_grad_(), real.requires_grad_()
    return MAKE[name](t, *parameters), parameters


def tried(function):
    """What a function gives, or that it is not there."""
    try:
        return function()
    except NotImplementedError:
        return None


def compare(ours, theirs, rtol=2e-5, atol=2e-6):
    assert (ours is None) == (theirs is None)
    if theirs is not None:
        assert isinstance(ours, rushlight.Tensor) and tuple(ours.shape) == tuple(theirs.shape)
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", MAKE)
def test_numbers(name):
    (ours, _), (theirs, _) = made(rushlight, name), made(torch, name)
    for which in ("mean", "mode", "variance", "stddev"):
        compare(*(tried(lambda d=d, which=which: getattr(d, which)) for d in (ours, theirs)))
    compare(*(tried(d.entropy) for d in (ours, theirs)))
    drawn = []
    for t, d in ((rushlight, ours), (torch, theirs)):
        t.manual_seed(3)
        drawn.append([d.sample(), d.sample((2, 3)), d.sample((20,))])
    for one, other in zip(*drawn):
        compare(one, other)
        assert not one.requires_grad
        value = other.numpy()
        compare(ours.log_prob(rushlight.from_numpy(value)), theirs.log_prob(other), rtol=1e-4, atol=2e-5)
        compare(*(tried(lambda d=d, v=v: d.cdf(v)) for d, v in ((ours, rushlight.from_numpy(value)), (theirs, other))))
    u = np.linspace(0.05, 0.95, 12, dtype=np.float32).reshape(4, 3)
    if len(theirs.batch_shape) == 2:
        both = (ours, rushlight.from_numpy(u)), (theirs, torch.from_numpy(u))
        compare(*(tried(lambda d=d, v=v: d.icdf(v)) for d, v in both), rtol=1e-4)


@pytest.mark.parametrize("name", MAKE)
def test_gradients(name):
    grads = []
    for t in (rushlight, torch):
        d, parameters = made(t, name)
        t.manual_seed(3)
        value = d.sample((5,))
        total = d.log_prob(value).sum()
        if d.has_rsample and name not in NOTED:
            total = total + (d.rsample((5,)) * t.arange(5.0).reshape(5, *[1] * (value.dim() - 1))).sum()
        grads.append(t.autograd.grad(total, parameters, allow_unused=True) if total.requires_grad else [])
    for one, other in zip(*grads, strict=True):
        compare(one, other, rtol=2e-3, atol=2e-4)  # PyTorch approximates the slope of a gamma variate


@pytest.mark.parametrize("name", MAKE)
def test_shapes_and_texts(name):
    (ours, _), (theirs, _) = made(rushlight, name), made(torch, name)
    assert repr(ours) == repr(theirs) and repr(ours.support) == repr(theirs.support)
    for which in ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support"):
        assert getattr(ours, which) == getattr(theirs, which), which
    assert set(ours.arg_constraints) == set(theirs.arg_constraints)
    if theirs.batch_shape and not name.startswith(("Transformed v", "Mixture of")):
        bigger = (2, *theirs.batch_shape)
        one, other = ours.expand(bigger), theirs.expand(bigger)
        assert (one.batch_shape, one.event_shape) == (other.batch_shape, other.event_shape)
        rushlight.manual_seed(0), torch.manual_seed(0)
        compare(one.sample((2,)), other.sample((2,)))
    if theirs.has_enumerate_support:
        compare(ours.enumerate_support(), theirs.enumerate_support())
        compare(ours.enumerate_support(expand=False), theirs.enumerate_support(expand=False))


SAME_KIND = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Dirichlet", "Exponential", "Gamma", "Geometric",
             "HalfNormal", "Independent", "Laplace", "LogNormal", "MultivariateNormal", "Normal", "OneHotCategorical",
             "Poisson", "Uniform"]  # fmt: skip


@pytest.mark.parametrize("name", SAME_KIND)
def test_divergence(name):
    values = []
    for t in (rushlight, torch):
        t.manual_seed(0)
        first, second = (MAKE[name](t, t.rand(4, 3) + 0.5, t.randn(4, 3)) for _ in range(2))
        values.append([t.distributions.kl_divergence(a, b) for a, b in ((first, second), (first, first))])
    for one, other in zip(*values):
        compare(one, other, rtol=1e-4, atol=1e-5)


ACROSS = ["Beta", "ContinuousBernoulli", "Exponential", "Gamma", "Gumbel", "Laplace", "Normal", "Pareto", "Uniform",
          "Bernoulli", "Binomial", "Poisson", "MultivariateNormal", "LowRankMultivariateNormal"]  # fmt: skip


@pytest.mark.parametrize("name", ACROSS)
def test_divergence_from_other_kinds(name):
    for other in ACROSS:
        values = []
        for t in (rushlight, torch):
            t.manual_seed(0)
            first, second = (MAKE[kind](t, t.rand(4, 3) + 0.5, t.randn(4, 3)) for kind in (name, other))
            values.append(tried(lambda t=t, a=first, b=second: t.distributions.kl_divergence(a, b)))
        compare(*values, rtol=1e-3, atol=1e-4)


def test_an_inverse_of_an_inverse_is_the_transform():
    for t in (rushlight, torch):
        d = t.distributions
        for transform in (d.ExpTransform(), d.ComposeTransform([d.TanhTransform(), d.ExpTransform()])):
            assert transform.inv.inv is transform
            inverse = transform.inv
            assert transform.inv is inverse


TRANSFORMS = {
    "CatTransform": lambda d: d.CatTransform([d.ExpTransform(), d.TanhTransform()], dim=-1, lengths=[1, 3]),
    "StackTransform": lambda d: d.StackTransform([d.ExpTransform(), d.TanhTransform()] * 2, dim=1),
    "AbsTransform": lambda d: d.AbsTransform(),
    "AffineTransform": lambda d: d.AffineTransform(1.0, -2.0),
    "ComposeTransform": lambda d: d.ComposeTransform([d.TanhTransform(), d.ExpTransform()]),
    "ExpTransform": lambda d: d.ExpTransform(),
    "IndependentTransform": lambda d: d.IndependentTransform(d.ExpTransform(), 1),
    "PowerTransform": lambda d: d.ComposeTransform([d.ExpTransform(), d.PowerTransform(2.0)]),
    "ReshapeTransform": lambda d: d.ReshapeTransform((4,), (2, 2)),
    "SigmoidTransform": lambda d: d.SigmoidTransform(),
    "SoftmaxTransform": lambda d: d.SoftmaxTransform(),
    "SoftplusTransform": lambda d: d.SoftplusTransform(),
    "StickBreakingTransform": lambda d: d.StickBreakingTransform(),
    "TanhTransform": lambda d: d.TanhTransform(),
    "to positive": lambda d: d.transform_to(d.constraints.positive),
    "to interval": lambda d: d.biject_to(d.constraints.interval(-1.0, 3.0)),
    "to less_than": lambda d: d.biject_to(d.constraints.less_than(2.0)),
    "to simplex": lambda d: d.biject_to(d.constraints.simplex),
    "to real vectors": lambda d: d.transform_to(d.constraints.real_vector),
    "LowerCholeskyTransform": lambda d: d.LowerCholeskyTransform(),
    "PositiveDefiniteTransform": lambda d: d.transform_to(d.constraints.positive_definite),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    x = np.random.default_rng(0).normal(size=(3, 4, 4)).astype(np.float32)
    results = []
    for t in (rushlight, torch):
        transform, value = TRANSFORMS[name](t.distributions), t.from_numpy(x)
        y = transform(value)
        stretch = tried(lambda transform=transform, value=value, y=y: transform.log_abs_det_jacobian(value, y))
        results.append([y, transform.inv(y), stretch])
        shapes = transform.forward_shape(value.shape), transform.inverse_shape(y.shape)
        results[-1] += [t.zeros(shape) for shape in shapes]
        results[-1].append(
            t.tensor([float(transform.bijective), transform.domain.event_dim, transform.codomain.event_dim])
        )
    for one, other in zip(*results, strict=True):
        compare(one, other, rtol=2e-4, atol=2e-5)


def test_correlation_factors():
    x = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    results = []
    for t in (rushlight, torch):
        transform, value = t.distributions.biject_to(t.distributions.constraints.corr_cholesky), t.from_numpy(x)
        y = transform(value)
        results.append([y, transform.inv(y), transform.log_abs_det_jacobian(value, y)])
        assert transform.forward_shape((3, 6)) == (3, 4, 4) and transform.inverse_shape((3, 4, 4)) == (3, 6)
        assert bool(t.distributions.constraints.corr_cholesky.check(y).all())
    for one, other in zip(*results, strict=True):
        compare(one, other, rtol=2e-4, atol=2e-5)


WRONG = {
    "scale": lambda t: t.distributions.Normal(t.zeros(2), t.tensor([-1.0, 1.0])),
    "simplex": lambda t: t.distributions.Categorical(t.tensor([-1.0, 2.0])),
    "probability": lambda t: t.distributions.Bernoulli(t.tensor([1.5])),
    "order": lambda t: t.distributions.Uniform(1.0, 0.0),
    "definite": lambda t: t.distributions.MultivariateNormal(t.zeros(2), -t.eye(2)),
    "neither": lambda t: t.distributions.Categorical(),
    "no vector": lambda t: t.distributions.Dirichlet(t.tensor(1.0)),
    "outcome": lambda t: t.distributions.Categorical(t.ones(3)).log_prob(t.tensor([5])),
    "nan": lambda t: t.distributions.Normal(0.0, 1.0).log_prob(t.tensor([float("nan")])),
    "half": lambda t: t.distributions.Bernoulli(0.25).log_prob(t.tensor(0.5)),
    "outside": lambda t: t.distributions.Uniform(0.0, 1.0).log_prob(t.tensor(2.0)),
    "shape": lambda t: t.distributions.Categorical(t.ones(2, 3)).log_prob(t.zeros(4)),
    "event": lambda t: t.distributions.Dirichlet(t.ones(3)).log_prob(t.ones(2)),
    "number": lambda t: t.distributions.Normal(0.0, 1.0).log_prob(0.5),
    "kinds": lambda t: t.distributions.kl_divergence(
        t.distributions.Normal(0.0, 1.0), t.distributions.Categorical(t.ones(2))
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    errors = []
    for t in (rushlight, torch):
        with pytest.raises((ValueError, NotImplementedError)) as caught:
            WRONG[name](t)
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


def test_checks_can_be_left_out():
    assert (
        rushlight.distributions.Normal(0.0, 1.0, validate_args=False).log_prob(rushlight.tensor(float("nan"))).isnan()
    )


PLACES = ["normal.Normal", "categorical.Categorical", "multivariate_normal.MultivariateNormal", "kl.kl_divergence",
          "transforms.TanhTransform", "constraints.positive", "studentT.StudentT", "utils.broadcast_all",
          "utils.lazy_property", "utils.probs_to_logits", "utils.logits_to_probs", "utils.clamp_probs"]  # fmt: skip


@pytest.mark.parametrize("path", PLACES)
def test_places(path):
    module, name = path.split(".")
    for package in ("torch", "rushlight"):
        assert hasattr(importlib.import_module(f"{package}.distributions.{module}"), name)


def test_slopes_of_gamma_and_dirichlet():
    """PyTorch's are approximations in places: to about a thousandth."""
    grid = np.array([0.02, 0.5, 1.0, 3.0, 20.0, 300.0])
    a, b, x = (g.ravel() for g in np.meshgrid(grid, grid, [1e-6, 0.01, 0.3, 0.5, 0.9, 0.999]))
    mean, spread = a / (a + b), np.sqrt(a * b / (a + b + 1)) / (a + b)
    near = np.abs(x - mean) < 4 * spread
    three = x[near], a[near], (a + b)[near]
    ours = rushlight._dirichlet_grad(*map(rushlight.from_numpy, three))
    theirs = torch._dirichlet_grad(*map(torch.from_numpy, three))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-3)
    compare(
        *(t._standard_gamma_grad(t.tensor([0.3, 2.0, 50.0]), t.tensor([0.1, 3.0, 44.0])) for t in (rushlight, torch)),
        2e-3,
    )
    for concentration in (0.01, 1e-4, 0.0, 3.0):
        for t in (rushlight, torch):
            t.manual_seed(0)
        compare(*(t._sample_dirichlet(t.full((3, 4), concentration)) for t in (rushlight, torch)))
