"""What a stream of events tells its listeners.  Imports `records`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.inspect.watch.paths import Path
from clew.inspect.watch.records import (
    Call,
    Component,
    Cut,
    Leaf,
    NodeInfo,
    Saved,
    Step,
    Storage,
    Write,
)


class Listener:
    """What a stream reports; override what you want to hear of."""

    def on_op(self, name: str, inputs: Sequence[Any], info: NodeInfo | None, path: Path) -> None:
        """An op ran; `info` is of the node that it recorded, or None."""

    def on_write(self, write: Write, storage: Storage, target: Any) -> None:
        """Memory was written to in place."""

    def on_pack(self, saved: Saved) -> None:
        """Something was kept for backward."""

    def on_unpack(self, saved: Saved, call: Call | None) -> None:
        """A backward asks for something that was kept."""

    def on_backward_start(self, call: Call) -> None:
        """A backward pass begins."""

    def on_backward(self, call: Call, reached: list[NodeInfo]) -> None:
        """A backward pass has ended, maybe with `call.error`."""

    def on_closed(self, call: Call) -> None:
        """It is known which optimizers stepped after a backward pass."""

    def on_clear(self, leaf: Leaf, lost: list[Call], path: Path) -> None:
        """A gradient was cleared, with the passes that nobody had used."""

    def on_step_start(self, step: Step) -> None:
        """An optimizer is about to use the gradients."""

    def on_step(self, step: Step) -> None:
        """An optimizer has stepped."""

    def on_iteration(self, number: int) -> None:
        """An iteration has ended."""

    def on_clock(self) -> None:
        """An optimizer has stepped for the first time; see Note [Iterations]."""

    def on_component_end(self, component: Component) -> None:
        """Nothing is left of a graph, or the program has ended."""

    def on_cut(self, cut: Cut, source: Any, result: Any) -> None:
        """Values left the graph."""

    def on_dead_grad(self, tensor: Any, path: Path) -> None:
        """The gradient of a tensor that does not keep one was asked for."""

    def on_hook(self, tensor: Any, hook: Any, handle: Any, path: Path) -> None:
        """A hook was registered on a tensor."""

    def on_function(self, node: Any, info: NodeInfo, outputs: Sequence[Any]) -> None:
        """A custom Function was recorded; `node` is its ctx."""

    def on_parallel(self, wrapper: Any, inputs: Any, output: Any, path: Path) -> None:
        """A DataParallel module ran."""

    def on_replica(self, kind: str, module: Any, name: str, path: Path) -> None:
        """Inside DataParallel, a module's attribute was set, or its parameters were asked for."""
