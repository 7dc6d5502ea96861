"""How the line of a declaration is read; see Note [Signatures] in ``op.py``.

Layer 2: imports the standard library.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from typing import Any, NamedTuple

REQUIRED: Any = inspect.Parameter.empty
"""The default of an input or attribute that has none."""


class Signature(NamedTuple):
    """A parsed declaration line; see Note [Signatures]."""

    name: str
    inputs: dict[str, Any]  # name -> default
    attrs: dict[str, Any]  # name -> default
    keyword_only: frozenset[str]
    variadic_input: bool
    variadic_attr: str | None
    outputs: tuple[str, ...]


def parse_signature(text: str) -> Signature:
    """Read ``name(inputs; attributes) -> outputs``."""
    head, _, tail = text.partition(" -> ")
    name, _, inside = head.partition("(")
    inputs_text, _, attrs_text = inside.strip().removesuffix(")").partition(";")
    inputs, _, variadic_input = _parse_parameters(inputs_text.strip())
    attrs, keyword_only, variadic_attr = _parse_parameters(attrs_text.strip())
    outputs = tuple(part.strip() for part in tail.split(",")) if tail else ("result",)
    return Signature(
        name.strip(),
        dict(inputs),
        dict(attrs),
        keyword_only,
        variadic_input is not None,
        variadic_attr,
        outputs,
    )


_COMMA = re.compile(r",\s*(?![^()]*\))")
"""A comma that is not inside a default's parentheses."""

_literal = functools.cache(ast.literal_eval)


@functools.cache  # of two declarations one has the parameters of an earlier one
def _parse_parameters(text: str) -> tuple[dict[str, Any], frozenset[str], str | None]:
    """Parameters with their defaults, which of them are keyword-only, and the variadic one."""
    parameters: dict[str, Any] = {}
    keyword_only: set[str] = set()
    variadic, after_star = None, False
    for part in _COMMA.split(text) if "(" in text else text.split(","):
        name, equals, default = (word.strip() for word in part.partition("="))
        if name.startswith("*"):
            after_star = True
            if name == "*":
                continue
            variadic = name = name[1:]
        elif after_star:
            keyword_only.add(name)
        if name:
            parameters[name] = _literal(default) if equals else REQUIRED
    return parameters, frozenset(keyword_only), variadic
