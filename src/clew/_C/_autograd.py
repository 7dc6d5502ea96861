"""``torch._C._autograd``: saved tensors by their PyTorch name.  Layer 5."""

from __future__ import annotations

from typing import Any, NoReturn

from clew.autograd.modes import state
from clew.autograd.saved import Saved

__all__ = ["SavedTensor"]


class _SavedTensorType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Saved)


class SavedTensor(metaclass=_SavedTensorType):
    """What ``_raw_saved_self`` and its like of a node are instances of."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether saved-tensor hooks may be entered in this thread."""
    return state.now.hooks_refused is None


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the backward pass of this thread keeps saved values; true outside one."""
    from clew.autograd.engine import current

    return current.task is None or current.task.keep_graph
