"""Sparse tensors: coordinates and values of the elements that are not zero.  Layer 4.

Imported when a program first makes one.

Note [Sparse tensors]
    A `SparseTensor` is a pair of dense tensors: ``indices``, a row of coordinates per sparse
    dimension, and ``values``, which autograd records.  So a gradient reaches the values through
    ordinary nodes, and nothing in the engine knows of sparse tensors.  It has no array: whatever
    asks for one raises `OtherLayout`, which `dispatch.apply` turns into a call of the table in
    ``sparse/operations.py``, or into PyTorch's error where that has no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

import clew
from clew import dtypes
from clew.errors import OtherLayout
from clew.fields import new
from clew.functions.shape import sizes
from clew.tensor import Size, Tensor


class SparseTensor(Tensor):
    """A tensor in coordinate format; made by `sparse_coo_tensor` and `Tensor.to_sparse`."""

    __slots__ = ("_coalesced", "_coordinates", "_elements", "_size")

    _coordinates: Tensor
    _elements: Tensor
    _size: tuple[int, ...]
    _coalesced: bool

    @classmethod
    def make(
        cls, indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool = False
    ) -> SparseTensor:
        """From parts that fit each other."""
        made = new(cls)
        made._coordinates, made._elements = indices, values
        made._size, made._coalesced = tuple(size), coalesced
        made._node = made._grad = made._meta = made._cut = None
        made._output_nr = 0
        made._requires_grad = False
        made._counter = values._counter
        return made

    def like(self, values: Tensor, size: Sequence[int] | None = None) -> SparseTensor:
        """The same places with other values."""
        size = self._size if size is None else size
        return SparseTensor.make(self._coordinates, values, size, self._coalesced)

    @property
    def _array(self) -> NoReturn:  # type: ignore[override]
        raise OtherLayout(self)

    # -- what it is

    layout = dtypes.sparse_coo
    is_sparse = True

    @property
    def shape(self) -> Size:
        """The size, of the sparse dimensions and then of the dense ones."""
        return Size(self._size)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one dimension."""
        return self.shape if dim is None else self._size[dim]

    @property
    def dtype(self) -> Any:
        """The type of the values."""
        return self._elements.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._size)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._size)

    def numel(self) -> int:
        """The number of elements, zeros included."""
        return prod(self._size)

    def sparse_dim(self) -> int:
        """How many dimensions the coordinates have."""
        return self._coordinates.shape[0]

    def dense_dim(self) -> int:
        """How many dimensions each value has."""
        return len(self._size) - self.sparse_dim()

    def stride(self, dim: int | None = None) -> Any:
        """Zeros, as in PyTorch."""
        return (0,) * self.ndim if dim is None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False."""
        return False

    def __len__(self) -> int:
        return self._size[0]

    def type(self, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The name of the type, or a copy of another type."""
        if dtype is not None:
            return self.like(self._elements.type(dtype))
        return f"torch.sparse.{self._elements.type().removeprefix('torch.')}"

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from clew.printing import format_sparse

        return format_sparse(self)

    # -- the parts

    def _nnz(self) -> int:
        return int(self._coordinates.shape[1])

    def _indices(self) -> Tensor:
        return self._coordinates

    def _values(self) -> Tensor:
        return self._elements

    def is_coalesced(self) -> bool:
        """Whether the coordinates are known to be sorted and each there once."""
        return self._coalesced

    def indices(self) -> Tensor:
        """The coordinates, one column an element; of a coalesced tensor only."""
        self._needs_coalesced("indices")
        return self._coordinates

    def values(self) -> Tensor:
        """The values; of a coalesced tensor only."""
        self._needs_coalesced("values")
        return self._elements

    def _needs_coalesced(self, what: str) -> None:
        if not self._coalesced:
            raise RuntimeError(
                f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first"
            )

    def coalesce(self) -> SparseTensor:
        """The same tensor with sorted coordinates, values at the same place added up."""
        if self._coalesced:
            return self
        flat = self._flat_coordinates()
        places, inverse = np.unique(flat, return_inverse=True)
        shape = (len(places), *self._elements.shape[1:])
        zeros = clew.zeros(shape, dtype=self.dtype)
        if self.dtype is dtypes.bool_:
            values = zeros.index_put((clew.from_numpy(inverse),), self._elements)
        else:
            values = zeros.index_add(0, clew.from_numpy(inverse.astype(np.int64)), self._elements)
        return SparseTensor.make(self._unflattened(places), values, self._size, True)

    def _flat_coordinates(self) -> np.ndarray:
        """One number for the place of each element, in the order of memory."""
        shape = self._size[: self.sparse_dim()]
        if self._nnz() == 0 or not shape:
            return np.zeros(self._nnz(), np.int64)
        return np.ravel_multi_index(tuple(self._coordinates.numpy()), shape)

    def _unflattened(self, places: np.ndarray) -> Tensor:
        shape = self._size[: self.sparse_dim()]
        if not shape:
            return clew.zeros((0, len(places)), dtype=clew.int64)
        return clew.from_numpy(np.array(np.unravel_index(places, shape), np.int64))

    # -- autograd: that of the values

    @property
    def requires_grad(self) -> bool:
        """Whether the values require grad."""
        return self._elements.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._elements.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Have the values require grad."""
        self._elements.requires_grad_(requires_grad)
        return self

    @property
    def grad_fn(self) -> Any:
        """The node that made the values."""
        return self._elements.grad_fn

    @property
    def is_leaf(self) -> bool:
        """Whether no node made the values."""
        return self._elements.is_leaf

    @property
    def grad(self) -> Any:
        """The gradient of the values, at the same places."""
        grad = self._elements.grad
        return None if grad is None else self.like(grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._elements.grad = value._elements if isinstance(value, SparseTensor) else value

    @property
    def data(self) -> Any:
        """The same memory, unnoticed by autograd."""
        return self.like(self._elements.data)

    @data.setter
    def data(self, value: Any) -> None:
        self._coordinates, self._elements = value._coordinates, value._elements
        self._size, self._coalesced = value._size, value._coalesced

    def detach(self) -> SparseTensor:
        """The same memory without history."""
        return self.like(self._elements.detach())

    # -- other forms

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """A dense tensor with zeros everywhere else."""
        values = self._elements if dtype is None else self._elements.to(dtype)
        zeros = clew.zeros(self._size, dtype=values.dtype)
        if not self.sparse_dim():
            return zeros + values.sum(0)
        return zeros.index_put(
            tuple(self._coordinates), values, accumulate=values.dtype is not dtypes.bool_
        )

    def to_sparse(self, sparse_dim: int | None = None, *, layout: Any = None, **_: Any) -> Any:
        """This tensor."""
        _only_coo(layout)
        return self

    to_sparse_coo = to_sparse

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """With values of another type."""
        return self.like(self._elements.to(*args, **kwargs))

    def clone(self, *, memory_format: Any = None) -> SparseTensor:
        """A copy."""
        made = self.like(self._elements.clone())
        made._coordinates = self._coordinates.clone()
        return made

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Raises TypeError: NumPy has no such arrays."""
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __reduce_ex__(self, protocol: Any) -> Any:
        size, coalesced = self._size, self._coalesced
        return SparseTensor.make, (self._coordinates, self._elements, size, coalesced)

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        made = self.like(self._elements.__deepcopy__(memo))
        made._coordinates = self._coordinates.clone()
        memo[id(self)] = made
        return made

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two sparse dimensions swapped."""
        d0, d1 = dim0 % self.ndim, dim1 % self.ndim
        if max(d0, d1) >= self.sparse_dim():
            raise RuntimeError("transpose of a sparse tensor: only its sparse dimensions can be")
        order, size = list(range(self.sparse_dim())), list(self._size)
        order[d0], order[d1] = order[d1], order[d0]
        size[d0], size[d1] = size[d1], size[d0]
        return SparseTensor.make(self._coordinates[order], self._elements, size)

    def t(self) -> SparseTensor:
        """The transpose of a matrix."""
        return self.transpose(0, 1) if self.ndim == 2 else self

    @property
    def T(self) -> SparseTensor:
        """The transpose of a matrix."""
        return self.t()

    def __matmul__(self, other: Any) -> Any:
        return clew.sparse.mm(self, other)

    matmul = __matmul__

    def __rmatmul__(self, other: Any) -> Any:
        return clew.sparse.mm(other, self)

    def mul_(self, other: Any) -> SparseTensor:
        """Multiply the values by a number, in place."""
        self._elements.mul_(other)
        return self

    def div_(self, other: Any, *, rounding_mode: Any = None) -> SparseTensor:
        """Divide the values by a number, in place."""
        self._elements.div_(other, rounding_mode=rounding_mode)
        return self

    def __bool__(self) -> bool:
        return bool(self.to_dense())

    def item(self) -> Any:
        """The only element."""
        return self.to_dense().item()

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, tuple):
            index = (index,)
        if not all(isinstance(i, int) for i in index) or len(index) > self.sparse_dim():
            raise OtherLayout(self)
        keep = clew.ones(self._nnz(), dtype=clew.bool)
        for dim, i in enumerate(index):
            if not -self._size[dim] <= i < self._size[dim]:
                raise IndexError(
                    f"select(): index {i} out of range for tensor of size {list(self._size)} at "
                    f"dimension {dim}"
                )
            keep &= self._coordinates[dim] == i % self._size[dim]
        rest = self._size[len(index) :]
        values = self._elements[keep]
        if len(index) == self.sparse_dim():
            return values.sum(0)
        return SparseTensor.make(self._coordinates[len(index) :, keep], values, rest)


def _converting(name: str) -> Callable[..., Any]:
    """A method that changes the values, and gives the tensor itself where nothing changes."""

    def method(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        values = getattr(self._elements, name)(*args, **kwargs)
        return self if values is self._elements else self.like(values)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`Tensor.{name}` of the values."
    return method


for _name in ("float", "double", "half", "bfloat16", "int", "long", "short", "bool", "cpu", "cuda"):
    setattr(SparseTensor, _name, _converting(_name))


def _only_coo(layout: Any) -> None:
    if layout not in (None, dtypes.sparse_coo):
        raise NotImplementedError(
            f"clew has sparse tensors of layout torch.sparse_coo, not {layout}"
        )


def from_dense(dense: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """The elements of a tensor that are not zero, of its first `sparse_dim` dimensions."""
    dims = dense.ndim if sparse_dim is None else sparse_dim
    array = dense.detach().numpy()
    present = array != 0
    if dims < array.ndim:
        present = present.any(axis=tuple(range(dims, array.ndim)))
    places = np.nonzero(present) if dims else ()
    indices = np.array(places, np.int64).reshape(dims, -1 if dims else 1)
    coordinates = clew.from_numpy(indices)
    values = dense[tuple(coordinates)] if dims else dense.unsqueeze(0)
    return SparseTensor.make(coordinates, values, dense.shape, True)


def from_parts(
    indices: Any, values: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False,
    check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """`sparse_coo_tensor`: see there."""
    coordinates = clew.as_tensor(indices).detach().to(clew.int64)
    elements = clew.as_tensor(values, dtype=dtype)
    if coordinates.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(coordinates.shape)}")
    if elements.ndim == 0:
        elements = elements.expand(coordinates.shape[1])
    if coordinates.shape[1] != elements.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: "
            f"{coordinates.shape[1]}, nnz from values: {elements.shape[0]}"
        )
    if size is None:
        largest = coordinates.max(1).values + 1 if coordinates.shape[1] else coordinates.sum(1)
        size = (*largest.tolist(), *elements.shape[1:])
    shape = sizes((size,))
    _check_parts(coordinates, elements, shape)
    made = SparseTensor.make(coordinates, elements, shape, bool(is_coalesced))
    return made.requires_grad_() if requires_grad else made


def _check_parts(coordinates: Tensor, elements: Tensor, shape: tuple[int, ...]) -> None:
    sparse, dense = coordinates.shape[0], elements.ndim - 1
    if len(shape) != sparse + dense:
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse}) + dense_dim ({dense}), but got "
            f"{len(shape)}"
        )
    if coordinates.numel():
        low, high = coordinates.min(1).values.tolist(), coordinates.max(1).values.tolist()
        for dim in range(sparse):
            if low[dim] < 0:
                raise RuntimeError(f"found negative index {low[dim]} for dim {dim}")
            if high[dim] >= shape[dim]:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {dim}, size is {shape[dim]} but "
                    f"found index {high[dim]}"
                )
    if tuple(elements.shape[1:]) != tuple(shape[sparse:]):
        raise RuntimeError(
            f"values has incorrect size, expected {[elements.shape[0], *shape[sparse:]]}, "
            f"got {list(elements.shape)}"
        )
