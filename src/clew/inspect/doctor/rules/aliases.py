"""R13b: a callee changed a tensor in place, and the caller read it again under its old name."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FrameType
from typing import Any

from clew.inspect.doctor.rules.base import Rule, short
from clew.inspect.watch import NodeInfo, Path, Storage, Write
from clew.inspect.watch.paths import Place, reads, statement, targets, value_of


class ChangedInput(Rule):
    """In a frame of the program, a line called something that wrote to a tensor in place, bound
    its result to another name, and a later line of the same frame read the old name.

    ``x = relu_(x)``, ``x += 1`` and a bare ``x.relu_()`` say what they do, and are no mistake.
    """

    id = "R13"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.changed: dict[Any, list[_Changed]] = {}
        self.seen: dict[tuple[Place, Place], int] = {}

    def on_write(self, write: Write, storage: Storage, target: Any) -> None:
        engine = self.stream.engine
        if write.optimizer is not None or storage.key in self.stream.parameter_memory:
            return
        if not (write.recorded or engine.records()):
            return
        entries = []
        frames = self.stream.stack.frames()
        for frame, place in zip(frames, reversed(write.path)):
            step = statement(place)
            if not isinstance(step, (ast.Assign, ast.AnnAssign, ast.Return)):
                continue
            names = {
                name
                for name in reads(step)
                if self._is(value_of(name, frame), storage.key)
            } - targets(step)  # fmt: skip
            if names:
                entries.append(_Changed(id(frame), place, names, write))
        if entries:
            self.changed[storage.key] = entries
        else:
            self.changed.pop(storage.key, None)

    def _is(self, value: Any, key: Any) -> bool:
        engine = self.stream.engine
        return engine.is_tensor(value) and engine.storage(value) == key

    def on_op(self, name: str, inputs: Sequence[Any], info: NodeInfo | None, path: Path) -> None:
        if not self.changed:
            return
        engine = self.stream.engine
        for x in inputs:
            key = engine.storage(x)
            entries = self.changed.get(key)
            if entries:
                self._look(key, entries, path)

    def _look(self, key: Any, entries: list[_Changed], path: Path) -> None:
        frames = self.stream.stack.frames()
        for frame, place in zip(frames, reversed(path)):
            for entry in entries:
                if entry.frame != id(frame) or entry.place.code is not place.code:
                    continue
                if place.is_on_line_of(entry.place):
                    continue
                name = self._read(frame, place, entry, key)
                if name is not None:
                    self._count(name, entry, place)
                    return

    def _read(self, frame: FrameType, place: Place, entry: _Changed, key: Any) -> str | None:
        for name in reads(statement(place)):
            if name in entry.names and self._is(value_of(name, frame), key):
                return name
        return None

    def _count(self, name: str, entry: _Changed, place: Place) -> None:
        pair = (entry.place, place)
        self.seen[pair] = self.seen.get(pair, 0) + 1
        if self.seen[pair] != self.options.repetitions:
            return
        write = entry.write
        self.report(
            "warning", place.source,
            f"{name} is not what it was: the call on line {entry.place.source.line} changed it in "
            f"place ({write.name} on {short(write.path)}), and this line reads it again, so it "
            "gets the changed values. No error is raised, the result is silently another one.",
            "Use the out-of-place operation there (inplace=False), or pass a clone() of "
            f"{name}.",
            [("read again", place.source), ("call", entry.place.source), ("write", write.path)],
            kind="alias", op=write.name, tensor=name,
        )  # fmt: skip


class _Changed:
    """A write, seen from a frame: the call's line, and the names that meant the memory there."""

    def __init__(self, frame: int, place: Place, names: set[str], write: Write) -> None:
        self.frame = frame
        self.place = place
        self.names = names
        self.write = write
