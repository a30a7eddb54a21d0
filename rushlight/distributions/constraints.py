"""Where parameters and values may lie. ``constraint.check(value)``: for each event, is it inside?"""

from __future__ import annotations

import rushlight as torch

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than",
    "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square",
    "stack", "symmetric", "unit_interval",
]  # fmt: skip


def __dir__():
    return __all__


class Constraint:
    """A region; ``event_dim`` dimensions on the right make up one event."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}()"


class _Dependent(Constraint):
    """It depends on other parameters: known for an instance only."""

    def __init__(self, *, is_discrete=False, event_dim=0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete=None, event_dim=None):
        return _Dependent(
            is_discrete=self.is_discrete if is_discrete is None else is_discrete,
            event_dim=self.event_dim if event_dim is None else event_dim,
        )

    def check(self, value):
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property whose value on an instance is a constraint; on the class it stands for one that is not known yet."""

    def __init__(self, function=None, *, is_discrete=False, event_dim=0) -> None:
        property.__init__(self, function)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, function):
        return _DependentProperty(function, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint) -> bool:
    """Is it known for an instance only?"""
    return isinstance(constraint, _Dependent)


class _IndependentConstraint(Constraint):
    """Holds if ``base`` holds in all of the rightmost dimensions."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims: int):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value):
        holds, n = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if holds.dim() < n:
            expected = self.base_constraint.event_dim + n
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return holds if n == 0 else holds.reshape(*holds.shape[: holds.dim() - n], -1).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Bounded(Constraint):
    """A region with bounds, which it prints."""

    def __init__(self, lower_bound=None, upper_bound=None) -> None:
        self.bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def __repr__(self) -> str:
        texts = [f"{name}={_text(bound)}" for name, bound in self.bounds.items() if bound is not None]
        return f"{type(self).__name__[1:]}({', '.join(texts)})"


def _text(bound):
    return bound.item() if isinstance(bound, torch.Tensor) and bound.numel() == 1 else bound


class _GreaterThan(_Bounded):
    """Above ``lower_bound``."""

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_Bounded):
    """At or above ``lower_bound``."""

    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_Bounded):
    """Below ``upper_bound``."""

    def __init__(self, upper_bound) -> None:
        super().__init__(None, upper_bound)

    def check(self, value):
        return value < self.upper_bound


class _Interval(_Bounded):
    """From ``lower_bound`` to ``upper_bound``."""

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    """From ``lower_bound`` to below ``upper_bound``."""

    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Bounded):
    """Whole numbers from ``lower_bound`` to ``upper_bound``."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Bounded):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _Real(Constraint):
    def check(self, value):
        return value == value  # not NaN


class _Vector(Constraint):
    event_dim = 1


class _OneHot(_Vector):
    is_discrete = True

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(_Vector):
    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(_Vector):
    """Counts that add up to at most ``upper_bound``."""

    is_discrete = True

    def __init__(self, upper_bound) -> None:
        self.upper_bound = upper_bound

    def check(self, value):
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _Matrix(Constraint):
    event_dim = 2


class _Square(_Matrix):
    def check(self, value):
        return torch.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value):
        square = super().check(value)
        return torch.isclose(value, value.mT, atol=1e-6).all(-1).all(-1) if square.all() else square


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return symmetric & (torch.linalg.eigvalsh(value) >= -1e-6).all(-1) if symmetric.all() else symmetric


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return torch.linalg.cholesky_ex(value).info.eq(0) if symmetric.all() else symmetric


class _LowerTriangular(_Matrix):
    def check(self, value):
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value):
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value):
        tolerance = torch.finfo(value.dtype).eps * value.size(-1) * 10
        unit_rows = ((torch.linalg.vector_norm(value, dim=-1) - 1).abs() <= tolerance).all(-1)
        return super().check(value) & unit_rows


class _Cat(Constraint):
    """Pieces along one dimension, each in its own region."""

    def __init__(self, cseq, dim: int = 0, lengths=None):
        self.cseq, self.dim, self.lengths = list(cseq), dim, list(lengths or [1] * len(cseq))
        self.event_dim = max(c.event_dim for c in self.cseq)
        self.is_discrete = any(c.is_discrete for c in self.cseq)

    def check(self, value):
        return torch.cat([c.check(v) for c, v in zip(self.cseq, value.split(self.lengths, self.dim))], self.dim)


class _Stack(Constraint):
    """Slices along one dimension, each in its own region."""

    def __init__(self, cseq, dim: int = 0):
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        dims = max(c.event_dim for c in self.cseq)
        self.event_dim = dims + 1 if dim + dims < 0 else dims

    def check(self, value):
        slices = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        return torch.stack([c.check(v) for c, v in zip(self.cseq, slices)], self.dim)


dependent, dependent_property = _Dependent(), _DependentProperty
independent, cat, stack = _IndependentConstraint, _Cat, _Stack
real, boolean, one_hot, simplex = _Real(), _Boolean(), _OneHot(), _Simplex()
real_vector = independent(real, 1)
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
multinomial = _Multinomial
square, symmetric = _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
