"""Shapes: functions that choose between a view and a copy, or cover several ops."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from clew import dtypes
from clew.autograd.modes import state
from clew.dispatch import TENSORS, apply
from clew.op import REGISTRY
from clew.ops.rules import wrap_dim
from clew.ops.view import infer_size
from clew.publish import composite
from clew.storage import Geometry, geometry
from clew.tensor import Tensor

_VIEW = REGISTRY["view"]
_SEQUENCES = (tuple, list, Sequence)


def sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    """``f(2, 3)`` and ``f((2, 3))`` alike, as ints."""
    # To ask a number whether it is a sequence takes as long as to make the view.
    if len(size) == 1 and size[0].__class__ is not int and isinstance(size[0], _SEQUENCES):
        return tuple(map(int, size[0]))
    return tuple(map(int, size))


def _view(self: Tensor, size: tuple[int, ...]) -> Tensor:
    return apply(_VIEW, (self,), {"size": size})


@composite(function=False)
def view(self: Tensor, *size: Any, dtype: Any = None) -> Tensor:
    """The same memory under another shape (or, given a dtype, read as another type).

    Raises:
        RuntimeError: the strides do not allow it (use `reshape`).
    """
    kind = dtype or (size[0] if size and isinstance(size[0], dtypes.dtype) else None)
    if kind is not None:
        return _read_as(self, kind)
    return _view(self, sizes(size))


def _check_sizes(self: Tensor, kind: dtypes.dtype) -> None:
    """Refuse to read elements as others of another size where they do not lie so."""
    size, new = self._array.itemsize, kind.numpy.itemsize
    names = f"{dtypes.scalar_name(self._array.dtype)} as {dtypes.scalar_name(kind.numpy)}"
    view = f"to view {names} (different element sizes)"
    if not self._array.ndim:
        raise RuntimeError(f"self.dim() cannot be 0 {view}")
    place = geometry(self._array)
    if new <= size:
        _check_last_stride(place, view)
        return
    ratio = new // size
    if place.size[-1] % ratio:
        raise RuntimeError(
            f"self.size(-1) must be divisible by {ratio} {view}, but got {place.size[-1]}"
        )
    if place.offset % ratio:
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {ratio} {view}, but got {place.offset}"
        )
    _check_last_stride(place, view)
    for d, stride in enumerate(place.stride[:-1]):
        if stride % ratio:
            raise RuntimeError(
                f"self.stride({d}) must be divisible by {ratio} {view}, but got {stride}"
            )


def _check_last_stride(place: Geometry, view: str) -> None:
    if place.stride[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {view}, but got {place.stride[-1]}")


def _read_as(self: Tensor, kind: dtypes.dtype) -> Tensor:
    """The same memory, and version, read as another type; without a gradient.

    In inference mode it has no version, and writes to it go unnoticed by `self`, as in PyTorch.
    """
    size, new = self._array.itemsize, kind.numpy.itemsize
    if size != new:
        _check_sizes(self, kind)
    array = self._array.view(kind.numpy)
    made = Tensor._from_array(array)
    if not state.now.inference:
        made._counter = self._counter
    return made


@composite(function=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """`view` with the shape of `other`."""
    return _view(self, other._array.shape)


def _reshape(self: Tensor, size: tuple[int, ...]) -> Tensor:
    return _as_size(self, infer_size(size, self._array.size))


def _as_size(self: Tensor, size: tuple[int, ...]) -> Tensor:
    """`reshape` to a size of as many elements."""
    if self._array.flags.c_contiguous:
        return _view(self, size)
    try:
        return apply(REGISTRY["reshape_alias"], (self,), {"size": size})
    except RuntimeError:
        copied = apply(REGISTRY["clone"], (self,), {"memory_format": "contiguous"})
        return apply(REGISTRY["unsafe_view"], (copied,), {"size": size})


# What rules of derivatives call.
TENSORS.replace(reshape=_reshape)


@composite()
def reshape(self: Tensor, *shape: Any, **names: Any) -> Tensor:
    """Another shape: a view where the strides allow it, a copy where not."""
    return _reshape(self, sizes((names["shape"],) if "shape" in names else shape))


@composite(function=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`reshape` with the shape of `other`."""
    return _reshape(self, other._array.shape)


