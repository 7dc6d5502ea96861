"""Choosing among items: random permutations and draws from weighted categories.

`generator=None` means the default generator. Layer 1: NumPy and this package.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ..dtypes import scalar_name
from .continuous import exponential_
from .generator import Generator
from .target import CHUNK, dense_like, is_common, is_floating, not_implemented, pick, range_of

_MANY = (2**32 - 1) // 20  # from here on, a 32-bit word modulo the size is too uneven


def randperm(n: int, dtype: DTypeLike = np.int64, generator: Generator | None = None) -> np.ndarray:
    """The integers 0 to n - 1 in random order, a new array.

    Raises RuntimeError for a negative `n` or one that `dtype` cannot hold, NotImplementedError for
    bool, complex and wide unsigned dtypes.
    """
    dtype = np.dtype(dtype)
    _check_permutation(n, dtype)
    generator = pick(generator)
    with generator.lock:
        if n >= _MANY:
            return _shuffle_inside_out(n, generator).astype(dtype, copy=False)
        left = np.arange(n, 1, -1, dtype=np.uint64)
        swaps = np.arange(n)
        swaps[:-1] += (generator.words32(max(n - 1, 0)) % left).view(np.int64)
    return _apply_swaps(swaps).astype(dtype, copy=False)


def _check_permutation(n: int, dtype: np.dtype) -> None:
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype == np.bool_ or not is_common(dtype):
        raise not_implemented("randperm", dtype)
    if dtype.kind in "iu" and n - 1 > np.iinfo(dtype).max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    digits = range_of(dtype).digits
    if digits and dtype.name != "bfloat16" and n > 2**digits + 1:  # bfloat16 is not checked
        limit = "2049" if digits == 11 else f"2^{digits}+1"
        raise RuntimeError(f"n cannot be greater than {limit} for {scalar_name(dtype)} type.")


def _apply_swaps(swaps: np.ndarray) -> np.ndarray:
    """The result of exchanging item i with item `swaps[i]` >= i, for i = 0, 1, ..., n - 1.

    Without a loop: step i moves the item at place `swaps[i]` to its final place i, and the item
    then at place i to `swaps[i]`. The item at a place is the one that the last earlier step with
    that target put there, or else the place's own; so each question leads back to an earlier one,
    and following all the leads at once, in doubling strides, answers them together.
    """
    steps = np.arange(swaps.size)
    # Where does the item come from that stands at place i before step i?
    origin = steps.copy()
    moving = swaps != steps
    origin[swaps[moving]] = steps[moving]  # the last step with this target wins
    while True:
        further = origin[origin]
        if np.array_equal(further, origin):
            break
        origin = further
    # The step before i with the same target: its neighbour when sorted by target, then by time.
    in_order = np.sort(swaps << 32 | steps)
    targets, times = in_order >> 32, in_order & 0xFFFFFFFF
    again = targets[1:] == targets[:-1]
    result = swaps.copy()
    result[times[1:][again]] = origin[times[:-1][again]]
    return result


def _shuffle_inside_out(n: int, generator: Generator) -> np.ndarray:
    """PyTorch's permutation of very many items; each takes a 64-bit word."""
    items = np.arange(n)
    for start in range(0, n, CHUNK):
        places = np.arange(start, min(start + CHUNK, n))
        swaps = (generator.words64(places.size) % (places + 1).astype(np.uint64)).view(np.int64)
        for place, swap in zip(places.tolist(), swaps.tolist()):
            items[place] = items[swap]
            items[swap] = place
    return items


def multinomial(
    weights: np.ndarray,
    num_samples: int,
    replacement: bool = False,
    generator: Generator | None = None,
) -> np.ndarray:
    """Draw category indices with probabilities proportional to `weights`.

    `weights` is (categories,) or (rows, categories), floating-point; the result (num_samples,) or
    (rows, num_samples), int64. Without replacement, the indices come in the order of the draws;
    where half precision makes two keys equal, the lower index comes first.

    Raises RuntimeError for weights of another kind, negative, not finite or all zero in a row, and
    for a number of samples below 1 or, without replacement, above that of the categories.
    """
    _check_multinomial(weights, num_samples, replacement)
    rows = weights.shape[:-1]
    if 0 in rows:
        return np.empty((*rows, num_samples), np.int64)
    _check_weights(weights)
    if replacement and num_samples > 1:
        table = weights.reshape(-1, weights.shape[-1])
        return _with_replacement(table, num_samples, pick(generator)).reshape(*rows, num_samples)
    # With q exponential, the least q / p picks a category with probability proportional to p;
    # the following ones, in order, are draws from what is left.
    keys = exponential_(dense_like(weights), generator=generator)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        keys = weights / keys
    if num_samples == 1:
        return keys.argmax(-1, keepdims=True)
    return np.argsort(-keys, axis=-1, kind="stable")[..., :num_samples]


def _with_replacement(table: np.ndarray, num_samples: int, generator: Generator) -> np.ndarray:
    wide = table if table.dtype == np.float64 else table.astype(np.float32, copy=False)
    cumulative = np.cumsum(wide, axis=1)
    cumulative /= cumulative[:, -1:].copy()
    cumulative[:, -1] = 1
    with generator.lock:
        u = generator.uniform53(table.shape[0] * num_samples).reshape(-1, num_samples)
    found = [np.searchsorted(sums, sought) for sums, sought in zip(cumulative, u)]
    return np.array(found, np.int64)


def _check_multinomial(weights: np.ndarray, num_samples: int, replacement: bool) -> None:
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not is_floating(weights.dtype):
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: "
            f"{scalar_name(weights.dtype)}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    categories = weights.shape[-1]
    if not replacement and num_samples > categories:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if categories > 2**24:
        raise RuntimeError("number of categories cannot exceed 2^24")


def _check_weights(weights: np.ndarray) -> None:
    if weights.size == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
            "identity: multinomial was given no categories."
        )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not weights.any(-1).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
