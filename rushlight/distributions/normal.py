from __future__ import annotations

import math

import rushlight as torch

from .distribution import ExponentialFamily
from .utils import LOG_SQRT_2PI, LocScale

__all__ = ["Normal"]


class Normal(LocScale, ExponentialFamily):
    """The normal distribution of mean ``loc`` and standard deviation ``scale``.

    >>> rushlight.distributions.Normal(0.0, 1.0).log_prob(rushlight.tensor(0.0))
    tensor(-0.9189)
    """

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale.pow(2)

    def rsample(self, sample_shape=()):
        return self.loc + self._standard_normal(sample_shape, self.loc) * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - LOG_SQRT_2PI

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * (1 + torch.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + torch.log(self.scale)
