"""Bring the operands of an op to the type it computes in.  Layer 1: imports dtypes.

An op names one of `RULES` in its declaration.  Operands are arrays and Python numbers; a Python
number stays one where NumPy gives it the array's type anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew import dtypes
from clew.kernels.half import is_half, narrow, widen


def _cast(operand: Any, target: np.dtype) -> Any:
    if isinstance(operand, np.ndarray):
        return operand if operand.dtype == target else operand.astype(target)
    if operand is None:
        return None
    return _number(operand, target)


def _number(value: Any, target: np.dtype) -> np.ndarray:
    """A 0-d array of a Python number; integers out of range wrap around, as in C."""
    if target.kind in "iu" and isinstance(value, int) and not isinstance(value, bool):
        bits = 8 * target.itemsize
        return np.array(value & ((1 << bits) - 1), dtype=f"u{target.itemsize}").astype(target)
    return np.array(value, dtype=target)


_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


class _Known(dict[float, np.ndarray]):
    """By number: the 0-d array of it in one type, which meets an array in half of the time that
    NumPy takes for the number itself."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype

    def __missing__(self, value: float) -> np.ndarray | float:
        if not 0 < abs(value) < 1e38:  # what is equal but not the same, and what may overflow
            return value
        array = np.array(value, self.dtype)
        array.flags.writeable = False
        if len(self) >= _MOST_KNOWN:
            self.clear()
        self[value] = array
        return array


_MOST_KNOWN = 256
_IN_F32, _IN_F64 = _Known(_F32), _Known(_F64)


def _unless_agreed(
    rule: Callable[[list[Any]], list[Any]], *, numbers: bool = True
) -> Callable[[list[Any]], list[Any]]:
    """`rule` for the operands of a binary op; the commonest that agree already are let through.

    These are two arrays of one of the usual floating types, or one and a number.  Unless `numbers`
    stay what they are, they become 0-d arrays of that type.
    """

    def promote(operands: list[Any]) -> list[Any]:
        first, second = operands
        if first.__class__ is np.ndarray:
            dtype, kind = first.dtype, second.__class__
            if dtype is _F32 or dtype is _F64:
                if kind is np.ndarray:
                    if second.dtype is dtype:
                        return operands
                elif kind is float or kind is int:
                    if numbers:
                        return operands
                    return [first, (_IN_F32 if dtype is _F32 else _IN_F64)[second]]
        return rule(operands)

    return promote


def to_common(operands: list[Any]) -> list[Any]:
    """All operands in the type that PyTorch's promotion gives."""
    first = operands[0]
    if first.__class__ is np.ndarray and all(
        o is None or (o.__class__ is np.ndarray and o.dtype is first.dtype) for o in operands
    ):
        return operands
    target = dtypes.result_type([o for o in operands if o is not None]).numpy
    return [_cast(o, target) for o in operands]


def arithmetic(operands: list[Any]) -> list[Any]:
    """Operands of ``+``, ``*`` and the like; the result has their common type."""
    if len(operands) == 2:
        first, second = operands
        if first.__class__ is not np.ndarray:
            first, second = second, first
        kind = second.__class__
        if kind is np.ndarray:
            if first.dtype is second.dtype:
                return operands
        elif (kind is float or kind is int) and first.dtype.kind == "f":
            return operands
    return to_common(operands)


def difference(operands: list[Any]) -> list[Any]:
    """Operands of ``-``: `arithmetic`, but of bools there is no difference.

    Raises:
        RuntimeError: an operand is a bool, or an array of bools.
    """
    bools = [_is_bool(o) for o in operands]
    if all(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    if any(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
            "to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return arithmetic(operands)


def _is_bool(operand: Any) -> bool:
    kind = operand.__class__
    return kind is bool or (kind is np.ndarray and operand.dtype.kind == "b")


def floating(operands: list[Any]) -> list[Any]:
    """Operands of ``/``, ``exp`` and the like: integers become the default floating type."""
    if len(operands) == 1:
        array = operands[0]
        if array.dtype.kind in "fcV":
            return operands
        order = "C" if 0 in array.strides else "K"  # expanded dimensions are not the innermost
        return [array.astype(dtypes.get_default_dtype().numpy, order)]
    operands = arithmetic(operands)
    kinds = [o.dtype.kind for o in operands if isinstance(o, np.ndarray)]
    if any(kind in "biu" for kind in kinds):
        target = dtypes.get_default_dtype().numpy
        return [_cast(o, target) for o in operands]
    return operands


class Unrounded(float):
    """A number that halves meet in float32, so that a result is rounded once.

    NumPy would round it to a half first.  PyTorch does that for sums, but not for products.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        halves = next(x for x in inputs if isinstance(x, np.ndarray))
        wide = [widen(x) if isinstance(x, np.ndarray) else np.float32(x) for x in inputs]
        return narrow(getattr(ufunc, method)(*wide, **options), halves.dtype)


def product(operands: list[Any]) -> list[Any]:
    """Operands of ``*`` and ``/``: `arithmetic`, but halves meet a number after them unrounded.

    A 0-d array of a wider type is such a number to an array of dimensions.
    """
    first, second = operands
    if first.__class__ is np.ndarray:
        if second.__class__ is np.ndarray and first.dtype is second.dtype:
            return operands
        if is_half(first.dtype) and _is_number(second, first):
            return [first, Unrounded(second)]
    return arithmetic(operands)


def quotient(operands: list[Any]) -> list[Any]:
    """Operands of ``/``: `product`, with integers in the default floating type."""
    operands = product(operands)
    return operands if isinstance(operands[1], Unrounded) else floating(operands)


def _is_number(x: Any, halves: np.ndarray) -> bool:
    if isinstance(x, np.ndarray):
        return x.ndim == 0 < halves.ndim and x.dtype.kind in "biufV"
    return isinstance(x, (float, int))


# -- what is not made for complex numbers


class Refusal:
    """The error of an op that has no order, or no kernel, for complex numbers.

    Attributes:
        text: PyTorch's; ``{}`` stands for the type.
        kind: the type of the error.
    """

    __slots__ = ("kind", "text")

    def __init__(self, text: str, kind: type[Exception] = NotImplementedError) -> None:
        self.text, self.kind = text, kind

    def check(self, *operands: Any) -> None:
        """Raise the error if one of the arrays is complex."""
        for x in operands:
            if x.__class__ is np.ndarray and x.dtype.kind == "c":
                raise self.kind(self.text.format(dtypes.scalar_name(x.dtype)))

    def after(
        self, rule: Callable[[list[Any]], list[Any]] | None
    ) -> Callable[[list[Any]], list[Any]]:
        """`rule`, followed by `check`; two operands of one of the usual types need neither."""

        def promote(operands: list[Any]) -> list[Any]:
            if rule is not None:
                operands = rule(operands)
            self.check(*operands)
            return operands

        return _unless_agreed(promote)


def no_kernel(name: str) -> Refusal:
    """The refusal of a kernel that PyTorch calls `name`."""
    return Refusal(f"\"{name}\" not implemented for '{{}}'")


RULES: dict[str, Callable[[list[Any]], list[Any]]] = {
    "arithmetic": arithmetic,
    "difference": _unless_agreed(difference, numbers=False),
    "division": _unless_agreed(product),
    "floating": floating,
    "product": _unless_agreed(product, numbers=False),
    "quotient": _unless_agreed(quotient),
    "sum": _unless_agreed(arithmetic, numbers=False),
}
"""What an op's ``promote`` may name."""
