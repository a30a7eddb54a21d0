"""``kl_divergence(p, q)``: how much is lost when ``q`` stands for ``p``."""

from __future__ import annotations

import math
from collections.abc import Callable

import rushlight as torch

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution, ExponentialFamily, normalizer_slopes
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, squared_distance
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import sum_rightmost

__all__ = ["kl_divergence", "register_kl"]


def __dir__():
    return __all__


_KL_REGISTRY: dict[tuple[type, type], Callable] = {}


def register_kl(type_p, type_q):
    """A decorator: this function of (p, q) is the divergence of such distributions."""
    # Packages have bases of their own beside Distribution: PyTorch takes any class.
    if not isinstance(type_p, type):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not isinstance(type_q, type):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def register(function):
        _KL_REGISTRY[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution):
    """KL(p || q), by the rule for the nearest kinds of distributions that there is one for.

    >>> d = rushlight.distributions
    >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    fitting = [(pair, rule) for pair, rule in _KL_REGISTRY.items() if isinstance(p, pair[0]) and isinstance(q, pair[1])]
    if not fitting:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    distance = lambda pair: type(p).__mro__.index(pair[0]) + type(q).__mro__.index(pair[1])
    return min(fitting, key=lambda entry: distance(entry[0]))[1](p, q)


@register_kl(ExponentialFamily, ExponentialFamily)
def _families(p, q):
    """Of two of one kind, by how far the normalizer of q lies above its tangent at p."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot                             be "
            "computed using Bregman divergences"
        )
    points, normalizer, slopes = normalizer_slopes(p)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for at, to, slope in zip(points, q._natural_params, slopes):
        result = result - sum_rightmost((to - at) * slope, len(q.event_shape) if slope.ndim > normalizer.ndim else 0)
    return result


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with                          different event shapes "
            "cannot be computed"
        )
    n = p.event_shape[0]
    log_dets = [d._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) for d in (q, p)]
    ratio = (
        torch.linalg.solve_triangular(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril, upper=False)
        .pow(2)
        .sum([-2, -1])
    )
    return log_dets[0] - log_dets[1] + 0.5 * (ratio + squared_distance(q._unbroadcasted_scale_tril, q.loc - p.loc) - n)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = torch.where((q.probs == 0).expand_as(terms), math.inf, terms)
    return torch.where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    softplus = torch.nn.functional.softplus
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    yes = torch.where(p.probs == 0, 0.0, torch.where(q.probs == 0, math.inf, yes))
    return yes + torch.where(p.probs == 1, 0.0, torch.where(q.probs == 1, math.inf, no))


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return torch.where(p.total_count > q.total_count, math.inf, kl)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    moved = q.concentration * (p.rate / q.rate).log() + torch.lgamma(b) - torch.lgamma(a)
    return moved + (a - b) * torch.digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    scale = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return scale + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * torch.exp(-away / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    apart = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return apart.log() - (4 * p.scale * q.scale).log()


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return torch.where((q.low > p.low) | (q.high < p.high), math.inf, kl)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


# -- of different kinds ------------------------------------------------------------------------------------------------


def _register_pairs(kinds, type_q):
    """A decorator: one function for several kinds of p."""

    def register(function):
        for kind in kinds:
            register_kl(kind, type_q)(function)
        return function

    return register


@_register_pairs((Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform), Normal)
def _to_normal(p, q):
    """Only the mean and the variance of p matter; of Pareto's they may be infinite."""
    spread = p.variance + (p.mean - q.loc).pow(2)
    kl = -p.entropy() + 0.5 * (2 * math.pi * q.scale.pow(2)).log() + spread / (2 * q.scale.pow(2))
    return torch.where(p.alpha <= 2, math.inf, kl) if isinstance(p, Pareto) else kl


@_register_pairs((Beta, ContinuousBernoulli, Gamma, Pareto, Uniform), Exponential)
def _to_exponential(p, q):
    kl = -p.entropy() - q.rate.log() + q.rate * p.mean
    if isinstance(p, Pareto):
        return torch.where(p.alpha <= 1, math.inf, kl)
    return torch.where(p.low < 0, math.inf, kl) if isinstance(p, Uniform) else kl


@_register_pairs((Beta, ContinuousBernoulli), Uniform)
def _to_uniform(p, q):
    kl = -p.entropy() + (q.high - q.low).log()
    return torch.where((q.low > 0) | (q.high < 1), math.inf, kl)


@_register_pairs((Beta, Uniform), ContinuousBernoulli)
def _to_continuous_bernoulli(p, q):
    kl = -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()
    return torch.where((p.high > 1) | (p.low < 0), math.inf, kl) if isinstance(p, Uniform) else kl


@_register_pairs((Beta, Exponential, Pareto, Uniform), Gamma)
def _to_gamma(p, q):
    kl = -p.entropy() + torch.lgamma(q.concentration) - q.concentration * q.rate.log()
    kl = kl - (q.concentration - 1) * _mean_log(p) + q.rate * p.mean
    if isinstance(p, Pareto):
        return torch.where(p.alpha <= 1, math.inf, kl)
    return torch.where(p.low < 0, math.inf, kl) if isinstance(p, Uniform) else kl


def _mean_log(p):
    """The mean of log x."""
    if isinstance(p, Beta):
        return torch.digamma(p.concentration1) - torch.digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Exponential):
        return -_EULER - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return (torch.xlogy(p.high, p.high) - torch.xlogy(p.low, p.low)) / (p.high - p.low) - 1


