"""Samples of ops on complex numbers, and of those that are about their parts."""

from __future__ import annotations

from collections.abc import Iterator

from clew.dtypes import complex128, float64
from clew.storage import Geometry
from ops.samples import Sample, Values, also_complex, call, samples

Samples = Iterator[Sample]

also_complex(
    "acos", "acosh", "add", "addcdiv", "addcmul", "addmm", "angle", "asin", "asinh", "atan",
    "atanh", "convolution", "convolution_backward_input", "convolution_backward_weight", "cos",
    "cosh", "cumprod", "cumprod_backward", "cumsum", "div", "dot", "exp", "exp2", "expm1", "ldexp",
    "lerp",
    "log", "log10", "log1p", "log2", "logcumsumexp", "logsumexp", "matrix_product", "mean", "mul",
    "neg", "pow", "pow_scalar", "prod", "products_of_others", "reciprocal", "renorm", "rsqrt",
    "rsub", "sgn", "sigmoid", "sigmoid_backward", "sin", "sinc", "sinh", "sqrt", "square", "std",
    "sub", "sum", "tan", "tanh", "tanh_backward", "var", "vdot", "where",
)  # fmt: skip


@samples("view_as_real", "conj_physical")
def of_complex(v: Values) -> Samples:
    yield call("usual", v.complex(2, 3))
    yield call("0-d", v.complex())


@samples("view_as_complex")
def view_as_complex(v: Values) -> Samples:
    yield call("usual", v.real(3, 2), laid_out=True)
    yield call("0-d", v.real(2), laid_out=True)


@samples("angle", "imag")
def angle(v: Values) -> Samples:
    yield call("usual", v.complex(2, 3))
    yield call("0-d", v.complex())
    yield call("real", v.nonzero(2, 3))


@samples("complex")
def complex_(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(2, 3))
    yield call("broadcast", v.real(2, 3), v.real(3))
    yield call("0-d", v.real(), v.real())


@samples("polar")
def polar(v: Values) -> Samples:
    yield call("usual", v.positive(2, 3), v.real(2, 3))
    yield call("broadcast", v.positive(3), v.real(2, 3))


@samples("reread")
def reread(v: Values) -> Samples:
    pairs, numbers = Geometry((3, 2), (2, 1), 0), Geometry((2,), (1,), 1)
    yield call("parts", v.complex(3), view=Geometry((2,), (2,), 1), base=Geometry((3,), (1,), 0),
               kind=float64, laid_out=True)  # fmt: skip
    yield call("pairs", v.real(3, 2), view=numbers, base=pairs, kind=complex128, laid_out=True)


# -- Fourier transforms


@samples("fft_c2c")
def fft_c2c(v: Values) -> Samples:
    yield call("usual", v.complex(2, 5), dim=(1,), normalization=0, forward=True)
    yield call("inverse", v.complex(3, 4), dim=(0, 1), normalization=2, forward=False)
    yield call("scaled", v.complex(4, 2), dim=(0,), normalization=1, forward=True)
    yield call("no dimension", v.complex(3), dim=(), normalization=0, forward=True)


@samples("fft_r2c")
def fft_r2c(v: Values) -> Samples:
    yield call("usual", v.real(2, 5), dim=(1,), normalization=0, onesided=True)
    yield call("even", v.real(2, 4), dim=(1,), normalization=1, onesided=True)
    yield call("both sides", v.real(2, 5), dim=(0,), normalization=2, onesided=False)
    yield call("several", v.real(3, 4, 2), dim=(2, 0), normalization=0, onesided=True)


@samples("fft_c2r")
def fft_c2r(v: Values) -> Samples:
    yield call("usual", v.complex(2, 3), dim=(1,), normalization=2, last_dim_size=5)
    yield call("even", v.complex(2, 3), dim=(1,), normalization=0, last_dim_size=4)
    yield call("one", v.complex(2, 1), dim=(1,), normalization=1, last_dim_size=1)
    yield call("several", v.complex(3, 4), dim=(1, 0), normalization=2, last_dim_size=4)
