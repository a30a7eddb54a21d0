from __future__ import annotations

import rushlight as torch

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two ``Chi2`` values, each over its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self):
        return torch.where(self.df2 > 2, self.df2 / (self.df2 - 2), torch.nan)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return torch.where(self.df1 > 2, mode, torch.nan)

    @property
    def variance(self):
        above = self.df2 - 4
        var = 2 * self.df2**2 * (self.df1 + self.df2 - 2) / (self.df1 * (self.df2 - 2) ** 2 * above)
        return torch.where(above > 0, var, torch.nan)

    def rsample(self, sample_shape=()):
        shape = torch.Size(sample_shape)
        upper, lower = (Gamma(df * 0.5, df * 0.5).rsample(shape) for df in (self.df1, self.df2))
        tiny = torch.finfo(lower.dtype).tiny
        return (upper / lower.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        return a * ratio.log() + (a - 1) * value.log() - (a + b) * torch.log1p(ratio * value) - log_beta
