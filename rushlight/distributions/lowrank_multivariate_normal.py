from __future__ import annotations

import math

import rushlight as torch

from . import constraints
from .distribution import Distribution
from .utils import lazy_property

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``.

    With a factor of few columns the matrices that are decomposed have that size (Woodbury's identity).
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as e:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from e
        batch_shape = torch.Size(batch_shape)
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        self._factor, self._diag = cov_factor, cov_diag
        self._capacitance = torch.linalg.cholesky(
            torch.eye(cov_factor.shape[-1], dtype=cov_factor.dtype, device=cov_factor.device)
            + (cov_factor.mT / cov_diag.unsqueeze(-2)) @ cov_factor
        )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._copied(_instance)
        batch_shape = torch.Size(batch_shape)
        new.loc = self.loc.expand(batch_shape + self._event_shape)
        new.cov_diag = self.cov_diag.expand(batch_shape + self._event_shape)
        new.cov_factor = self.cov_factor.expand(batch_shape + self.cov_factor.shape[-2:])
        new._factor, new._diag, new._capacitance = self._factor, self._diag, self._capacitance
        new._batch_shape, new._event_shape = batch_shape, self._event_shape
        return new

    @property
    def mean(self):
        return self.loc

    mode = mean

    @lazy_property
    def variance(self):
        return (self._factor.pow(2).sum(-1) + self._diag).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        n = self._event_shape[0]
        scaled = self._factor / self._diag.sqrt().unsqueeze(-1)
        inner = scaled @ scaled.mT + torch.eye(n, dtype=scaled.dtype, device=scaled.device)
        tril = self._diag.sqrt().unsqueeze(-1) * torch.linalg.cholesky(inner)
        return tril.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        whole = self._factor @ self._factor.mT + torch.diag_embed(self._diag)
        return whole.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self):
        a = torch.linalg.solve_triangular(self._capacitance, self._factor.mT / self._diag.unsqueeze(-2), upper=False)
        whole = torch.diag_embed(self._diag.reciprocal()) - a.mT @ a
        return whole.expand(self._batch_shape + self._event_shape + self._event_shape)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        few = shape[:-1] + self.cov_factor.shape[-1:]
        first, second = (self._noise(s) for s in (few, shape))
        return self.loc + (self._factor @ first.unsqueeze(-1)).squeeze(-1) + self._diag.sqrt() * second

    def _noise(self, shape):
        zeros = torch.zeros(shape, dtype=self.loc.dtype, device=self.loc.device)
        return torch.normal(zeros, torch.ones_like(zeros))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        difference = value - self.loc
        inner = (self._factor.mT / self._diag.unsqueeze(-2)) @ difference.unsqueeze(-1)
        small = torch.linalg.solve_triangular(self._capacitance, inner, upper=False).squeeze(-1).pow(2).sum(-1)
        distance = (difference.pow(2) / self._diag).sum(-1) - small
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def _log_det(self):
        return 2 * self._capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self._diag.log().sum(-1)

    def entropy(self):
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy if not self._batch_shape else entropy.expand(self._batch_shape)
