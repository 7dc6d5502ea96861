"""Distinct elements, places in sorted sequences, and whether tensors agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dispatch import apply
from clew.dtypes import scalar_name
from clew.functions.linalg import refuse_non_tensors
from clew.functions.values import refuse_values
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor

# -- distinct elements


def _asked_for(found: Any) -> Any:
    """What an op of three outputs gives where not all were asked for."""
    wanted = tuple(x for x in found if x is not None)
    return wanted[0] if len(wanted) == 1 else wanted


@composite()
def unique(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in order, or the distinct slices along `dim`.

    Args:
        self: any tensor.
        sorted: as in PyTorch, they are sorted anyway.
        return_inverse: also return, for each element, where it is in the output.
        return_counts: also return how often each occurs.
        dim: take slices along this dimension for elements.

    Raises:
        NotImplementedError: in backward, for there is no derivative.
    """
    attrs: dict[str, Any] = {"return_inverse": return_inverse, "return_counts": return_counts}
    if dim is None:
        return _asked_for(apply(REGISTRY["unique2"], (self,), attrs))
    return _asked_for(apply(REGISTRY["unique_dim"], (self,), {"dim": dim, **attrs}))


@composite()
def unique_consecutive(
    self: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The elements (or slices along `dim`) that differ from the one before; else as `unique`."""
    attrs = {"return_inverse": return_inverse, "return_counts": return_counts, "dim": dim}
    return _asked_for(apply(REGISTRY["unique_consecutive"], (self,), attrs))


# -- places in sorted sequences


@composite(method=False, out=True)
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:
    """Where each value belongs in the sorted last dimension of a sequence.

    Args:
        sorted_sequence: ``(n,)``, or ``(*, n)`` with the leading dimensions of `input`.
        input: the values, a tensor or a number.
        out_int32: return int32, not int64.
        right: behind equal elements, not before them.
        side: "left" or "right", the same as `right`.
        sorter: the indices that sort the sequence, if it is not sorted.

    Raises:
        RuntimeError: the shapes do not agree, or `side` contradicts `right`.
    """
    values = input._array if isinstance(input, Tensor) else np.asarray(input)
    _check_search(sorted_sequence._array, values, right, side, sorter)
    attrs = {"right": right or side == "right", "out_int32": out_int32}
    return apply(REGISTRY["searchsorted"], (sorted_sequence, input, sorter), attrs)


def _check_search(
    sequence: Any, values: Any, right: bool, side: str | None, sorter: Tensor | None
) -> None:
    name = "torch.searchsorted()"
    if side not in (None, "left", "right"):
        raise RuntimeError(f"{name}: side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            f"{name}: side and right can't be set to opposites, got side of left while right was "
            "True"
        )
    if sequence.ndim == 0:
        raise RuntimeError(
            f"{name}: boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if values.ndim == 0 and sequence.ndim != 1:
        raise RuntimeError(
            f"{name}: input value can be a scalar only when boundaries tensor dimension is 1, but "
            f"we got boundaries tensor dim({sequence.ndim}) and input value's dim(0) numel(1)"
        )
    if sequence.ndim != 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            f"{name}: boundaries tensor should be 1 dimension or the first N-1 dimensions of "
            "boundaries tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(sequence.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        _check_sorter(sequence, sorter._array, name)


def _check_sorter(sequence: Any, sorter: Any, name: str) -> None:
    if sorter.shape != sequence.shape:
        raise RuntimeError(
            f"{name}: boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sequence.shape)}and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype != np.int64:
        raise RuntimeError(
            f"{name}: sorter must be a tensor of long dtype but got dtype "
            f"{scalar_name(sorter.dtype)}"
        )


@composite(method=False, out=True)
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Any:
    """The bucket, between sorted `boundaries`, that each value belongs to.

    Raises:
        RuntimeError: `boundaries` is no vector.
    """
    if boundaries._array.ndim != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})"
        )
    attrs = {"right": right, "out_int32": out_int32}
    return apply(REGISTRY["searchsorted"], (boundaries, input, None), attrs)


@composite(method=False, out=True)
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Any:
    """Whether each element is (not, with `invert`) among the test elements; either may be a number.

    Raises:
        TypeError: both are numbers.
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError(
            "isin() received an invalid combination of arguments - got "
            f"({type(elements).__name__}, {type(test_elements).__name__})"
        )
    attrs = {"assume_unique": assume_unique, "invert": invert}
    return apply(REGISTRY["isin"], (elements, test_elements), attrs)


# -- whether tensors agree


@composite()
def equal(self: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and elements; nan equals nothing."""
    refuse_non_tensors("equal", input=self, other=other)
    refuse_values(
        "Batching rule not implemented for aten::equal. We could not generate a fallback.",
        self, other,
    )  # fmt: skip
    first, second = self._array, other._array
    return first.shape == second.shape and bool(np.all(first == second))


@composite()
def allclose(
    self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether ``|self - other| <= atol + rtol * |other|`` everywhere.

    Raises:
        RuntimeError: the types differ, or a tolerance is negative.
    """
    refuse_non_tensors("allclose", input=self, other=other)
    refuse_values(
        "vmap over torch.allclose isn't supported yet. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues if you need this feature.",
        self, other,
    )  # fmt: skip
    attrs = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
    return bool(apply(REGISTRY["isclose"], (self, other), attrs)._array.all())
