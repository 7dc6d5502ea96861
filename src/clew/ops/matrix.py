"""Parts and products of matrices that are neither views nor BLAS calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.layout import contiguous
from clew.ops.rules import conj, wrap_dim
from clew.ops.view import diagonal

# -- triangles


def _triangle(name: str, keep: Any, drop: str) -> None:
    def kept(x: Any, diagonal: int) -> Any:
        if x.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return keep(*x.shape[-2:], diagonal)

    @contiguous
    def forward(x: Any, *, diagonal: int) -> Any:
        return np.where(kept(x, diagonal), x, x.dtype.type(0))

    def write(x: Any, *, diagonal: int) -> None:
        x[..., ~kept(x, diagonal)] = 0

    def rule(F: Any, grad: Any, *, diagonal: int) -> Any:
        return getattr(F, name)(grad, diagonal)

    op(
        f"{name}(self; diagonal=0)", forward, inplace=True, write=write, jvp="linear", self=rule,
        doc=f"Matrices with zeros {drop} their diagonal (or one parallel to it).",
    )  # fmt: skip


_triangle("tril", lambda n, m, k: np.tri(n, m, k, dtype=np.bool_), "above")
_triangle("triu", lambda n, m, k: ~np.tri(n, m, k - 1, dtype=np.bool_), "below")


# -- diagonals


@op("trace(self)", jvp="linear")
def trace(x: Any) -> Any:
    """The sum of the diagonal of a matrix.

    Raises:
        RuntimeError: the tensor is no matrix.
    """
    if x.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}")
    if x.dtype.kind == "b":
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    if x.dtype.kind in "iu":
        return np.trace(x, dtype=np.int64)
    wide = np.float32 if x.dtype.itemsize == 2 else x.dtype
    return np.asarray(np.trace(x, dtype=wide)).astype(x.dtype)


@trace.grad("self")
def _(F: Any, grad: Any, self_shape: Any) -> Any:
    on_diagonal = F.expand(grad, (min(self_shape),))
    return F.diagonal_backward(on_diagonal, size=self_shape, offset=0, dim1=0, dim2=1)


@op("diag_embed(self; offset=0, dim1=-2, dim2=-1)", jvp="linear")
def diag_embed(x: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    """Matrices with the last dimension on their diagonal, zeros elsewhere.

    Raises:
        RuntimeError: the two dimensions of the matrices are one.
    """
    first, second = wrap_dim(dim1, x.ndim + 1), wrap_dim(dim2, x.ndim + 1)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = x.shape[-1] + abs(offset)
    size = list(x.shape[:-1])
    for d in sorted((first, second)):
        size.insert(d, n)
    out = np.zeros(size, x.dtype)
    diagonal.forward(out, offset=offset, dim1=first, dim2=second)[...] = x
    return out


@diag_embed.grad("self")
def _(F: Any, grad: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    return F.diagonal(grad, offset, dim1, dim2)


@op("diagonal_copy(self; offset=0, dim1=0, dim2=1)", publish=("function",),
    node="DiagonalBackward0_copy", jvp="linear")  # fmt: skip
def diagonal_copy(x: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    """`diagonal`, copied."""
    return diagonal.forward(x, offset=offset, dim1=dim1, dim2=dim2).copy()


@diagonal_copy.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    return F.diagonal_backward(grad, size=self_shape, offset=offset, dim1=dim1, dim2=dim2)


# -- the cross product


@op("linalg_cross(self, other; *, dim=-1)", publish=(), jvp="bilinear")
def linalg_cross(x: Any, y: Any, *, dim: int) -> Any:
    """The cross products of vectors of three elements along `dim`; the rest is broadcast.

    Raises:
        RuntimeError: the dimensions, sizes or types do not agree.
    """
    if x.ndim != y.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if x.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = wrap_dim(dim, x.ndim)
    if x.shape[at] != 3 or y.shape[at] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {x.shape[at]} and "
            f"{y.shape[at]}"
        )
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(y.dtype)}"
        )
    x, y = np.broadcast_arrays(x, y)
    a, b, c = np.moveaxis(x, at, 0)
    u, v, w = np.moveaxis(y, at, 0)
    return np.stack([b * w - c * v, c * u - a * w, a * v - b * u], at)


@linalg_cross.grad("self")
def _(F: Any, grad: Any, other: Any, *, dim: int) -> Any:
    return F.linalg_cross(*_same_size(F, conj(F, other), grad), dim=dim)


@linalg_cross.grad("other")
def _(F: Any, grad: Any, self: Any, *, dim: int) -> Any:
    return F.linalg_cross(*reversed(_same_size(F, conj(F, self), grad)), dim=dim)


def _same_size(F: Any, x: Any, like: Any) -> list[Any]:
    return [x if x.shape == like.shape else F.expand(x, tuple(like.shape)), like]
