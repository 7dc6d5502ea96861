"""Anomaly mode: remember the full forward traceback of each node, and look for NaN in backward.

Layer 3.  Costs about as much again as the step itself; the line of each node is known without it.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any


class _State:
    """The mode holds for all threads, as in PyTorch."""

    enabled = False
    check_nan = True


state = _State()


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return state.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN in the results of backward."""
    return state.check_nan


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turn anomaly mode on or off.

    Args:
        mode: whether it is on.
        check_nan: whether it looks for NaN in the results of backward.
    """
    state.enabled, state.check_nan = mode, check_nan


class set_detect_anomaly:
    """Turn anomaly mode on or off: at once as a call, for a while in a ``with``."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (state.enabled, state.check_nan)
        state.enabled, state.check_nan = mode, check_nan

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        state.enabled, state.check_nan = self.before


class detect_anomaly(set_detect_anomaly):
    """Anomaly mode in a ``with``: a failing backward shows the forward call that led to it."""

    def __init__(self, check_nan: bool = True) -> None:
        before = (state.enabled, state.check_nan)
        super().__init__(True, check_nan)
        # Nothing is on before the ``with`` is entered.
        state.enabled, state.check_nan = before
        self._check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = (state.enabled, state.check_nan)
        state.enabled, state.check_nan = True, self._check_nan


def note_traceback(node: Any) -> None:
    """Keep the current traceback on a node, and the node that was running backward if one was."""
    import traceback

    from clew.autograd.engine import current  # which imports this module

    node.metadata["traceback_"] = traceback.format_stack()
    if current.task is not None:
        node.metadata["parent_"] = current.task.node


def explain(node: Any) -> None:
    """Warn with the forward traceback of a node whose backward failed, and of what led to it."""
    name = node.name()
    lines = _traceback_of(node)
    if not lines:
        _warn(
            f"Error detected in {name}. No forward pass information available. Enable detect "
            "anomaly during forward pass for more information."
        )
        return
    _warn(f"Error detected in {name}. Traceback of forward call that caused the error:\n{lines}")
    parent = node.metadata.get("parent_")
    while parent is not None:
        induced = f"\n\nPrevious calculation was induced by {parent.name()}. "
        lines = _traceback_of(parent)
        if not lines:
            _warn(f"{induced}No forward pass information available.")
            return
        _warn(f"{induced}Traceback of forward call that induced the previous calculation:\n{lines}")
        parent = parent.metadata.get("parent_")


def _traceback_of(node: Any) -> str:
    return "".join(node.metadata.get("traceback_", ()))


def _warn(text: str) -> None:
    """Warn; where warnings are errors, print, so as not to hide the error that is explained."""
    try:
        warnings.warn(text, stacklevel=5)
    except Warning as warning:
        print(f"{type(warning).__name__}: {warning}", file=sys.stderr)
