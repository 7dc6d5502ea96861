"""What `gradcheck` says when two Jacobians differ.  Layer 4.

A Jacobian here is a matrix of real numbers: a row for each real number of the input, a column for
each of the output; a complex number counts as two.  PyTorch compares the real and the imaginary
part of a complex output (in forward mode: of a complex input) one after the other, the imaginary
one first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from clew.dtypes import of_numpy
from clew.tensor import Size, Tensor


def mismatch(
    numerical: np.ndarray, analytical: np.ndarray, output: int, position: int, *,
    complex_output: bool, complex_input: bool, rtol: float, atol: float, forward: bool = False,
) -> str | None:  # fmt: skip
    """How the Jacobian of an output for the input at a position differs, or None."""
    element = "inputs" if forward else "outputs"
    is_split = complex_input if forward else complex_output
    for part, pick in _parts(is_split, by_row=forward):
        pair = [numerical[pick], analytical[pick]]
        if np.allclose(pair[1], pair[0], rtol, atol, equal_nan=True):
            continue
        if complex_output and forward:
            pair = [matrix[:, 0::2] + 1j * matrix[:, 1::2] for matrix in pair]
        if complex_input and not forward:
            pair = [matrix[0::2] + 1j * matrix[1::2] for matrix in pair]
        lead = f"While considering the {part} part of complex {element} only, " if part else ""
        return lead + text(pair[0], pair[1], output, position, forward=forward)
    return None


def _parts(is_split: bool, *, by_row: bool) -> Iterator[tuple[str, Any]]:
    """The parts that are compared: the name of each, and what picks it out of a Jacobian."""
    if not is_split:
        yield "", np.s_[:, :]
        return
    for name, first in (("imaginary", 1), ("real", 0)):
        yield name, np.s_[first::2, :] if by_row else np.s_[:, first::2]


def text(
    numerical: Any, analytical: Any, output: int, position: int, *, forward: bool = False
) -> str:
    """PyTorch's words for two Jacobians, or products with them, that differ."""
    mode = "computed with forward mode " if forward else ""
    return (
        f"Jacobian {mode}mismatch for output {output} with respect to input {position},\n"
        f"numerical:{Tensor._from_array(np.asarray(numerical))}\n"
        f"analytical:{Tensor._from_array(np.asarray(analytical))}\n"
    )


def of_elements(numerical: np.ndarray, analytical: np.ndarray, rtol: float, atol: float) -> str:
    """What fast mode, which compares products only, adds: the Jacobians themselves."""
    largest = np.abs(numerical - analytical).max()
    lines = (
        "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
        "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \n"
        "about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
        f"Numerical:\n {Tensor._from_array(numerical)}\n"
        f"Analytical:\n{Tensor._from_array(analytical)}\n\n"
        f"The max per-element difference (slow mode) is: {largest}.\n"
    )
    if np.allclose(analytical, numerical, rtol, atol, equal_nan=True):
        lines += (
            "Fast gradcheck failed but element-wise differences are small. This means that the\n"
            "test might've passed in slow_mode!\n"
        )
    return lines


def require_alike(one: np.ndarray, other: np.ndarray, how: str) -> None:
    """Raise if the results on both sides of the input differ in more than their values."""
    for what, plural, first, second in (
        ("shape", "shapes", Size(one.shape), Size(other.shape)),
        ("dtype", "dtypes", of_numpy(one.dtype), of_numpy(other.dtype)),
    ):
        if first != second:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed "
                f"{how}, but got: {plural} {first} and {second}."
            )


def warn_of_undefined_check() -> None:
    """PyTorch's warning that goes before an error of that check."""
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by "
        "default, but it may break existing callers of this function. If this is true for you, you "
        'can call this function with "check_undefined_grad=False" to disable the feature',
        stacklevel=3,
    )
