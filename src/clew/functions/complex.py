"""Complex numbers: functions and properties that give a real tensor back as it is.

clew computes a conjugate at once, where PyTorch leaves a mark and computes it when it is needed:
so no tensor is marked as conjugated or negated, and `conj` of a complex tensor is no view.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dispatch import apply
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor


def _part(self: Tensor, index: int) -> Tensor:
    pairs = apply(REGISTRY["view_as_real"], (self,))
    part: Tensor = apply(REGISTRY["select"], (pairs,), {"dim": -1, "index": index})
    return part


@composite(method=False)
def real(self: Tensor) -> Tensor:
    """The real part, a view; a real tensor as it is."""
    return _part(self, 0) if self._array.dtype.kind == "c" else self


@composite(method=False)
def imag(self: Tensor) -> Tensor:
    """The imaginary part, a view.

    Raises:
        RuntimeError: the tensor is not complex.
    """
    if self._array.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _part(self, 1)


def _writer(part: Any) -> Any:
    def write(self: Tensor, value: Any) -> None:
        part(self)[...] = value

    return write


Tensor.real = property(real, _writer(real), doc=real.__doc__)  # type: ignore[attr-defined]
Tensor.imag = property(imag, _writer(imag), doc=imag.__doc__)  # type: ignore[attr-defined]


@composite()
def conj(self: Tensor) -> Tensor:
    """The complex conjugate; a real tensor as it is."""
    return apply(REGISTRY["conj"], (self,)) if self._array.dtype.kind == "c" else self


@composite(out=True)
def conj_physical(self: Tensor) -> Tensor:
    """The complex conjugate; a real tensor as it is."""
    return apply(REGISTRY["conj_physical"], (self,)) if self._array.dtype.kind == "c" else self


@composite()
def isreal(self: Tensor) -> Tensor:
    """Where the imaginary part is zero."""
    array = self._array
    same = array.imag == 0 if array.dtype.kind == "c" else np.ones(array.shape, np.bool_)
    return Tensor._from_array(np.asarray(same))


@composite()
def resolve_conj(self: Tensor) -> Tensor:
    """This tensor: conjugates are computed at once."""
    return self


@composite()
def resolve_neg(self: Tensor) -> Tensor:
    """This tensor: it is never marked as negated."""
    return self


@composite()
def is_conj(self: Tensor) -> bool:
    """False: conjugates are computed at once."""
    return False


@composite()
def is_neg(self: Tensor) -> bool:
    """False: no tensor is marked as negated."""
    return False
