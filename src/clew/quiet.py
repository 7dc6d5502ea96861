"""Run NumPy code without floating-point warnings.  Layer 1.

PyTorch gives ``inf`` and ``nan`` without a word where NumPy warns of a division by zero or an
overflow.

Note [Floating-point warnings]
    NumPy keeps its error state in a context variable.  ``np.errstate`` sets and resets it, which
    costs more than a small operation; a `contextvars.Context` in which all errors are ignored,
    made once per thread, gives the same at the cost of a call.  The user's own NumPy code keeps
    its warnings.  A context cannot be entered twice: code that runs inside (a finaliser that the
    garbage collector calls, say) and comes back here gets a fresh one.

    A backward pass, which calls the user's hooks, sets the variable itself, as ``np.errstate`` does
    in four times the time: it is the one that differs in a context where errors are ignored.
    What it was is asked for before and set again in a ``finally``, for Ctrl-C may come at any call,
    also at the one that sets the variable.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def _quiet_context() -> contextvars.Context:
    context = contextvars.copy_context()
    context.run(np.seterr, all="ignore")
    return context


def _error_state() -> Any:
    """NumPy's context variable, and what it holds where errors are ignored; None if not found."""
    here, quiet = contextvars.copy_context(), _quiet_context()
    found = [(v, state) for v, state in quiet.items() if v not in here or here[v] is not state]
    return found[0] if len(found) == 1 else None


_found = _error_state()


def without_warnings(function: Callable[..., None], *args: Any) -> None:
    """Call `function`, which may call the user's code, as in ``np.errstate(all="ignore")``."""
    if _found is None:
        with np.errstate(all="ignore"):
            function(*args)
        return
    variable, ignored = _found
    before = variable.get()
    try:
        variable.set(ignored)
        function(*args)
    finally:
        variable.set(before)


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.run = _quiet_context().run


thread = _PerThread()
"""``thread.run(function, ...)`` is `quietly` without the second try; for the hottest path."""


def quietly(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call `function` with NumPy's floating-point warnings off."""
    try:
        return thread.run(function, *args, **kwargs)
    except RuntimeError as error:
        return quietly_again(error, function, args, kwargs)


def quietly_again(
    error: RuntimeError, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Call `function` in a fresh context if that is what `error` is about; else raise it."""
    if not str(error).startswith("cannot enter context"):
        try:
            raise error
        finally:
            del error  # its traceback leads to this frame: a cycle, with all that callers hold
    return _quiet_context().run(function, *args, **kwargs)
