"""Functions of one number that twins call.  Layer 1; imports numba.

The C library's functions cannot become vector instructions.  Those here can: they have no
branches, only selections (of values that are computed beforehand: in ``a() if c else b()`` the
calls are branches).  A twin calls ``exp(x)`` and gets the one for the type of x, float32 or
float64; the two are made by one function from constants of their own, since with one constant of
another type everything would become float64.

NaN stays NaN, infinities and denormals are what they should be; the error is at most a few units
in the last place (``tests/kernels/test_scalar_functions.py`` says how many).

The coefficients were fitted with mpmath: minimax polynomials, weighted by the size of the result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from clew.kernels.compiled.kernel import inline

_INTEGER: dict[Any, Any] = {np.float32: np.int32, np.float64: np.int64}


@inline
def polynomial(x, coefficients):
    """The polynomial with these coefficients, a tuple of numbers of one type, highest first."""
    total = coefficients[0]
    for i in range(1, len(coefficients)):
        total = total * x + coefficients[i]
    return total


def _power_of_two(number: Any) -> Any:
    """2**n for an integer n with which it is neither infinite nor denormal: only an exponent."""
    integer = _INTEGER[number]
    digits = integer(np.finfo(number).nmant)
    bias = integer(np.finfo(number).maxexp - 1)

    @inline
    def power_of_two(n):
        return integer((n + bias) << digits).view(number)

    return power_of_two


def _exponentials(
    number: Any, ln2: tuple[float, float], edges: tuple[float, float], coefficients: Any
) -> tuple[Any, Any, Any]:
    """exp, expm1, tanh.

    With n the integer nearest to x / ln(2) and r the rest, exp(x) is ``2**n * exp(r)``.

    Args:
        number: the type.
        ln2: ln(2) in two parts, the first with so few digits that n times it is exact.
        edges: below the first exp is 0, above the second it is infinite.
        coefficients: of ``(exp(r) - 1 - r) / r**2`` for r in [-ln(2)/2, ln(2)/2].
    """
    integer = _INTEGER[number]
    power_of_two = _power_of_two(number)
    factors = tuple(map(number, coefficients))
    high, low, inverse = number(ln2[0]), number(ln2[1]), number(1 / math.log(2))
    lowest, highest = number(edges[0]), number(edges[1])
    zero, half, one, two, shift = number(0), number(0.5), number(1), number(2), integer(1)
    all_but_1 = number(-60)  # expm1 of it is -1
    tanh_is_1 = number(44)  # of half of it

    @inline
    def exp(x):
        # Of NaN, which has no integer, and where the result is 0, to which a processor rounds a
        # product a hundred times as slowly, that of 0 is computed.
        c = x if x > lowest else zero
        c = c if c < highest else highest
        n = np.floor(c * inverse + half)
        r = c - n * high - n * low
        p = polynomial(r, factors) * r * r + r + one
        # In two steps: 2**n alone would be infinite, or 0, where the product is neither.
        whole = integer(n)
        first = integer(whole >> shift)
        result = p * power_of_two(first) * power_of_two(integer(whole - first))
        result = result if x > lowest else zero
        return x if x != x else result

    @inline
    def expm1(x):
        # 2**n * p + (2**n - 1) with p = exp(r) - 1, and 2**n in two steps again.
        c = x if x > all_but_1 else all_but_1
        c = c if c < highest else highest
        n = np.floor(c * inverse + half)
        r = c - n * high - n * low
        p = polynomial(r, factors) * r * r + r
        whole = integer(n)
        first = integer(whole >> shift)
        rest = power_of_two(integer(whole - first))
        result = (rest * p + (rest - power_of_two(integer(-first)))) * power_of_two(first)
        return x if x != x else result

    @inline
    def tanh(x):
        a = two * abs(x)
        t = expm1(a if a < tanh_is_1 else tanh_is_1)
        result = math.copysign(t / (t + two), x)
        return x if x != x else result

    return exp, expm1, tanh


def _logarithms(number: Any, ln2: tuple[float, float], coefficients: Any) -> tuple[Any, Any]:
    """log, log1p.

    With x = 2**n * (1 + f), where 1 + f is in [2/3, 4/3), log(x) is ``n * ln(2) + log(1 + f)``.

    Args:
        number: the type.
        ln2: as above.
        coefficients: of ``(log(1 + f) - f + f**2 / 2) / f**3`` for f in [-1/3, 1/3].
    """
    integer = _INTEGER[number]
    info = np.finfo(number)
    power_of_two = _power_of_two(number)
    # In two polynomials of f**2, which do not wait for one another.
    odd, even = tuple(map(number, coefficients[::2])), tuple(map(number, coefficients[1::2]))
    high, low = number(ln2[0]), number(ln2[1])
    zero, half, one, infinity, nan = map(number, (0, 0.5, 1, math.inf, math.nan))
    digits = integer(info.nmant)
    two_thirds = number(2 / 3).view(integer)
    smallest = info.tiny  # without being denormal
    lift, lifted = number(2.0 ** (info.nmant + 1)), number(info.nmant + 1)

    @inline
    def exponent(x):
        return integer(integer(number(x).view(integer) - two_thirds) >> digits)

    @inline
    def fraction(x, n):
        return integer(number(x).view(integer) - integer(n << digits)).view(number) - one

    @inline
    def combined(f, n):
        square = f * f
        p = polynomial(square, odd) * f + polynomial(square, even)
        tail = p * square * f + (n * low - half * square)
        return n * high + (f + tail)

    @inline
    def log(x):
        y = x * lift if x < smallest else x
        n = exponent(y)
        result = combined(fraction(y, n), number(n) - (lifted if x < smallest else zero))
        result = result if x < infinity else x  # infinity and NaN
        result = result if x != zero else -infinity
        return nan if x < zero else result

    @inline
    def log1p(x):
        u = one + x
        n = exponent(u)
        scale = power_of_two(integer(-n))
        # Up to 1 the digits that 1 + x has lost are kept; beyond they do not matter.
        of_sum, of_both = fraction(u, n), x * scale + (scale - one)
        result = combined(of_sum if x > one else of_both, number(n))
        result = result if x < infinity else x
        result = result if u != zero else -infinity
        return nan if u < zero else result

    return log, log1p


def _error_function(number: Any, edge: float, above: Any, below: Any) -> Any:
    """erf: x times a quotient of polynomials in x**2, up to the edge; beyond it is 1."""
    numerator, denominator = tuple(map(number, above)), tuple(map(number, below))
    one, last = number(1), number(edge)

    @inline
    def erf(x):
        a = abs(x)
        c = a if a < last else last
        square = c * c
        p = c * polynomial(square, numerator) / polynomial(square, denominator)
        p = p if p < one else one
        result = math.copysign(p if a < last else one, x)
        return x if x != x else result

    return erf


def _functions(number: Any, ln2: Any, edges: Any, exp_: Any, log_: Any, erf_: Any) -> Any:
    exp, expm1, tanh = _exponentials(number, ln2, edges, exp_)
    log, log1p = _logarithms(number, ln2, log_)
    return {"exp": exp, "expm1": expm1, "tanh": tanh, "log": log, "log1p": log1p,
            "erf": _error_function(number, *erf_)}  # fmt: skip


_OF = {
    types.float32: _functions(
        np.float32,
        (0.693359375, -2.12194440e-4),
        (-104, 89),
        (0.00019787587, 0.00139457249, 0.00833350602, 0.0416662807, 0.166666658, 0.500000007),
        (
            -0.128818557, 0.139827875, -0.121863261, 0.140060921, -0.166803538, 0.200104037,
            -0.249998003, 0.333332157,
        ),
        (
            4.0,
            (
                1.98612381e-06, 0.000284473324, 0.0038820863, 0.0530977235, 0.193524828,
                1.12837914,
            ),
            (3.74084276e-05, 0.00118514395, 0.0152048111, 0.11534041, 0.504839483, 1.0),
        ),
    ),
    types.float64: _functions(
        np.float64,
        (0.693145751953125, 1.42860682030941723212e-6),
        (-746, 710),
        (
            2.0826372814307193e-09, 2.5113223219977917e-08, 2.7557589931864324e-07,
            2.7557231488778089e-06, 2.4801586906767871e-05, 0.00019841269899724656,
            0.001388888888913267, 0.0083333333333156998, 0.04166666666666604,
            0.16666666666666685, 0.5,
        ),
        (
            -0.083284088844419957, 0.084969128613188033, -0.038425843242561035,
            0.041770459590207851, -0.057461462261952229, 0.060513575598392502,
            -0.062307839429009422, 0.066507125057021707, -0.07144099986089382,
            0.076932616076426846, -0.083332814107767827, 0.090908728919950027,
            -0.10000001368001395, 0.11111111955972737, -0.12499999978616834,
            0.14285714274447839, -0.16666666666841234, 0.2000000000007382,
            -0.24999999999999456, 0.33333333333333171,
        ),
        (
            6.0,
            (
                1.5079673758626401e-17, 2.1720750352074963e-14, 3.3262494846704591e-12,
                1.7441313398414505e-10, 6.8377523476127661e-09, 1.7221047236837333e-07,
                3.9423518948065261e-06, 5.7722253806509596e-05, 0.00086188092608997357,
                0.0069584444791765208, 0.066344919402223257, 0.2214361547386032,
                1.1283791670955126,
            ),
            (
                8.5589419427391933e-16, 3.2704772963788719e-13, 2.5705845925287203e-11,
                1.1390398062556958e-09, 3.5647302623120124e-08, 8.4624037141189768e-07,
                1.5686057843594167e-05, 0.00022843541311666022, 0.0025862839342392298,
                0.022126013934548324, 0.13532199258509112, 0.52957601593140335, 1.0,
            ),
        ),
    ),
}  # fmt: skip


def _for_each_type(stub: Any) -> Any:
    """Decorate what twins call, which stands for the function of its argument's type."""
    name = stub.__name__

    def choose(x):
        chosen = _OF[x][name]
        return lambda x: chosen(x)

    overload(stub)(choose)
    return stub


@_for_each_type
def exp(x: Any) -> Any:
    """The exponential of x."""


@_for_each_type
def expm1(x: Any) -> Any:
    """exp(x) - 1."""


@_for_each_type
def tanh(x: Any) -> Any:
    """The hyperbolic tangent of x."""


@_for_each_type
def log(x: Any) -> Any:
    """The natural logarithm of x."""


@_for_each_type
def log1p(x: Any) -> Any:
    """log(1 + x)."""


@_for_each_type
def erf(x: Any) -> Any:
    """The error function of x."""


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""


@overload(sigmoid)
def _sigmoid(x):
    one = np.float32(1) if x == types.float32 else np.float64(1)
    e = _OF[x]["exp"]
    return lambda x: one / (one + e(-x))
