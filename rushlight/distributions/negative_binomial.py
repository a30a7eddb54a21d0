from __future__ import annotations

import rushlight as torch
from rushlight.nn.functional import logsigmoid

from . import constraints
from .binomial import _counts
from .distribution import Distribution
from .gamma import Gamma
from .utils import ByProbsOrLogits

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ByProbsOrLogits, Distribution):
    """How many trials succeed, each with probability ``probs``, before ``total_count`` have failed."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None) -> None:
        self.total_count, given = _counts(total_count, self._given(probs, logits))
        self._keep(given)
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / torch.sigmoid(-self.logits)

    def sample(self, sample_shape=()):
        with torch.no_grad():
            rate = Gamma(self.total_count, torch.exp(-self.logits), validate_args=False).sample(sample_shape)
            return torch.poisson(rate)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        ways = torch.lgamma(n + value) - torch.lgamma(1.0 + value) - torch.lgamma(n)
        ways = torch.where(n + value == 0.0, 0.0, ways)
        return n * logsigmoid(-logits) + value * logsigmoid(logits) + ways
