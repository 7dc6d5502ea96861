"""Integer, Bernoulli, geometric and Poisson samples, and the noise of dropout.

Functions whose name ends in an underscore fill the array they are given and return it; they accept
any strides. `generator=None` means the default generator. Layer 1: NumPy and this package.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .generator import LOW_53_BITS, Generator
from .target import (
    dense_like,
    fill,
    is_common,
    is_floating,
    is_half,
    not_implemented,
    pick,
    range_of,
    require_floating,
    visiting_axes,
)

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def randint(
    low: int,
    high: int,
    size: tuple[int, ...],
    dtype: DTypeLike = np.int64,
    generator: Generator | None = None,
) -> np.ndarray:
    """A new array of integers in [low, high); see `random_` for the errors."""
    return random_(np.empty(size, dtype), low, high, generator)


def random_(
    out: np.ndarray,
    low: int | None = None,
    high: int | None = None,
    generator: Generator | None = None,
) -> np.ndarray:
    """Fill with integers in [low, high).

    `low` is 0 if left out. Without `high`, the last one is the largest integer up to which the
    dtype holds all; without both it is the same one, by draws of their own. Raises RuntimeError for
    bounds out of order or out of the dtype's range, NotImplementedError for a dtype that cannot be
    sampled so; warns where a floating-point dtype cannot hold every integer of the range.
    """
    generator = pick(generator)
    if low is None and high is None:
        return _fill_default_range(out, generator)
    low = 0 if low is None else low
    if high is None and low == _INT64_MIN:
        return _fill_any_64_bits(out, generator)
    low, last = _bounds(out.dtype, low, high)
    _check_bounds(out.dtype, low, last)
    size = last - low + 1
    words = generator.words64 if size >= 2**28 else generator.words32

    def draw(count: int) -> np.ndarray:
        values = words(count) % np.uint64(size)
        values += np.uint64(low % 2**64)
        return values.view(np.int64)

    return fill(out, generator, draw)


def _fill_default_range(out: np.ndarray, generator: Generator) -> np.ndarray:
    if out.size == 0:
        return out
    if not is_common(out.dtype):
        raise not_implemented("random_kernel_cpu", out.dtype)
    words = generator.words64 if out.dtype in (np.int64, np.float64) else generator.words32
    size = np.uint64(_largest_integer(out.dtype) + 1)
    return fill(out, generator, lambda count: words(count) % size)


def _largest_integer(dtype: np.dtype) -> int:
    """The last integer up to which `dtype` holds every one."""
    limits = range_of(dtype)
    return 2**limits.digits if limits.digits else int(limits.largest)


def _fill_any_64_bits(out: np.ndarray, generator: Generator) -> np.ndarray:
    if out.size == 0:
        return out
    kernel = "random_full_64_bits_range_kernel_cpu"
    if not is_common(out.dtype) or out.dtype in (np.bool_, np.float16):
        raise not_implemented(kernel, out.dtype)
    if out.dtype != np.int64 and not is_floating(out.dtype):
        raise RuntimeError(f"{kernel} handles only int64, double, float and bfloat16")
    return fill(out, generator, lambda count: generator.words64(count).view(np.int64))


def _bounds(dtype: np.dtype, low: int, high: int | None) -> tuple[int, int]:
    """The first and the last integer to draw; in a floating-point dtype, exact ones."""
    if high is not None and low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if high is None:
        last = _largest_integer(dtype) if dtype.kind != "c" else 0
        if not is_floating(dtype):
            return low, last
        low = _round_up(dtype, low)
        if low >= last:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' "
                f"casted to dtype, but got from={low} > to_inc={last}"
            )
        return low, last
    if is_floating(dtype):
        low, high = _round_up(dtype, low), _round_down(dtype, high)
        if low >= high:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but "
                f"got from={low} >= to={high}"
            )
    return low, high - 1


def _round_up(dtype: np.dtype, low: int) -> int:
    """PyTorch's nearest bound at or above `low` of which no sample rounds to below `low`."""
    following = _through(dtype, low + 1)
    return following + _spacing(dtype, low + 1) if following < low else low


def _round_down(dtype: np.dtype, high: int) -> int:
    """PyTorch's nearest bound at or below `high` of which no sample rounds up to `high`."""
    previous = _through(dtype, high - 1)
    return previous - _spacing(dtype, high - 1) if previous >= high else high


def _through(dtype: np.dtype, number: int) -> int:
    """`number` rounded to `dtype` and back to int64; the least int64 if it does not fit."""
    with np.errstate(over="ignore"):
        first = np.float32 if is_half(dtype) else dtype
        rounded = float(np.asarray(number).astype(first).astype(dtype))
    return int(rounded) if abs(rounded) < 2.0**63 else _INT64_MIN


def _spacing(dtype: np.dtype, number: int) -> int:
    """The distance between neighbours in `dtype` of a number too large for all its digits."""
    return 1 << (abs(number).bit_length() - range_of(dtype).digits)


def _check_bounds(dtype: np.dtype, low: int, last: int) -> None:
    if dtype.kind == "c":
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    c_name, digits, largest = range_of(dtype)
    smallest = -largest if digits else -largest - 1 if dtype.kind == "i" else 0
    for name, bound in (("from", low), ("to - 1", last)):
        if not smallest <= bound <= min(largest, _INT64_MAX):
            raise RuntimeError(f"{name} is out of bounds for {c_name}")
    for name, bound in (("from", low), ("to - 1", last)):
        if digits and abs(bound) > 2**digits:
            warnings.warn(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision "
                f"limitations {c_name} can not hold every integer beyond it: some are never drawn.",
                UserWarning,
                stacklevel=2,
            )


