"""What ops do with sparse tensors: `run` looks an op up in `TABLE`, by its name.  Layer 4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import clew
from clew.dispatch import apply
from clew.errors import OtherLayout
from clew.op import REGISTRY
from clew.sparse.coo import SparseTensor
from clew.tensor import Tensor

TABLE: dict[str, Callable[..., Any]] = {}


def _for(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            TABLE[name] = function
        return function

    return declare


def run(name: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """Do what the op or function `name` does, of inputs some of which are sparse.

    Raises:
        NotImplementedError: there is no such thing for sparse tensors.
    """
    function = TABLE.get(name)
    if function is None:
        tensor = next(x for x in inputs if isinstance(x, SparseTensor))
        raise OtherLayout(tensor, name)
    return function(*inputs, **attrs)


# -- products


@_for("mm", "matmul")
def mm(a: Any, b: Any) -> Any:
    """A product of two matrices, one of them sparse; sparse if both are."""
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        return clew.sparse.from_dense(mm(a, b.to_dense()))
    if not isinstance(a, SparseTensor):
        return mm(b.t(), a.mT).mT
    if b.ndim == 1:
        return mv(a, b)
    _check_product("mm", a, b)
    rows, columns = a._coordinates.unbind()
    inputs = (a._elements, b, rows, columns)
    return apply(REGISTRY["sparse_product"], inputs, {"size": a._size[0]})


def _check_product(name: str, a: SparseTensor, b: Tensor) -> None:
    if a.ndim != 2 or a.sparse_dim() != 2 or b.ndim != 2:
        raise RuntimeError(f"{name}: Expected two matrices, got {a.ndim}D and {b.ndim}D tensors")
    if a._size[1] != b.shape[0]:
        raise RuntimeError(
            f"{name}: Argument #3 (dense): Expected dim 0 size {a._size[1]}, got {b.shape[0]}"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(f"{name}: expected both matrices of {a.dtype}, got {b.dtype}")


@_for("mv")
def mv(a: SparseTensor, vector: Tensor) -> Any:
    """A matrix times a vector."""
    return mm(a, vector.unsqueeze(1)).squeeze(1)


@_for("addmm")
def addmm(added: Tensor, a: SparseTensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * added + alpha * (a @ b)``."""
    product = mm(a, b)
    return beta * added + (product if alpha == 1 else alpha * product)


# -- elementwise


@_for("mul")
def mul(a: Any, b: Any) -> Any:
    """A product with a number, with a dense tensor (at the sparse places), or with a sparse one."""
    if not isinstance(a, SparseTensor):
        return mul(b, a)
    if not isinstance(b, Tensor) or (not isinstance(b, SparseTensor) and b.ndim == 0):
        return a.like(a._elements * b)
    if isinstance(b, SparseTensor):
        return (a.to_dense() * b.to_dense()).sparse_mask(a.coalesce())
    return a.like(a._elements * b.expand(a._size)[tuple(a._coordinates)])


@_for("div")
def div(a: SparseTensor, b: Any, *, rounding_mode: Any = None) -> Any:
    """A quotient by a number."""
    if not isinstance(a, SparseTensor) or isinstance(b, SparseTensor):
        raise OtherLayout(a if isinstance(a, SparseTensor) else b, "div")
    return a.like(clew.div(a._elements, b, rounding_mode=rounding_mode))


@_for("add")
def add(a: Any, b: Any) -> Any:
    """A sum of two sparse tensors, or of a dense and a sparse one."""
    return add_scaled(a, b, alpha=1)


@_for("sub")
def sub(a: Any, b: Any) -> Any:
    """A difference."""
    return add_scaled(a, b, alpha=-1)


@_for("sub_scaled")
def sub_scaled(a: Any, b: Any, *, alpha: Any) -> Any:
    """``a - alpha * b``."""
    return add_scaled(a, b, alpha=-alpha)


@_for("add_scaled")
def add_scaled(a: Any, b: Any, *, alpha: Any) -> Any:
    """``a + alpha * b``."""
    if not isinstance(b, SparseTensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if not isinstance(a, SparseTensor):
        return a + alpha * b.to_dense()
    if a._size != b._size:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but {list(a._size)} != "
            f"{list(b._size)}"
        )
    if clew.equal(a._coordinates, b._coordinates):
        return a.like(a._elements + alpha * b._elements)
    indices = clew.cat([a._coordinates, b._coordinates], dim=1)
    values = clew.cat([a._elements, alpha * b._elements])
    summed = SparseTensor.make(indices, values, a._size)
    return summed.coalesce() if a._coalesced and b._coalesced else summed


@_for("neg")
def neg(a: SparseTensor) -> Any:
    """Each value negated."""
    return a.like(clew.neg(a._elements))


def _of_values(name: str) -> Callable[..., Any]:
    """A function that gives zero for zero, of the coalesced values."""

    def function(a: SparseTensor, *rest: Any, **attrs: Any) -> Any:
        coalesced = a.coalesce()
        return coalesced.like(apply(REGISTRY[name], (coalesced._elements, *rest), attrs))

    return function


