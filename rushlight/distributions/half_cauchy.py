from __future__ import annotations

import math

import rushlight as torch

from .cauchy import Cauchy
from .half import Half

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The size of a centred ``Cauchy`` value."""

    centred = Cauchy

    @property
    def mean(self):
        return torch.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self):
        return self.base_dist.variance

    def log_prob(self, value):
        return super().log_prob(torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))
