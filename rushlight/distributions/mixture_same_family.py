from __future__ import annotations

import rushlight as torch

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Values of one of several distributions of a kind, the last dimension of a batch, chosen by a ``Categorical``."""

    def __init__(self, mixture_distribution, component_distribution, validate_args=None) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        components, weights = component_distribution.batch_shape[-1:], mixture_distribution.logits.shape[-1:]
        if tuple(weights) != tuple(components):
            raise ValueError(
                f"`mixture_distribution component` ({weights[0]}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components[0] if components else ()})"
            )
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        batch_shape = component_distribution.batch_shape[:-1]
        super().__init__(batch_shape, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new, batch_shape = self._copied(_instance), torch.Size(batch_shape)
        n = self._component_distribution.batch_shape[-1:]
        new._component_distribution = self._component_distribution.expand(batch_shape + n)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._batch_shape = batch_shape
        return new

    @property
    def mixture_distribution(self):
        return self._mixture_distribution

    @property
    def component_distribution(self):
        return self._component_distribution

    @constraints.dependent_property
    def support(self):
        return _OfComponents(self._component_distribution.support)

    @property
    def mean(self):
        return (self._weights() * self.component_distribution.mean).sum(self._dim)

    @property
    def variance(self):
        weights, parts = self._weights(), self.component_distribution
        within = (weights * parts.variance).sum(self._dim)
        return within + (weights * (parts.mean - self.mean.unsqueeze(self._dim)).pow(2)).sum(self._dim)

    def sample(self, sample_shape=()):
        with torch.no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            values = self.component_distribution.sample(sample_shape)
            chosen = chosen.reshape(*chosen.shape, 1, *[1] * len(self._event_shape))
            shape = [*values.shape]
            shape[len(shape) - 1 - len(self._event_shape)] = 1
            return values.gather(self._dim, chosen.expand(shape)).squeeze(self._dim)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        by_part = self.component_distribution.log_prob(value.unsqueeze(self._dim))
        return torch.logsumexp(by_part + torch.log_softmax(self.mixture_distribution.logits, dim=-1), dim=-1)

    def cdf(self, value):
        by_part = self.component_distribution.cdf(value.unsqueeze(self._dim))
        return (by_part * self.mixture_distribution.probs).sum(-1)

    @property
    def _dim(self) -> int:
        """Where the components are, counted from the right."""
        return -1 - len(self._event_shape)

    def _weights(self):
        probs = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * len(self._event_shape))

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"


class _OfComponents(constraints.Constraint):
    """Holds where it holds for every component."""

    def __init__(self, base) -> None:
        self.base, self.event_dim, self.is_discrete = base, base.event_dim, base.is_discrete

    def check(self, value):
        return self.base.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base!r})"
