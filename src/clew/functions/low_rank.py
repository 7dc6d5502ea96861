"""Singular values of matrices that are nearly of low rank, from products with random vectors.

N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness" (2011), algorithm 5.1.
"""

from __future__ import annotations

from typing import Any

from clew import dtypes
from clew.dispatch import apply
from clew.functions.decompose import qr, svd
from clew.functions.linalg import matmul
from clew.functions.random import randn
from clew.op import REGISTRY
from clew.publish import composite


def _basis(A: Any, q: int, niter: int, M: Any) -> Any:
    """Orthonormal columns that nearly span those of ``A - M``."""
    kind = A.dtype if A._array.dtype.kind in "fc" else dtypes.get_default_dtype()
    random = randn(A.shape[-1], q, dtype=kind)

    def times(X: Any, adjoint: bool) -> Any:
        result = matmul(A.mH if adjoint else A, X)
        return result if M is None else result - matmul(M.mH if adjoint else M, X)

    basis = qr(times(random, False))[0]
    for _ in range(niter):
        basis = qr(times(basis, True))[0]
        basis = qr(times(basis, False))[0]
    return basis


@composite(method=False)
def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:
    """The `q` largest singular values of ``A - M`` and their vectors, approximately.

    Args:
        A: ``(*, m, n)``.
        q: how many, a little more than the rank.
        niter: how often the basis is refined.
        M: what is subtracted, broadcast to `A`.

    Returns:
        tuple: U, S and V.
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if M is not None:
        M = apply(REGISTRY["expand"], (M,), {"size": tuple(A.shape)})
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = A.mH, None if M is None else M.mH
    basis = _basis(A, q, niter, M)
    small = matmul(basis.mH, A)
    if M is not None:
        small = small - matmul(basis.mH, M)
    u, s, vh = svd(small, False)
    u, v = matmul(basis, u), vh.mH
    return (v, s, u) if wide else (u, s, v)


@composite(method=False)
def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """The principal components of the rows of a matrix, approximately.

    Args:
        A: ``(*, m, n)``.
        q: how many, at most ``min(m, n)``.
        center: subtract the mean of the rows first.
        niter: how often the basis is refined.

    Returns:
        tuple: U, S and V of the (centred) matrix.

    Raises:
        ValueError: `q` or `niter` is out of range.
    """
    least = min(A.shape[-2:])
    if q is None:
        q = min(6, least)
    elif not 0 <= q <= least:
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean((-2,), True) if center else A, q, niter)