_EULER = 0.57721566490153286060


@_register_pairs((Exponential, Gamma, Normal, Uniform), Gumbel)
def _to_gumbel(p, q):
    shift = (p.mean - q.loc) / q.scale
    return -p.entropy() + q.scale.log() + shift + _mean_decay(p, q.loc, q.scale)


def _mean_decay(p, loc, scale):
    """The mean of exp(-(x - loc) / scale)."""
    if isinstance(p, Normal):
        return torch.exp(-(p.loc - loc) / scale + 0.5 * (p.scale / scale).pow(2))
    if isinstance(p, Uniform):
        ends = torch.exp(-(p.low - loc) / scale) - torch.exp(-(p.high - loc) / scale)
        return ends * scale / (p.high - p.low)
    power = 1.0 if isinstance(p, Exponential) else p.concentration
    return torch.exp(loc / scale) * (1 + (p.rate * scale).reciprocal()).pow(-power)


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, apart = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -ratio.log() + apart + ratio * _EULER + torch.exp(-apart + torch.lgamma(1 + ratio)) - (1 + _EULER)


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    away = (p.loc - q.loc).abs()
    near = p.scale * math.sqrt(2 / math.pi) * torch.exp(-0.5 * (away / p.scale).pow(2))
    mean_distance = near + away * torch.erf(away / (math.sqrt(2.0) * p.scale))
    return -p.entropy() + (2 * q.scale).log() + mean_distance / q.scale


@register_kl(Uniform, Beta)
def _uniform_beta(p, q):
    a, b, width = q.concentration1, q.concentration0, p.high - p.low
    other = (torch.xlogy(1 - p.low, 1 - p.low) - torch.xlogy(1 - p.high, 1 - p.high)) / width - 1
    kl = -width.log() + torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
    kl = kl - (a - 1) * _mean_log(p) - (b - 1) * other
    return torch.where((p.high > 1) | (p.low < 0), math.inf, kl)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p, q):
    kl = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * _mean_log(p)
    return torch.where(p.low < q.scale, math.inf, kl)


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return torch.where(p.scale < q.scale, math.inf, kl)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    same = p._cont_bern_log_norm() + torch.log1p(-p.probs)
    return p.mean * (p.logits - q.logits) + same - torch.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p, q):
    return _multivariate_normal(_whole(p), _whole(q))


def _whole(d):
    if isinstance(d, MultivariateNormal):
        return d
    return MultivariateNormal(d.loc, scale_tril=d.scale_tril, validate_args=False)


_BOUNDED = (Beta, ContinuousBernoulli, Uniform)
_NEVER = {  # p has values where q has none
    (Beta, Pareto), (ContinuousBernoulli, Pareto), (Poisson, Bernoulli), (Poisson, Binomial),
    *((p, q) for p in (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto) for q in _BOUNDED),
    *((p, q) for p in (Gumbel, Laplace, Normal) for q in (Exponential, Gamma, Pareto)),
    (Exponential, Pareto), (Gamma, Pareto),
}  # fmt: skip


def _infinite(p, q):
    return torch.full(torch.broadcast_shapes(p.batch_shape, q.batch_shape), math.inf)


for _p, _q in _NEVER:
    register_kl(_p, _q)(_infinite)
