"""Uniform, normal, log-normal, exponential and Cauchy samples.

Functions whose name ends in an underscore fill the array they are given and return it; they accept
any strides. `generator=None` means the default generator. Layer 1: NumPy and this package.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..dtypes import scalar_name
from . import libm
from .box_muller import blocks32, blocks64, multiply_add
from .generator import Generator
from .target import (
    CHUNK,
    fill,
    is_floating,
    is_half,
    pick,
    range_of,
    real_view,
    require_floating,
)

Size = tuple[int, ...]


def rand(
    size: Size, dtype: DTypeLike = np.float32, generator: Generator | None = None
) -> np.ndarray:
    """A new array of uniform numbers in [0, 1); floating-point or complex `dtype`."""
    return uniform_(np.empty(size, dtype), generator=generator)


def randn(
    size: Size, dtype: DTypeLike = np.float32, generator: Generator | None = None
) -> np.ndarray:
    """A new array of normal numbers; complex ones have variance 1, half in each part."""
    return normal_(np.empty(size, dtype), generator=generator)


def uniform_(
    out: np.ndarray, low: float = 0.0, high: float = 1.0, generator: Generator | None = None
) -> np.ndarray:
    """Fill with uniform numbers in [low, high).

    Raises RuntimeError for bounds out of order or out of the dtype's range, NotImplementedError for
    a dtype that is not floating-point or complex.
    """
    if out.dtype.kind == "c":
        if out.size:
            uniform_(real_view(out), low, high, generator)
        return out
    require_floating("check_uniform_bounds", out.dtype)
    _check_uniform_bounds(out.dtype, low, high)
    generator = pick(generator)
    if (low, high) == (0.0, 1.0) and not is_half(out.dtype):
        draw = generator.uniform53 if out.dtype == np.float64 else generator.uniform24
        return fill(out, generator, draw)

    wide = np.float64 if out.dtype == np.float64 else np.float32
    start, stop = wide(low), wide(high)
    first, excluded = start.astype(out.dtype), stop.astype(out.dtype)

    def draw_scaled(count: int) -> np.ndarray:
        if wide is np.float64:
            values = multiply_add(generator.uniform53(count), float(stop - start), float(start))
        else:
            u = generator.uniform24(count).astype(np.float64)  # holds the product exactly
            values = (u * float(stop - start) + float(start)).astype(wide).astype(out.dtype)
        # Rounding can reach the excluded bound.
        return np.where(values == excluded, first, values)

    return fill(out, generator, draw_scaled)


def _check_uniform_bounds(dtype: np.dtype, low: float, high: float) -> None:
    c_name, _, largest = range_of(dtype)
    for name, bound in (("from", low), ("to", high)):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{name} is out of bounds for {c_name}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar_name(dtype)}>::max(), but "
            f"found to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )


def normal_(
    out: np.ndarray, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> np.ndarray:
    """Fill with normal numbers; in a complex array each part has variance std**2 / 2.

    Raises RuntimeError for a negative std, NotImplementedError for a dtype that is not
    floating-point or complex.
    """
    _check_std(std)
    if out.size == 0:
        return out
    if out.dtype.kind == "c":
        normal_(real_view(out), mean, std / math.sqrt(2), generator)
        return out
    require_floating("normal_kernel_cpu", out.dtype)
    generator = pick(generator)
    if out.size < 16 or not out.flags.c_contiguous:
        return fill(
            out, generator, lambda count: multiply_add(_normals(generator, count), std, mean)
        )
    with generator.lock, np.errstate(all="ignore"):
        _fill_blocks(out.reshape(-1), mean, std, generator)
    return out


def _check_std(std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def _fill_blocks(flat: np.ndarray, mean: float, std: float, generator: Generator) -> None:
    if flat.dtype == np.float64:
        transform, uniforms = blocks64, generator.uniform53
    else:
        transform, uniforms = blocks32, generator.uniform24
    rest = flat.size % 16
    whole = flat.size - rest
    for start in range(0, whole, CHUNK):
        stop = min(start + CHUNK, whole)
        flat[start:stop] = transform(uniforms(stop - start), mean, std)
    if rest:
        if not is_half(flat.dtype):
            uniforms(rest)  # PyTorch draws these, then draws the last 16 over them
        flat[-16:] = transform(uniforms(16), mean, std)


def _normals(generator: Generator, count: int) -> np.ndarray:
    """The next standard normal numbers one by one, float64; an odd one is kept for later."""
    kept = generator.spare_normal
    missing = count if kept is None else count - 1
    pairs = (missing + 1) // 2
    u = generator.uniform53(2 * pairs).reshape(pairs, 2)
    angle = 2.0 * math.pi * u[:, 0]
    radius = np.sqrt(-2.0 * libm.log1p(-u[:, 1]))
    normals = np.empty(2 * pairs + (kept is not None))
    if kept is not None:
        normals[0] = kept
    normals[count - missing :: 2] = radius * libm.cos(angle)
    normals[count - missing + 1 :: 2] = radius * libm.sin(angle)
    generator.spare_normal = float(normals[-1]) if missing % 2 else None
    return normals[:count]


def normal(
    mean: np.ndarray | float, std: np.ndarray | float, generator: Generator | None = None
) -> np.ndarray:
    """New normal numbers with a mean and a deviation for each element, at least one an array.

    The arrays broadcast (ValueError if they do not); the result has the dtype of `mean`, or of
    `std` where `mean` is a number. Raises RuntimeError for a negative deviation.
    """
    if isinstance(std, np.ndarray):
        if std.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.size and not std.min() >= 0:
            raise RuntimeError("normal expects all elements of std >= 0.0")
    else:
        _check_std(std)
    like = mean if isinstance(mean, np.ndarray) else std
    assert isinstance(like, np.ndarray)
    out = np.empty(np.broadcast_shapes(np.shape(mean), np.shape(std)), like.dtype)
    if isinstance(std, np.ndarray):
        normal_(out, generator=generator)
        out[...] = out * _as_operand(std, out)
    else:
        normal_(out, std=std, generator=generator)
    out[...] = out + _as_operand(mean, out)
    return out


def _as_operand(value: Any, out: np.ndarray) -> Any:
    """`value` as PyTorch's promotion sees it: without dimensions, it does not widen `out`."""
    return out.dtype.type(value) if out.ndim and np.ndim(value) == 0 else value


