"""Batching rules of products of vectors and matrices."""

from __future__ import annotations

from typing import Any

from clew.func.batching.kinds import aligned, folded, leading
from clew.func.batching.rules import Call, looped, padded, reshaped, rule, run
from clew.op import Op
from clew.ops.rules import is_complex


def product(call: Call, left: int, right: int) -> Any:
    """Matrices times matrices, one large product where only the left ones differ."""
    if not (call.is_batched(left) or call.is_batched(right)):
        return run("unsqueeze", run("mm", call.values[left], call.values[right]), dim=0)
    if not call.is_batched(right):
        x = call.front(left)
        batch, n, k = x._array.shape
        rows = run("mm", reshaped(x, batch * n, k), call.values[right])
        return reshaped(rows, batch, n, rows._array.shape[1])
    if not call.is_batched(left):
        return run("matrix_product", call.values[left], call.front(right))
    return run("bmm", call.front(left), call.front(right))


@rule("mm")
def mm(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Matrices times matrices."""
    _check_ranks(op, call, attrs, 2, 2)
    return product(call, 0, 1)


@rule("mv")
def mv(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Matrices times vectors."""
    _check_ranks(op, call, attrs, 2, 1)
    return of_vector(call, 0, 1)


def of_vector(call: Call, left: int, right: int) -> Any:
    """Matrices times vectors, as `product`."""
    if not (call.is_batched(left) or call.is_batched(right)):
        return run("unsqueeze", run("mv", call.values[left], call.values[right]), dim=0)
    if not call.is_batched(right):
        x = call.front(left)
        batch, n, k = x._array.shape
        return reshaped(run("mv", reshaped(x, batch * n, k), call.values[right]), batch, n)
    if not call.is_batched(left):
        return run("mm", call.front(right), run("t", call.values[left]))
    vectors = run("unsqueeze", call.front(right), dim=2)
    return run("squeeze_dim", run("bmm", call.front(left), vectors), dim=2)


@rule("dot", "vdot")
def dot(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Vectors times vectors."""
    _check_ranks(op, call, attrs, 1, 1)
    x, y = call.full(0), call.full(1)
    if op.name == "vdot" and is_complex(x):
        x = run("conj", x)
    rows, columns = run("unsqueeze", x, dim=1), run("unsqueeze", y, dim=2)
    return reshaped(run("bmm", rows, columns), call.size)


@rule("bmm")
def bmm(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Batches of matrices: examples are more of a batch; a factor they share is not repeated."""
    _check_ranks(op, call, attrs, 3, 3)
    if call.is_batched(0) and call.is_batched(1):
        return folded(op, call, attrs)
    return leading(_MATRIX_PRODUCT, call, attrs)


def _check_ranks(op: Op, call: Call, attrs: dict[str, Any], *ranks: int) -> None:
    """Let the op itself say what is wrong with operands of other dimensions."""
    if any(call.ndim(i) != n for i, n in enumerate(ranks)):
        looped(op, call, attrs)


def _sum(call: Call, found: Any, ndim: int, attrs: dict[str, Any]) -> Any:
    """``beta * self + alpha * found``; with `beta` 0, `self` is not looked at."""
    beta, alpha = attrs["beta"], attrs["alpha"]
    found = found if alpha == 1 else run("mul", found, alpha)
    if beta == 0:
        size = (call.size, *found._array.shape[1:])
        return found if found._array.shape == size else run("expand", found, size=size)
    x = padded(call.front(0), ndim) if call.is_batched(0) else call.values[0]
    return run("add", x if beta == 1 else run("mul", x, beta), found)


@rule("addmm")
def addmm(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """A product of matrices added to something; a bias for all rows in one call."""
    if call.dims[0] is None and call.dims[2] is None and call.ndim(0) < 2:
        x = call.front(1)
        batch, n, k = x._array.shape
        rows = run("addmm", call.values[0], reshaped(x, batch * n, k), call.values[2], **attrs)
        return reshaped(rows, batch, n, rows._array.shape[1])
    return _sum(call, product(call, 1, 2), 2, attrs)


@rule("addmv")
def addmv(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """A product of matrix and vector added to something."""
    return _sum(call, of_vector(call, 1, 2), 1, attrs)


@rule("addr")
def addr(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """An outer product added to something."""
    first, second = call.full(1), call.full(2)
    outer = run("mul", run("unsqueeze", first, dim=2), run("unsqueeze", second, dim=1))
    return _sum(call, outer, 2, attrs)


@rule("baddbmm", "addbmm")
def baddbmm(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Products of batches of matrices added to something, or summed and added."""
    factors = Call(call.values[1:], call.dims[1:], call.size, call.randomness)
    if any(d is not None for d in factors.dims):
        found = bmm(_BMM, factors, {})
    else:
        found = run("unsqueeze", run("bmm", *factors.values), dim=0)
    if op.name == "addbmm":
        found = run("sum", found, dim=(1,), keepdim=False, dtype=None)
    return _sum(call, found, 3 if op.name == "baddbmm" else 2, attrs)


@rule("bilinear_form")
def bilinear_form(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """With shared coefficients examples are more rows; with their own, one after the other."""
    if call.is_batched(2):
        first, second = call.full(0), call.full(1)
        pairs = run("mul", run("unsqueeze", first, dim=3), run("unsqueeze", second, dim=2))
        batch, rows, n, m = pairs._array.shape
        weight = call.front(2)
        coefficients = reshaped(weight, batch, weight._array.shape[1], n * m)
        flat = run("permute", coefficients, dims=(0, 2, 1))
        return run("bmm", reshaped(pairs, batch, rows, n * m), flat)
    x, y = (reshaped(v, v._array.shape[0] * v._array.shape[1], v._array.shape[2])
            for v in (call.full(0), call.full(1)))  # fmt: skip
    found = run("bilinear_form", x, y, call.values[2])
    return reshaped(found, call.size, found._array.shape[0] // call.size, found._array.shape[1])


@rule("linalg_cross")
def cross(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Cross products along a dimension, counted from the last after broadcasting."""
    first, second = aligned(call)
    ndim = max(call.ndim(0), call.ndim(1))
    dim = attrs["dim"]
    return run("linalg_cross", first, second, dim=dim if dim < 0 else dim - ndim)


def _op(name: str) -> Op:
    from clew.op import REGISTRY

    return REGISTRY[name]


_BMM, _MATRIX_PRODUCT = _op("bmm"), _op("matrix_product")
