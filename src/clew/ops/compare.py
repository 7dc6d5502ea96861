"""Comparisons, logic and bits: results without gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels.shared import Shared
from clew.op import of_number, op
from clew.promotion import arithmetic, no_kernel

for _name, _ufunc, _alias in (
    ("eq", np.equal, ()),
    ("ne", np.not_equal, ("not_equal",)),
    ("lt", np.less, ("less",)),
    ("le", np.less_equal, ("less_equal",)),
    ("gt", np.greater, ("greater",)),
    ("ge", np.greater_equal, ("greater_equal",)),
):
    # Only the twin in place, which leaves a floating tensor, is recorded.
    _ordered = {} if _name in ("eq", "ne") else {"complex": no_kernel(f"{_name}_cpu")}
    op(
        f"{_name}(self, other)", _ufunc, promote="arithmetic", inplace=True, aliases=_alias,
        domain="real", doc=f"Elementwise ``{_ufunc.__name__}``, a bool tensor.",
        node=f"{_name.capitalize()}Backward1",
        overloads=(of_number("other", f"{_name.capitalize()}Backward0"),),
        large=Shared(_ufunc, dtype=np.bool_),
        inplace_rules=dict.fromkeys(("self", "other"), lambda F, grad: F.zeros_like(grad)),
        **_ordered,
    )  # fmt: skip

for _name in ("logical_and", "logical_or", "logical_xor"):
    op(f"{_name}(self, other)", getattr(np, _name), inplace=True, tensors_only=True,
       domain="real")  # fmt: skip


def _bits(name: str, function: Any, kernel: str) -> None:
    def forward(x: Any, y: Any) -> Any:
        x, y = arithmetic([x, y])
        if np.result_type(x, y).kind not in "biu":
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{_type_name(x, y)}'")
        return function(x, y)

    doc = f"Elementwise {name}."
    op(f"{name}(self, other)", forward, doc=doc, inplace=True, number_first=True,
       domain="integers")  # fmt: skip


def _type_name(x: Any, y: Any) -> str:
    from clew.dtypes import scalar_name

    return scalar_name(np.result_type(x, y))


for _name, _function, _kernel in (
    ("bitwise_and", np.bitwise_and, "bitwise_and_cpu"),
    ("bitwise_or", np.bitwise_or, "bitwise_or_cpu"),
    ("bitwise_xor", np.bitwise_xor, "bitwise_xor_cpu"),
    ("bitwise_left_shift", np.left_shift, "lshift_cpu"),
    ("bitwise_right_shift", np.right_shift, "rshift_cpu"),
):
    _bits(_name, _function, _kernel)


@op("isclose(self, other; rtol=1e-05, atol=1e-08, equal_nan=False)", tensors_only=True,
    domain="real")  # fmt: skip
def isclose(x: Any, y: Any, *, rtol: float, atol: float, equal_nan: bool) -> Any:
    """Whether ``|self - other| <= atol + rtol * |other|``, elementwise."""
    if x.dtype != y.dtype:
        raise RuntimeError(f"{_type_name(x, x)} did not match {_type_name(y, y)}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(
                f"{name} must be greater than or equal to zero, but got {tolerance:g}"
            )
    return np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)
