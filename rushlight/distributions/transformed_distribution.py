from __future__ import annotations

import rushlight as torch

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """What becomes of values of ``base_distribution`` by ``transforms``, one or a list.

    >>> d = rushlight.distributions
    >>> d.TransformedDistribution(d.Normal(0.0, 1.0), [d.ExpTransform()]).log_prob(rushlight.tensor(1.0))
    tensor(-0.9189)
    """

    def __init__(self, base_distribution, transforms, validate_args=None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(
                f"transforms must be a Transform or list, but was {transforms}"
                if not isinstance(transforms, (list, tuple))
                else "transforms must be a Transform or a list of Transforms"
            )
        transform = ComposeTransform(self.transforms)
        before = base_distribution.batch_shape + base_distribution.event_shape
        if len(before) < transform.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {transform.domain.event_dim}, "
                f"but got {base_distribution}."
            )
        after = transform.forward_shape(before)
        base = base_distribution.expand(
            transform.inverse_shape(after)[: len(before) - len(base_distribution.event_shape)]
        )
        more = transform.domain.event_dim - len(base.event_shape)
        self.base_dist = Independent(base, more) if more > 0 else base
        dims = max(
            transform.codomain.event_dim + max(len(base.event_shape) - transform.domain.event_dim, 0),
            transform.codomain.event_dim,
        )
        cut = len(after) - dims
        super().__init__(after[:cut], after[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new, batch_shape = self._copied(_instance), torch.Size(batch_shape)
        new.transforms = self.transforms
        shape = ComposeTransform(self.transforms).inverse_shape(batch_shape + self._event_shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new._batch_shape = batch_shape
        return new

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self._event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    def sample(self, sample_shape=()):
        with torch.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        dims, total, y = len(self._event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            stretch = transform.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(stretch, dims - transform.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._monotonized(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._forward(self.base_dist.icdf(self._monotonized(value)))

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def _monotonized(self, place):
        """Where the transforms fall, the place from below is the place from above."""
        sign = ComposeTransform(self.transforms).sign
        if isinstance(sign, int) and sign == 1:
            return place
        return sign * (place - 0.5) + 0.5
