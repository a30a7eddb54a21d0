from __future__ import annotations

import rushlight as torch

from . import constraints
from .distribution import Distribution
from .utils import ByProbsOrLogits, broadcast_all

__all__ = ["Binomial"]


class Binomial(ByProbsOrLogits, Distribution):
    """How many of ``total_count`` trials succeed, each with probability ``probs``."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None) -> None:
        self.total_count, given = _counts(total_count, self._given(probs, logits))
        self._keep(given)
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def param_shape(self):
        return self._param.size()

    @constraints.dependent_property(is_discrete=True)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        ways = torch.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        return ways + value * logits - n * torch.nn.functional.softplus(logits)

    def entropy(self):
        most = int(self.total_count.max())
        if not self.total_count.min() == most:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True):
        most = int(self.total_count.max())
        if not self.total_count.min() == most:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = torch.arange(1 + most, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


def _counts(total_count, given):
    """Counts of the parameter's type and shape."""
    (given,) = broadcast_all(given)
    counts, given = torch.broadcast_tensors(torch.as_tensor(total_count, device=given.device), given)
    return counts.type_as(given), given
