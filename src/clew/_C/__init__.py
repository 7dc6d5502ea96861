"""``torch._C``: the names of PyTorch's compiled core that programs reach for, as clew has them.

Layer 5.  clew has no compiled core; what stands here is a second name of something else.
"""

from __future__ import annotations

import weakref
from typing import Any

from clew._C import _autograd, _functions
from clew.autograd.engine import current, will_run
from clew.autograd.forward_ad import _is_fwd_grad_enabled
from clew.autograd.modes import is_grad_enabled as is_grad_enabled
from clew.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from clew.autograd.modes import is_multithreading_enabled as _is_multithreading_enabled
from clew.autograd.modes import state
from clew.autograd.node import Node
from clew.tensor import Tensor

has_lapack = True
"""Whether there is linear algebra: NumPy brings it."""


def _current_autograd_node() -> Node | None:
    """The node that this thread's backward pass runs now; None outside one."""
    return None if current.task is None else current.task.node


def _current_graph_task_id() -> int:
    """The number of the backward pass that runs in this thread; -1 outside one."""
    return -1 if current.task is None else current.task.id


def _will_engine_execute_node(node: Any) -> bool:
    """Whether the backward pass that runs now runs this node.

    Raises:
        RuntimeError: no pass runs in this thread, or this is no node.
    """
    if not isinstance(node, Node):
        raise RuntimeError(
            f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}"
        )
    if current.task is None:
        raise RuntimeError(
            "_get_should_execute_nodes should only be called during the backward pass"
        )
    return will_run(current.task, node)


def _set_fwd_grad_enabled(enabled: bool) -> None:
    """Turn forward mode on or off in this thread."""
    state.now.carries_tangents = enabled


class _WeakTensorRef:
    """A reference that does not keep a tensor alive."""

    def __init__(self, tensor: Tensor) -> None:
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._reference() is None


__all__ = [
    "_autograd",
    "_functions",
    "_is_fwd_grad_enabled",
    "_is_multithreading_enabled",
    "has_lapack",
    "is_grad_enabled",
    "is_inference_mode_enabled",
]
