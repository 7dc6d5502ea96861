"""Gamma, Dirichlet and binomial numbers.

`generator=None` means the default generator. Layer 1: NumPy and this package.

Every number takes as many draws as it needs, so they come one after another, each element with
`u53` uniforms and single normal numbers, in the order of `rng.poisson`.
"""

from __future__ import annotations

import math

import numpy as np

from .generator import Generator
from .target import is_floating, not_implemented, pick

_ONE_THIRD = float(np.float32(1) / np.float32(3))  # a constant of PyTorch's, in float32
_SQUEEZE = float(np.float32(0.0331))


def standard_gamma(shapes: np.ndarray, generator: Generator | None = None) -> np.ndarray:
    """A new contiguous array of gamma numbers of scale 1, one for each shape, in their dtype.

    Raises NotImplementedError for a dtype other than float32 and float64.
    """
    _require_wide("gamma_cpu", shapes.dtype)
    generator = pick(generator)
    kind = shapes.dtype.type
    smallest = float(np.finfo(kind).smallest_normal)
    with generator.lock:
        numbers = [_standard_gamma(shape, kind, generator) for shape in shapes.ravel()]
    return np.maximum(np.array(numbers, kind), kind(smallest)).reshape(shapes.shape)


def dirichlet(concentrations: np.ndarray, generator: Generator | None = None) -> np.ndarray:
    """A new contiguous array of vectors on the simplex, along the last axis.

    Raises NotImplementedError for a dtype other than float32 and float64.
    """
    _require_wide("dirichlet", concentrations.dtype)
    gammas = standard_gamma(concentrations.astype(np.float64), generator)
    kind = concentrations.dtype.type
    fractions = (gammas / gammas.sum(-1, keepdims=True)).astype(kind)
    return fractions.clip(np.finfo(kind).smallest_normal, np.nextafter(kind(1), kind(0)))


def binomial(
    counts: np.ndarray, probabilities: np.ndarray, generator: Generator | None = None
) -> np.ndarray:
    """A new contiguous array of numbers of successes in `counts` trials, in the counts' dtype.

    Raises NotImplementedError for a dtype other than float32 and float64.
    """
    _require_wide("binomial_cpu", counts.dtype)
    generator = pick(generator)
    counts, probabilities = np.broadcast_arrays(counts, probabilities)
    pairs = zip(
        counts.astype(np.float64).ravel().tolist(),
        probabilities.astype(np.float64).ravel().tolist(),
    )
    with generator.lock:
        numbers = [_binomial(count, p, generator) for count, p in pairs]
    return np.array(numbers, counts.dtype).reshape(counts.shape)


def _require_wide(kernel: str, dtype: np.dtype) -> None:
    if dtype.itemsize < 4 or not is_floating(dtype):
        raise not_implemented(kernel, dtype)


def _normal(generator: Generator) -> float:
    """One normal number, in float64: the other of the last pair, or the first of a new one."""
    if generator.spare_normal is not None:
        spare, generator.spare_normal = generator.spare_normal, None
        return spare
    angle = 2.0 * math.pi * generator.next_uniform53()
    radius = math.sqrt(-2.0 * math.log1p(-generator.next_uniform53()))
    generator.spare_normal = radius * math.sin(angle)
    return radius * math.cos(angle)


def _standard_gamma(shape, kind, generator: Generator) -> float:
    """One gamma number; `shape` is a NumPy scalar, in whose precision its sums are rounded.

    Source: Marsaglia and Tsang, A simple method for generating gamma variables, ACM Transactions
    on Mathematical Software 26 (2000); a shape below 1 is raised by 1 as they propose.
    """
    scale = 1.0
    if shape < 1:
        if shape == 0:
            return 0.0
        power = float(kind(1) / shape)
        scale = (1 - generator.next_uniform53()) ** power
        shape = shape + kind(1)
    d = float(shape - kind(_ONE_THIRD))
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = _normal(generator)
        y = 1.0 + c * x
        if y <= 0:
            continue
        v = y * y * y
        u = 1 - generator.next_uniform53()
        square = x * x
        if u < 1.0 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def _binomial(count: float, p: float, generator: Generator) -> float:
    """The number of successes; of failures, where those are the rarer."""
    if count <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return count
    if p <= 0.5:
        return _rarer_successes(count, p, generator)
    return count - _rarer_successes(count, 1.0 - p, generator) if p > 0.5 else math.nan


def _rarer_successes(count: float, p: float, generator: Generator) -> float:
    if count * p >= 10:
        return _by_rejection(count, p, generator)
    # Few successes: add up the waiting times for them.
    log_failure = math.log1p(-p)
    successes = waited = 0.0
    while True:
        u = generator.next_uniform53()
        waited += math.ceil(math.log(u) / log_failure) if u > 0 else math.inf
        if waited > count:
            return successes
        successes += 1


def _by_rejection(count: float, p: float, generator: Generator) -> float:
    """Source: W. Hörmann, The generation of binomial random variates, Journal of Statistical
    Computation and Simulation 46 (1993), algorithm BTRS."""
    deviation = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = count * p + 0.5
    squeeze = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((count + 1) * p)
    while True:
        u = generator.next_uniform53() - 0.5
        v = generator.next_uniform53()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c)
        if k < 0 or k > count:
            continue
        if us >= 0.07 and v <= squeeze:
            return float(k)
        hat = math.log(v * alpha / (a / (us * us) + b)) if v > 0 else -math.inf
        bound = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * math.log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
            + _stirling_error(mode)
            + _stirling_error(count - mode)
            - _stirling_error(k)
            - _stirling_error(count - k)
        )
        if hat <= bound:
            return float(k)


_STIRLING_ERRORS = tuple(
    math.lgamma(k + 1) - (k + 0.5) * math.log(k + 1) + (k + 1) - 0.5 * math.log(2 * math.pi)
    for k in range(10)
)


def _stirling_error(k: float) -> float:
    """What Stirling's formula for ``log(k!)``, written with ``k + 1``, leaves out."""
    if k <= 9:
        return _STIRLING_ERRORS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)
