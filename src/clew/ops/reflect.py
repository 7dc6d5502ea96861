"""Products of Householder reflectors, ``H = I - tau v v^H``, as LAPACK stores them.

Column i of a matrix holds v below its i-th element, which is 1 and not stored; `tau` holds the
factors.  ``Q = H_1 H_2 ... H_k``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.matrices import adjoint, column_major, diagonal_matrices
from clew.ops.rules import conj


def _check(name: str, a: Any, tau: Any) -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if a.dtype != tau.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {scalar_name(tau.dtype)} does not match input dtype "
            f"{scalar_name(a.dtype)}"
        )
    if a.dtype.kind not in "fc" or a.dtype.itemsize < 4:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{scalar_name(a.dtype)}'")


def _vector(a: Any, i: int) -> Any:
    """The i-th vector ``(*, m, 1)``."""
    v = a[..., :, i : i + 1].copy()
    v[..., :i, :] = 0
    v[..., i, :] = 1
    return v


def _apply(a: Any, tau: Any, c: Any, *, backwards: bool) -> Any:
    """``Q c``, or ``Q^H c`` if `backwards`."""
    for i in range(tau.shape[-1]) if backwards else reversed(range(tau.shape[-1])):
        v, factor = _vector(a, i), tau[..., i, None, None]
        factor = np.conj(factor) if backwards else factor
        c = c - factor * v * (np.conj(np.swapaxes(v, -1, -2)) @ c)
    return c


def _unit_columns(F: Any, a: Any, k: int) -> Any:
    """The vectors of the first `k` columns, zeros and ones filled in."""
    *batch, m, _ = a.shape
    eye = diagonal_matrices(F, F.full(a, size=(*batch, k), value=1))
    if m > k:
        eye = F.cat((eye, F.full(a, size=(*batch, m - k, k), value=0)), -2)
    return F.tril(F.slice(a, dim=-1, start=0, end=k, step=1), -1) + eye


def _column(F: Any, x: Any, i: int) -> Any:
    return F.slice(x, dim=-1, start=i, end=i + 1, step=1)


def _gradients(F: Any, grad: Any, a: Any, tau: Any, c: Any, *, backwards: bool) -> tuple[Any, Any]:
    """The gradients of `a` and `tau` of ``Q c`` (``Q^H c`` if `backwards`).

    Between the reflectors before and those after the i-th, ``H_i`` has the gradient ``A R^H``,
    where A is `grad` taken back through those before, and R is what those after make of `c`.
    """
    k = tau.shape[-1]
    columns = _unit_columns(F, a, k)
    factors = F.unsqueeze(conj(F, tau) if backwards else tau, -2)
    order = list(reversed(range(k))) if backwards else list(range(k))
    behind = {order[-1]: c} if order else {}
    for i, before in zip(reversed(order), reversed(order[:-1])):
        v = _column(F, columns, i)
        inner = F.matrix_product(adjoint(F, v), behind[i])
        behind[before] = behind[i] - _column(F, factors, i) * v * inner
    of_columns, of_tau = [], []
    for i in order:
        v, factor, after = _column(F, columns, i), _column(F, factors, i), behind[i]
        toward, inward = (
            F.matrix_product(adjoint(F, after), v), F.matrix_product(adjoint(F, grad), v)
        )  # fmt: skip
        of_v = conj(F, factor) * F.matrix_product(grad, toward)
        of_columns.append(-(of_v + factor * F.matrix_product(after, inward)))
        of_factor = -F.matrix_product(adjoint(F, inward), toward)
        of_tau.append(conj(F, of_factor) if backwards else of_factor)
        grad = grad - conj(F, factor) * v * F.matrix_product(adjoint(F, v), grad)
    if not order:
        return None, None
    place = np.argsort(order).tolist()
    of_a = F.tril(F.cat(tuple(of_columns[i] for i in place), -1), -1)
    *batch, m, n = a.shape
    if n > k:
        of_a = F.cat((of_a, F.full(a, size=(*batch, m, n - k), value=0)), -1)
    whole = F.cat(tuple(of_tau[i] for i in place), -1)
    return of_a, F.squeeze_dim(whole, -2)


@op("linalg_householder_product(input, tau)", publish=(), tensors_only=True)
def linalg_householder_product(a: Any, tau: Any) -> Any:
    """The first columns of Q, as many as `input` has.

    Raises:
        RuntimeError: there are more columns than rows, or more reflectors than columns.
    """
    _check("torch.linalg.householder_product", a, tau)
    m, n = a.shape[-2:]
    if m < n:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to "
            "input.shape[-1]"
        )
    if n < tau.shape[-1]:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to "
            "tau.shape[-1]"
        )
    eye = np.broadcast_to(np.eye(m, n, dtype=a.dtype), (*a.shape[:-2], m, n))
    return column_major(_apply(a, tau, eye, backwards=False))


@linalg_householder_product.grad("input", "tau")
def _(F: Any, grad: Any, input: Any, tau: Any, result: Any, *, need: Any) -> Any:
    *batch, m, n = input.shape
    eye = diagonal_matrices(F, F.full(input, size=(*batch, n), value=1))
    if m > n:
        eye = F.cat((eye, F.full(input, size=(*batch, m - n, n), value=0)), -2)
    return _gradients(F, grad, input, tau, eye, backwards=False)


@op("ormqr(self, input2, input3; left=True, transpose=False)", tensors_only=True, jvp=None)
def ormqr(a: Any, tau: Any, other: Any, *, left: bool, transpose: bool) -> Any:
    """``Q input3``, or ``input3 Q`` without `left`; of the adjoint of Q if `transpose`.

    The reflectors are those of `self`, with the factors `input2`.

    Raises:
        RuntimeError: the sizes do not agree.
    """
    _check("torch.ormqr", a, tau)
    side = -2 if left else -1
    if other.ndim < 2:
        raise RuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    if other.shape[side] != a.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.shape[-1] != min(other.shape[side], a.shape[-1]):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    if left:
        return column_major(_apply(a, tau, other, backwards=transpose))
    turned = np.conj(np.swapaxes(other, -1, -2))
    found = _apply(a, tau, turned, backwards=not transpose)
    return column_major(np.conj(np.swapaxes(found, -1, -2)))


@ormqr.grad("self", "input2", "input3")
def _(
    F: Any, grad: Any, self: Any, input2: Any, input3: Any, result: Any,
    *, left: bool, transpose: bool, need: Any,
) -> Any:  # fmt: skip
    of_other = F.ormqr(self, input2, grad, left, not transpose) if need[2] else None
    if not (need[0] or need[1]):
        return None, None, of_other
    if left:
        return (*_gradients(F, grad, self, input2, input3, backwards=transpose), of_other)
    turned = adjoint(F, grad), adjoint(F, input3)
    found = _gradients(F, turned[0], self, input2, turned[1], backwards=not transpose)
    return (*found, of_other)
