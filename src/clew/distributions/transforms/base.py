"""The base of transforms, and the inverse of one."""

from __future__ import annotations

from typing import Any

from clew.distributions import constraints


class Transform:
    """A map with a Jacobian, and mostly an inverse.

    A subclass writes `_call`, `_inverse` and `log_abs_det_jacobian`.

    Args:
        cache_size: 1 to keep the last pair of argument and result, so that the inverse of a
            result that was just computed is the argument itself; 0 for none.

    Attributes:
        domain, codomain: the constraints of arguments and of results.
        bijective: whether there is an exact inverse.
        sign: the sign of the derivative, where it is one everywhere.

    Raises:
        ValueError: another `cache_size`.
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None
        self._last: tuple[Any, Any] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """How many dimensions make one value, of arguments and results alike.

        Raises:
            ValueError: they differ.
        """
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """The sign of the derivative."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        return self._with_cache(cache_size)

    def _with_cache(self, cache_size: int) -> Any:
        """A new transform like this one; one with more arguments overrides it."""
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __call__(self, x: Any) -> Any:
        """Transform `x`."""
        if self._cache_size and x is self._last[0]:
            return self._last[1]
        return self._keep(x, self._call(x))[1]

    def _inv_call(self, y: Any) -> Any:
        """Transform back."""
        if self._cache_size and y is self._last[1]:
            return self._last[0]
        return self._keep(self._inverse(y), y)[0]

    def _keep(self, x: Any, y: Any) -> tuple[Any, Any]:
        if self._cache_size:
            self._last = x, y
        return x, y

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the volume change at `x`, which `y` is the result of."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result, from that of the argument."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the argument, from that of the result."""
        return shape


class PlainTransform(Transform):
    """A transform without parameters: any two are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    __hash__ = None  # type: ignore[assignment]


class _InverseTransform(Transform):
    """The inverse of `transform`."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__  # unlike others, it is nothing without its inverse

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Any:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)
