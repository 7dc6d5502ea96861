"""Dropout: of elements, of whole feature maps, and for networks of SELU."""

from __future__ import annotations

import warnings

from clew.functions.calls import Tensor
from clew.publish import FUNCTIONS


def _drop(name: str, input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if p < 0 or p > 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return FUNCTIONS[name + "_" if inplace else name](input, p, training)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, 0 with probability `p`, else ``input / (1 - p)``.

    Raises:
        ValueError: `p` is no probability.
    """
    return _drop("dropout", input, p, training, inplace)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of what SELU gives (Klambauer et al., 2017).

    Raises:
        ValueError: `p` is no probability.
    """
    return _drop("alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole feature maps.

    Raises:
        ValueError: `p` is no probability.
    """
    return _drop("feature_alpha_dropout", input, p, training, inplace)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """`dropout` of whole channels of ``(N, C, L)`` or ``(C, L)``.

    Raises:
        ValueError: `p` is no probability.
        RuntimeError: the input has another number of dimensions.
    """
    ndim = input.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _drop_batched(input, p, training, inplace, batched=ndim == 3)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """`dropout` of whole channels of ``(N, C, H, W)``; an input of 3-D is taken for ``(N, C, L)``.

    Raises:
        ValueError: `p` is no probability.
    """
    _warn_of_dimensions("dropout2d", input.ndim, 2)
    if input.ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D "
            "dropout behavior is desired - input is interpreted as shape (N, C, L), where C is "
            "the channel dim. This behavior will change in a future release to interpret the "
            "input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _drop("feature_dropout", input, p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """`dropout` of whole channels of ``(N, C, D, H, W)`` or ``(C, D, H, W)``.

    Raises:
        ValueError: `p` is no probability.
    """
    _warn_of_dimensions("dropout3d", input.ndim, 3)
    return _drop_batched(input, p, training, inplace, batched=input.ndim == 5)


def _drop_batched(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    """Drop feature maps of an input that may lack its batch dimension."""
    if batched:
        return _drop("feature_dropout", input, p, training, inplace)
    batch = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _drop("feature_dropout", batch, p, training, inplace)
    return result.squeeze_(0) if inplace else result.squeeze(0)


def _warn_of_dimensions(name: str, ndim: int, spatial: int) -> None:
    if ndim not in (spatial + 1, spatial + 2):
        warnings.warn(
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in "
            "an error in a future release. To retain the behavior and silence this warning, "
            f"please use dropout instead. Note that {name} exists to provide channel-wise dropout "
            f"on inputs with {spatial} spatial dimensions, a channel dimension, and an optional "
            f"batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs).",
            stacklevel=3,
        )
