"""Transforms from unconstrained numbers to those that a constraint allows.

`biject_to(constraint)` gives a bijective transform, `transform_to(constraint)` one that may be
simpler and need not be; both are for optimizing or sampling constrained parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.distributions import constraints, transforms
from clew.distributions.utils import NUMBER

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Any]


class ConstraintRegistry:
    """Finds a transform by the class of a constraint."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Use ``factory(constraint)`` for constraints of this class; a decorator without it.

        Raises:
            TypeError: `constraint` is neither a constraint nor a class of them.
        """
        if factory is None:
            return lambda given: self.register(constraint, given)
        cls = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(cls, type) and issubclass(cls, constraints.Constraint)):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )
        self._registry[cls] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform to `constraint`.

        Raises:
            NotImplementedError: no factory was registered for its class.
        """
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints"
            ) from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Factory], Factory]:
    """Register a factory for `biject_to` and `transform_to` alike."""

    def declare(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return declare


@_both(constraints.real)
def _to_real(constraint: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.positive, constraints.greater_than_eq)
def _to_greater(constraint: Any) -> Any:
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.less_than)
def _to_less(constraint: Any) -> Any:
    flip = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), flip])


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    numbers = isinstance(low, NUMBER) and isinstance(high, NUMBER)
    if numbers and low == 0 and high == 1:
        return transforms.SigmoidTransform()
    stretch = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), stretch])


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _to_lower_cholesky(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _to_positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


def _register_composites(registry: ConstraintRegistry) -> None:
    """Constraints made of others, whose transforms are made of the others' transforms."""

    @registry.register(constraints.independent)
    def _to_independent(constraint: Any) -> Any:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def _to_cat(constraint: Any) -> Any:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def _to_stack(constraint: Any) -> Any:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_register_composites(biject_to)
_register_composites(transform_to)
