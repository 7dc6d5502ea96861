"""The legacy constructor, ``Tensor(2, 3)`` and ``FloatTensor([1, 2])``.  Layer 4."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import dtypes
from clew.tensor import Tensor


def construct(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A tensor of the default floating type: from data, or of a size and uninitialised.

    Raises:
        TypeError: the arguments are neither sizes nor data.
    """
    dtype = getattr(cls, "_legacy_dtype", None) or dtypes.get_default_dtype()
    kwargs.pop("device", None)
    if kwargs:
        raise TypeError(f"new() received an invalid combination of arguments: {sorted(kwargs)}")
    if len(args) == 1 and isinstance(args[0], Tensor):
        source = args[0]._array
        if source.dtype != dtype.numpy:
            raise TypeError(
                f"expected {dtype!r} (got {source.dtype.name}); use torch.tensor or .to() to convert"
            )
        tensor = args[0]._alias()
        if cls is Tensor:
            return tensor
        return cls._from_array(source)  # type: ignore[attr-defined]
    if len(args) == 1 and not isinstance(args[0], (int, np.integer)):
        from clew.functions.create import array_of

        array = array_of(args[0], dtype)
    elif args and not all(isinstance(n, (int, np.integer)) for n in args):
        raise TypeError(
            "new(): data must be a sequence, or all arguments must be sizes (ints); got "
            + ", ".join(type(a).__name__ for a in args)
        )
    else:
        size = tuple(int(n) for n in args) if args else (0,)
        array = np.zeros(size, dtype.numpy)
    return cls._from_array(array)  # type: ignore[attr-defined]
