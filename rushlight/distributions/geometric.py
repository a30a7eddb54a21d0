from __future__ import annotations

import rushlight as torch
from rushlight.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from .distribution import Distribution
from .utils import ByProbsOrLogits, broadcast_all

__all__ = ["Geometric"]


class Geometric(ByProbsOrLogits, Distribution):
    """How many trials fail before the first that succeeds with probability ``probs``."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None) -> None:
        (given,) = broadcast_all(self._given(probs, logits))
        self._keep(given)
        super().__init__(given.shape, validate_args=validate_args)
        if self._validate_args and self._by_probs and not (given > 0).all():
            raise ValueError(
                f"Expected parameter probs ({type(given).__name__} of shape {tuple(given.shape)}) of distribution "
                f"{self!r} to be positive but found invalid values:\n{given}"
            )

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def mode(self):
        return torch.zeros_like(self.probs)

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=()):
        shape, probs = self._extended_shape(sample_shape), self.probs
        with torch.no_grad():
            u = torch.empty(shape, dtype=probs.dtype, device=probs.device)
            u.uniform_(torch.finfo(probs.dtype).tiny, 1)
            return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, probs = torch.broadcast_tensors(value, self.probs)
        probs = torch.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
