"""Errors of `autograd.functional`, of forward mode, of methods that a Function lacks.  Layer 0."""

from __future__ import annotations

from typing import Any

from clew.errors import AutogradError, Fact, at, recorded
from clew.site import here


class FunctionalError(AutogradError):
    """A function, its inputs or a vector that `autograd.functional` cannot work with."""

    anchor = "functional"

    def __init__(self, clause: str, cure: str, *facts: Fact) -> None:
        super().__init__(clause, *facts, ("asked", at(here())), ("cure", cure))


class FunctionalResultError(FunctionalError, RuntimeError):
    """A vector is missing or of another shape, or something is independent of the inputs."""


class FunctionalTypeError(FunctionalError, TypeError):
    """Something is neither a tensor nor a tuple of tensors."""


class FunctionalOptionError(FunctionalError, NotImplementedError):
    """Forward mode does not go with an option."""


class ForwardModeError(AutogradError):
    """A level of forward mode is used where there is none, or a tangent does not fit."""

    anchor = "forward-mode"

    def __init__(self, clause: str, cure: str, *facts: Fact) -> None:
        super().__init__(clause, *facts, ("asked", at(here())), ("cure", cure))


class LevelError(ForwardModeError, RuntimeError):
    """There is no level, one too many, or a tensor has a tangent at it already."""


class TangentTypeError(ForwardModeError, ValueError):
    """A tensor or a tangent of integers or bools."""


class MissingMethodError(AutogradError, NotImplementedError):
    """A custom Function lacks a method that is needed."""

    anchor = "custom-function"
    names_node = False

    def __init__(self, clause: str, cure: str, node: Any = None) -> None:
        called = recorded(node) if hasattr(node, "site") else None
        super().__init__(clause, ("call", called), ("asked", at(here())), ("cure", cure))
