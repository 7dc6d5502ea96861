"""How functions call ops that are not published under a name of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.autograd.modes import state
from clew.dispatch import apply, apply_inplace
from clew.op import REGISTRY
from clew.tensor import Tensor as _Tensor

if TYPE_CHECKING:
    # Most methods are installed on the class when clew is imported, unseen by a type checker.
    Tensor = Any
else:
    Tensor = _Tensor


def call(name: str, *inputs: Any, **attrs: Any) -> Any:
    """Run the op `name`."""
    return apply(REGISTRY[name], inputs, attrs)


def unary(name: str, input: Any, inplace: bool = False, **attrs: Any) -> Any:
    """Run an op of one tensor, or its in-place twin.

    Raises:
        TypeError: `input` is no tensor.
    """
    if not isinstance(input, _Tensor):
        raise not_a_tensor(name, 1, "input", input)
    op = REGISTRY[name]
    return apply_inplace(op, input, (), attrs) if inplace else apply(op, (input,), attrs)


def not_a_tensor(function: str, position: int, argument: str, value: Any) -> TypeError:
    """The error for an argument that should have been a tensor."""
    return TypeError(
        f"{function}(): argument '{argument}' (position {position}) must be Tensor, not "
        f"{type(value).__name__}"
    )


def are_tensors(x: Any, y: Any) -> bool:
    """Whether both arguments are tensors."""
    return isinstance(x, _Tensor) and isinstance(y, _Tensor)


def require_tensors(function: str, **arguments: Any) -> None:
    """Check that all arguments, in the order of the function's positions, are tensors.

    Raises:
        TypeError: one is not.
    """
    for position, (argument, value) in enumerate(arguments.items(), 1):
        if not isinstance(value, _Tensor):
            raise not_a_tensor(function, position, argument, value)


def refuse_gradients(function: str, **arguments: Any) -> None:
    """Check that none of the arguments, of which there is no derivative, requires grad.

    Raises:
        RuntimeError: one does, and operations are being recorded.
    """
    for argument, value in arguments.items():
        if value is not None and value.requires_grad and state.now.grad_enabled:
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument "
                f"'{argument}'. This input cannot have requires_grad True."
            )
