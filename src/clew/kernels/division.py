"""Divisions with a remainder of large arrays by a number. Imports NumPy and sibling kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compiled import twins
from .pointwise import MANY, in_pieces

_SINGLE = np.dtype(np.float32)


def by_number(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's `function`, with a twin for large float32 arrays and finite numbers but 0.

    NumPy's take ten times as long, an element after another.
    """

    def divide(x: Any, y: Any) -> Any:
        if y.__class__ in (int, float) and x.__class__ is np.ndarray and x.size >= MANY:
            fast = twins("division", _SINGLE) if x.dtype == _SINGLE else None
            if fast is not None and 1e-30 < abs(y) < 1e30:
                out = in_pieces(getattr(fast, name), (x,), (y,))
                if out is not None:
                    return out
        return function(x, y)

    return divide
