from __future__ import annotations

import math

import rushlight as torch

from ..errors import warn_user
from . import constraints
from .chi2 import Chi2
from .distribution import ExponentialFamily
from .multivariate_normal import _factor, _only_matrix
from .utils import lazy_property

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """Sums of ``df`` squared normal vectors: random positive definite matrices."""

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None) -> None:
        name, matrix = _only_matrix(AssertionError, covariance_matrix, precision_matrix, scale_tril)
        df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device) if isinstance(df, (int, float)) else df
        batch_shape = torch.Size(torch.broadcast_shapes(df.shape, matrix.shape[:-2]))
        event_shape = matrix.shape[-2:]
        self.df = df.expand(batch_shape)
        setattr(self, name, matrix.expand(batch_shape + event_shape))
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(event_shape[-1]).any():
            warn_user("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.")
        self._unbroadcasted_scale_tril = _factor(name, matrix)
        count = torch.arange(event_shape[-1], dtype=matrix.dtype, device=matrix.device)
        self._chi2 = Chi2(self.df.unsqueeze(-1) - count.expand(batch_shape + (-1,)))

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        size = self._event_shape[-1]
        half = y + (size + 1) / 2
        return half * (size * math.log(2) - torch.linalg.slogdet(-2 * x)[1]) + torch.mvlgamma(half, size)

    def expand(self, batch_shape, _instance=None):
        return Wishart(
            self.df.expand(batch_shape),
            scale_tril=self.scale_tril.expand(torch.Size(batch_shape) + self._event_shape),
            validate_args=False,
        )

    @lazy_property
    def scale_tril(self):
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        return (self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT).expand(
            self._batch_shape + self._event_shape
        )

    @lazy_property
    def precision_matrix(self):
        return torch.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape)

    @property
    def mean(self):
        return self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = torch.where(factor <= 0, math.nan, factor)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(self._batch_shape + (1, 1)) * (v.pow(2) + products)

    def _bartlett(self, sample_shape):
        """A lower triangle of normal variates with roots of chi-squared ones on its diagonal."""
        p = self._event_shape[-1]
        noise = self._chi2.rsample(sample_shape).sqrt().diag_embed(dim1=-2, dim2=-1)
        i, j = torch.tril_indices(p, p, offset=-1)
        below = torch.randn(
            torch.Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,), dtype=noise.dtype, device=noise.device
        )
        noise[..., i, j] = below
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape=(), max_try_correction=None):
        # PyTorch takes every good sample for a singular one, and draws it again; with it we have its numbers.
        sample = self._bartlett(sample_shape)
        again = self._batch_wise(self.support.check(sample))
        for _ in range(3 if max_try_correction is None else max_try_correction):
            if not again.any():
                break
            new = self._bartlett(again[again].shape)
            sample[again] = new
            chosen, again = again, again.clone()  # the graph keeps the first
            again[chosen] = self._batch_wise(~self.support.check(new))
        return sample

    def _batch_wise(self, found):
        """Whether anything was found in a batch."""
        dims = [-(i + 1) for i in range(len(self._batch_shape))]
        return found.amax(dims) if dims else found

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        spread = p * math.log(2.0) / 2 + self._half_log_det()
        trace = torch.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        constant = -nu * spread - torch.mvlgamma(nu / 2, p=p)
        return constant + (nu - p - 1) / 2 * torch.linalg.slogdet(value).logabsdet - trace / 2

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self):
        nu, p = self.df, self._event_shape[-1]
        places = torch.arange(p, dtype=nu.dtype, device=nu.device) / 2
        digammas = torch.digamma(nu.unsqueeze(-1) / 2 - places).sum(-1)
        size = (p + 1) * (p * math.log(2.0) / 2 + self._half_log_det())
        return size + torch.mvlgamma(nu / 2, p=p) - (nu - p - 1) / 2 * digammas + nu * p / 2