@composite(function=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of `other`."""
    return apply(REGISTRY["expand"], (self,), {"size": other._array.shape})


@composite()
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the dimensions from `start_dim` to `end_dim`."""
    shape = self._array.shape
    first, last = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return _reshape(self, (1,))
    if first == last:
        return self
    joined = prod(shape[first : last + 1])
    return _as_size(self, (*shape[:first], joined, *shape[last + 1 :]))


@composite()
def ravel(self: Tensor) -> Tensor:
    """One dimension: a view of this tensor, or of a copy of it in order."""
    return _view(contiguous(self), (self._array.size,))


@composite()
def unflatten(self: Tensor, dim: int, sizes: Any) -> Tensor:
    """Split `dim` into several dimensions."""
    shape = self._array.shape
    d = wrap_dim(dim, len(shape))
    inner = infer_size(tuple(map(int, sizes)), shape[d])
    return _view(self, (*shape[:d], *inner, *shape[d + 1 :]))


@composite()
def squeeze(self: Tensor, dim: Any = None) -> Tensor:
    """Remove dimensions of size one: all, or those named."""
    if dim is None:
        return apply(REGISTRY["squeeze_all"], (self,))
    name = "squeeze_dims" if isinstance(dim, Sequence) else "squeeze_dim"
    return apply(REGISTRY[name], (self,), {"dim": dim})


@composite()
def movedim(self: Tensor, source: Any, destination: Any) -> Tensor:
    """Move dimensions to other places; the rest keep their order.

    Raises:
        RuntimeError: there are not as many sources as destinations, or one is named twice.
    """
    ndim = self._array.ndim
    sources, destinations = _listed(source), _listed(destination)
    if len(sources) != len(destinations):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should "
            f"contain the same number of dims as destination ({list(destinations)} dims)"
        )
    froms = [wrap_dim(d, ndim) for d in sources]
    tos = [wrap_dim(d, ndim) for d in destinations]
    for name, given, wrapped in (
        ("source", sources, froms),
        ("destination", destinations, tos),
    ):
        if len(set(wrapped)) < len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    order: list[int | None] = [None] * ndim
    for f, t in zip(froms, tos):
        order[t] = f
    rest = iter(d for d in range(ndim) if d not in froms)
    dims = tuple(next(rest) if d is None else d for d in order)
    return apply(REGISTRY["permute"], (self,), {"dims": dims})


composite(aliases=("moveaxis",), name="moveaxis")(movedim)


def _listed(value: Any) -> Sequence[int]:
    return value if isinstance(value, (tuple, list)) else (value,)


@composite(name="adjoint")
def adjoint(self: Tensor) -> Tensor:
    """The last two dimensions swapped, conjugated."""
    swapped = apply(REGISTRY["transpose"], (self,), {"dim0": -2, "dim1": -1})
    if self._array.dtype.kind == "c":
        return apply(REGISTRY["conj"], (swapped,))
    return swapped


@composite(function=False)
def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """This tensor if its elements lie in order, else a copy where they do."""
    if self._array.flags.c_contiguous:
        return self
    return apply(REGISTRY["clone"], (self,), {"memory_format": "contiguous"})


@composite()
def as_strided(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of this tensor's storage with the given size, strides and offset, in elements."""
    base = geometry(self._array)
    attrs = {
        "size": tuple(size), "stride": tuple(stride),
        "storage_offset": base.offset if storage_offset is None else storage_offset, "base": base,
    }  # fmt: skip
    return apply(REGISTRY["as_strided"], (self,), attrs)


@composite()
def as_strided_scatter(
    self: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    """`self` with `src` in place of ``self.as_strided(size, stride, storage_offset)``."""
    base = geometry(self._array)
    offset = base.offset if storage_offset is None else storage_offset
    as_strided(self.detach(), size, stride, offset)  # refuses what the storage does not hold
    attrs = {"view": Geometry(tuple(size), tuple(stride), offset), "base": base}
    return apply(REGISTRY["as_strided_scatter"], (self, src), attrs)


@composite()
def narrow(self: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """``length`` slices along `dim`, from `start`, an int or a 0-d integer tensor.

    Raises:
        RuntimeError: a 0-d tensor, a negative length, or more than there is.
        IndexError: `start` lies outside of the dimension.
    """
    if not self._array.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start._array.ndim or start._array.dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    start = int(start)
    n = self._array.shape[wrap_dim(dim, self._array.ndim)]
    if not -n <= start <= n:
        raise IndexError(
            f"start out of range (expected to be in range of [{-n}, {n}], but got {start})"
        )
    start = start + n if start < 0 else start
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    attrs = {"dim": dim, "start": start, "end": start + length, "step": 1}
    return apply(REGISTRY["slice"], (self,), attrs)
