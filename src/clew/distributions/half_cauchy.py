"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from clew.distributions.cauchy import Cauchy
from clew.distributions.half import Half
from clew.functions.create import as_tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """Absolute values of Cauchy numbers of median 0."""

    _whole = Cauchy

    @property
    def mean(self) -> Any:
        return self._full(math.inf, self.scale)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        return super().log_prob(as_tensor(value, dtype=self.scale.dtype))
