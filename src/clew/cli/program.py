"""Run a script or a module as `python` itself would.  Imports only the standard library.

The standard library's runpy does nearly this; it leaves its own frames and its caller's in the
user's traceback, and gives no exit status.
"""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType, TracebackType

_ALIAS_FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "torch_alias.py")


class CannotStart(Exception):
    """There is no program to run: why, and the exit status that `python` gives."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


@dataclass
class Program:
    """What to run: a script's path, or with `is_module` a module's name, and its arguments."""

    name: str
    arguments: list[str]
    is_module: bool = False

    def run(
        self, at_end: Callable[[BaseException | None], None] | None = None
    ) -> tuple[int, ModuleType]:
        """Run it to the end of its main thread.

        Args:
            at_end: called with the exception that ended the program, if one did, while what it
                made is still there.

        An exception that the program does not catch is shown as `python` shows it, without the
        frames of clew that lead to the program.

        Returns:
            The exit status, and the program's `__main__`, which keeps alive what it made.

        Raises:
            CannotStart: there is no such file or module.
        """
        main = ModuleType("__main__")
        with _python_started_with(self, main):
            status, error = self._run(main)
            if at_end is not None:
                at_end(error)
            return status, main

    def _run(self, main: ModuleType) -> tuple[int, BaseException | None]:
        try:
            code = _load_module(self.name, main) if self.is_module else _load(self.name, main)
            exec(code, main.__dict__)
        except SystemExit as error:
            return _status_of(error), None
        except CannotStart:
            raise
        except BaseException as error:
            trace = _frames_of_program(error.__traceback__)
            sys.excepthook(type(error), error.with_traceback(trace), trace)
            return (130 if isinstance(error, KeyboardInterrupt) else 1), error
        return 0, None


@contextmanager
def _python_started_with(program: Program, main: ModuleType) -> Iterator[None]:
    """What a program sees of how it was started: `sys.argv`, `sys.path[0]` and `__main__`."""
    saved = sys.argv, sys.path[:], sys.modules["__main__"]
    first = "-m" if program.is_module else program.name
    folder = os.getcwd() if program.is_module else os.path.dirname(os.path.realpath(program.name))
    sys.argv = [first, *program.arguments]
    if not sys.flags.safe_path:
        sys.path[0] = folder
    sys.modules["__main__"] = main
    try:
        yield
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = saved


def _load(name: str, main: ModuleType) -> CodeType:
    path = os.path.abspath(name)
    if os.path.isdir(path):
        raise CannotStart(f"{name!r} is a folder; give a .py file, or -m and a package", 2)
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        why = f"can't open file {path!r}: [Errno {error.errno}] {error.strerror}"
        raise CannotStart(why, 2) from None
    main.__dict__.update(
        __builtins__=sys.modules["builtins"],
        __cached__=None,
        __file__=path,
        __loader__=SourceFileLoader("__main__", path),
    )
    return compile(source, path, "exec", dont_inherit=True)


def _load_module(name: str, main: ModuleType) -> CodeType:
    spec = _find_module(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find_module(f"{name}.__main__")
        if spec is None:
            why = f"No module named {name}.__main__; {name!r} is a package and has nothing to run"
            raise CannotStart(why, 1)
    if spec is None:
        raise CannotStart(f"No module named {name}", 1)
    code = spec.loader.get_code(spec.name)  # type: ignore[union-attr]
    if code is None:
        raise CannotStart(f"{name} has no Python code to run", 1)
    sys.argv[0] = str(spec.origin)
    main.__dict__.update(
        __builtins__=sys.modules["builtins"],
        __cached__=spec.cached,
        __file__=spec.origin,
        __loader__=spec.loader,
        __package__=spec.parent,
        __spec__=spec,
    )
    return code


def _find_module(name: str) -> ModuleSpec | None:
    """The module's spec, or None; imports the packages that it lies in."""
    if name.startswith("."):
        raise CannotStart("Relative module names not supported", 1)
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the package is there; something that it imports is not
        return None


def _status_of(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    print(error.code, file=sys.stderr)
    return 1


def _frames_of_program(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the program's first frame on, to the line that a missing name stopped."""
    while trace is not None and _leads_to_program(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    last, frame = None, trace
    while frame is not None:
        if frame.tb_frame.f_code.co_filename != _ALIAS_FILE:
            last = frame
        frame = frame.tb_next
    if last is not None:
        last.tb_next = None
    return trace


def _leads_to_program(filename: str) -> bool:
    return filename == __file__ or filename.startswith("<frozen importlib")
