"""What ``checkpoint(debug=True)`` shows: the operations of both runs.  Imports the core."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from clew.errors import CheckpointError
from clew.observers import Observer, observers
from clew.site import here, resolve


class Trace(Observer, AbstractContextManager[None]):
    """Notes the operations that run while it is entered."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __enter__(self) -> None:
        self.lines.clear()
        observers.append(self)

    def __exit__(self, *exception: Any) -> None:
        observers.remove(self)

    def on_op(
        self, op: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], node: Any,
        attrs: dict[str, Any],
    ) -> None:  # fmt: skip
        self._note(getattr(op, "name", None) or op.__name__, outputs)

    def on_inplace(self, op: Any, target: Any, node: Any) -> None:
        self._note(op.name + "_", (target,))

    def _note(self, name: str, outputs: tuple[Any, ...]) -> None:
        results = ", ".join(f"{o.dtype}{list(o.shape)}" for o in outputs if o is not None)
        self.lines.append(f"{name} -> {results}   at {resolve(here()) or 'an unknown line'}")


def with_traces(error: CheckpointError, traces: tuple[Trace, Trace]) -> str:
    """The error's text with the operations of both runs."""
    first, second = ("\n".join(f"  {line}" for line in trace.lines) for trace in traces)
    return (
        "An error happened while unpacking tensors, with debug=True: the recomputation differs "
        "from the original forward.\n"
        f"Operations executed during the original forward:\n{first}\n"
        f"Operations executed during recomputation:\n{second}\n"
        f"Error: {error}"
    )
