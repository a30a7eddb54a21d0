from __future__ import annotations

import math

import rushlight as torch

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles around ``loc``, a normal distribution on the circle; samples are of Best and Fisher's rejection."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, torch.Size(), validate_args)

    def expand(self, batch_shape, _instance=None):
        return VonMises(self.loc.expand(batch_shape), self.concentration.expand(batch_shape), self._validate_args)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        density = self.concentration * torch.cos(value - self.loc)
        return density - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    @lazy_property
    def _proposal(self):
        """The shape of the wrapped Cauchy distribution that is sampled from; in double precision."""
        kappa = self.concentration.double()
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return torch.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape=()):
        with torch.no_grad():
            shape = self._extended_shape(sample_shape)
            loc, kappa, r = self.loc.double(), self.concentration.double(), self._proposal
            x = torch.empty(shape, dtype=torch.double, device=self.loc.device)
            done = torch.zeros(shape, dtype=torch.bool, device=self.loc.device)
            while not done.all():
                u1, u2, u3 = torch.rand((3, *shape), dtype=torch.double, device=self.loc.device).unbind()
                z = torch.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = torch.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self):
        return self.loc

    mode = mean

    @lazy_property
    def variance(self):
        """1 less the length of the mean direction."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()


def _log_bessel(x, order: int):
    """The logarithm of the modified Bessel function of the first kind."""
    scaled = torch.special.i0e(x) if order == 0 else torch.special.i1e(x)
    return scaled.log() + x
