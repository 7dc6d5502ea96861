"""``clew.lu`` and what goes with it; ``clew.linalg`` has newer ones."""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply
from clew.functions import decompose
from clew.functions.reduce import named_result
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor


@composite()
def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """L and U of each matrix in one, the row exchanges, and with `get_infos` the zero pivots."""
    factors, pivots, info = decompose.lu_factor_ex(self, pivot=pivot)
    if get_infos:
        return named_result("_lu_with_info", "LU", "pivots", "info")(factors, pivots, info)
    return factors, pivots


@composite(out=True)
def lu_solve(self: Any, LU_data: Any, LU_pivots: Tensor) -> Any:
    """X of ``A X = self``, where `LU_data` and `LU_pivots` are what `lu` gave for A."""
    return decompose.lu_solve(LU_data, LU_pivots, self)


@composite(method=False, out=True)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """P, L and U from what `lu` gave; what is not asked for is empty."""
    attrs = {"unpack_data": unpack_data, "unpack_pivots": unpack_pivots}
    found = apply(REGISTRY["lu_unpack"], (LU_data, LU_pivots), attrs)
    return named_result("lu_unpack", "P", "L", "U")(*found)
