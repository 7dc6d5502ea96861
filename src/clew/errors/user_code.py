"""Errors of what users write into the graph: hooks, Functions, what has no derivative.  Layer 0."""

from __future__ import annotations

from typing import Any

from clew.errors import AutogradError, Fact, at, defined, describe, recorded, spaced
from clew.site import here


class HookError(AutogradError):
    """A hook returned something that cannot stand in for the gradient."""

    anchor = "hook"

    def __init__(self, clause: str, hook: Any, node: Any) -> None:
        super().__init__(
            clause,
            ("hook", defined(hook)),
            ("gradient", whose_gradient(node)),
            ("cure", "return None to leave the gradient as it is, or a tensor of its shape and "
                     "dtype (for a hook of a node: a tuple of as many as it is given)"),
        )  # fmt: skip


class HookResultError(HookError, RuntimeError):
    """A hook returned a tensor of another shape or type, or another number of them."""


class HookTypeError(HookError, TypeError):
    """A hook returned something that is no tensor."""


def whose_gradient(node: Any) -> str:
    """What the gradient that arrives at a node is the gradient of."""
    leaf = getattr(node, "variable", None)
    return f"of {describe(leaf)}" if leaf is not None else f"of the results of {recorded(node)}"


class FunctionError(AutogradError):
    """A custom Function does not do what autograd expects of it."""

    anchor = "custom-function"

    def __init__(self, clause: str, node: Any, method: str, cure: str, *facts: Fact) -> None:
        super().__init__(
            clause,
            *facts,
            ("call", recorded(node)),
            (method.removesuffix("_context"), defined(getattr(node._forward_cls, method))),
            ("cure", cure),
        )


class FunctionResultError(FunctionError, RuntimeError):
    """A backward returned the wrong number or kind of gradients, or a forward hid a write."""


class FunctionTypeError(FunctionError, TypeError):
    """A custom Function was given something that is no tensor where it needs one."""


class SavedHookError(AutogradError, RuntimeError):
    """A hook of saved tensors does what it must not, or cannot be registered."""

    anchor = "saved-tensor-hooks"

    def __init__(self, clause: str, cure: str, *facts: Fact) -> None:
        super().__init__(clause, *facts, ("asked", at(here())), ("cure", cure))


class SavedHookTypeError(AutogradError, TypeError):
    """An unpack hook returned something that is no tensor."""

    anchor = "saved-tensor-hooks"

    def __init__(self, clause: str, hook: Any, node: Any) -> None:
        super().__init__(
            clause,
            ("hook", defined(hook)),
            ("saved by", recorded(node)),
            (
                "cure",
                "return the tensor from the unpack hook, in the shape and dtype that was packed",
            ),
        )


class DetachError(AutogradError, RuntimeError):
    """A tensor is detached in place where the graph still needs its history."""

    anchor = "detach"

    def __init__(self, clause: str, *facts: Fact) -> None:
        super().__init__(
            clause, *facts, ("cure", "use x.detach(), which leaves x itself in the graph")
        )


class NoDerivativeError(AutogradError, NotImplementedError):
    """Backward came to an operation that has no derivative."""

    anchor = "no-derivative"
    names_node = False

    def __init__(self, clause: str, cure: str) -> None:
        super().__init__(clause, ("backward", at(here())), ("cure", cure))


class TwiceDifferentiatedError(AutogradError, RuntimeError):
    """The gradient of something whose gradient cannot be differentiated."""

    anchor = "no-derivative"

    def __init__(self, clause: str, node: Any) -> None:
        super().__init__(
            clause,
            ("gradient", f"computed{spaced('', node.site)}"),
            ("again", at(here())),
            ("cure", "write the backward with tensor operations and without @once_differentiable, "
                     "or do not ask for create_graph=True"),
        )  # fmt: skip


class NanGradientError(AutogradError, RuntimeError):
    """Anomaly mode has found nan in what a node returned."""

    anchor = "nan-gradient"

    def __init__(self, clause: str, node: Any) -> None:
        super().__init__(
            clause,
            ("node", recorded(node)),
            ("backward", at(here())),
            ("cure", "look for 0 / 0, log(0), sqrt(0) or inf - inf on that line; where() after it "
                     "does not help, for it multiplies the nan by zero: guard its input instead"),
        )  # fmt: skip


class NoNodeError(AutogradError, AssertionError):
    """A hook is put on a tensor that has no place in the graph."""

    anchor = "requires-grad"

    def __init__(self, clause: str, tensor: Any) -> None:
        super().__init__(
            clause,
            ("tensor", describe(tensor)),
            ("asked", at(here())),
            ("cure", "compute it from a tensor that requires grad, outside no_grad"),
        )
