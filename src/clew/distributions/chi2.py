"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from clew.distributions import constraints
from clew.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """Sums of `df` squared normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Chi2, _instance)
        return super().expand(batch_shape, new)

    @property
    def df(self) -> Any:
        """The number of degrees of freedom."""
        return self.concentration * 2
