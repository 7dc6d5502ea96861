"""A step as a trace: what ran when, for Perfetto (https://ui.perfetto.dev) and Chrome's tracing.

The file is in the Trace Event Format: complete events ("X") with a beginning and a length in
microseconds, counters ("C"), arrows from a forward operation to its backward ("s", "f"), and names
("M").  Forward operations, backward nodes, modules and
optimizer steps have a row each, and the memory behind tensors is a counter of bytes by kind.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from clew.inspect import torch_adapter
from clew.inspect.memory import KINDS, Ledger, track

ROWS = ("modules", "forward", "backward", "optimizer")


class trace:
    """Watch what runs inside a ``with``, in clew and in real PyTorch if it is imported.

    Attributes:
        events: the events so far, as the file will have them; counters come when the ``with`` ends.
        memory: the ledger of the memory behind tensors, see `clew.memory.track`.

    >>> x = torch.ones(3, requires_grad=True)
    >>> with clew.inspect.trace() as t:
    ...     (x * 2).sum().backward()
    >>> [e["name"] for e in t.events if e.get("cat") == "backward"]
    ['backward', 'SumBackward0', 'MulBackward0', 'AccumulateGrad']
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.memory: Ledger
        self._stack = contextlib.ExitStack()
        self._start = time.perf_counter()
        self._arrows: set[int] = set()  # that have begun and not ended

    def __enter__(self) -> trace:
        self._start = time.perf_counter()
        from clew.inspect.tracers import ClewTracer, torch_tracer

        self.memory = track()
        self._stack.enter_context(self.memory)
        self._stack.enter_context(ClewTracer(self))
        torch = torch_adapter.loaded()
        if torch is not None:
            self._stack.enter_context(torch_tracer(torch, self))
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.close()
        self.events += self._counters()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON; open it at https://ui.perfetto.dev or chrome://tracing."""
        names = [_named("process_name", 0, "clew")]
        names += [_named("thread_name", row, name) for row, name in enumerate(ROWS)]
        text = json.dumps({"traceEvents": [*names, *self.events], "displayTimeUnit": "ms"})
        Path(path).write_text(text, encoding="utf-8")

    # -- for the watchers

    def now(self) -> float:
        """Microseconds since the trace began."""
        return (time.perf_counter() - self._start) * 1e6

    def ran(self, row: str, name: str, begin: float, **facts: Any) -> None:
        """Something in a row has ended, which began at `begin`."""
        self.events.append(
            {
                "ph": "X", "name": name, "cat": row, "ts": begin, "dur": self.now() - begin,
                "pid": 0, "tid": ROWS.index(row), "args": {k: v for k, v in facts.items() if v},
            }
        )  # fmt: skip

    def flow(self, number: int, end: bool) -> None:
        """An arrow from the event that ended last, a forward operation, to a backward node.

        `number` is the node's; both ends lie at the beginning of their events.  The format allows
        no end of an arrow that has not begun, nor two: the first backward of a node has it.
        """
        if not end:
            self._arrows.add(number)
        elif number in self._arrows:
            self._arrows.remove(number)
        else:
            return
        event = self.events[-1]
        arrow = {
            "ph": "f" if end else "s", "id": number, "name": "backward of", "cat": "autograd",
            "ts": event["ts"], "pid": 0, "tid": event["tid"],
        }  # fmt: skip
        self.events.append({**arrow, "bp": "e"} if end else arrow)

    def _counters(self) -> list[dict[str, Any]]:
        """A counter of the bytes of each kind, at each change."""
        timeline = self.memory.timeline
        return [
            {
                "ph": "C", "name": "memory", "ts": float(seconds) * 1e6, "pid": 0,
                "args": {kind: int(n) for kind, n in zip(KINDS, row)},
            }
            for seconds, row in zip(timeline.seconds, timeline.kinds)
        ]  # fmt: skip


def _named(what: str, row: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 0, "tid": row, "args": {"name": name}}
