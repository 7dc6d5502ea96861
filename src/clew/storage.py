"""Buffers and their version counters.  Layer 1: imports NumPy and the layer of words.

A tensor's elements stand in a NumPy array; its storage is the array that owns the memory, found
by following ``.base``.  Views share the storage *and* a `VersionCounter`, which each in-place
write raises; a saved tensor remembers the version it was saved at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from clew.site import Site, here


class VersionCounter:
    """How often a buffer has been written to in place, and by whom last.

    Attributes:
        value: the number of writes.
        born: set only inside function transforms, the serial of the level that the memory is of.
    """

    __slots__ = ("_last", "born", "value")

    value: int

    def bump(self, name: str, site: Site | None = None) -> None:
        """Count one in-place write by the operation `name`, at a line that is known or found."""
        self.value += 1
        self._last = (here() if site is None else site, name)

    @property
    def writer(self) -> Site | None:
        """The line of the last write."""
        last = getattr(self, "_last", None)
        return None if last is None else last[0]

    @property
    def writer_name(self) -> str | None:
        """The operation that wrote last."""
        last = getattr(self, "_last", None)
        return None if last is None else last[1]


def new_counter() -> VersionCounter:
    """The counter of new memory."""
    counter = VersionCounter.__new__(VersionCounter)
    counter.value = 0
    return counter


class Geometry(NamedTuple):
    """Size, strides and offset of a tensor in its storage, all in elements."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


def root(array: np.ndarray) -> np.ndarray:
    """The array that owns `array`'s memory (or borrows it from something that is no array)."""
    base = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            array = base
        # NumPy's as_strided puts an object of its own, no array, into the chain.
        base = getattr(base, "base", None)
    return array


def address(array: np.ndarray) -> int:
    """The address of the first element."""
    try:
        return array.__array_interface__["data"][0]
    except AttributeError:  # one example of a batch (see ``func/batching/batch.py``)
        return array.address()  # type: ignore[attr-defined]


def element_strides(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements, as PyTorch counts them; those of a dimension of size one are what a
    contiguous tensor would have only if NumPy says so."""
    if array.size == 0:  # NumPy says 0 for all of them
        return contiguous_strides(array.shape)
    itemsize = array.itemsize
    return tuple([s // itemsize for s in array.strides])


def contiguous_strides(size: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous tensor of this size."""
    strides = []
    step = 1
    for n in reversed(size):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def geometry(array: np.ndarray) -> Geometry:
    """Where `array` lies in its storage."""
    owner = root(array)
    offset = (address(array) - address(owner)) // array.itemsize if array.size else 0
    return Geometry(array.shape, element_strides(array), offset)


def overlaps_itself(array: np.ndarray) -> bool:
    """Whether two indices of `array` name one memory location (an expanded tensor)."""
    return array.size > 0 and any(s == 0 and n > 1 for n, s in zip(array.shape, array.strides))


def refuse_overlap(target: np.ndarray, source: np.ndarray, *, same: bool) -> None:
    """Refuse to write to `target` what is read from `source`, if they share memory.

    With `same`, they may be one and the same part of memory.  Arrays with gaps are let through,
    as PyTorch does: there it would be costly to find out.

    Raises:
        RuntimeError: they share memory.
    """
    if not np.may_share_memory(target, source):
        return
    if target is source and not same and target.size:
        raise RuntimeError(_OVERLAP)
    if not (has_no_gaps(target) and has_no_gaps(source)):
        return
    first, second = address(target), address(source)
    if same and first == second and _lie_alike(target, source):
        return
    if first < second + source.nbytes and second < first + target.nbytes:
        raise RuntimeError(_OVERLAP)


_OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation."
)


def same_elements(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether both name the same memory in the same order, as numbers of the same type."""
    return (
        first.dtype == second.dtype
        and first.shape == second.shape
        and address(first) == address(second)
        and _lie_alike(first, second)
    )


def _lie_alike(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether arrays that begin at one address are the same part of memory in the same order."""
    if first.ndim != second.ndim or first.nbytes != second.nbytes:
        return False
    strides = zip(element_strides(first), element_strides(second))
    return all(s == t for n, (s, t) in zip(first.shape, strides) if n > 1)


def has_no_gaps(array: np.ndarray) -> bool:
    """Whether each byte from the first to the last belongs to exactly one element."""
    if not array.size:
        return True
    step = array.itemsize
    for stride, n in sorted(zip(array.strides, array.shape)):
        if n != 1:
            if stride != step:
                return False
            step *= n
    return True


def restrided(array: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """A view from the first element of `array` on, of any shape and strides in bytes.

    The caller sees to it that the view stays inside the storage.
    """
    if array.flags.c_contiguous and array.size and array.dtype.kind != "V":
        try:
            # The same as NumPy's as_strided, in a tenth of its time.
            return np.ndarray(shape, array.dtype, array, 0, strides)
        except (TypeError, ValueError):  # a view that reaches beyond `array` in its storage
            pass
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def strided(owner: np.ndarray, view: Geometry) -> np.ndarray:
    """A view of the flat, writable `owner` at the given geometry."""
    itemsize = owner.itemsize
    return restrided(owner[view.offset :], view.size, tuple(s * itemsize for s in view.stride))


def flat_storage(array: np.ndarray) -> np.ndarray:
    """The whole storage of `array` as one dimension of its type.

    Raises:
        RuntimeError: the memory belongs to something that NumPy cannot see as one block.
    """
    owner = root(array)
    if not (owner.flags.c_contiguous or owner.flags.f_contiguous):
        raise RuntimeError("this tensor's memory is not one block that clew can take a view of")
    flat = owner.ravel(order="K")
    return flat if flat.dtype == array.dtype else flat.view(array.dtype)


def resized(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The first elements of the storage from where `array` begins, in another shape.

    Where the storage is too small, in a larger copy of it, whose other elements are zero.
    """
    place = Geometry(shape, contiguous_strides(shape), geometry(array).offset)
    flat = flat_storage(array)
    if extent(place) > flat.size:
        larger = np.zeros(extent(place), flat.dtype)
        larger[: flat.size] = flat
        flat = larger
    return strided(flat, place)


def extent(view: Geometry) -> int:
    """How many elements of storage the geometry reaches over, from the storage's start."""
    if 0 in view.size:
        return 0
    return view.offset + 1 + sum((n - 1) * s for n, s in zip(view.size, view.stride))


def saved_bytes(arrays: Any) -> int:
    """Bytes of the storages behind `arrays`, each storage counted once."""
    return sum({id(r): r.nbytes for r in map(root, arrays)}.values())
