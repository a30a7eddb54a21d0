from __future__ import annotations

import math

import rushlight as torch

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What lies above a threshold ``loc``: a power law of shape ``concentration``, exponential where that is 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        numbers = all(isinstance(v, (int, float)) for v in (loc, scale, concentration))
        super().__init__(torch.Size() if numbers else self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._copied(_instance)
        for name in ("loc", "scale", "concentration"):
            setattr(new, name, getattr(self, name).expand(batch_shape))
        new._batch_shape = torch.Size(batch_shape)
        return new

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        upper = torch.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)

    def _safe(self):
        """(where the shape is 0, the shape with ones there)."""
        zero = torch.isclose(self.concentration, torch.zeros_like(self.concentration))
        return zero, torch.where(zero, torch.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, shape = self._safe()
        power = -(1 / shape + torch.ones_like(z)) * torch.log1p(shape * z)
        return torch.where(zero, -z, power) - self.scale.log()

    def log_survival_function(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, shape = self._safe()
        return torch.where(zero, -z, -torch.log1p(shape * z) / shape)

    def log_cdf(self, value):
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value):
        return torch.exp(self.log_cdf(value))

    def icdf(self, value):
        zero, shape = self._safe()
        left = torch.log1p(-value)
        return torch.where(
            zero, self.loc - self.scale * left, self.loc + self.scale / shape * torch.expm1(-shape * left)
        )

    def _z(self, x):
        return (x - self.loc) / self.scale

    @property
    def mean(self):
        finite = self.concentration < 1
        shape = torch.where(finite, self.concentration, torch.full_like(self.concentration, 0.5))
        return torch.where(finite, self.loc + self.scale / (1 - shape), math.inf)

    @property
    def variance(self):
        finite = self.concentration < 0.5
        shape = torch.where(finite, self.concentration, torch.full_like(self.concentration, 0.25))
        return torch.where(finite, self.scale**2 / ((1 - shape) ** 2 * (1 - 2 * shape)), math.inf)

    @property
    def mode(self):
        return self.loc

    def entropy(self):
        return (torch.log(self.scale) + self.concentration + 1).expand(self._batch_shape)
