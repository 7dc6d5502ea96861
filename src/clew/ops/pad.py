"""Padding: with a constant (negative amounts crop), and with the image's own elements.

`pad` and `padding` hold (before, after) of the last dimension, then of the one before it, and so
on: PyTorch's order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clew import kernels
from clew.dtypes import scalar_name
from clew.kernels.half import narrow, widen
from clew.op import op
from clew.ops.layout import copy_alike

if TYPE_CHECKING:
    from clew.kernels.pad import Amounts


def _amounts(pad: Any) -> Amounts:
    """(before, after) for each padded dimension, the first one first."""
    return tuple((int(pad[i]), int(pad[i + 1])) for i in range(len(pad) - 2, -1, -2))


@op("constant_pad_nd(self; pad, value=0)", publish=("function",),
    jvp=lambda F, self_t, *, pad: F.constant_pad_nd(self_t, pad=pad, value=0))  # fmt: skip
def constant_pad_nd(x: Any, *, pad: Any, value: Any) -> Any:
    """`self` with `value` around it.

    Raises:
        RuntimeError: `pad` does not fit the dimensions, or less than nothing is left of one.
    """
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * x.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. "
            f"Pad length is {len(pad)} while the input has {x.ndim} dimensions."
        )
    amounts = ((0, 0),) * (x.ndim - len(pad) // 2) + _amounts(pad)
    shape, source, target = [], [], []
    for d, (n, (before, after)) in enumerate(zip(x.shape, amounts)):
        size = n + before + after
        if size < 0:
            raise RuntimeError(
                f"The input size {n}, plus negative padding {before} and {after} resulted in a "
                f"negative output size, which is invalid. Check dimension {d} of your input."
            )
        shape.append(size)
        source.append(slice(max(-before, 0), n - max(-after, 0)))
        target.append(slice(max(before, 0), size - max(after, 0)))
    if all(n <= 0 for n in pad):  # what is left, laid out as it was
        return copy_alike(x[tuple(source)])
    out = np.full(shape, np.asarray(0 if value is None else value).astype(x.dtype), x.dtype)
    out[tuple(target)] = x[tuple(source)]
    return out


@constant_pad_nd.grad("self")
def _(F: Any, grad: Any, *, pad: Any) -> Any:
    return F.constant_pad_nd(grad, pad=tuple(-n for n in pad))


# -- with the image's own elements


def _declare_padding(word: str, mode: str, dims: int) -> None:
    """``reflection_pad2d`` and its like; `mode` is the kernel's name for it."""
    name = f"{word}_pad{dims}d"

    def forward(x: Any, *, padding: Any) -> Any:
        amounts = _amounts(padding)
        _check(x, amounts, name, mode)
        return kernels.pad.pad_by_index(x, amounts, mode)

    def rule(F: Any, grad: Any, self: Any, *, padding: Any) -> Any:
        return getattr(F, f"{name}_backward")(grad, size=tuple(self.shape), padding=padding)

    op(
        f"{name}(self; padding)", forward, publish=(), self=rule, jvp="linear",
        node=f"{word.capitalize()}Pad{dims}DBackward0",
        doc="`self` with its own elements around it.",
    )  # fmt: skip

    def backward(grad: Any, *, size: Any, padding: Any) -> Any:
        wide = kernels.pad.pad_by_index_backward(widen(grad), size, _amounts(padding), mode)
        return narrow(wide, grad.dtype)

    def again(F: Any, grad: Any, *, padding: Any) -> Any:
        return getattr(F, name)(grad, padding=padding)

    op(
        f"{name}_backward(grad_output; size, padding)", backward, publish=(),
        node=f"{word.capitalize()}Pad{dims}DBackwardBackward0", grad_output=again, jvp="linear",
        doc="Each output's gradient added to the element that it shows.",
    )  # fmt: skip


def _check(x: Any, amounts: Amounts, name: str, mode: str) -> None:
    """Raise PyTorch's errors for what cannot be padded so."""
    if x.dtype.kind == "b" and mode != "circular":
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(x.dtype)}'")
    dims = len(amounts)
    if any(n == 0 for n in x.shape[-dims - 1 :]):
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size "
            f"and other non-zero dimensions for input, but got: {list(x.shape)}"
        )
    for d, (before, after) in zip(range(x.ndim - dims, x.ndim), amounts):
        n = x.shape[d]
        if mode == "reflect" and max(before, after) >= n:
            raise RuntimeError(
                f"Argument #{4 + 2 * (x.ndim - 1 - d)}: Padding size should be less than the "
                f"corresponding input dimension, but got: padding ({before}, {after}) at "
                f"dimension {d} of input {list(x.shape)}"
            )
        if mode == "circular" and max(before, after) > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if mode == "circular" and n + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        if mode != "circular" and n + before + after < 1:
            axis = "WHD"[x.ndim - 1 - d]
            raise RuntimeError(
                f"input ({axis}: {n}) is too small. Calculated output {axis}: {n + before + after}"
            )


for _dims in (1, 2, 3):
    _declare_padding("reflection", "reflect", _dims)
    _declare_padding("replication", "replicate", _dims)
    _declare_padding("circular", "circular", _dims)
