"""Run one function with clew and with torch, and compare what it returns, raises and warns.

The function takes the engine's module and uses public names only.  Tensors in its result are
compared by values, dtype, shape and ``requires_grad``; errors by type and leading clause.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew


def outcome(function: Callable[[Any], Any], engine: Any) -> Any:
    """What the function does with an engine: its plain result, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(function(engine))
        except Exception as error:  # the error is the outcome
            kinds = [k for k in type(error).__mro__ if k.__module__ == "builtins"]
            kind = RuntimeError if RuntimeError in kinds else kinds[0]
            return kind.__name__, str(error).split("\n")[0].strip()


def plain(value: Any) -> Any:
    """A value without engine objects."""
    if hasattr(value, "detach") and hasattr(value, "dtype"):
        array = np.asarray(value.detach().tolist())
        return ("tensor", str(value.dtype), tuple(value.shape), value.requires_grad, array.tolist())
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "next_functions"):
        return ("node", value.name(), [None if n is None else n.name()
                                       for n, _ in value.next_functions])  # fmt: skip
    return value


def assert_same(function: Callable[[Any], Any], rtol: float = 1e-5, atol: float = 1e-6) -> Any:
    """The function does the same with both engines; what it does with clew."""
    torch = pytest.importorskip("torch")
    ours, theirs = outcome(function, clew), outcome(function, torch)
    _compare(ours, theirs, rtol, atol, "result")
    return ours


def _compare(ours: Any, theirs: Any, rtol: float, atol: float, where: str) -> None:
    if isinstance(theirs, list) and isinstance(ours, list):
        assert len(ours) == len(theirs), f"{where}: {ours} instead of {theirs}"
        for i, (a, b) in enumerate(zip(ours, theirs)):
            _compare(a, b, rtol, atol, f"{where}[{i}]")
    elif isinstance(theirs, dict) and isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        for key in theirs:
            _compare(ours[key], theirs[key], rtol, atol, f"{where}[{key!r}]")
    elif isinstance(theirs, tuple) and theirs and theirs[0] == "tensor":
        assert isinstance(ours, tuple), f"{where}: {ours} instead of {theirs}"
        assert ours[:4] == theirs[:4], f"{where}: {ours[:4]} instead of {theirs[:4]}"
        np.testing.assert_allclose(ours[4], theirs[4], rtol, atol, err_msg=where)
    elif isinstance(theirs, float) and isinstance(ours, float):
        np.testing.assert_allclose(ours, theirs, rtol, atol, err_msg=where)
    else:
        assert ours == theirs, f"{where}: {ours} instead of {theirs}"