_ZERO_FOR_ZERO = """
abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor log1p rad2deg relu round sgn sign sin
sinh sqrt tan tanh trunc pow_scalar
"""
for _name in _ZERO_FOR_ZERO.split():
    TABLE[_name] = _of_values(_name)


# -- sums, joins, choices


@_for("sum", "sum_all")
def sum(a: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of all elements (a dense number), or over dimensions (sparse)."""
    if dim is None or dim == ():
        return clew.sum(a._elements, dtype=dtype)
    dims = {d % a.ndim for d in ((dim,) if isinstance(dim, int) else dim)}
    values = a._elements if dtype is None else a._elements.to(dtype)
    dense = sorted(d - a.sparse_dim() + 1 for d in dims if d >= a.sparse_dim())
    if dense:
        values = values.sum(dense, keepdim=keepdim)
    kept = [d for d in range(a.sparse_dim()) if d not in dims]
    if not kept and not keepdim:
        return values.sum(0)
    size = [1 if d in dims else n for d, n in enumerate(a._size) if keepdim or d not in dims]
    if keepdim:
        indices = a._coordinates.clone()
        indices[[d for d in dims if d < a.sparse_dim()]] = 0
    else:
        indices = a._coordinates[kept]
    return SparseTensor.make(indices, values, size).coalesce()


@_for("cat")
def cat(*tensors: Any, dim: int = 0) -> Any:
    """Sparse tensors one after the other along a sparse dimension."""
    first = tensors[0]
    d = dim % first.ndim
    offset, indices = 0, []
    for tensor in tensors:
        moved = tensor._coordinates.clone()
        moved[d] += offset
        offset += tensor._size[d]
        indices.append(moved)
    size = [offset if place == d else n for place, n in enumerate(first._size)]
    values = clew.cat([tensor._elements for tensor in tensors])
    return SparseTensor.make(clew.cat(indices, dim=1), values, size)


@_for("unsqueeze")
def unsqueeze(a: SparseTensor, *, dim: int) -> Any:
    """A new sparse dimension of length one."""
    d = dim % (a.ndim + 1)
    zeros = clew.zeros((1, a._nnz()), dtype=clew.int64)
    indices = clew.cat([a._coordinates[:d], zeros, a._coordinates[d:]])
    return SparseTensor.make(indices, a._elements, (*a._size[:d], 1, *a._size[d:]))


@_for("stack")
def stack(*tensors: Any, dim: int = 0) -> Any:
    """Sparse tensors along a new dimension."""
    return cat(*(unsqueeze(tensor, dim=dim) for tensor in tensors), dim=dim)


@_for("index_select")
def index_select(a: SparseTensor, index: Tensor, *, dim: int) -> Any:
    """The slices that `index` names along a sparse dimension."""
    d = dim % a.ndim
    found = (a._coordinates[d].unsqueeze(0) == index.unsqueeze(1)).nonzero()
    places, elements = found[:, 0], found[:, 1]
    indices = a._coordinates[:, elements]
    indices[d] = places
    size = [len(index) if place == d else n for place, n in enumerate(a._size)]
    return SparseTensor.make(indices, a._elements[elements], size)


@_for("zeros_like")
def zeros_like(a: SparseTensor, **options: Any) -> Any:
    """A tensor without elements."""
    indices = clew.zeros((a.sparse_dim(), 0), dtype=clew.int64)
    kind = options.get("dtype") or a.dtype
    values = clew.zeros((0, *a._size[a.sparse_dim() :]), dtype=kind)
    return SparseTensor.make(indices, values, a._size, True)


def sparse_mask(dense: Any, mask: SparseTensor) -> Any:
    """The elements of a tensor at the places of another."""
    if isinstance(dense, SparseTensor):
        dense = dense.to_dense()
    return mask.like(dense[tuple(mask._coordinates)])


def softmax(a: SparseTensor, dim: int, dtype: Any = None, logarithm: bool = False) -> Any:
    """The softmax over the elements that are there, the others being minus infinity."""
    a = a.coalesce()
    d = dim % a.ndim
    values = a._elements if dtype is None else a._elements.to(dtype)
    if d >= a.sparse_dim():
        along = d - a.sparse_dim() + 1
        function = clew.log_softmax if logarithm else clew.softmax
        return a.like(function(values, along))
    others = [row for row in range(a.sparse_dim()) if row != d]
    groups = clew.zeros(a._nnz(), dtype=clew.int64)
    for row in others:
        groups = groups * a._size[row] + a._coordinates[row]
    _, group = clew.unique(groups, return_inverse=True)
    count = int(group.max()) + 1 if a._nnz() else 0
    shape = (count, *values.shape[1:])
    index = group.reshape(-1, *[1] * (values.ndim - 1)).expand_as(values)
    lowest = clew.full(shape, float("-inf"), dtype=values.dtype)
    largest = lowest.scatter_reduce(0, index, values.detach(), "amax")
    shifted = values - largest[group]
    total = clew.zeros(shape, dtype=values.dtype).index_add(0, group, shifted.exp())
    if logarithm:
        return a.like(shifted - total.log()[group])
    return a.like(shifted.exp() / total[group])
