"""Watch a running program, on clew or on real PyTorch, through one stream of events.

`watch` gives a `Stream` (``stream.py``) that is fed by the adapter of the engine that is asked
for; real PyTorch is watched from the moment the program imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from clew.inspect.watch.listener import Listener
from clew.inspect.watch.paths import Path, Stack
from clew.inspect.watch.records import (
    Call,
    Component,
    Cut,
    Leaf,
    NodeInfo,
    Provenance,
    Saved,
    Step,
    Storage,
    Write,
    reach,
)
from clew.inspect.watch.stream import Stream

__all__ = [
    "Call", "Component", "Cut", "Leaf", "Listener", "NodeInfo", "Path", "Provenance", "Saved",
    "Stack", "Step", "Storage", "Stream", "Write", "reach", "watch_clew", "watch_torch",
    "when_imported",
]  # fmt: skip


def watch_clew(base: FrameType | None, *, checksums: bool = False) -> tuple[Stream, Any]:
    """A stream of what clew does, and the watcher that feeds it, not started."""
    from clew.inspect.watch.clew_engine import ENGINE, ClewWatch

    stream = Stream(ENGINE, Stack(base), checksums=checksums)
    return stream, ClewWatch(stream)


def watch_torch(base: FrameType | None, *, checksums: bool = False) -> tuple[Stream, Any]:
    """A stream of what real PyTorch does, and the watcher that feeds it, not started."""
    from clew.inspect.watch.torch_engine import ENGINE, FOLDER, TorchWatch

    stream = Stream(ENGINE, Stack(base, FOLDER), checksums=checksums)
    return stream, TorchWatch(stream)


def when_imported(name: str, act: Callable[[], None]) -> Callable[[], None]:
    """Call `act` when a module has been imported, now if it is; returns what takes that back."""
    if name in sys.modules:
        act()
        return lambda: None
    finder = _Finder(name, act)
    sys.meta_path.insert(0, finder)
    return finder.remove


class _Finder:
    """Finds nothing itself: has the others find one module, and acts when it is executed."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self.name = name
        self.act = act

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self.name:
            return None
        self.remove()
        for finder in sys.meta_path:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                self._act_after(spec)
                return spec
        return None

    def _act_after(self, spec: Any) -> None:
        execute, act = spec.loader.exec_module, self.act

        def executed(module: Any) -> None:
            spec.loader.__dict__.pop("exec_module", None)
            execute(module)
            act()

        spec.loader.exec_module = executed
