"""Different transforms for different parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import clew
from clew.distributions import constraints
from clew.distributions.transforms.base import Transform
from clew.distributions.utils import lazy_property, sum_rightmost


class _Parts(Transform):
    """Cuts along `dim`, transforms each part, and joins the results."""

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    _what = ""  # the attribute that decides the size of `dim`, in messages

    def _size(self) -> int:
        """The size of `dim` that the transforms need."""
        raise NotImplementedError

    def _cut(self, x: Any, name: str) -> Sequence[Any]:
        if not -x.ndim <= self.dim < x.ndim:
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.ndim} dimensions")
        size = x.shape[self.dim]
        if size != self._size():
            raise AssertionError(
                f"{name}.size({self.dim}) = {size} must equal {self._what} {self._size()}"
            )
        return self._slices(x)

    def _slices(self, x: Any) -> Sequence[Any]:
        raise NotImplementedError

    def _join(self, parts: Sequence[Any]) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        return self._join([t(part) for t, part in zip(self.transforms, self._cut(x, "x"))])

    def _inverse(self, y: Any) -> Any:
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._cut(y, "y"))])

    def _jacobians(self, x: Any, y: Any) -> list[Any]:
        pairs = zip(self.transforms, self._cut(x, "x"), self._cut(y, "y"))
        return [t.log_abs_det_jacobian(before, after) for t, before, after in pairs]

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)


class CatTransform(_Parts):
    """Parts of the given lengths (1 by default) along `dim`."""

    _what = "length"

    def __init__(
        self,
        tseq: Sequence[Any],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @lazy_property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size of `dim`."""
        return sum(self.lengths)

    def _size(self) -> int:
        return self.length

    def _with_cache(self, cache_size: int) -> Any:
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _slices(self, x: Any) -> Sequence[Any]:
        return x.split(self.lengths, self.dim)

    def _join(self, parts: Sequence[Any]) -> Any:
        return clew.cat(list(parts), self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        terms = [
            sum_rightmost(term, self.event_dim - t.event_dim)
            for t, term in zip(self.transforms, self._jacobians(x, y))
        ]
        # Where `dim` is, counted from the end without the dimensions that were summed over.
        dim = (self.dim - x.ndim if self.dim >= 0 else self.dim) + self.event_dim
        return clew.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Parts):
    """One part at each index of `dim`."""

    _what = "len(transforms)"

    def _size(self) -> int:
        return len(self.transforms)

    def _with_cache(self, cache_size: int) -> Any:
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, x: Any) -> Sequence[Any]:
        return x.unbind(self.dim)

    def _join(self, parts: Sequence[Any]) -> Any:
        return clew.stack(list(parts), self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self._join(self._jacobians(x, y))

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
