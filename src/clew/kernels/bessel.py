"""Bessel and Airy functions in double precision. Imports NumPy and sibling kernels.

Each function is split where its character changes: a Chebyshev series in the middle, and outside
a series for the slowly varying factor that is left when what grows, decays or oscillates is taken
out. Definitions and expansions: NIST Digital Library of Mathematical Functions, chapters 9 and 10.
"""

from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from . import bessel_series as series
from .special import in_double

_EDGE = 8.0
"""Where the functions of the first kind, and Y, pass from the inner to the outer series."""

_EDGE_K = 2.0
"""The same for K."""


def chebyshev(coefficients: tuple[float, ...], t: NDArray) -> NDArray:
    """The Chebyshev series with these coefficients at `t` in [-1, 1] (Clenshaw's recurrence)."""
    above, last = np.zeros_like(t), np.zeros_like(t)
    for c in coefficients[:0:-1]:
        above, last = 2 * t * above - last + c, above
    return t * above - last + coefficients[0]


# -- modified functions of the first kind


def _scaled_i(x: NDArray, near: tuple[float, ...], far: tuple[float, ...], order: int) -> NDArray:
    """exp(-x) times I of this order, where `x` is not negative."""
    inner, outer = np.minimum(x, _EDGE), np.maximum(x, _EDGE)
    within = chebyshev(near, inner / 4 - 1) * (inner if order else 1)
    beyond = chebyshev(far, 2 * _EDGE / outer - 1) / np.sqrt(outer)
    return np.where(x <= _EDGE, within, beyond)


def _i0e(x: NDArray) -> NDArray:
    return _scaled_i(np.abs(x), series._I0_NEAR, series._I0_FAR, 0)


def _i1e(x: NDArray) -> NDArray:
    return np.copysign(_scaled_i(np.abs(x), series._I1_NEAR, series._I1_FAR, 1), x)


@in_double
def i0(x: NDArray) -> NDArray:
    """The modified Bessel function of the first kind of order 0; nan at infinity."""
    return np.exp(np.abs(x)) * _i0e(x)


@in_double
def i0e(x: NDArray) -> NDArray:
    """exp(-\\|x\\|) times the modified Bessel function of the first kind of order 0."""
    return _i0e(x)


@in_double
def i1(x: NDArray) -> NDArray:
    """The modified Bessel function of the first kind of order 1; nan at infinity."""
    return np.exp(np.abs(x)) * _i1e(x)


@in_double
def i1e(x: NDArray) -> NDArray:
    """exp(-\\|x\\|) times the modified Bessel function of the first kind of order 1."""
    return _i1e(x)


# -- modified functions of the second kind


def _k(x: NDArray, order: int, *, scaled: bool) -> NDArray:
    """K of order 0 or 1, times exp(x) if `scaled`: infinite at 0, nan for negative numbers."""
    near, far = ((series._K0_NEAR, series._K0_FAR), (series._K1_NEAR, series._K1_FAR))[order]
    inner, outer = np.clip(x, 0, _EDGE_K), np.maximum(x, _EDGE_K)
    regular = chebyshev(near, inner * inner / 2 - 1)
    if order:
        within = regular / inner + np.log(inner / 2) * (np.exp(inner) * _i1e(inner))
        within = np.where(inner == 0, np.inf, within)
    else:
        within = regular - np.log(inner / 2) * (np.exp(inner) * _i0e(inner))
    beyond = chebyshev(far, 2 * _EDGE_K / outer - 1) / np.sqrt(outer)
    if scaled:
        within = within * np.exp(inner)
    else:
        beyond = beyond * np.exp(-outer)
    return np.where(x < 0, np.nan, np.where(x <= _EDGE_K, within, beyond))


@in_double
def k0(x: NDArray) -> NDArray:
    """The modified Bessel function of the second kind of order 0; nan for negative numbers."""
    return _k(x, 0, scaled=False)


@in_double
def k1(x: NDArray) -> NDArray:
    """The modified Bessel function of the second kind of order 1; nan for negative numbers."""
    return _k(x, 1, scaled=False)


@in_double
def k0e(x: NDArray) -> NDArray:
    """exp(x) times the modified Bessel function of the second kind of order 0."""
    return _k(x, 0, scaled=True)


@in_double
def k1e(x: NDArray) -> NDArray:
    """exp(x) times the modified Bessel function of the second kind of order 1."""
    return _k(x, 1, scaled=True)


