from __future__ import annotations

import math

import rushlight as torch

from .distribution import Distribution
from .utils import LocScale

__all__ = ["Cauchy"]


class Cauchy(LocScale, Distribution):
    """The ratio of two centred normal values, moved by ``loc`` and stretched by ``scale``: it has no mean."""

    @property
    def mean(self):
        return torch.full_like(self.loc, torch.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return torch.full_like(self.loc, torch.inf)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.loc + torch.empty(shape, dtype=self.loc.dtype, device=self.loc.device).cauchy_() * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()
