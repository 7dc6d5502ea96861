"""How clients watch a running program without the core knowing them.  Imports nothing of clew.

A ledger, a tracer or a profiler derives from `Observer` and stands in `observers` while it
watches.  The list is empty in the common case, and the core tests that before it calls anything.
Then it asks for one event, ``for on_op in observers.on_op``, and meets only those who override it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any


class Observer:
    """What dispatch and the engine report; override what you want to hear of."""

    def before_op(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> None:
        """An op is about to run; if it raises, `on_op` does not follow."""

    def on_op(
        self, op: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], node: Any,
        attrs: dict[str, Any],
    ) -> None:  # fmt: skip
        """An op ran; `node` is what it recorded, or None.

        An output is None if it was not asked for.  For a custom Function, `op` is its class.
        """

    def on_tensor(self, tensor: Any) -> None:
        """A tensor stands on memory that no op gave it, or has become a leaf that requires grad.

        The memory is from a factory, an array, a file, or another tensor (``.data``, ``set_``).
        Of a gradient that becomes the ``grad`` of a leaf as it is, `on_gradients` has told.
        """

    def before_inplace(
        self, op: Any, target: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]
    ) -> None:
        """An op is about to write into `target`."""

    def on_inplace(self, op: Any, target: Any, node: Any) -> None:
        """An op wrote into `target`; `node` is what it recorded, or None."""

    def on_backward_start(self, task: Any) -> None:
        """A backward pass begins."""

    def on_backward_end(self, task: Any) -> None:
        """A backward pass has ended, with or without an error."""

    def on_gradients(self, node: Any, buffers: dict[Any, list[Any]]) -> None:
        """`node` has computed gradients; None: a pass begins with those in `buffers`.

        `buffers` hold what has arrived at each node that is yet to run, by output number: arrays,
        or tensors under ``create_graph``.
        """

    def on_accumulated(self, leaf: Any) -> None:
        """A backward pass has added to the ``grad`` of `leaf`, or would have, were there one."""

    def before_node(self, node: Any) -> None:
        """The engine is about to run `node`; if that raises, `on_node` does not follow."""

    def on_node(self, node: Any) -> None:
        """The engine ran `node`."""

    def on_grad(self, leaf: Any) -> None:
        """The program has assigned to the ``grad`` of a tensor."""

    def on_kept_whole(self, saved: Any) -> None:
        """A node keeps a tensor of which it has kept a packed form until now."""

    def on_release(self, node: Any) -> None:
        """A node's saved values are about to be let go by a backward pass."""

    def before_module(self, module: Any) -> None:
        """A module is about to be called."""

    def after_module(self, module: Any) -> None:
        """The call of a module has ended, with or without an error."""

    def before_optimizer_step(self, optimizer: Any) -> None:
        """An optimizer is about to update its parameters."""

    def on_cut(self, kind: str, source: Any, result: Any) -> None:
        """Values of `source` leave the graph by ``detach()``, ``.data``, ``item()`` or the like.

        `result` is what they have become: a tensor, a number, an array.
        """

    def on_dead_grad(self, tensor: Any) -> None:
        """The gradient of a result, which keeps none, was asked for."""

    def on_tensor_hook(self, tensor: Any, hook: Any, handle: Any) -> None:
        """A hook on the gradient of `tensor` was registered."""

    def on_optimizer_step(self, optimizer: Any) -> None:
        """An optimizer has updated its parameters."""


EVENTS = tuple(name for name in vars(Observer) if not name.startswith("_"))


class Observers(list[Observer]):
    """Those who watch now; under the name of each event, the methods of those who override it.

    Only `append`, `remove` and `clear` change it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sort()

    def append(self, observer: Observer) -> None:
        """It watches from now on."""
        super().append(observer)
        self._sort()

    def remove(self, observer: Observer) -> None:
        """It watches no longer."""
        super().remove(observer)
        self._sort()

    def clear(self) -> None:
        """Nobody watches any longer."""
        super().clear()
        self._sort()

    def _sort(self) -> None:
        # New lists: the core may be going through the old ones.
        for event in EVENTS:
            ignored = getattr(Observer, event)
            methods = [getattr(observer, event) for observer in self]
            heard = [m for m in methods if getattr(m, "__func__", None) is not ignored]
            setattr(self, event, heard)

    if TYPE_CHECKING:

        def __getattr__(self, event: str) -> list[Callable[..., None]]: ...


observers = Observers()


class Calls(threading.local):
    """What runs in this thread; known only of what began while anybody watched.

    Attributes:
        modules: the modules that are being called, outermost first.
    """

    def __init__(self) -> None:
        self.modules: list[Any] = []


calls = Calls()


def tell_memory(tensor: Any) -> None:
    """Let observers know of memory that no op gave, or of a new leaf."""
    for on_tensor in observers.on_tensor:
        on_tensor(tensor)
