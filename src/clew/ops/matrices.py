"""What the ops on batches of matrices share: checks, memory order, products for rules.

Results lie in memory column by column, as LAPACK (and so PyTorch) leaves them.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.linalg import product
from clew.ops.rules import conj


class LinAlgError(RuntimeError):
    """A matrix that the computation cannot be done for: singular, not positive-definite, ..."""


LinAlgError.__module__ = "torch._C"


def check_matrices(x: Any, name: str) -> None:
    """Refuse what has fewer than two dimensions.

    Raises:
        RuntimeError: naming the function `name`.
    """
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")


def check_square(x: Any, name: str) -> None:
    """Refuse what is no batch of square matrices.

    Raises:
        RuntimeError: naming the function `name`.
    """
    check_matrices(x, name)
    n, m = x.shape[-2:]
    if n != m:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {n} by {m} matrices"
        )


def check_floating(x: Any, name: str, kernel: str = "") -> None:
    """Refuse types that LAPACK has no routine for.

    Raises:
        RuntimeError: the type is neither floating nor complex, or a half.
        NotImplementedError: it is a half, and PyTorch would look for `kernel`.
    """
    if x.dtype.kind not in "fcV":
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(x.dtype)}"
        )
    if x.dtype.itemsize == 2:
        half = scalar_name(x.dtype)
        if kernel:
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{half}'")
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {half}")


def refuse_halves_and_integers(x: Any, kernel: str) -> None:
    """Refuse types that `kernel` does not have.

    Raises:
        NotImplementedError: the type is neither single nor double precision.
    """
    if x.dtype.kind not in "fc" or x.dtype.itemsize == 2:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(x.dtype)}'")


def column_major(x: Any) -> np.ndarray:
    """The matrices laid out column by column."""
    return np.ascontiguousarray(np.swapaxes(x, -1, -2)).swapaxes(-1, -2)


def batch_element(bad: np.ndarray) -> tuple[str, tuple[int, ...]]:
    """How messages name the first matrix of a batch that is bad, and where it is."""
    if bad.ndim == 0:
        return "", ()
    first = int(np.argmax(bad.reshape(-1)))
    return f"(Batch element {first}): ", np.unravel_index(first, bad.shape)  # type: ignore[return-value]


def adjoint(F: Any, x: Any) -> Any:
    """The conjugate transpose of each matrix."""
    return conj(F, F.transpose(x, -2, -1))


def diagonal_matrices(F: Any, x: Any) -> Any:
    """Matrices with the last dimension of `x` on their diagonal."""
    return F.diag_embed(x, 0, -2, -1)


def diagonals(F: Any, x: Any) -> Any:
    """The diagonal of each matrix."""
    return F.diagonal(x, 0, -2, -1)


@op("matrix_product(self, other)", publish=(), jvp="bilinear")
def matrix_product(x: Any, y: Any) -> Any:
    """The products of matrices, the leading dimensions broadcast; for rules."""
    return product(x, y, "bmm", np.matmul)


@matrix_product.grad("self")
def _(F: Any, grad: Any, other: Any) -> Any:
    return F.matrix_product(grad, adjoint(F, other))


@matrix_product.grad("other")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.matrix_product(adjoint(F, self), grad)


# -- factorization into triangles


def lu_packed(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaussian elimination with row exchanges: ``P L U`` of each matrix.

    Returns:
        tuple: L (its ones left out) and U in one matrix; for each column the row that was
        exchanged with it, counted from 1; and the first column with a zero pivot, or 0.
    """
    n, m = x.shape[-2:]
    batch = x.shape[:-2]
    lu = x.reshape(prod(batch), n, m).copy()
    each = np.arange(len(lu))
    pivots = np.zeros((len(lu), min(n, m)), np.int32)
    info = np.zeros(len(lu), np.int32)
    for j in range(min(n, m)):
        row = j + np.argmax(_size(lu[:, j:, j]), axis=1)
        pivots[:, j] = row + 1
        lu[each, j], lu[each, row] = lu[each, row], lu[each, j]
        pivot = lu[:, j, j]
        info = np.where((pivot == 0) & (info == 0), j + 1, info).astype(np.int32)
        safe = np.where(pivot == 0, x.dtype.type(1), pivot)
        lu[:, j + 1 :, j] /= safe[:, None]
        lu[:, j + 1 :, j + 1 :] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 :]
    return lu.reshape(x.shape), pivots.reshape(*batch, min(n, m)), info.reshape(batch)


def _size(x: np.ndarray) -> np.ndarray:
    """What LAPACK compares when it looks for a pivot: of complex numbers not the absolute value."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def row_order(pivots: np.ndarray, n: int) -> np.ndarray:
    """The order of `n` rows that the exchanges `pivots` of `lu_packed` bring about."""
    flat = pivots.reshape(prod(pivots.shape[:-1]), pivots.shape[-1])
    order = np.tile(np.arange(n), (len(flat), 1))
    each = np.arange(len(flat))
    for j in range(flat.shape[1]):
        row = flat[:, j] - 1
        order[each, j], order[each, row] = order[each, row], order[each, j]
    return order.reshape(*pivots.shape[:-1], n)
