"""``rushlight.distributions``: what training loops sample from, with PyTorch's numbers for the same seed."""

from __future__ import annotations

import math

import rushlight as torch

__all__ = ["Bernoulli", "Categorical", "Distribution", "Normal", "Uniform", "kl_divergence"]


class Distribution:
    """``batch_shape`` independent distributions over values of ``event_shape``."""

    has_rsample = False

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = torch.Size(batch_shape), torch.Size(event_shape)
        self._validate_args = validate_args is not False

    @property
    def batch_shape(self):
        return self._batch_shape

    @property
    def event_shape(self):
        return self._event_shape

    @property
    def stddev(self):
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """Draw without a gradient."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """Draw so that gradients reach the parameters."""
        raise NotImplementedError(f"{type(self).__name__} cannot draw with gradients: use sample()")

    def log_prob(self, value):
        raise NotImplementedError

    def _extended_shape(self, sample_shape=()):
        return torch.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _require(self, holds, name: str, what: str) -> None:
        if self._validate_args and not holds.all():
            raise ValueError(f"Expected parameter {name} of distribution {type(self).__name__} to be {what}")


class Categorical(Distribution):
    """One of ``probs.shape[-1]`` outcomes: weights ``probs``, or their logarithms ``logits``.

    >>> rushlight.distributions.Categorical(rushlight.tensor([0.25, 0.75])).log_prob(rushlight.tensor(1))
    tensor(-0.2877)
    """

    def __init__(self, probs=None, logits=None, validate_args=None):
        _exactly_one(probs, logits)
        given = probs if probs is not None else logits
        if given.dim() < 1:
            raise ValueError(
                f"`{'probs' if probs is not None else 'logits'}` parameter must be at least one-dimensional."
            )
        super().__init__(given.shape[:-1], validate_args=validate_args)
        if probs is not None:
            self._require(
                (probs >= 0) & (probs.sum(-1, keepdim=True) > 0), "probs", "non-negative weights, not all zero"
            )
            self.probs = probs / probs.sum(-1, keepdim=True)
            self.logits = _logits(self.probs)
        else:
            self._require(logits == logits, "logits", "numbers")
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
            self.probs = torch.softmax(self.logits, dim=-1)
        self._num_events = given.shape[-1]

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape=()):
        with torch.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = torch.multinomial(rows, math.prod(sample_shape), True).T
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        value, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)


class Bernoulli(Distribution):
    """1 with probability ``probs`` (or ``sigmoid(logits)``), else 0."""

    def __init__(self, probs=None, logits=None, validate_args=None):
        _exactly_one(probs, logits)
        given = torch.as_tensor(probs if probs is not None else logits, dtype=_float(probs, logits))
        super().__init__(given.shape, validate_args=validate_args)
        if probs is not None:
            self._require((given >= 0) & (given <= 1), "probs", "between 0 and 1")
        self.probs = given if probs is not None else torch.sigmoid(given)
        self.logits = given if probs is None else _logits(given, binary=True)

    @property
    def mean(self):
        return self.probs

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        logits, value = torch.broadcast_tensors(self.logits, value)
        return -torch.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return torch.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


class Normal(Distribution):
    """The normal distribution of mean ``loc`` and standard deviation ``scale``."""

    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = _broadcast(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
        self._require(self.scale > 0, "scale", "greater than 0")

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale.pow(2)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        noise = torch.normal(torch.zeros(shape, dtype=self.loc.dtype), torch.ones(shape, dtype=self.loc.dtype))
        return self.loc + noise.to(self.loc.device) * self.scale

    def log_prob(self, value):
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value):
        return 0.5 * (1 + torch.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + torch.log(self.scale)


class Uniform(Distribution):
    """Uniform between ``low`` and ``high``."""

    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = _broadcast(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not (self.low < self.high).all():
            raise ValueError("Uniform is not defined when low>= high")

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def variance(self):
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape=()):
        noise = torch.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + noise * (self.high - self.low)

    def log_prob(self, value):
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return torch.log(inside) - torch.log(self.high - self.low)

    def entropy(self):
        return torch.log(self.high - self.low)


def kl_divergence(p: Distribution, q: Distribution):
    """KL(p || q) of two distributions of the same kind."""
    if isinstance(p, Normal) and isinstance(q, Normal):
        ratio = (p.scale / q.scale).pow(2)
        return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return (p.probs * (p.logits - q.logits)).sum(-1)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )


def _exactly_one(probs, logits) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def _broadcast(*values):
    """Parameters as tensors of one dtype and shape."""
    dtype = _float(*values)
    return torch.broadcast_tensors(*(torch.as_tensor(v, dtype=dtype) for v in values))


def _float(*values):
    """The dtype of the first tensor among the parameters, or the default one for plain numbers."""
    return next((v.dtype for v in values if isinstance(v, torch.Tensor)), torch.get_default_dtype())


def _logits(probs, binary: bool = False):
    eps = torch.finfo(probs.dtype).eps
    clamped = probs.clamp(min=eps, max=1 - eps)
    return clamped.log() - (-clamped).log1p() if binary else clamped.log()
