"""``clew.testing``: compare tensors, numbers and structures of them.  Layer 5: imports the core."""

from __future__ import annotations

import cmath
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

import clew
from clew import dtypes
from clew.functions.create import as_tensor
from clew.tensor import Tensor

__all__ = ["assert_close"]

_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}
"""Relative and absolute; other types must be equal."""

_OF_NUMBERS = {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
_WIDE_UNSIGNED = (dtypes.uint16, dtypes.uint32, dtypes.uint64)

Item = tuple[Any, ...]
"""Where in the structures something stands: indices and keys, from the outside in."""


class _Mismatch(Exception):
    """What `assert_close` is to raise."""

    def __init__(self, kind: type[Exception], text: str, item: Item) -> None:
        self.kind = kind
        self.text = text
        self.item = item

    def error(self, msg: str | Callable[[str], str] | None) -> Exception:
        """The exception, with the user's message."""
        if isinstance(msg, str):
            return self.kind(msg)
        text = self.text
        if self.item:
            text += f"\n\nThe failure occurred for item {''.join(str([i]) for i in self.item)}"
        return self.kind(msg(text) if callable(msg) else text)


@dataclass(frozen=True)
class _Options:
    """The options of `assert_close`."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, item: Item, *kinds: dtypes.dtype) -> tuple[float, float]:
        """The tolerances for values of these types."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        if self.rtol is not None or self.atol is not None:
            missing = "rtol" if self.rtol is None else "atol"
            raise _Mismatch(
                ValueError,
                "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                f"{missing}.",
                item,
            )
        pairs = [_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(r for r, _ in pairs), max(a for _, a in pairs)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Check ``|actual - expected| <= atol + rtol * |expected|``, and that types and shapes agree.

    Args:
        actual, expected: tensors, what makes tensors, numbers, None, or sequences and mappings of
            them.
        allow_subclasses: tensors may be of related classes.
        rtol, atol: both or none; by default what the types allow, zero for integers.
        equal_nan: NaN equals NaN.
        check_device, check_dtype, check_layout, check_stride: what else must agree of tensors.
        msg: the message, or a function of the one that would be given.

    Raises:
        AssertionError: they differ.
        TypeError: they cannot be compared.
        ValueError: one tolerance without the other.
    """
    __tracebackhide__ = True
    options = _Options(
        allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout,
        check_stride,
    )  # fmt: skip
    try:
        comparisons = list(_comparisons(actual, expected, options, ()))
    except _Mismatch as mismatch:
        raise mismatch.error(None) from None
    try:
        for compare in comparisons:
            compare()
    except _Mismatch as mismatch:
        raise mismatch.error(msg) from None


def _comparisons(
    actual: Any, expected: Any, options: _Options, item: Item
) -> Iterator[Callable[[], None]]:
    """The comparisons of all members, after the structures have been found alike."""
    if _both(actual, expected, Sequence) and not isinstance(actual, str | bytes):
        if len(actual) != len(expected):
            raise _Mismatch(
                AssertionError,
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
                item,
            )
        keys: Any = range(len(actual))
    elif _both(actual, expected, Mapping):
        keys = _common_keys(actual, expected, item)
    else:
        yield _comparison(actual, expected, options, item)
        return
    for key in keys:
        yield from _comparisons(actual[key], expected[key], options, (*item, key))


def _both(actual: Any, expected: Any, kinds: Any) -> bool:
    return isinstance(actual, kinds) and isinstance(expected, kinds)


def _common_keys(actual: Any, expected: Any, item: Item) -> Any:
    missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or additional:
        raise _Mismatch(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing)}\n"
            f"Additional keys in the actual mapping: {sorted(additional)}",
            item,
        )
    keys = list(actual)
    with contextlib.suppress(TypeError):  # keys without an order stay as they are
        keys.sort()
    return keys


def _comparison(actual: Any, expected: Any, options: _Options, item: Item) -> Callable[[], None]:
    """The comparison of two members that are no structures."""
    if actual is None or expected is None:
        return lambda: _compare_none(actual, expected, item)
    if _both(actual, expected, (bool, np.bool_)):
        return lambda: _compare_bools(bool(actual), bool(expected), item)
    if _both(actual, expected, (int, float, complex, np.number)):
        a, b = (x.item() if isinstance(x, np.number) else x for x in (actual, expected))
        tolerances = options.tolerances(item, _number_type(a), _number_type(b))
        return lambda: _compare_numbers(a, b, tolerances, options, item)
    tensors = _as_tensors(actual, expected, options)
    if tensors is None:
        raise _Mismatch(
            TypeError,
            "No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}.",
            item,
        )
    first, second = tensors
    tolerances = options.tolerances(item, first.dtype, second.dtype)
    return lambda: _compare_tensors(first, second, tolerances, options, item)


def _number_type(x: Any) -> dtypes.dtype:
    return next(kind for cls, kind in _OF_NUMBERS.items() if isinstance(x, cls))


def _as_tensors(actual: Any, expected: Any, options: _Options) -> tuple[Any, Any] | None:
    """Both as tensors, or None if they are of unrelated types or make none."""
    if not (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
        return None
    if not options.allow_subclasses and type(actual) is not type(expected):
        return None
    try:
        return tuple(  # type: ignore[return-value]
            x if isinstance(x, Tensor) else as_tensor(x) for x in (actual, expected)
        )
    except (TypeError, ValueError, RuntimeError):
        return None


def _compare_none(actual: Any, expected: Any, item: Item) -> None:
    if actual is not expected:
        raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", item)


def _compare_bools(actual: bool, expected: bool, item: Item) -> None:
    if actual is not expected:
        raise _Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}", item)


def _compare_numbers(
    actual: Any, expected: Any, tolerances: tuple[float, float], options: _Options, item: Item
) -> None:
    if options.check_dtype and type(actual) is not type(expected):
        raise _Mismatch(
            AssertionError,
            f"The (d)types do not match: {type(actual)} != {type(expected)}.",
            item,
        )
    if actual == expected:
        return
    if options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return
    rtol, atol = tolerances
    difference = abs(actual - expected)
    if not (cmath.isfinite(difference) and difference <= atol + rtol * abs(expected)):
        raise _Mismatch(AssertionError, _scalar_text(actual, expected, tolerances), item)


def _compare_tensors(
    actual: Any, expected: Any, tolerances: tuple[float, float], options: _Options, item: Item
) -> None:
    _compare_attributes(actual, expected, options, item)
    if actual.dtype is not expected.dtype:
        kinds = [dtypes.int64 if t.dtype in _WIDE_UNSIGNED else t.dtype for t in (actual, expected)]
        common = dtypes.promote_types(*kinds)
        actual, expected = actual.to(common), expected.to(common)
    rtol, atol = tolerances
    matches = clew.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if matches.all():
        return
    if actual.ndim == 0:
        text = _scalar_text(actual.item(), expected.item(), tolerances)
    else:
        text = _tensor_text(actual._array, expected._array, matches._array, tolerances)
    raise _Mismatch(AssertionError, text, item)


def _compare_attributes(actual: Any, expected: Any, options: _Options, item: Item) -> None:
    def fail(name: str, a: Any, b: Any) -> NoReturn:
        raise _Mismatch(
            AssertionError,
            f"The values for attribute '{name}' do not match: {a} != {b}.",
            item,
        )

    if actual.shape != expected.shape:
        fail("shape", actual.shape, expected.shape)
    if options.check_stride and actual.stride() != expected.stride():
        fail("stride()", actual.stride(), expected.stride())
    if options.check_dtype and actual.dtype is not expected.dtype:
        fail("dtype", actual.dtype, expected.dtype)


# -- messages


def _scalar_text(actual: Any, expected: Any, tolerances: tuple[float, float]) -> str:
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    lead = f"Expected {expected} but got {actual}."
    return _text("Scalars", lead, (difference, None), (relative, None), tolerances)


def _tensor_text(
    actual: np.ndarray, expected: np.ndarray, matches: np.ndarray, tolerances: tuple[float, float]
) -> str:
    wrong = matches.size - int(matches.sum())
    lead = f"Mismatched elements: {wrong} / {matches.size} ({wrong / matches.size:.1%})"
    if actual.dtype.kind in "biu":
        actual, expected = actual.astype(np.int64), expected.astype(np.int64)
    with np.errstate(all="ignore"):
        difference = np.abs(actual - expected)
        relative = difference / np.abs(expected)
    if difference.dtype.kind in "biu":
        relative = relative.astype(dtypes.get_default_dtype().numpy)
    greatest = [_greatest(np.where(matches, 0, d).astype(d.dtype)) for d in (difference, relative)]
    return _text("Tensor-likes", lead, greatest[0], greatest[1], tolerances)


def _greatest(differences: np.ndarray) -> tuple[Any, tuple[int, ...]]:
    """The greatest value (or the first NaN) and its index."""
    place = np.unravel_index(int(differences.argmax()), differences.shape)
    return differences[place].item(), tuple(int(i) for i in place)


def _text(
    what: str,
    lead: str,
    absolute: tuple[Any, Any],
    relative: tuple[Any, Any],
    tolerances: tuple[float, float],
) -> str:
    rtol, atol = tolerances
    exact = rtol == 0 and atol == 0
    lines = [f"{what} are not {'equal' if exact else 'close'}!", "", lead]
    for name, (value, index), allowed in (
        ("absolute", absolute, atol),
        ("relative", relative, rtol),
    ):
        if index is None:
            line = f"{name.title()} difference: {value}"
        else:
            line = f"Greatest {name} difference: {value} at index {index}"
        lines.append(line if exact else f"{line} (up to {allowed} allowed)")
    return "\n".join(lines)
