"""How a node keeps less of an array than the array.  Layer 1: imports only `storage`.

Note [Packings]
    PyTorch keeps whole tensors, of which some rules ask little: the sign of each element, where it
    stands between two limits, or nothing but the shape.  A declaration says so (``packings=``, see
    ``op.py``), and a node keeps a packed form of a large array, unless somebody else keeps that
    array anyway.  A rule is then given something else in its place, from which it must compute the
    same to the bit.  Elements are packed in the order in which they lie in memory and unpacked to
    it, so gradients lie as before.

    Of two kinds of elements, a rule on arrays is given which are of the first kind, as bools: what
    it calls takes bools for that.  A rule on Tensors is given numbers of the two kinds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from clew.storage import has_no_gaps

SMALLEST = 1 << 15
"""Arrays of fewer elements are kept as they are: their bytes are not worth the work."""


class Packed(NamedTuple):
    """What is kept of an array.

    Attributes:
        memory: all that is kept.
        shape: of the array.
        strides: of the packed elements, before they were put together.
        dtype: of the array.
    """

    memory: np.ndarray
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any

    def stand_in(self) -> np.ndarray:
        """An array of the same shape and type that has no values, and no memory but this."""
        return np.ndarray(self.shape, self.dtype, self.memory, 0, (0,) * len(self.shape))


class Packing(NamedTuple):
    """A way to keep less.

    Attributes:
        pack: ``pack(array, attrs)``, with the attributes of the op.
        unpack: ``unpack(packed, attrs)`` gives what a rule on arrays is called with.
        words: what is kept, in words.
        exact: unpacking gives the array itself.
        numbers: ``numbers(packed, attrs)`` gives what a rule on Tensors is called with, where that
            is something else; it has the type of the array.
        unless: an input whose gradient needs the values: where it requires grad, nothing is packed.
    """

    pack: Callable[[np.ndarray, dict[str, Any]], Packed]
    unpack: Callable[[Packed, dict[str, Any]], np.ndarray]
    words: str
    exact: bool = False
    numbers: Callable[[Packed, dict[str, Any]], np.ndarray] | None = None
    unless: str = ""


def two_kinds(is_kind: Callable[..., np.ndarray], *, second: bool = False) -> Packing:
    """One bit an element, for rules that only ask of which of two kinds an element is.

    Args:
        is_kind: ``is_kind(array, **attrs)`` says which elements are of the first kind.
        second: it says which are of the second.
    """

    def pack(array: np.ndarray, attrs: dict[str, Any]) -> Packed:
        packed = _bits(is_kind(array, **attrs), array.dtype)
        if second:
            np.invert(packed.memory, out=packed.memory)
        return packed

    def numbers(packed: Packed, attrs: dict[str, Any]) -> np.ndarray:
        examples = _examples(packed.dtype, attrs)
        kinds = is_kind(examples, **attrs) != second
        # Where no example is of a kind, no element is.
        first, other = (examples[np.argmax(kinds == kind)] for kind in (True, False))
        return np.where(_bools(packed), first, other)

    return Packing(
        pack, lambda packed, attrs: _bools(packed), "one bit an element", numbers=numbers
    )


def _examples(dtype: Any, attrs: dict[str, Any]) -> np.ndarray:
    """Numbers among which is one inside any limits and one outside: the attributes are limits."""
    limits = [value for value in attrs.values() if isinstance(value, (int, float))]
    middle = sum(limit / len(limits) for limit in limits)
    return np.array([np.nan, 0, 1, np.inf, -np.inf, *limits, middle], dtype)


def _bits(mask: np.ndarray, dtype: Any) -> Packed:
    if not has_no_gaps(mask):
        mask = mask.copy(order="K")
    return Packed(np.packbits(mask.ravel(order="K")), mask.shape, mask.strides, dtype)


def _bools(packed: Packed) -> np.ndarray:
    flat = np.unpackbits(packed.memory, count=math.prod(packed.shape)).view(np.bool_)
    return np.ndarray(packed.shape, np.bool_, flat, 0, packed.strides)


BITS = Packing(
    lambda array, attrs: _bits(array, array.dtype), lambda packed, attrs: _bools(packed),
    "one bit an element", exact=True,
)  # fmt: skip
"""For arrays of bools."""


def _small_integers(array: np.ndarray, attrs: dict[str, Any]) -> Packed:
    small = array.astype(np.min_scalar_type(int(array.max())))
    return Packed(small, array.shape, small.strides, array.dtype)


INDICES = Packing(
    _small_integers, lambda packed, attrs: packed.memory.astype(packed.dtype),
    "in the smallest type that holds them", exact=True,
)  # fmt: skip
"""For indices, which are not negative."""

SHAPE = Packing(
    lambda array, attrs: Packed(np.zeros(1, array.dtype), array.shape, (), array.dtype),
    lambda packed, attrs: packed.stand_in(),
    "its shape only",
)
"""For rules that name an array because PyTorch keeps it, and ask for its shape and type only."""
