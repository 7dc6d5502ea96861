"""Bessel and Airy functions, and orthogonal polynomials."""

from __future__ import annotations

from typing import Any

from clew.kernels import bessel, orthogonal
from clew.op import op
from clew.ops.checks import as_arrays, floating_only, single_or_double_only

# -- modified Bessel functions of the first kind, with derivatives


def _differentiable(name: str, kernel: Any, checked: str, rule: Any, **options: Any) -> None:
    def forward(x: Any) -> Any:
        floating_only(x, checked)
        return kernel(x)

    options = {"promote": "floating", "domain": "nonzero", "jvp": "elementwise", **options}
    op(f"{name}(self)", forward, doc=kernel.__doc__, self=rule, **options)


def _slope_of_i1(F: Any, grad: Any, self: Any, result: Any) -> Any:
    zero = F.eq(self, 0)
    ratio = result / F.where(zero, 1, self)
    return grad * F.where(zero, 0.5, F.i0(self) - ratio)


def _slope_of_i1e(F: Any, grad: Any, self: Any, result: Any) -> Any:
    zero = F.eq(self, 0)
    inverse = F.reciprocal(F.where(zero, 1, self))
    slope = F.special_i0e(self) - result * (F.sgn(self) + inverse)
    return grad * F.where(zero, 0.5, slope)


_differentiable(
    "i0", bessel.i0, "i0_vml_cpu", lambda F, grad, self: grad * F.special_i1(self), inplace=True
)
_differentiable(
    "special_i0e", bessel.i0e, "i0e_cpu",
    lambda F, grad, self, result: grad * (F.special_i1e(self) - F.sgn(self) * result),
    publish=("special",), node="SpecialI0EBackward0",
)  # fmt: skip
_differentiable("special_i1", bessel.i1, "i1_cpu", _slope_of_i1, publish=("special",))
_differentiable(
    "special_i1e", bessel.i1e, "i1e_cpu", _slope_of_i1e,
    publish=("special",), node="SpecialI1EBackward0",
)  # fmt: skip

# -- those that PyTorch has no derivatives of


def _plain(name: str, kernel: Any) -> None:
    def forward(x: Any) -> Any:
        single_or_double_only(x, f"{name}_cpu")
        return kernel(x)

    # PyTorch's name of the argument.
    argument = "x" if name.startswith(("airy", "scaled", "spherical")) else "self"
    op(
        f"special_{name}({argument})", forward, doc=kernel.__doc__, promote="floating",
        publish=("special",),
    )  # fmt: skip


for _name, _kernel in (
    ("airy_ai", bessel.airy_ai),
    ("bessel_j0", bessel.j0),
    ("bessel_j1", bessel.j1),
    ("bessel_y0", bessel.y0),
    ("bessel_y1", bessel.y1),
    ("modified_bessel_i0", bessel.i0),
    ("modified_bessel_i1", bessel.i1),
    ("modified_bessel_k0", bessel.k0),
    ("modified_bessel_k1", bessel.k1),
    ("scaled_modified_bessel_k0", bessel.k0e),
    ("scaled_modified_bessel_k1", bessel.k1e),
    ("spherical_bessel_j0", bessel.spherical_j0),
):
    _plain(_name, _kernel)


def _polynomial(name: str, family: orthogonal.Family) -> None:
    def forward(x: Any, n: Any) -> Any:
        x, n = as_arrays(x, n)
        single_or_double_only(x, f"{name}_cpu")
        return orthogonal.evaluate(family, x, n)

    title = name.replace("_polynomial", "").replace("_", " ")
    doc = f"The polynomial ({title}) of degree `n`, cut to an integer, at `x`."
    op(f"special_{name}(x, n)", forward, doc=doc, promote="floating", number_first=True,
       publish=("special",))  # fmt: skip


for _name, _family in orthogonal.FAMILIES.items():
    _polynomial(_name, _family)
