"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from clew.distributions.half import Half
from clew.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """Absolute values of normal numbers of mean 0 and standard deviation `scale`."""

    _whole = Normal

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / math.pi)
