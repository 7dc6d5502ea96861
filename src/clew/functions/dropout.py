"""Dropout, of elements and of whole feature maps, and its form for SELU networks.

The draws are PyTorch's, and nothing is drawn where PyTorch draws nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clew import dtypes, rng
from clew.autograd.transforms import running, sample
from clew.dispatch import apply, apply_inplace
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor

_DROPOUT, _MUL, _ADD = REGISTRY["dropout_by_mask"], REGISTRY["mul"], REGISTRY["add"]
_TO_DTYPE = REGISTRY["to_dtype"]

_SELU_LIMIT = 1.0507009873554805 * 1.6732632423543772
"""What SELU tends to for very negative inputs, with the sign changed (Klambauer and others, 2017):
alpha dropout puts its negative in place of what it drops."""


def _active(self: Tensor, p: float, train: bool) -> bool:
    """Whether there is anything to do.

    Raises:
        RuntimeError: `p` is no probability.
    """
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    return bool(p) and train and self._array.size > 0


def _mask(self: Tensor, p: float, features: bool) -> Tensor:
    """True for what is kept, an element or a feature map each."""
    shape = self._array.shape
    if features and len(shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if p == 1:
        return Tensor._from_array(np.zeros((), np.bool_))
    if features:
        shape = shape[:2] + (1,) * (len(shape) - 2)
    if running:
        kept: Tensor = sample(lambda size: _draw(np.empty(size, np.bool_), p), shape)
        return kept
    mask = np.empty(shape, np.bool_) if features else rng.dense_like(self._array, np.bool_)
    return _draw(mask, p)


def _draw(mask: np.ndarray, p: float) -> Tensor:
    return Tensor._from_array(rng.bernoulli_(mask, 1 - p))


def _plain(self: Tensor, p: float, train: bool, features: bool, inplace: bool) -> Tensor:
    if not _active(self, p, train):
        return self
    mask = _mask(self, p, features)
    dtype = self._array.dtype
    if dtype.kind not in "fcV":
        raise RuntimeError(
            "result type Float can't be cast to the desired output type "
            f"{dtypes.scalar_name(dtype)}"
        )
    scale = 1.0 if p == 1 else float(rng.dropout_scale(p, dtype))
    if inplace:
        return apply_inplace(_DROPOUT, self, (mask,), {"scale": scale})
    return apply(_DROPOUT, (self, mask), {"scale": scale})


def _alpha(self: Tensor, p: float, train: bool, features: bool, inplace: bool) -> Tensor:
    """Keeps mean and variance: what is dropped becomes ``-_SELU_LIMIT``, then all is rescaled."""
    if not _active(self, p, train) or p == 1:
        return _plain(self, p, train, features, inplace)
    a = 1 / math.sqrt((_SELU_LIMIT**2 * p + 1) * (1 - p))
    kept = apply(_TO_DTYPE, (_mask(self, p, features),), {"dtype": self.dtype})
    shift = (kept - 1) * (_SELU_LIMIT * a) + _SELU_LIMIT * a * p
    factor = kept * a
    if inplace:
        return apply_inplace(_ADD, apply_inplace(_MUL, self, (factor,)), (shift,))
    return apply(_ADD, (apply(_MUL, (self, factor)), shift))


def _publish(name: str, function: Any, features: bool, doc: str) -> None:
    def dropout(self: Tensor, p: float, train: bool) -> Tensor:
        return function(self, p, train, features, False)

    def dropout_(self: Tensor, p: float, train: bool) -> Tensor:
        return function(self, p, train, features, True)

    for f, public, text in ((dropout, name, doc), (dropout_, name + "_", f"`{name}` in place.")):
        f.__name__ = f.__qualname__ = public
        f.__doc__ = text
        composite(method=False)(f)


_publish(
    "dropout", _plain, False,
    "Zero with probability `p`, else ``self / (1 - p)``; the tensor itself unless `train`.",
)  # fmt: skip
_publish(
    "feature_dropout", _plain, True,
    "`dropout` of whole feature maps: one draw for each index of the first two dimensions.",
)  # fmt: skip
_publish(
    "alpha_dropout", _alpha, False,
    "Dropout that keeps mean and variance of what SELU gives; the tensor itself unless `train`.",
)  # fmt: skip
_publish(
    "feature_alpha_dropout", _alpha, True,
    "`alpha_dropout` of whole feature maps.",
)  # fmt: skip
