"""A step as a trace: what ran when, for Perfetto (https://ui.perfetto.dev) and Chrome's tracing.

The file is in the Trace Event Format: complete events ("X") with a beginning and a length in
microseconds, counters ("C"), and names ("M").  Forward operations, backward nodes, modules and
optimizer steps have a row each, and the memory behind tensors is a counter.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import weakref
from pathlib import Path
from typing import Any

from clew.inspect import torch_adapter

ROWS = ("modules", "forward", "backward", "optimizer")


class trace:
    """Watch what runs inside a ``with``, in clew and in real PyTorch if it is imported.

    Attributes:
        events: the events so far, as the file will have them.

    >>> x = torch.ones(3, requires_grad=True)
    >>> with clew.inspect.trace() as t:
    ...     (x * 2).sum().backward()
    >>> [e["name"] for e in t.events if e.get("cat") == "backward"]
    ['backward', 'SumBackward0', 'MulBackward0', 'AccumulateGrad']
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._stack = contextlib.ExitStack()
        self._start = time.perf_counter()

    def __enter__(self) -> trace:
        self._start = time.perf_counter()
        from clew.inspect.tracers import ClewTracer, torch_tracer

        self._stack.enter_context(ClewTracer(self))
        torch = torch_adapter.loaded()
        if torch is not None:
            self._stack.enter_context(torch_tracer(torch, self))
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.close()

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

    def memory(self, nbytes: int) -> None:
        """So many bytes are held by tensors now."""
        self.events.append(
            {"ph": "C", "name": "memory", "ts": self.now(), "pid": 0, "args": {"bytes": nbytes}}
        )


def _named(what: str, row: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 0, "tid": row, "args": {"name": name}}


class Memory:
    """The bytes behind the tensors that were seen and are still there."""

    def __init__(self, trace: trace) -> None:
        self._trace = trace
        self._alive: dict[int, Any] = {}
        self.total = 0

    def see(self, owner: Any, nbytes: int) -> None:
        """Note a memory; `owner` lives as long as it does."""
        key = id(owner)
        if key in self._alive:
            return

        def gone(reference: Any) -> None:
            if self._alive.pop(key, None) is not None:
                self.total -= nbytes

        self._alive[key] = weakref.ref(owner, gone)
        self.total += nbytes

    def note(self) -> None:
        """Put the present total into the trace."""
        self._trace.memory(self.total)
