"""QR decompositions in LAPACK's own form: reflectors, and products with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dispatch import apply
from clew.functions.linalg import refuse_non_tensors
from clew.functions.reduce import named_result
from clew.op import REGISTRY
from clew.ops.checks import single_or_double_only
from clew.ops.matrices import column_major
from clew.outputs import write_out
from clew.publish import composite, taking_other_names
from clew.tensor import Tensor


@composite()
def geqrf(self: Tensor) -> Any:
    """The reflectors of a QR decomposition, as LAPACK stores them: ``(a, tau)``; no gradient.

    R stands in the upper triangle of `a`, below it the vectors of the reflectors.

    Raises:
        RuntimeError: the tensor has less than two dimensions.
    """
    refuse_non_tensors("geqrf", input=self)
    array = self._array
    if array.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    if array.dtype.kind != "c":
        single_or_double_only(array, "geqrf_cpu")
    h, tau = np.linalg.qr(array, mode="raw")
    found = (Tensor._from_array(x) for x in (column_major(np.swapaxes(h, -1, -2)), tau))
    return named_result("geqrf", "a", "tau")(*found)


@taking_other_names
def householder_product(input: Tensor, tau: Tensor, *, out: Any = None) -> Any:
    """The first columns of the product of Householder reflectors, as many as `input` has.

    Args:
        input: ``(*, m, n)``, the vectors below its diagonal, as `geqrf` gives them.
        tau: ``(*, k)``, the factors, at most `n`.
        out: a tensor for the result.

    Raises:
        RuntimeError: the sizes or types do not agree.
    """
    refuse_non_tensors("linalg_householder_product", input=input, tau=tau)
    result = apply(REGISTRY["linalg_householder_product"], (input, tau))
    return result if out is None else write_out(out, result)


@composite(out=True)
def orgqr(self: Tensor, input2: Tensor) -> Any:
    """`linalg.householder_product`."""
    return householder_product(self, input2)
