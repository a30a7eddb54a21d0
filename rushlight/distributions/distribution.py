"""``Distribution``: shapes, validation of parameters and values, expansion, printing."""

from __future__ import annotations

import rushlight as torch

from ..compiler import is_compiling
from . import constraints

__all__ = ["Distribution", "ExponentialFamily"]


class Distribution:
    """``batch_shape`` independent distributions over values of ``event_shape``."""

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: dict[str, constraints.Constraint] = {}
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions made from now on check their parameters and values."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None) -> None:
        self._batch_shape, self._event_shape = torch.Size(batch_shape), torch.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                # Of two ways to give one parameter, the other one is computed when it is asked for.
                if not constraints.is_dependent(constraint) and name in self.__dict__:
                    self._check_parameter(name, constraint)

    @property
    def batch_shape(self):
        return self._batch_shape

    @property
    def event_shape(self):
        return self._event_shape

    @property
    def support(self):
        raise NotImplementedError

    @property
    def mean(self):
        raise NotImplementedError

    @property
    def mode(self):
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        raise NotImplementedError

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

    def sample_n(self, n: int):
        return self.sample((n,))

    def log_prob(self, value):
        raise NotImplementedError

    def cdf(self, value):
        raise NotImplementedError

    def icdf(self, value):
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True):
        raise NotImplementedError

    def entropy(self):
        raise NotImplementedError

    def perplexity(self):
        return torch.exp(self.entropy())

    def expand(self, batch_shape, _instance=None):
        """The same distributions, repeated to a larger ``batch_shape`` without copying."""
        new, batch_shape = self._copied(_instance), torch.Size(batch_shape)
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                setattr(new, name, value.expand(batch_shape + value.shape[len(self._batch_shape) :]))
        new._batch_shape = batch_shape
        return new

    def _copied(self, instance):
        """A new instance that has everything but the parameters."""
        new = type(self).__new__(type(self)) if instance is None else instance
        new._event_shape, new._validate_args = self._event_shape, False
        return new

    def _extended_shape(self, sample_shape=()):
        return torch.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _standard_normal(self, sample_shape, like):
        """Noise of the shape of a sample."""
        shape = self._extended_shape(sample_shape)
        return torch.normal(torch.zeros(shape, dtype=like.dtype), torch.ones(shape, dtype=like.dtype)).to(like.device)

    def _check_parameter(self, name: str, constraint) -> None:
        value = getattr(self, name)
        if not _all(constraint.check, value):
            raise ValueError(
                f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
            )

    def _validate_sample(self, value) -> None:
        """Is ``value`` a tensor of a shape and of numbers that this distribution may have drawn?"""
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        events = len(self._event_shape)
        if tuple(value.shape[value.dim() - events :]) != tuple(self._event_shape):
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.size()} vs {torch.Size(self._event_shape)}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected)):
            if 1 not in (i, j) and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.size()} vs {expected}."
                )
        support = self.support
        if not _all(support.check, value):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls, _instance=None):
        """A new instance for ``expand``; a subclass with an ``__init__`` of its own must say how to expand."""
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        values = [(name, self.__dict__[name]) for name in names]
        texts = [f"{name}: {v if v.numel() == 1 else v.size()}" for name, v in values]
        return f"{type(self).__name__}({', '.join(texts)})"


def _all(check, value) -> bool:
    """Does it hold everywhere? While a function is compiled values are not known: the eager first call checked."""
    return is_compiling() or bool(check(value).all())


class ExponentialFamily(Distribution):
    """A distribution whose density is exp of a sum of parameters times statistics.

    One that says its ``_natural_params``, the ``_log_normalizer`` of them and its ``_mean_carrier_measure`` has an
    entropy, and a divergence from others of its kind: both are in the slopes of the normalizer.
    """

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self):
        points, normalizer, slopes = normalizer_slopes(self)
        result = -self._mean_carrier_measure + normalizer
        for point, slope in zip(points, slopes):
            result = result - (point * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return result


def normalizer_slopes(family: ExponentialFamily):
    """(natural parameters, the normalizer's logarithm there, its slopes by them)."""
    from ..autograd import grad

    points = [p.detach().requires_grad_() for p in family._natural_params]
    normalizer = family._log_normalizer(*points)
    return points, normalizer, grad(normalizer.sum(), points, create_graph=True)