# -- functions of the first and second kind


def _wave(x: NDArray, order: int) -> tuple[NDArray, NDArray]:
    """J and Y of order 0 or 1 where `x` is at least the edge: an amplitude times a phase.

    The phase is x - pi/4 (or 3 pi/4), whose sine and cosine are taken apart: so no digit of a
    large `x` is lost.
    """
    p_series, q_series = ((series._P0, series._Q0), (series._P1, series._Q1))[order]
    t = 2 * (_EDGE / x) ** 2 - 1
    p, q = chebyshev(p_series, t), chebyshev(q_series, t) / x
    sin, cos = np.sin(x), np.cos(x)
    cosine, sine = (sin - cos, -sin - cos) if order else (cos + sin, sin - cos)
    scale = 1 / np.sqrt(pi * x)
    return scale * (p * cosine - q * sine), scale * (p * sine + q * cosine)


def _j_within(x: NDArray, order: int) -> NDArray:
    t = 2 * (x / _EDGE) ** 2 - 1
    return x * chebyshev(series._J1_NEAR, t) if order else chebyshev(series._J0_NEAR, t)


def _j(x: NDArray, order: int) -> NDArray:
    size = np.abs(x)
    within = _j_within(np.minimum(size, _EDGE), order)
    found = np.where(size <= _EDGE, within, _wave(np.maximum(size, _EDGE), order)[0])
    return np.where(x < 0, -found, found) if order else found


def _y(x: NDArray, order: int) -> NDArray:
    inner = np.clip(x, 0, _EDGE)
    t = 2 * (inner / _EDGE) ** 2 - 1
    logarithm = np.log(inner) * _j_within(inner, order)
    if order:
        within = inner * chebyshev(series._Y1_NEAR, t) + 2 / pi * (logarithm - 1 / inner)
    else:
        within = chebyshev(series._Y0_NEAR, t) + 2 / pi * logarithm
    found = np.where(x <= _EDGE, within, _wave(np.maximum(x, _EDGE), order)[1])
    return np.where(x < 0, np.nan, np.where(x == 0, -np.inf, found))


@in_double
def j0(x: NDArray) -> NDArray:
    """The Bessel function of the first kind of order 0."""
    return _j(x, 0)


@in_double
def j1(x: NDArray) -> NDArray:
    """The Bessel function of the first kind of order 1."""
    return np.where(x == 0, x, _j(x, 1))


@in_double
def y0(x: NDArray) -> NDArray:
    """The Bessel function of the second kind of order 0; nan for negative numbers."""
    return _y(x, 0)


@in_double
def y1(x: NDArray) -> NDArray:
    """The Bessel function of the second kind of order 1; nan for negative numbers."""
    return _y(x, 1)


@in_double
def spherical_j0(x: NDArray) -> NDArray:
    """The spherical Bessel function of the first kind of order 0, sin(x) / x."""
    return np.where(x == 0, 1, np.where(np.isinf(x), 0, np.sin(x) / x))


# -- Airy's function

_LEFT, _RIGHT = -5.0, 3.0
"""Between these Airy's function is one series; it oscillates to the left, decays to the right."""


@in_double
def airy_ai(x: NDArray) -> NDArray:
    """Airy's function Ai; nan at both infinities."""
    middle = chebyshev(series._AIRY_NEAR, (np.clip(x, _LEFT, _RIGHT) + 1) / 4)

    right = np.maximum(x, _RIGHT)
    t = 2 * (_RIGHT / right) ** 1.5 - 1
    decay = np.exp(-2 / 3 * right**1.5) / (2 * sqrt(pi) * right**0.25)
    decaying = decay * chebyshev(series._AIRY_RIGHT, t)

    left = np.maximum(-x, -_LEFT)
    t = 2 * (-_LEFT / left) ** 3 - 1
    angle = 2 / 3 * left**1.5
    sin, cos = np.sin(angle), np.cos(angle)
    p, q = chebyshev(series._AIRY_P, t), chebyshev(series._AIRY_Q, t) / angle
    waving = (p * (cos + sin) + q * (sin - cos)) / (sqrt(2 * pi) * left**0.25)

    found = np.where(x > _RIGHT, decaying, np.where(x < _LEFT, waving, middle))
    return np.where(np.isinf(x), np.nan, found)
