"""Transforms made of transforms, and those that change shapes only."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.transforms.base import Transform
from clew.distributions.utils import as_size, lazy_property, sum_rightmost


class ComposeTransform(Transform):
    """Transforms one after another; none is the identity."""

    def __init__(self, parts: list[Any], cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return _widened(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return _widened(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        return functools.reduce(operator.mul, (part.sign for part in self.parts), 1)

    @property
    def inv(self) -> Any:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def _with_cache(self, cache_size: int) -> Any:
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return clew.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        terms = []
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, values, values[1:]):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(sum_rightmost(term, event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inside = ",\n    ".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n    {inside}\n)"


def _widened(constraint: Any, event_dim: int) -> Any:
    """A constraint for values of `event_dim` dimensions."""
    missing = event_dim - constraint.event_dim
    if missing < 0:
        raise AssertionError(
            f"event_dim {event_dim} must be >= the constraint's event_dim {constraint.event_dim}"
        )
    return constraints.independent(constraint, missing) if missing else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose values have `reinterpreted_batch_ndims` more dimensions."""

    def __init__(
        self, base_transform: Any, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _with_cache(self, cache_size: int) -> Any:
        return IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size
        )

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        require_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        require_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


def require_dims(shape: Any, dims: int) -> None:
    """Refuse a shape of fewer dimensions.

    Raises:
        ValueError: it has fewer.
    """
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")


class ReshapeTransform(Transform):
    """Reshapes the last dimensions from `in_shape` to `out_shape`.

    Raises:
        ValueError: the shapes have different numbers of elements.
    """

    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.in_shape = as_size(in_shape)
        self.out_shape = as_size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _with_cache(self, cache_size: int) -> Any:
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Any) -> Any:
        return x.reshape(x.shape[: x.ndim - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Any) -> Any:
        return y.reshape(y.shape[: y.ndim - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _replaced_end(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _replaced_end(shape, self.out_shape, self.in_shape)


def _replaced_end(shape: Any, old: Any, new: Any) -> Any:
    require_dims(shape, len(old))
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new
