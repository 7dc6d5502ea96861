"""``clew.signal.windows``: symmetric and periodic windows, composed of tensor operations.

Formulas: F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier
transform", 1978; A. H. Nuttall, "Some windows with very good sidelobe behavior", 1981.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import pi, sqrt
from typing import Any

from clew import dtypes
from clew.functions.create import arange, empty, linspace, ones, tensor
from clew.tensor import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


class _Places:
    """Where a window of `M` values is computed, and what is asked of its tensor.

    Attributes:
        last: the place of the last value of a symmetric window; of a periodic one the place after.
    """

    def __init__(
        self, name: str, M: int, sym: bool, dtype: Any, layout: Any, device: Any,
        requires_grad: bool,
    ) -> None:  # fmt: skip
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not dtypes.strided and layout is not None:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        self.dtype = dtype or dtypes.get_default_dtype()
        if self.dtype not in (dtypes.float32, dtypes.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {self.dtype}")
        self.count = M
        self.last = M - 1 if sym else M
        self.sym = sym
        self.options = {"dtype": self.dtype, "device": device, "requires_grad": requires_grad}

    def trivial(self) -> Tensor | None:
        """The window, if it has less than two values."""
        if self.count == 0:
            return empty((0,), **self.options)
        return ones((1,), **self.options) if self.count == 1 else None

    def spaced(self, start: float, step: float) -> Tensor:
        """Numbers from `start` on, `step` apart, one for each value."""
        made: Tensor = linspace(start, start + (self.count - 1) * step, self.count, **self.options)
        return made


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
    dtype: Any = None, layout: Any = dtypes.strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``exp(-|k - center| / tau)``.

    Args:
        M: how many values; 0 gives none, 1 gives 1.
        center: the place of the highest value; the middle by default, and of symmetric windows.
        tau: how slowly it falls.
        sym: False gives a periodic window, for spectra.
        dtype: float32 or float64; the default type.
        layout: strided.
        device: the CPU.
        requires_grad: record operations on it.

    Raises:
        ValueError: an argument is none of these.
    """
    places = _Places("exponential", M, sym, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if (small := places.trivial()) is not None:
        return small
    middle = places.last / 2 if center is None else center
    window: Tensor = (-places.spaced(-middle / tau, 1 / tau).abs()).exp()
    return window


def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = dtypes.strided,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Half a wave, ``sin(pi (k + 1/2) / n)``; arguments as of `exponential`."""
    places = _Places("cosine", M, sym, dtype, layout, device, requires_grad)
    if (small := places.trivial()) is not None:
        return small
    step = pi / (places.last + 1)
    window: Tensor = places.spaced(0.5 * step, step).sin()
    return window


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None,
    layout: Any = dtypes.strided, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``exp(-(k - middle)**2 / (2 std**2))``; other arguments as of `exponential`."""
    places = _Places("gaussian", M, sym, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if (small := places.trivial()) is not None:
        return small
    step = 1 / (std * sqrt(2))
    window: Tensor = (-places.spaced(-places.last / 2 * step, step).pow(2)).exp()
    return window


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None,
    layout: Any = dtypes.strided, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``I0(beta sqrt(1 - (2 k / n - 1)**2)) / I0(beta)``; arguments as of `exponential`."""
    places = _Places("kaiser", M, sym, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if (small := places.trivial()) is not None:
        return small
    step = 2 * beta / places.last
    end = min(beta, -beta + (M - 1) * step)  # rounding must not lead beyond beta
    k: Tensor = linspace(-beta, end, M, **places.options)
    top: Tensor = tensor(beta, dtype=places.dtype, device=device)
    window: Tensor = (top * top - k.pow(2)).sqrt().i0() / top.i0()
    return window


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None,
    layout: Any = dtypes.strided, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``sum of (-1)**i a[i] cos(2 pi i k / n)``; other arguments as of `exponential`."""
    places = _Places("general_cosine", M, sym, dtype, layout, device, requires_grad)
    if (small := places.trivial()) is not None:
        return small
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = [(-1) ** i * w for i, w in enumerate(a)]
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    k = places.spaced(0, 2 * pi / places.last)
    factors: Tensor = tensor(weights, **places.options)
    order: Tensor = arange(len(weights), **places.options)
    window: Tensor = (factors.unsqueeze(-1) * (order.unsqueeze(-1) * k).cos()).sum(0)
    return window


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """``alpha - (1 - alpha) cos(2 pi k / n)``; other arguments as of `exponential`."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """`general_hamming` with 0.54; arguments as of `exponential`."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """`general_hamming` with 0.5; arguments as of `exponential`."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A `general_cosine` of three terms; arguments as of `exponential`."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A `general_cosine` of four terms; arguments as of `exponential`."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = dtypes.strided,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A triangle, ``1 - |2 k / n - 1|``; arguments as of `exponential`."""
    places = _Places("bartlett", M, sym, dtype, layout, device, requires_grad)
    if (small := places.trivial()) is not None:
        return small
    return 1 - places.spaced(-1, 2 / places.last).abs()
