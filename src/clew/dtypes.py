"""dtype objects and PyTorch's type promotion.  Layer 0: imports NumPy, and late ml_dtypes.

Promotion knows three classes of operand (tensors with dimensions, 0-d tensors, Python numbers)
and four categories of type (bool, integer, floating, complex).  A class that comes later counts
only if its category is higher than that of the classes before it.
Source: the "Type promotion" part of PyTorch's documentation of tensor attributes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

_BOOL, _INTEGER, _FLOATING, _COMPLEX = range(4)


class dtype:
    """The type of a tensor's elements; the same names as PyTorch's (``clew.float32``)."""

    __slots__ = ("category", "is_complex", "is_floating_point", "is_signed", "name", "numpy")

    numpy: np.dtype

    def __init__(self, name: str, numpy: Any, category: int) -> None:
        self.name = name
        if numpy is not None:
            self.numpy = np.dtype(numpy)
        self.category = category
        self.is_floating_point = category == _FLOATING
        self.is_complex = category == _COMPLEX
        self.is_signed = name not in ("bool", "uint8", "uint16", "uint32", "uint64")

    def __getattr__(self, name: str) -> Any:
        """The NumPy type of bfloat16: ml_dtypes is imported when it is first asked for."""
        if name != "numpy":
            raise AttributeError(f"'torch.dtype' object has no attribute '{name}'")
        import ml_dtypes

        self.numpy = np.dtype(ml_dtypes.bfloat16)
        _OF_NUMPY[self.numpy] = self
        return self.numpy

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize

    def to_complex(self) -> dtype:
        """The complex type of the same precision."""
        return {"float16": complex64, "float32": complex64, "float64": complex128}.get(
            self.name, self if self.is_complex else complex64
        )

    def to_real(self) -> dtype:
        """The type of the real part."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return "bool_" if self.name == "bool" else self.name


bool_ = dtype("bool", np.bool_, _BOOL)
uint8 = dtype("uint8", np.uint8, _INTEGER)
int8 = dtype("int8", np.int8, _INTEGER)
int16 = dtype("int16", np.int16, _INTEGER)
int32 = dtype("int32", np.int32, _INTEGER)
int64 = dtype("int64", np.int64, _INTEGER)
uint16 = dtype("uint16", np.uint16, _INTEGER)
uint32 = dtype("uint32", np.uint32, _INTEGER)
uint64 = dtype("uint64", np.uint64, _INTEGER)
float16 = dtype("float16", np.float16, _FLOATING)
bfloat16 = dtype("bfloat16", None, _FLOATING)
float32 = dtype("float32", np.float32, _FLOATING)
float64 = dtype("float64", np.float64, _FLOATING)
complex64 = dtype("complex64", np.complex64, _COMPLEX)
complex128 = dtype("complex128", np.complex128, _COMPLEX)

ALL = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip

_WIDE_UNSIGNED = (uint16, uint32, uint64)

ALIASES = {
    "bool": bool_, "short": int16, "int": int32, "long": int64, "half": float16,
    "float": float32, "double": float64, "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
"""Second names of dtypes, as PyTorch has them."""


class _OfNumpy(dict[np.dtype, dtype]):
    """By NumPy's type; bfloat16 comes in when it is first met."""

    def __missing__(self, key: np.dtype) -> dtype:
        if key.kind == "V" and key == bfloat16.numpy:
            return bfloat16
        raise KeyError(key)


_OF_NUMPY = _OfNumpy({d.numpy: d for d in ALL if d is not bfloat16})
LEGACY_TYPES = {
    "bool": "BoolTensor", "uint8": "ByteTensor", "int8": "CharTensor", "int16": "ShortTensor",
    "int32": "IntTensor", "int64": "LongTensor", "float16": "HalfTensor",
    "bfloat16": "BFloat16Tensor", "float32": "FloatTensor", "float64": "DoubleTensor",
    "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
    "uint16": "UInt16Tensor", "uint32": "UInt32Tensor", "uint64": "UInt64Tensor",
}  # fmt: skip

# The C++ names that PyTorch prints in some messages.
SCALAR_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int",
    "int64": "Long", "float16": "Half", "bfloat16": "BFloat16", "float32": "Float",
    "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
}  # fmt: skip


# The types that PyTorch had before it named all others in another way.
_OLD = frozenset(
    ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
)  # fmt: skip


def of_numpy(numpy_dtype: np.dtype) -> dtype:
    """The clew dtype of a NumPy dtype.

    Raises:
        TypeError: clew has no such type (text, objects, dates, ...).
    """
    try:
        return _OF_NUMPY[numpy_dtype]
    except KeyError:
        native = numpy_dtype.newbyteorder("=")
        if native in _OF_NUMPY:
            raise ValueError(
                "given numpy array has byte order different from the native byte order. "
                "Conversion between byte orders is currently not supported."
            ) from None
        supported = ", ".join(d.name for d in ALL if d is not bfloat16)
        raise TypeError(
            f"can't convert np.ndarray of type {numpy_dtype}. "
            f"The only supported types are: {supported}."
        ) from None


