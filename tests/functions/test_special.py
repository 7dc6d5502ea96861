"""``clew.special``: edges, types and arguments as torch's, and identities that both must fulfil."""

import numpy as np
import pytest

import clew
import clew.special
from clew.kernels import bessel
from clew.kernels.orthogonal import FAMILIES
from functions.expressions import assert_as_torch

ONE = [
    "i0", "i0e", "i1", "i1e", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0",
    "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "airy_ai",
    "spherical_bessel_j0",
]  # fmt: skip
# torch's own are off by up to 1e-6 between 3 and 11
WAVES = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"]
EDGES = "0.0, -0.0, -1.0, inf, -inf, nan, 1e-300, 1e30, 100.0, -100.0, 1.5, 2.5, 12.0, 30.0"

CALLS = [
    *(f"t.special.{name}(t.tensor([{EDGES}], dtype=t.float64))" for name in ONE + WAVES),
    *(f"t.special.{name}({x})" for name in (*ONE, *WAVES, "ndtri")
      for x in ("t.arange(3)", "c(2)", "t.ones(2, 3).mT")),
    *(f"t.special.{name}(x(3).{kind}())" for name in (*ONE[4:], *WAVES, "ndtri")
      for kind in ("half", "bfloat16")),
    *(f"t.special.{name}(3.0)" for name in (*ONE[1:], *WAVES, "ndtri")),
    *(f"t.special.{name}(t.tensor([-2.0, -1.0, 0.3, 1.0, 1.5]).double(), {n})"
      for name in FAMILIES for n in ("-1", "2.9", "t.arange(5)", "t.tensor(9)", "nan")),
    *(f"t.special.{name}(0.3, n(3))" for name in FAMILIES),
    "t.special.hermite_polynomial_h(x(2).detach(), 600)",
    "t.special.legendre_polynomial_p(x=x(2).detach(), n=2)",
    "t.special.legendre_polynomial_p(t.ones(2).half(), 2)",
    "t.special.ndtri(t.tensor([0.0, 1.0, -0.1, 1.1, 1e-300, 0.5, nan, 0.99], dtype=t.float64))",
    "t.special.zeta(t.tensor([2.0, 1.0, 0.5, nan])[:, None], t.tensor([0.0, -1.0, -1.5, 2.5]))",
    "t.special.zeta(2, x(3).abs())",
    "t.special.zeta(t.ones(2) * 3, 2.0)",
    "t.special.zeta(2.0, 3.0)",
    "t.special.zeta(t.ones(2).half(), 2)",
    "t.special.i0e(t.ones(2), out=t.ones(0))",
    "t.special.entr(input=x(3).abs())",
    "t.special.i1(t.zeros(2, requires_grad=True))",
    "t.special.i1e(t.zeros(2, requires_grad=True))",
    "t.i0(x(3))",
    "x(3).i0()",
    "t.ones(3).i0_()",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_as_torch(call):
    assert_as_torch(call)


def test_wronskians():
    """Of the functions of the first and second kind (DLMF 10.5.2 and 10.28.2)."""
    x = np.concatenate([np.geomspace(1e-3, 8, 200), np.linspace(2, 300, 500)])
    waves = bessel.j1(x) * bessel.y0(x) - bessel.j0(x) * bessel.y1(x)
    np.testing.assert_allclose(waves * np.pi * x / 2, 1, atol=5e-15)
    modified = bessel.i0e(x) * bessel.k1e(x) + bessel.i1e(x) * bessel.k0e(x)
    np.testing.assert_allclose(modified * x, 1, atol=5e-15)


def test_airy_fulfils_its_equation():
    """y'' = x y, with the second difference of a smooth function (error h**2 / 12)."""
    x, h = np.linspace(-9, 5, 300), 1e-3
    second = (bessel.airy_ai(x + h) - 2 * bessel.airy_ai(x) + bessel.airy_ai(x - h)) / h**2
    np.testing.assert_allclose(second, x * bessel.airy_ai(x), atol=1e-5)


def test_ndtri_inverts_ndtr():
    p = clew.tensor([1e-20, 1e-5, 0.05, 0.3, 0.5, 0.9, 1 - 1e-9], dtype=clew.float64)
    clew.testing.assert_close(clew.special.log_ndtr(clew.special.ndtri(p)).exp(), p)
