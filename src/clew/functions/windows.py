"""Windows for `stft`: ``hann_window`` and its kin, leaves of numbers that are known at once."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from clew import dtypes
from clew.functions.create import make
from clew.kernels import bessel
from clew.publish import composite
from clew.tensor import Tensor


def _window(
    name: str, window_length: int, periodic: bool, shape: Any, options: dict[str, Any]
) -> Tensor:
    """A window of the values of `shape`, a function of the places and of the last of them.

    A periodic window is a symmetric one with one place more, without its last value.

    Raises:
        RuntimeError: the length is negative, or the dtype not floating.
    """
    kind = options.pop("dtype", None) or dtypes.get_default_dtype()
    device, leaf = options.pop("device", None), options.pop("requires_grad", False)
    for ignored in ("layout", "pin_memory"):
        options.pop(ignored, None)
    for unknown in options:
        raise TypeError(f"{name}() got an unexpected keyword argument '{unknown}'")
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: {kind!r}")
    if window_length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={window_length}"
        )
    if window_length < 2:
        array = np.ones(window_length)
    else:
        last = window_length if periodic else window_length - 1
        array = shape(np.arange(window_length), last)
    made: Tensor = make(array.astype(kind.numpy), None, device, leaf)
    return made


@composite(method=False)
def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Half a cosine raised above zero: ``0.5 - 0.5 cos(2 pi k / n)``.

    Args:
        window_length: how many values.
        periodic: for spectra; False gives a symmetric window.
        options: ``dtype=``, ``device=``, ``requires_grad=``.

    Raises:
        RuntimeError: the length is negative, or the dtype not floating.
    """
    return _cosine("hann_window", window_length, periodic, (0.5, 0.5), options)


@composite(method=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46,
    **options: Any,
) -> Tensor:  # fmt: skip
    """``alpha - beta cos(2 pi k / n)``; arguments as of `hann_window`."""
    return _cosine("hamming_window", window_length, periodic, (alpha, beta), options)


@composite(method=False)
def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """``0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)``; arguments as of `hann_window`."""
    return _cosine("blackman_window", window_length, periodic, (0.42, 0.5, 0.08), options)


def _cosine(
    name: str, length: int, periodic: bool, weights: tuple[float, ...], options: dict[str, Any]
) -> Tensor:
    """The sum of cosines with these weights, of alternating sign."""

    def shape(k: Any, last: int) -> Any:
        terms = [(-1) ** i * w * np.cos(2 * pi * i / last * k) for i, w in enumerate(weights)]
        return np.sum(terms, axis=0)

    return _window(name, length, periodic, shape, options)


@composite(method=False)
def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A triangle, ``1 - |2 k / n - 1|``; arguments as of `hann_window`."""

    def shape(k: Any, last: int) -> Any:
        return 1 - np.abs(2 / last * k - 1)

    return _window("bartlett_window", window_length, periodic, shape, options)


@composite(method=False)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any
) -> Tensor:
    """``I0(beta sqrt(1 - (2 k / n - 1)**2)) / I0(beta)``; arguments as of `hann_window`."""

    def shape(k: Any, last: int) -> Any:
        inside = np.sqrt(np.maximum(1 - (2 / last * k - 1) ** 2, 0))
        return bessel.i0(beta * inside) / bessel.i0(np.array(beta, np.float64))

    return _window("kaiser_window", window_length, periodic, shape, options)