def scalar_name(numpy_dtype: np.dtype) -> str:
    """PyTorch's C++ name of a type, as its messages print it: ``Float``, ``Long``, ..."""
    return SCALAR_NAMES[_OF_NUMPY[numpy_dtype].name]


def legacy_type(numpy_dtype: np.dtype) -> str:
    """The name of the tensor type as PyTorch 0.3 had it: ``FloatTensor``, ``LongTensor``, ..."""
    return LEGACY_TYPES[_OF_NUMPY[numpy_dtype].name]


def described_type(numpy_dtype: np.dtype) -> str:
    """How PyTorch's messages name a tensor of this type: ``torch.FloatTensor``, ``CPUBoolType``."""
    found = _OF_NUMPY[numpy_dtype]
    if found.name in _OLD:
        return f"torch.{LEGACY_TYPES[found.name]}"
    return f"CPU{SCALAR_NAMES[found.name]}Type"


def of_legacy_type(name: str) -> dtype | None:
    """The dtype of a name such as ``FloatTensor``, or None."""
    for dtype_name, legacy in LEGACY_TYPES.items():
        if legacy == name:
            return next(d for d in ALL if d.name == dtype_name)
    return None


class _Default:
    """The default floating type, which `set_default_dtype` changes."""

    __slots__ = ("complex", "floating")

    def __init__(self) -> None:
        self.floating = float32
        self.complex = complex64


_default = _Default()


def get_default_dtype() -> dtype:
    """The type of new floating-point tensors."""
    return _default.floating


def set_default_dtype(d: dtype) -> None:
    """Set the type of new floating-point tensors.

    Raises:
        TypeError: `d` is not a floating type.
    """
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type (got {d!r})")
    _default.floating = d
    _default.complex = d.to_complex()


def of_python(number_type: type) -> dtype:
    """The type of a tensor made from Python numbers of this type."""
    if issubclass(number_type, bool):
        return bool_
    if issubclass(number_type, int):
        return int64
    return _default.complex if issubclass(number_type, complex) else _default.floating


def promote_types(first: dtype, second: dtype) -> dtype:
    """The smallest type that holds both, in PyTorch's lattice.

    Raises:
        RuntimeError: a wide unsigned type (uint16 and up) meets another type that is not floating.
    """
    if first is second:
        return first
    _refuse_wide_unsigned(first, second)
    if first.category > second.category:
        first, second = second, first
    if second.category == _COMPLEX:
        wide = float64 in (first, second) or complex128 in (first, second)
        return complex128 if wide else complex64
    if first.category < second.category:
        return second
    if second.category == _FLOATING:
        if first.itemsize == second.itemsize:  # float16 with bfloat16
            return float32
        return max(first, second, key=lambda d: d.itemsize)
    return _OF_NUMPY[np.promote_types(first.numpy, second.numpy)]


def _refuse_wide_unsigned(first: dtype, second: dtype) -> None:
    wide = first in _WIDE_UNSIGNED or second in _WIDE_UNSIGNED
    if wide and not (first.is_floating_point or second.is_floating_point):
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, "
            f"attempted to promote {SCALAR_NAMES[first.name]} and {SCALAR_NAMES[second.name]}"
        )


def result_type(operands: Iterable[Any]) -> dtype:
    """The type in which an operation on `operands` (arrays and Python numbers) computes."""
    classes: list[dtype | None] = [None, None, None]  # dimensioned, 0-d, Python number
    for operand in operands:
        if isinstance(operand, (np.ndarray, np.generic)) or hasattr(operand, "ndim"):
            found, level = of_numpy(operand.dtype), 1 if operand.ndim == 0 else 0
        else:
            found, level = of_python(type(operand)), 2
        known = classes[level]
        classes[level] = found if known is None else promote_types(known, found)
    result: dtype | None = None
    for found_or_none in classes:
        if found_or_none is None:
            continue
        if result is None:
            result = found_or_none
        elif found_or_none.category > result.category:
            result = _raise_category(result, found_or_none)
    if result is None:
        raise RuntimeError("at least one operand is needed to find a result type")
    return result


def _raise_category(low: dtype, high: dtype) -> dtype:
    if high.category == _COMPLEX and low.category == _FLOATING:
        return complex128 if low is float64 else complex64
    return high


def can_cast(source: dtype, target: dtype) -> bool:
    """Whether PyTorch lets an in-place operation write `source` values into a `target` tensor."""
    return source.category <= target.category


class layout:
    """How a tensor's elements lie in memory."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


strided = layout("strided")
sparse_coo = layout("sparse_coo")


class memory_format:
    """The order of dimensions in memory that some functions can be asked for."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
