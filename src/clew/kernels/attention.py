"""Scaled dot-product attention that keeps no matrix of weights. Imports NumPy, sibling kernels.

The weights, softmax(scale * q @ k.T + mask), are made for a few heads at a time and made again in
the backward pass, from the logarithm of their sums (Dao et al., 2022, "FlashAttention").

Shapes: q (N, H, L, E), k and v (N, H', S, E) where H' divides H; the mask, which is added to the
logits, broadcasts to (N, H, L, S). A row that may attend to nothing gives zeros. Results lie in
memory as q, k and v do. Half precision is computed in float32.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .half import narrow, widen
from .windows import BLOCK_BYTES

Gradients = tuple[NDArray | None, NDArray | None, NDArray | None]


def attention(
    q: NDArray, k: NDArray, v: NDArray, mask: NDArray | None, is_causal: bool, scale: float
) -> tuple[NDArray, NDArray]:
    """The weighted sums of `v` (N, H, L, E), and the logarithms of the weights' sums (N, H, L).

    The logarithm of a row that attends to nothing is +inf, so that its weights come out as 0.
    """
    dtype = q.dtype
    q, k, v = widen(q), _for_each_head(widen(k), q), _for_each_head(widen(v), q)
    out = np.empty_like(q)
    logs = np.empty(q.shape[:3], q.dtype)
    if k.shape[2] == 0:
        out[...], logs[...] = 0, np.inf
        return narrow(out, dtype), logs
    added = _added_mask(mask, q, k, is_causal)
    for block in _blocks(q, k):
        weights = _logits(q, k, added, block, scale)
        maximum = weights.max(axis=-1, keepdims=True)
        maximum[np.isneginf(maximum)] = 0
        weights -= maximum
        np.exp(weights, out=weights)
        total = weights.sum(axis=-1, keepdims=True)
        nothing = total == 0
        total[nothing] = 1
        out[block] = np.matmul(weights, v[block]) / total
        log = np.log(total) + maximum
        log[nothing] = np.inf
        logs[block] = log[..., 0]
    return narrow(out, dtype), logs


def attention_backward(
    grad: NDArray,
    q: NDArray,
    k: NDArray,
    v: NDArray,
    mask: NDArray | None,
    out: NDArray,
    logs: NDArray,
    is_causal: bool,
    scale: float,
    need: tuple[bool, bool, bool] = (True, True, True),
) -> Gradients:
    """Gradients of q, k and v; None for those that `need` does not ask for."""
    dtype, groups = q.dtype, k.shape[1]
    g, q, out = widen(grad), widen(q), widen(out)
    k, v = _for_each_head(widen(k), q), _for_each_head(widen(v), q)
    of_q = np.zeros_like(q) if need[0] else None
    of_k = np.zeros_like(k) if need[1] else None
    of_v = np.zeros_like(v) if need[2] else None
    added = _added_mask(mask, q, k, is_causal)
    for block in _blocks(q, k) if k.shape[2] else ():
        weights = _logits(q, k, added, block, scale)
        weights -= logs[block][..., None]
        np.exp(weights, out=weights)
        if of_v is not None:
            of_v[block] = np.matmul(weights.mT, g[block])
        if of_q is None and of_k is None:
            continue
        slope = np.matmul(g[block], v[block].mT)
        slope -= np.einsum("hle,hle->hl", g[block], out[block])[..., None]
        slope *= weights
        slope *= scale
        if of_q is not None:
            of_q[block] = np.matmul(slope, k[block])
        if of_k is not None:
            of_k[block] = np.matmul(slope.mT, q[block])
    return (
        None if of_q is None else narrow(of_q, dtype),
        None if of_k is None else narrow(_over_heads(of_k, groups), dtype),
        None if of_v is None else narrow(_over_heads(of_v, groups), dtype),
    )


def _for_each_head(x: NDArray, q: NDArray) -> NDArray:
    """Keys or values for each head of `q`, where a group of heads shares them."""
    groups = q.shape[1] // x.shape[1] if x.shape[1] else 1
    return x if groups == 1 else np.repeat(x, groups, axis=1)


def _over_heads(grad: NDArray, groups: int) -> NDArray:
    """The adjoint: summed over the heads that share."""
    batch, heads, *rest = grad.shape
    return grad if heads == groups else grad.reshape(batch, groups, -1, *rest).sum(axis=2)


def _added_mask(mask: NDArray | None, q: NDArray, k: NDArray, is_causal: bool) -> NDArray | None:
    """What is added to the logits (N, H, L, S), a view of less, or None."""
    shape = (*q.shape[:3], k.shape[2])
    if is_causal:
        mask = causal_mask(shape[2], shape[3], q.dtype)
    if mask is None:
        return None
    return np.broadcast_to(widen(mask).astype(q.dtype, copy=False), shape)


def causal_mask(length: int, keys: int, dtype: DTypeLike) -> NDArray:
    """What makes row i attend to the columns up to i only, when it is added to the logits."""
    mask = np.zeros((length, keys), dtype)
    mask[~np.tri(length, keys, dtype=bool)] = -np.inf
    return mask


def _blocks(q: NDArray, k: NDArray) -> Iterator[tuple[int, slice]]:
    """Heads of a sample whose weights together stay within `BLOCK_BYTES` (or one head)."""
    batch, heads, length = q.shape[:3]
    step = max(1, BLOCK_BYTES // max(1, length * k.shape[2] * q.itemsize))
    for sample in range(batch):
        for start in range(0, heads, step):
            yield sample, slice(start, start + step)


def _logits(
    q: NDArray, k: NDArray, added: NDArray | None, block: tuple[int, slice], scale: float
) -> NDArray:
    logits = np.matmul(q[block], k[block].mT)
    logits *= scale
    if added is not None:
        logits += added[block]
    return logits
