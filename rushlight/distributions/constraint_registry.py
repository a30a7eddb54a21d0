"""From all numbers into a region: ``transform_to(constraint)``; ``biject_to`` where that can be undone."""

from __future__ import annotations

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Kinds of constraints -> what makes a transform of one."""

    def __init__(self) -> None:
        self._registry: dict = {}

    def register(self, constraint, factory=None):
        """``register(kind, factory)``, or a decorator of the factory."""
        if factory is None:
            return lambda f: self.register(constraint, f)
        self._registry[constraint if isinstance(constraint, type) else type(constraint)] = factory
        return factory

    def __call__(self, constraint):
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _for_both(*kinds):
    def register(factory):
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_for_both(constraints.real)
def _real(constraint):
    return transforms.identity_transform


@_for_both(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint):
    return _shifted(transforms.ExpTransform(), constraint.lower_bound, 1)


@_for_both(constraints.less_than)
def _below(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_for_both(constraints.interval, constraints.half_open_interval)
def _between(constraint):
    width = constraint.upper_bound - constraint.lower_bound
    return _shifted(transforms.SigmoidTransform(), constraint.lower_bound, width)


def _shifted(transform, loc, scale):
    if isinstance(loc, int | float) and isinstance(scale, int | float) and (loc, scale) == (0, 1):
        return transform
    return transforms.ComposeTransform([transform, transforms.AffineTransform(loc, scale)])


@biject_to.register(constraints.simplex)
def _shares(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _softmax(constraint):
    return transforms.SoftmaxTransform()


@_for_both(constraints.lower_cholesky)
def _cholesky(constraint):
    return transforms.LowerCholeskyTransform()


@_for_both(constraints.positive_definite, constraints.positive_semidefinite)
def _definite(constraint):
    return transforms.PositiveDefiniteTransform()


@biject_to.register(constraints.independent)
def _independent(constraint):
    return _each(biject_to(constraint.base_constraint), constraint)


@transform_to.register(constraints.independent)
def _independent_to(constraint):
    return _each(transform_to(constraint.base_constraint), constraint)


def _each(transform, constraint):
    return transforms.IndependentTransform(transform, constraint.reinterpreted_batch_ndims)


@_for_both(constraints.corr_cholesky)
def _correlations(constraint):
    return transforms.CorrCholeskyTransform()


def _for_parts(registry):
    """What is made of several constraints has a transform of several."""

    @registry.register(constraints.cat)
    def _cat(constraint):
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def _stack(constraint):
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_for_parts(biject_to)
_for_parts(transform_to)
