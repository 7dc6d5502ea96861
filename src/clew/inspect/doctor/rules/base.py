"""What the rules share: how to report, and how to name things.  Imports the watcher's records."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from clew.inspect.doctor.finding import Finding, listed
from clew.inspect.watch import Component, Leaf, Listener, Path, Stream
from clew.inspect.watch.paths import common, line_of, statement, targets, variable_of
from clew.site import SourceLine


@dataclass(frozen=True)
class Options:
    """The thresholds of the rules, and what has to be asked for.

    Attributes:
        repetitions: so many times something must have happened, at least.
        growth: so many iterations in a row a graph must have grown.
        unused_bytes, unused_share: a recording that nobody uses is worth a word from so many
            bytes on, or from such a share of the peak of what was kept for backward.
        bptt: states may be carried so many iterations on purpose.
        checksums: remember a checksum of all that is kept, to find changes that versions hide.
    """

    repetitions: int = 2
    growth: int = 3
    unused_bytes: int = 1 << 20
    unused_share: float = 0.05
    bptt: int = 0
    checksums: bool = False


class Rule(Listener):
    """One rule: listens to the stream, and reports what it finds."""

    id = ""

    def __init__(self, stream: Stream, options: Options, findings: list[Finding]) -> None:
        self.stream = stream
        self.options = options
        self.findings = findings
        self._said: set[Any] = set()

    def finish(self) -> None:
        """The program has ended."""

    def report(
        self, severity: str, place: Path | SourceLine | None, message: str, cure: str,
        lines: Sequence[tuple[str, Path | SourceLine | None]] = (), **figures: Any,
    ) -> Finding | None:  # fmt: skip
        """Add a finding, once for each line; None if it was there."""
        at = place if isinstance(place, SourceLine) else line_of(place)
        key = (at and at[:2], figures.get("kind"))
        if key in self._said:
            return None
        self._said.add(key)
        resolved = [(role, p if isinstance(p, SourceLine) else line_of(p)) for role, p in lines]
        known = [(role, p) for role, p in resolved if p is not None]
        finding = Finding(self.id, severity, message, cure, at, known, figures)
        self.findings.append(finding)
        return finding

    def found(self, rule: str) -> bool:
        """Whether a rule has reported something."""
        return any(f.rule == rule for f in self.findings)


def region(component: Component) -> Path:
    """The lines of a forward: what its ops have in common, else the line of the first."""
    return component.first[: max(component.shared, 1)]


def top_of(paths: Iterable[Path]) -> Path:
    """The innermost call that all paths share; the first path's outermost line if none is."""
    found: Path | None = None
    for path in paths:
        found = path if found is None else (found[: common(found, path)] or found[:1])
    return found or ()


def leaf_names(stream: Stream, leaves: Sequence[Leaf]) -> list[str]:
    """The names of leaves: as a module in sight knows them, or a variable, or their shape."""
    frames = stream.stack.frames()
    wanted = {id(tensor) for leaf in leaves if (tensor := leaf.ref()) is not None}
    known: dict[int, str] = {}
    for name, module in modules_in_sight(stream, frames):
        for inner, parameter in _parameters(module):
            if id(parameter) in wanted:
                known.setdefault(id(parameter), f"{name}.{inner}")
    found = []
    for leaf in leaves:
        tensor = leaf.ref()
        variable = None if tensor is None else variable_of(tensor, frames)
        found.append(known.get(id(tensor)) or variable or f"a {leaf.shape}")
    return found


def _parameters(module: Any, prefix: str = "") -> Iterable[tuple[str, Any]]:
    """`named_parameters`, without the duplicates' bookkeeping and without being watched."""
    for name, parameter in (getattr(module, "_parameters", None) or {}).items():
        yield prefix + name, parameter
    for name, child in (getattr(module, "_modules", None) or {}).items():
        yield from _parameters(child, f"{prefix}{name}.")


def modules_in_sight(stream: Stream, frames: list[Any]) -> list[tuple[str, Any]]:
    """The modules that variables of the program, or attributes of these, hold; by their names."""
    kind = stream.engine.module_type
    scopes = [scope for f in frames for scope in (f.f_locals, f.f_globals)]
    scopes.append(sys.modules["__main__"].__dict__)
    found: dict[int, tuple[str, Any]] = {}
    for scope in {id(s): s for s in scopes}.values():
        for name, value in list(scope.items()):
            if isinstance(value, kind):
                found.setdefault(id(value), (name, value))
                continue
            if name.startswith("_") or isinstance(value, type):
                continue
            for inner, part in list(getattr(value, "__dict__", {}).items()):
                if isinstance(part, kind):
                    found.setdefault(id(part), (f"{name}.{inner}", part))
    return list(found.values())


def some_names(stream: Stream, leaves: Sequence[Leaf], most: int = 3) -> str:
    """``model.0.weight, model.0.bias and 4 more``."""
    return listed(leaf_names(stream, leaves), most)


def name_of_optimizer(stream: Stream, optimizer: Any, path: Path = ()) -> str:
    """What a line ``name.step()`` calls an optimizer, or its variable, or its class."""
    step = statement(path[-1]) if path else None
    for part in ast.walk(step) if step is not None else ():
        if isinstance(part, ast.Attribute) and part.attr == "step":
            return ast.unparse(part.value)
    name = variable_of(optimizer, stream.stack.frames())
    if name:
        return name
    kind = type(optimizer).__name__
    return repr(optimizer) if kind.startswith("_") else f"the {kind} optimizer"


def name_of_result(path: Path) -> str | None:
    """What the innermost statement of a path assigns to, where that is one name."""
    names = targets(statement(path[-1])) if path else set()
    return next(iter(names)) if len(names) == 1 else None


def short(path: Path | SourceLine | None) -> str:
    """``line 12`` of a path, or ``a line that is not known``."""
    at = path if isinstance(path, SourceLine) else line_of(path)
    return f"line {at.line}" if at else "a line that is not known"
