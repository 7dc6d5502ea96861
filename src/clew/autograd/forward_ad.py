"""Forward-mode differentiation: tangents are computed along with values.

A *dual* tensor is a tensor with a tangent, its derivative along a direction.  Inside a
`dual_level`, what is computed from dual tensors is dual::

    with dual_level():
        x = make_dual(point, direction)
        y, derivative = unpack_dual(f(x))

`clew.func.jvp` does this for a function, and nests.  How it works stands in ``dual.py``,
``forward_mode.py`` and ``forward_rules.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from clew.autograd.dual import dual_at, parts_at, tangent_of
from clew.autograd.forward_mode import ForwardLevel
from clew.autograd.modes import _Mode, state
from clew.errors import LevelError, TangentTypeError, describe
from clew.tensor import Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_current_level = -1
"""The level that functions here mean by default: 0 while one is entered, else -1."""

_entered: list[ForwardLevel] = []
"""The level behind that number."""


class UnpackedDualTensor(NamedTuple):
    """A tensor without its tangent, and the tangent, None if it has none."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter a level of forward mode, and return its number, 0.

    Raises:
        RuntimeError: one is entered already.
    """
    global _current_level
    if _entered:
        raise LevelError(
            "Nested forward mode AD is not supported at the moment",
            "leave the level first, or use torch.func.jvp, which nests",
        )
    _entered.append(ForwardLevel(is_transform=False).__enter__())
    _current_level = 0
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level: all tangents at it are gone.

    Raises:
        RuntimeError: `level` is not the one that was entered last.
    """
    global _current_level
    if level is None:
        level = _current_level
    if level != _current_level:
        raise LevelError(
            "Trying to exit a forward AD level that was not the last one that was created. This is "
            "not supported.",
            "use `with dual_level():`, which leaves what it has entered",
        )
    if not _entered:
        raise LevelError(
            "Dual level must be a positive number.",
            "use `with dual_level():`, which leaves what it has entered",
        )
    _entered.pop().__exit__()
    _current_level = -1


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` with a tangent.

    Both gradients and tangents go through: the result is recorded as a view of `tensor`.

    Args:
        tensor: floating point or complex.
        tangent: of the same shape.  It is used as it is if it lies in memory like `tensor`, else
            copied.
        level: what `enter_dual_level` returned.

    Raises:
        RuntimeError: no level is entered, the shapes differ, or one of the two has a tangent.
        ValueError: one of the two is of integers or bools.
    """
    if level is None:
        level = _current_level
    if level < 0:
        raise LevelError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first.",
            "make dual tensors, and compute with them, inside `with dual_level():`; or call "
            "torch.func.jvp, which does it",
            ("tensor", describe(tensor)),
        )
    for role, given in (("primal", tensor), ("tangent", tangent)):
        if not (given.is_floating_point() or given.is_complex()):
            raise TangentTypeError(
                f"Expected {role} to be floating point or complex, but got: {given.dtype}",
                f"convert it before: {'tensor' if role == 'primal' else role}.float()",
                (role, describe(given)),
            )
    place = _level(level, "_make_dual")
    if tangent_of(tensor, place) is not None:
        raise LevelError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            f"same level {level} is not supported.",
            "take it without its tangent, unpack_dual(tensor).primal, or add to the tangent that "
            "it has",
            ("tensor", describe(tensor)),
        )
    if tangent_of(tangent, place) is not None:
        raise LevelError(
            "Setting a forward grad that itself has a forward gradient at the same level"
            f"{level} is not supported.",
            "take the tangent without its own, unpack_dual(tangent).primal; second derivatives "
            "are those of nested torch.func.jvp",
            ("tangent", describe(tangent)),
        )
    return dual_at(place, tensor, tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A view of `tensor` without its tangent, and the tangent.

    Outside of any level this is ``(tensor, None)``.
    """
    if level is None:
        level = _current_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*parts_at(_level(level, "_fw_primal"), tensor))


def _level(number: int, function: str) -> ForwardLevel:
    if number != 0 or not _entered:
        raise LevelError(
            f"Invalid level given to {function}",
            "leave level= out: tensors of the level that is entered are meant",
        )
    return _entered[0]


class dual_level(_Mode):
    """Forward mode inside a ``with`` or a decorated function.

    >>> from clew.autograd.forward_ad import dual_level, make_dual, unpack_dual
    >>> with dual_level():
    ...     x = make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     y = x * x
    ...     print(unpack_dual(y).tangent)
    tensor(6.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: Any) -> None:
        exit_dual_level()


def _is_fwd_grad_enabled() -> bool:
    return state.now.carries_tangents


class _set_fwd_grad_enabled(_Mode):
    """Turn forward mode on or off in this thread: at once as a call, for a while in a ``with``."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.prev = state.now.carries_tangents
        state.now.carries_tangents = mode

    def __enter__(self) -> None:
        state.now.carries_tangents = self.mode

    def __exit__(self, *exception: Any) -> None:
        state.now.carries_tangents = self.prev

    def _fresh(self) -> _Mode:
        return type(self)(self.mode)
