from __future__ import annotations

import math

import rushlight as torch

from . import constraints
from .distribution import Distribution
from .utils import ByProbsOrLogits

__all__ = ["Categorical"]


class Categorical(ByProbsOrLogits, Distribution):
    """One of ``probs.shape[-1]`` outcomes: weights ``probs``, or their logarithms ``logits``.

    >>> rushlight.distributions.Categorical(rushlight.tensor([0.25, 0.75])).log_prob(rushlight.tensor(1))
    tensor(-0.2877)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary = False

    def __init__(self, probs=None, logits=None, validate_args=None) -> None:
        given = self._given(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{'probs' if self._by_probs else 'logits'}` parameter must be at least one-dimensional.")
        total = given.sum(-1, keepdim=True) if self._by_probs else given.logsumexp(dim=-1, keepdim=True)
        self._keep(given / total if self._by_probs else given - total)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def _copied(self, instance):
        new = super()._copied(instance)
        new._num_events = self._num_events
        return new

    @property
    def param_shape(self):
        return self._param.size()

    @constraints.dependent_property(is_discrete=True)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self):
        return torch.full(self._extended_shape(), torch.nan, dtype=self.probs.dtype, device=self.probs.device)

    variance = mean

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape=()):
        with torch.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = torch.multinomial(rows, math.prod(sample_shape), True).T
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True):
        values = torch.arange(self._num_events, device=self._param.device).reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
