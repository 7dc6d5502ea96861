"""The `reduction` of a loss, and the two arguments that it replaced in PyTorch."""

from __future__ import annotations

import warnings

from clew.functions.calls import Tensor

_NAMES = ("none", "mean", "sum")


def reduction_of(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """The reduction that is meant: the deprecated arguments, where given, win.

    Raises:
        ValueError: there is no such reduction.
    """
    if size_average is not None or reduce is not None:
        reduction = _legacy(size_average, reduce)
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' "
            "instead.",
            stacklevel=3,
        )
    check_reduction(reduction)
    return reduction


def _legacy(size_average: bool | None, reduce: bool | None) -> str:
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def check_reduction(reduction: str) -> None:
    """Refuse an unknown reduction.

    Raises:
        ValueError: there is no such reduction.
    """
    if reduction not in _NAMES:
        raise ValueError(f"{reduction} is not a valid value for reduction")


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """The losses themselves, their sum or their mean."""
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()