def log_normal_(
    out: np.ndarray, mean: float = 1.0, std: float = 2.0, generator: Generator | None = None
) -> np.ndarray:
    """Fill with exponentials of normal numbers; `mean` and `std` are those of the logarithm.

    Raises RuntimeError unless std > 0, NotImplementedError for a dtype that is not floating-point.
    """
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if out.size == 0:
        return out
    require_floating("log_normal_cpu", out.dtype)
    generator = pick(generator)
    library = _library(out.dtype)

    def draw(count: int) -> np.ndarray:
        return library.exp(multiply_add(_normals(generator, count), std, mean))

    return fill(out, generator, draw)


def exponential_(
    out: np.ndarray, lambd: float = 1.0, generator: Generator | None = None
) -> np.ndarray:
    """Fill with exponential numbers of rate `lambd`.

    Raises RuntimeError unless lambd > 0 and for a dtype that is not floating-point.
    """
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if out.size == 0:
        return out
    _require_continuous("Exponential", out.dtype, scalar_name(out.dtype))
    generator = pick(generator)
    library = _library(out.dtype)
    return fill(
        out, generator, lambda count: -1.0 / lambd * library.log1p(-generator.uniform53(count))
    )


def cauchy_(
    out: np.ndarray, median: float = 0.0, sigma: float = 1.0, generator: Generator | None = None
) -> np.ndarray:
    """Fill with Cauchy numbers; `sigma` is half the distance between the quartiles.

    Raises RuntimeError unless sigma > 0 and for a dtype that is not floating-point.
    """
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _require_continuous("Cauchy", out.dtype, range_of(out.dtype).c_name)
    generator = pick(generator)
    library = _library(out.dtype)

    def draw(count: int) -> np.ndarray:
        tangent = library.tan(math.pi * (generator.uniform53(count) - 0.5))
        return multiply_add(tangent, sigma, median)

    return fill(out, generator, draw)


def _require_continuous(distribution: str, dtype: np.dtype, name: str) -> None:
    if not is_floating(dtype):
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. dtype must be "
            f"a floating point but you specified {name}"
        )


def _library(dtype: np.dtype) -> Any:
    """NumPy's functions, or for float64, where their last bit would show, the C library's."""
    return libm if dtype == np.float64 else np
