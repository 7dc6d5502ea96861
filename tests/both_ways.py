"""Run a kernel with compiled twins and without."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from clew.kernels.compiled import is_wanted, switch


def both(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    """The results with twins and without."""
    fast, before = function(*arguments), is_wanted()
    switch(False)
    try:
        return fast, function(*arguments)
    finally:
        switch(before)


def close(fast: Iterable[Any], plain: Iterable[Any], dtype: str, rtol: int, atol: int) -> None:
    """Whether all are of the type and agree, within so many of its epsilons."""
    eps = float(np.finfo(dtype).eps)
    for x, y in zip(fast, plain):
        assert x.dtype == dtype
        np.testing.assert_allclose(x, y, rtol=rtol * eps, atol=atol * eps)
