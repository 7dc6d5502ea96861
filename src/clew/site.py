"""Where in the user's program something happened.  Imports only the standard library and config.

A `Site` is taken on the path that every op passes, so it is only the code object and the offset
of the instruction; file, line and text are looked up when somebody asks.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import linecache
import os
import sys
from types import CodeType
from typing import NamedTuple

from clew import ahead
from clew.ahead import frames
from clew.config import switches

_OWN_FILES = ahead.SOURCE + os.sep

# Modules of the standard library that call what the user gave them: not where things happen.
_GO_BETWEENS = frozenset({contextlib.__file__, copy.__file__, functools.__file__})

Site = tuple[CodeType, int]


class _PassedOver(dict[str, bool]):
    """By file: whether it is not the user's program."""

    def __missing__(self, file: str) -> bool:
        found = self[file] = file.startswith(_OWN_FILES) or file in _GO_BETWEENS
        return found


_passed_over = _PassedOver()


class SourceLine(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}"
        return f"{where}, in {self.function}: {self.text}" if self.text else where


def here(skip: int = 0) -> Site | None:
    """The user's frame: the first outside clew; None if there is none or provenance is off.

    Args:
        skip: so many callers are known to be clew's own.
    """
    if not switches.provenance:
        return None
    try:
        frame = sys._getframe(frames(1 + skip))
    except ValueError:  # called by no program: when the interpreter ends, say
        return None
    while _passed_over[(code := frame.f_code).co_filename]:
        outer = frame.f_back
        if outer is None:
            return None
        frame = outer
    return (code, frame.f_lasti)


def _line_number(code: CodeType, offset: int) -> int:
    if offset < 0:
        return code.co_firstlineno
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def resolve(site: Site | None) -> SourceLine | None:
    """File, line, function and text of a site."""
    if site is None:
        return None
    code, offset = site
    line = _line_number(code, offset)
    text = linecache.getline(code.co_filename, line).strip()
    return SourceLine(code.co_filename, line, code.co_name, text)
