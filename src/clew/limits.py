"""What each dtype can hold: `finfo` and `iinfo`.  Layer 0: imports NumPy, and late ml_dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import dtypes


def _checked(name: str, type: Any) -> dtypes.dtype:
    if not isinstance(type, dtypes.dtype):
        raise TypeError(
            f"{name}(): argument 'type' (position 1) must be torch.dtype, not "
            f"{type.__class__.__name__}"
        )
    return type


class _Info:
    """What `finfo` and `iinfo` have in common."""

    bits: int
    dtype: str
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        same_class = isinstance(other, _Info) and type(other) is type(self)
        return same_class and other.dtype == self.dtype  # type: ignore[attr-defined]


class finfo(_Info):
    """Limits of a floating type (of the parts, for a complex one).

    Attributes:
        bits, min, max: the size, the lowest and the largest number.
        eps: the distance from 1 to the next larger number.
        tiny, smallest_normal: the smallest positive normal number.
        resolution: ten to the minus number of decimal digits that are held exactly.
        dtype: the name of the type.

    Raises:
        TypeError: `type` is not a floating or complex dtype.
    """

    def __init__(self, type: Any = None) -> None:
        kind = dtypes.get_default_dtype() if type is None else _checked("finfo", type)
        if not (kind.is_floating_point or kind.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                "'torch.finfo'"
            )
        import ml_dtypes

        limits: Any = ml_dtypes.finfo(_real_part(kind))
        self.bits = int(limits.bits)
        self.min = float(limits.min)
        self.max = float(limits.max)
        self.eps = float(limits.eps)
        self.tiny = self.smallest_normal = float(limits.smallest_normal)
        # Not NumPy's number as a float, which has digits of its own after rounding.
        self.resolution = float(f"1e-{limits.precision}")
        self.dtype = dtypes.of_numpy(np.dtype(limits.dtype)).name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:.6g}, min={self.min:.6g}, max={self.max:.6g}, "
            f"eps={self.eps:.6g}, smallest_normal={self.smallest_normal:.6g}, "
            f"tiny={self.tiny:.6g}, dtype={self.dtype})"
        )


def _real_part(kind: dtypes.dtype) -> Any:
    return np.zeros(0, kind.numpy).real.dtype if kind.is_complex else kind.numpy


class iinfo(_Info):
    """Limits of an integer type.

    Attributes:
        bits, min, max: the size, the lowest and the largest number.
        dtype: the name of the type.

    Raises:
        TypeError: `type` is not an integer dtype.
    """

    def __init__(self, type: Any) -> None:
        kind = _checked("iinfo", type)
        if kind.is_floating_point or kind.is_complex:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        if kind is dtypes.bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        limits = np.iinfo(kind.numpy)
        self.bits = limits.bits
        self.min = int(limits.min)
        self.max = int(limits.max)
        self.dtype = kind.name

    def __repr__(self) -> str:
        return f"iinfo(min={float(self.min):.6g}, max={float(self.max):.6g}, dtype={self.dtype})"
