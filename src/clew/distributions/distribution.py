"""The base of all distributions: shapes, validation, expanding."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import clew
from clew.autograd.modes import no_grad
from clew.distributions import constraints
from clew.distributions.utils import as_size, lazy_property
from clew.tensor import Size, Tensor

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution, or a batch of them.

    A sample has the shape ``sample_shape + batch_shape + event_shape``: independent draws, then
    distributions that differ in their parameters, then what makes one value.

    Args:
        batch_shape: the shape of the batch.
        event_shape: the shape of one value.
        validate_args: check parameters now, and values when they are given; by default what
            `set_default_validate_args` set.

    Raises:
        ValueError: a parameter violates its constraint.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__

    _expandable: ClassVar[dict[str, int]] = {}
    """The parameters that `expand` expands, and how many of their dimensions are the event's."""

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Turn validation on or off for distributions made from now on.

        Raises:
            ValueError: `value` is no bool.
        """
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = (),
        event_shape: Any = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = as_size(batch_shape)
        self._event_shape = as_size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()

    def _validate_parameters(self) -> None:
        try:
            checks = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, constraint in checks.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # it is computed from another parameter, which is checked
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions in a larger batch, as parameters are expanded, without a copy.

        Args:
            batch_shape: the new batch shape.
            _instance: what to fill in, for a subclass that makes the instance itself.
        """
        owner = next((c for c in type(self).__mro__ if c.__dict__.get("_expandable")), None)
        if owner is None:
            raise NotImplementedError
        new = self._get_checked_instance(owner, _instance)
        batch_shape = as_size(batch_shape)
        for name, event_dims in self._expandable.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                event = value.shape[value.ndim - event_dims :]
                setattr(new, name, value.expand(batch_shape + event))
        return self._finish(new, batch_shape)

    def _finish(self, new: Any, batch_shape: Size) -> Any:
        """Set what every expanded distribution has besides its parameters."""
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def arg_constraints(self) -> Any:
        """The constraint of each parameter."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw values, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw values as a differentiable function of the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """`n` draws; use ``sample((n,))``."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density (or of the probability) of a value."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The probability of at most `value`."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The reverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a discrete distribution, along a new first dimension.

        Args:
            expand: repeat them over the batch, instead of batch dimensions of size 1.
        """
        raise NotImplementedError

    def _enumerate(self, values: Any, expand: bool) -> Any:
        """`values` for each distribution of the batch, as `enumerate_support` gives them."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def entropy(self) -> Any:
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """The shape of a sample."""
        return Size(as_size(sample_shape) + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        """Check a value's shape and range.

        Raises:
            ValueError: it does not fit the distribution.
        """
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        actual: Any = value.shape
        if actual[len(actual) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {actual} vs "
                f"{self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        if any(i != j and 1 not in (i, j) for i, j in zip(reversed(actual), reversed(expected))):
            raise ValueError(
                f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}."
            )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape "
                f"{tuple(value.shape)}) to be within the support ({support!r}) of the "
                f"distribution {self!r}, but found invalid values:\n{value}"
            )

    def _checked(self, value: Any) -> Any:
        """A value, after `_validate_sample` where validation is on."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def _full(self, number: float, like: Any) -> Any:
        """One number for each value of the batch."""
        return clew.full(self._extended_shape(), number, dtype=like.dtype)

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An instance to fill in for `expand`, which is written for `cls`.

        Raises:
            NotImplementedError: this is a subclass of `cls` with parameters of its own.
        """
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = []
        for name in names:
            value = self.__dict__[name]
            shown.append(f"{name}: {value if value.numel() == 1 else value.shape}")
        return f"{type(self).__name__}({', '.join(shown)})"