def bernoulli_(
    out: np.ndarray, p: float | np.ndarray = 0.5, generator: Generator | None = None
) -> np.ndarray:
    """Fill with ones of probability `p`, else zeros.

    An array of probabilities is broadcast to `out` (ValueError if it does not fit). Raises
    RuntimeError for a probability outside [0, 1], NotImplementedError for a dtype of `out` that is
    complex or wide unsigned, and of `p` that is not floating-point.
    """
    generator = pick(generator)
    if isinstance(p, np.ndarray):
        return _fill_bernoulli_each(out, p, generator) if out.size else out
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if out.size == 0:
        return out
    _require_bernoulli_dtype("bernoulli_scalar_cpu_", out.dtype)
    # u < p for a multiple u of 2**-53 is a comparison of integers.
    limit = np.uint64(math.ceil(math.ldexp(p, 53)))
    return fill(out, generator, lambda count: (generator.words64(count) & LOW_53_BITS) < limit)


def _fill_bernoulli_each(out: np.ndarray, p: np.ndarray, generator: Generator) -> np.ndarray:
    _require_bernoulli_dtype("bernoulli_tensor_cpu_self_", out.dtype)
    require_floating("bernoulli_tensor_cpu_p_", p.dtype)
    wide = p.dtype == np.float64
    probabilities: NDArray[np.floating] = p.astype(np.float64 if wide else np.float32)
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false. A probability given to "
            "bernoulli lies outside [0, 1]."
        )
    in_order = np.broadcast_to(probabilities, out.shape).transpose(visiting_axes(out)).reshape(-1)
    uniforms = generator.uniform53 if wide else generator.uniform24
    done = 0

    def draw(count: int) -> np.ndarray:
        nonlocal done
        done += count
        return uniforms(count) < in_order[done - count : done]

    return fill(out, generator, draw)


def _require_bernoulli_dtype(kernel: str, dtype: np.dtype) -> None:
    if not is_common(dtype):
        raise not_implemented(kernel, dtype)


def dropout_noise(like: np.ndarray, p: float, generator: Generator | None = None) -> np.ndarray:
    """What dropout multiplies its input by: 0 with probability `p`, else 1 / (1 - p).

    The result has the shape and dtype of `like` and its axes in the same order in memory, which
    decides the order of the draws. As in PyTorch's dropout, nothing is drawn for p = 0 (all ones)
    and p = 1 (all zeros). Raises ValueError for `p` outside [0, 1], NotImplementedError for dtypes
    that `bernoulli_` does not take.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    noise = dense_like(like)
    if p in (0, 1):
        noise[...] = 1 - p
        return noise
    bernoulli_(noise, 1 - p, generator)
    noise *= dropout_scale(p, noise.dtype)
    return noise


def dropout_scale(p: float, dtype: np.dtype) -> Any:
    """What dropout multiplies the elements by that it keeps, a number of type `dtype`."""
    wide: Any = np.float64 if dtype == np.float64 else np.float32
    return (wide(1) / wide(1 - p)).astype(dtype)


def geometric_(out: np.ndarray, p: float, generator: Generator | None = None) -> np.ndarray:
    """Fill with the number of trials, of success `p` each, up to and with the first success.

    Raises RuntimeError for `p` outside (0, 1), NotImplementedError for bool, complex and wide
    unsigned dtypes.
    """
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if out.size == 0:
        return out
    if out.dtype == np.bool_ or not is_common(out.dtype):
        raise not_implemented("geometric_cpu", out.dtype)
    generator = pick(generator)

    def draw(count: int) -> np.ndarray:
        return np.ceil(np.log(generator.uniform53(count)) / math.log1p(-p))

    return fill(out, generator, draw)


def poisson(rates: np.ndarray, generator: Generator | None = None) -> np.ndarray:
    """A new contiguous array of Poisson counts, one for each rate, in the rates' dtype.

    Raises RuntimeError for a negative rate, NotImplementedError for a dtype that is not
    floating-point.
    """
    require_floating("poisson_cpu", rates.dtype)
    if not (rates >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    generator = pick(generator)
    with generator.lock:
        counts = [_poisson(rate, generator) for rate in rates.astype(np.float64).ravel().tolist()]
    out = np.array(counts, np.float64).astype(np.float32 if rates.dtype != np.float64 else None)
    return out.astype(rates.dtype, copy=False).reshape(rates.shape)


def _poisson(rate: float, generator: Generator) -> int:
    """One count: by multiplying uniforms, or for a rate from 10 on by transformed rejection.

    Source of the rejection: W. Hörmann, The transformed rejection method for generating Poisson
    random variables, Insurance: Mathematics and Economics 12 (1993), algorithm PTRS.
    """
    if rate == 0:
        return 0
    if rate < 10:
        count, product, floor = 0, generator.next_uniform53(), math.exp(-rate)
        while product > floor:
            count += 1
            product *= generator.next_uniform53()
        return count
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = generator.next_uniform53() - 0.5
        v = generator.next_uniform53()
        us = 0.5 - abs(u)
        count = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= squeeze:
            return count
        if count < 0 or (us < 0.013 and v > us):
            continue
        hat = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if hat <= -rate + count * log_rate - math.lgamma(count + 1):
            return count
