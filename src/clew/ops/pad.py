"""Padding: with a constant (negative amounts crop), and by index for the other modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.op import op


@op("constant_pad_nd(self; pad, value=0)", publish=("function",))
def constant_pad_nd(x: Any, *, pad: Any, value: Any) -> Any:
    """Pad the last dimensions: `pad` holds (before, after) of the last one, then the one before.

    Raises:
        RuntimeError: `pad` does not fit the dimensions, or nothing is left of one.
    """
    if len(pad) % 2:
        raise RuntimeError("Length of pad must be even but instead it equals " + str(len(pad)))
    amounts = _amounts(pad, x.ndim)
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
    out = np.full(shape, np.asarray(0 if value is None else value).astype(x.dtype), x.dtype)
    out[tuple(target)] = x[tuple(source)]
    return out


def _amounts(pad: Any, ndim: int) -> list[tuple[int, int]]:
    """(before, after) for each dimension, the first one first."""
    pairs = [(int(pad[i]), int(pad[i + 1])) for i in range(0, len(pad), 2)]
    if len(pairs) > ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. "
            f"Pad length is {len(pad)} while the input has {ndim} dimensions."
        )
    return [(0, 0)] * (ndim - len(pairs)) + pairs[::-1]


@constant_pad_nd.grad("self")
def _(F: Any, grad: Any, *, pad: Any) -> Any:
    return F.constant_pad_nd(grad, pad=tuple(-n for n in pad))
