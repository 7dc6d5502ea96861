"""The forward-mode half of `gradcheck`: tangents against finite differences.  Layer 4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clew.autograd.forward_ad import dual_level, make_dual, unpack_dual
from clew.autograd.numbers import as_real
from clew.dispatch import TENSORS
from clew.tensor import Tensor

Function = Callable[..., Any]


def forward_jacobians(
    func: Function, arguments: Sequence[Any], outputs: Sequence[int]
) -> list[list[np.ndarray]]:
    """The Jacobians of outputs in each checked input, a call of the function for each element.

    Args:
        func: takes the arguments, returns a tensor or a tuple of things.
        arguments: what to call it with; tensors that require grad are checked.
        outputs: which of the tensors among its results to look at.

    Returns:
        ``found[output][input]``, a row for each real number of the input, a column for each of the
        output.  A complex number counts as two.
    """
    with dual_level():
        duals, tangents = _duals(arguments)
        found: list[list[np.ndarray]] = [[] for _ in outputs]
        for tangent in tangents:
            rows: list[list[np.ndarray]] = [[] for _ in outputs]
            for place in np.ndindex(tangent.shape):
                for step in (1, 1j) if tangent.dtype.kind == "c" else (1,):
                    tangent[place] = step
                    results = _tensors(func(*duals))
                    for row, nr in zip(rows, outputs):
                        row.append(_tangent(results[nr]))
                    tangent[place] = 0
            for jacobians, row in zip(found, rows):
                jacobians.append(np.array(row) if row else np.zeros((0, 0)))
    return found


def tangents_along(
    func: Function, arguments: Sequence[Any], outputs: Sequence[int], directions: Sequence[Any]
) -> list[list[np.ndarray]]:
    """As `forward_jacobians`, but one row for each input: the derivative along its direction."""
    with dual_level():
        duals, tangents = _duals(arguments)
        found: list[list[np.ndarray]] = [[] for _ in outputs]
        for tangent, direction in zip(tangents, directions):
            tangent[...] = direction
            results = _tensors(func(*duals))
            for jacobians, nr in zip(found, outputs):
                jacobians.append(_tangent(results[nr]))
            tangent[...] = 0
    return found


def missing_tangents(
    func: Function, arguments: Sequence[Any], directions: Sequence[np.ndarray]
) -> str | None:
    """What is wrong if an input without a tangent differs from one with a tangent of zeros."""
    with dual_level():
        duals, tangents = _duals(arguments)
        for tangent, direction in zip(tangents, directions):
            tangent[...] = direction
        for i, argument in enumerate(arguments):
            if not _is_checked(argument):
                continue
            dual = duals[i]
            results = []
            for stand_in in (
                make_dual(argument.detach(), TENSORS.zeros_like(argument)), argument.detach()
            ):  # fmt: skip
                duals[i] = stand_in
                results.append([_given(o) for o in _tensors(func(*duals)) if _has_tangents(o)])
            duals[i] = dual
            for nr, (with_zeros, without) in enumerate(zip(*results)):
                if with_zeros is None or without is None:
                    continue
                if not np.allclose(with_zeros._array, without._array):
                    return (
                        f"Mismatch in tangent values for output with index: {nr} when input: "
                        f"{argument} has an undefined tangent value.  Got: {with_zeros} but "
                        f"expected: {without}"
                    )
    return None


def batch_function(func: Function, arguments: Sequence[Any], position: int) -> Function:
    """The tangents of all outputs, as a function of the tangent of one input."""

    def jvp(tangent: Tensor) -> tuple[Any, ...]:
        with dual_level():
            values = [a.detach() if isinstance(a, Tensor) else a for a in arguments]
            values[position] = make_dual(values[position], tangent)
            found = []
            for out in _tensors(func(*values)):
                given = _given(out)
                found.append(TENSORS.zeros_like(out) if given is None else given)
        return tuple(found)

    return jvp


def _is_checked(argument: Any) -> bool:
    return isinstance(argument, Tensor) and argument.requires_grad


def _duals(arguments: Sequence[Any]) -> tuple[list[Any], list[np.ndarray]]:
    """The arguments with tangents of zeros, and those, to be written to."""
    values, tangents = [], []
    for argument in arguments:
        if _is_checked(argument):
            zeros = TENSORS.zeros_like(argument).detach()
            argument = make_dual(argument.detach(), zeros)
            # Not `zeros` itself, if the argument lies in memory in a way of its own.
            tangents.append(unpack_dual(argument).tangent._array)  # type: ignore[union-attr]
        values.append(argument)
    return values, tangents


def _tensors(results: Any) -> list[Tensor]:
    results = results if isinstance(results, (tuple, list)) else (results,)
    return [r for r in results if isinstance(r, Tensor)]


def _has_tangents(out: Tensor) -> bool:
    return out._array.dtype.kind in "fc"


def _given(out: Tensor) -> Tensor | None:
    return unpack_dual(out).tangent


def _tangent(out: Tensor) -> np.ndarray:
    """A copy of the tangent of an output as real numbers, zeros if it has none."""
    given = _given(out)
    return as_real(np.zeros_like(out._array) if given is None else given._array.copy())
