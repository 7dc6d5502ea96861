"""`Size`: what ``x.shape`` is.  Layer 0."""

from __future__ import annotations

from typing import Any


class Size(tuple[int, ...]):
    """A tensor's shape: a tuple of ints."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        total = 1
        for n in self:
            total *= n
        return total

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __mul__(self, other: Any) -> Size:
        return Size(tuple.__mul__(self, other))

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __reduce__(self) -> Any:
        return (Size, (tuple(self),))
