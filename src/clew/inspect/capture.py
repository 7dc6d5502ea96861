"""Take the graph of a program's nth backward pass, while the program runs."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from clew.inspect import torch_adapter
from clew.inspect.model import Graph
from clew.inspect.recorder import user_site, watched_torch_engine
from clew.inspect.timing import Timer, set_seconds
from clew.inspect.walk import read
from clew.observers import Observer, observers
from clew.site import SourceLine, here, resolve


class Enough(SystemExit):
    """Ends the program once its graph is taken, as ``sys.exit()`` would."""


class Capture:
    """Watches the backward passes of clew and of real PyTorch inside a ``with``.

    Calls of ``backward`` and ``grad`` count alike.  The graph is taken before the pass runs, when
    nothing is freed yet.

    Attributes:
        graph: the graph, once the pass has begun; None before.
        line: the line that called for the pass.
        passes: how many passes have begun so far.
    """

    def __init__(self, nth: int = 1, *, timed: bool = False, stop: bool = True) -> None:
        self.nth = nth
        self.timed = timed
        self.stop = stop
        self.graph: Graph | None = None
        self.line: SourceLine | None = None
        self.passes = 0
        self._timer: Timer | None = None
        self._running: list[bool] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Capture:
        self._stack.enter_context(_ClewWatcher(self))
        if torch_adapter.loaded() is not None:
            begin, end = self.begin, self.end
            self._stack.enter_context(
                watched_torch_engine(lambda roots: begin(list(roots), user_site()), end)
            )
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.close()

    def begin(self, roots: list[Any], site: Any) -> None:
        """A pass begins at `roots`: tensors, gradient edges or nodes."""
        self.passes += 1
        wanted = self.passes == self.nth
        self._running.append(wanted)
        if wanted:
            self.line = resolve(site)
            self.graph, nodes = read(roots)
            self._timer = Timer(nodes) if self.timed else None

    def end(self) -> None:
        """The pass that began last has ended.

        Raises:
            Enough: it was the one wanted, it raised nothing, and the program shall stop.
        """
        if not self._running.pop():
            return
        if self._timer is not None and self.graph is not None:
            self._timer.stop()
            set_seconds(self.graph, self._timer)
        if self.stop and sys.exc_info()[0] is None:
            raise Enough(0)


class _ClewWatcher(Observer):
    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def __enter__(self) -> _ClewWatcher:
        observers.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        observers.remove(self)

    def on_backward_start(self, task: Any) -> None:
        self._capture.begin([n for n, edges in task.reached.items() if not edges], here())

    def on_backward_end(self, task: Any) -> None:
        self._capture.end()
