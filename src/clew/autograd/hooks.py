"""Call the hooks of tensors and nodes.  Layer 3; see ``NodeHooks`` for their kinds.

Note [Hook order]
    Hooks of the tensors that a node produced, then what retains their gradient, then the node's
    pre-hooks, then the node, then its post-hooks.  A leaf's hooks stand on the leaf and run before
    its gradient is accumulated; its post-accumulate hooks run after.

Hooks see Tensors.  A gradient that a hook has seen is no longer the engine's own.
"""

from __future__ import annotations

import weakref
from typing import Any

from clew.autograd.modes import call_user
from clew.autograd.node import AccumulateGrad, Node
from clew.dtypes import contiguous_format, described_type
from clew.errors import HookResultError, HookTypeError


def call_tensor_hooks(node: Node, grads: list[Any], algebra: Any) -> None:
    """Run the hooks of the tensors behind `grads`, in place."""
    if isinstance(node, AccumulateGrad):
        meta = node.variable._meta
        tables = {0: meta.hooks} if meta is not None and meta.hooks else {}
        retain: dict[int, Any] = {}
    elif node.hooks is not None:
        tables, retain = node.hooks.tensor, node.hooks.retain
    else:
        return
    for output_nr, hooks in tables.items():
        for hook in list(hooks.values()):
            given = algebra.wrap(grads[output_nr])
            returned = call_user(hook, given)
            if returned is None:
                grads[output_nr] = algebra.unwrap(given)
            else:
                grads[output_nr] = _checked(returned, given, hook, node, algebra)
    for output_nr, keep in list(retain.items()):
        if grads[output_nr] is not None:
            keep(algebra.wrap(grads[output_nr]))


def _checked(returned: Any, given: Any, hook: Any, node: Node, algebra: Any) -> Any:
    """What a hook returned in place of the gradient `given`, if it can stand in for it."""
    if returned is None:
        return None
    if given is None:
        raise HookResultError("can't replace a None gradient with a non-None value", hook, node)
    if not algebra.is_tensor(returned):
        raise HookTypeError(
            f"expected Variable, but hook returned '{type(returned).__name__}'", hook, node
        )
    lead = f"hook '{_name(hook)}' has"
    if returned.dtype is not given.dtype:
        was, got = (described_type(t._array.dtype) for t in (given, returned))
        kinds = f"(was {was} got {got})"
        raise HookResultError(f"{lead} changed the type of value {kinds}", hook, node)
    if returned.shape != given.shape:
        raise HookResultError(f"{lead} changed the size of value", hook, node)
    return algebra.unwrap(returned)


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def call_before(node: Node, grads: list[Any], algebra: Any) -> None:
    """Run the node's pre-hooks on its incoming gradients, in place."""
    assert node.hooks is not None
    for hook in list(node.hooks.before.values()):
        given = tuple(algebra.wrap(g) for g in grads)
        returned = call_user(hook, given)
        if returned is not None:
            grads[:] = _checked_all(returned, given, hook, node, algebra)


def call_after(node: Node, results: Any, grads: list[Any], algebra: Any) -> list[Any]:
    """Run the node's post-hooks; what they make of its results."""
    assert node.hooks is not None
    given = tuple(algebra.wrap(g) for g in results)
    incoming = tuple(algebra.wrap(g) for g in grads)
    for hook in list(node.hooks.after.values()):
        returned = call_user(hook, given, incoming)
        if returned is not None:
            _checked_all(returned, given, hook, node, algebra)
            given = returned
    return [algebra.unwrap(g) for g in given]


def _checked_all(
    returned: Any, given: tuple[Any, ...], hook: Any, node: Node, algebra: Any
) -> list[Any]:
    """What a hook of a node returned in place of all the gradients that it was given."""
    if not isinstance(returned, tuple):
        raise HookTypeError(
            f"expected tuple, but hook returned '{type(returned).__name__}'", hook, node
        )
    if len(returned) != len(given):
        raise HookResultError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got "
            f"{len(returned)}, but expected {len(given)})",
            hook,
            node,
        )
    return [_checked(r, g, hook, node, algebra) for r, g in zip(returned, given)]


def call_post_accumulate(node: AccumulateGrad) -> None:
    """Run the hooks that wait for a leaf's accumulated gradient."""
    variable = node.variable
    meta = variable._meta
    if meta is None or not meta.post_accumulate:
        return
    for hook in list(meta.post_accumulate.values()):
        returned = call_user(hook, variable)
        if returned is None or returned is variable:
            continue
        if not hasattr(returned, "_gradient_edge"):
            clause = f"expected Variable, but hook returned '{type(returned).__name__}'"
            raise HookTypeError(clause, hook, node)
        raise HookResultError("Tensor post accumulate grad hooks should return None.", hook, node)


class Retain:
    """Stores a gradient in a non-leaf, which it must not keep alive."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = weakref.ref(tensor)

    def __call__(self, grad: Any) -> None:
        tensor = self.tensor()
        if tensor is None:
            return
        if tensor._grad is None:
            tensor._grad = grad.clone(memory_format=contiguous_format)
        else:
            tensor._grad = tensor._grad + grad
