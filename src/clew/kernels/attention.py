"""Scaled dot-product attention that keeps no matrix of weights. Imports NumPy, sibling kernels.

The weights, softmax(scale * q @ k.T + mask), are made a tile at a time: some queries of a head, or
all of some heads. The backward pass makes them again, from the logarithm of their sums (Dao et al.,
2022, "FlashAttention"). Where a query sees only the keys up to its own number, a tile leaves out
the keys that none of its queries sees.

Shapes: q (N, H, L, E), k and v (N, H', S, E) where H' divides H; the mask, which is added to the
logits, broadcasts to (N, H, L, S). A row that may attend to nothing gives zeros. Results lie in
memory as q, k and v do. Half precision is computed in float32.

A compiled twin does all of it for some heads, without coming back to Python, where it can call
OpenBLAS (Note [Products in twins]) and the heads lie in memory row by row.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from clew.threads import one_blas_thread, split

from .compiled import twins
from .half import narrow, widen
from .product import add_product, product

Gradients = tuple[NDArray | None, NDArray | None, NDArray | None]

TILE_BYTES = 1 << 20
"""Of a tile; as many again are read and written beside it, and stay in the cache."""

_ROWS = 128
"""Queries that a tile has at least, for the sake of the matrix products; that of a twin has no
more."""

_SMALL = 4096
"""Weights from which twins are faster."""

_GRAIN = 1 << 16
"""Weights that a thread computes at least."""


class _Tile(NamedTuple):
    """Queries from `first` to `last` of the heads `heads` of a sample, and keys up to `keys`."""

    sample: int
    heads: slice
    first: int
    last: int
    keys: int

    @property
    def queries(self) -> tuple[int, slice, slice]:
        """Where they stand in q."""
        return self.sample, self.heads, slice(self.first, self.last)

    @property
    def seen(self) -> tuple[int, slice, slice]:
        """Where the keys stand in k, and their values in v."""
        return self.sample, self.heads, slice(0, self.keys)


class _Plan(NamedTuple):
    """How the weights (N, H, L, S) of one call are made."""

    shape: tuple[int, int, int, int]
    dtype: np.dtype
    added: NDArray | None
    is_causal: bool
    scale: float

    def run(
        self, twin: Any, gemm: int, writes: Sequence[NDArray], tiles: int, reads: Sequence[Any]
    ) -> None:
        """Have a twin do all heads, which it is given memory for so many tiles for."""
        batch, heads, length, keys = self.shape
        rows = min(length, _ROWS)
        added: Any = self.dtype.type(0) if self.added is None else self.added
        which = np.broadcast_to(added, self.shape), self.scale, self.is_causal
        given = (*reads, rows, *which, self.added is not None)

        def piece(start: int, stop: int) -> None:
            scratch = np.empty((tiles, rows * keys), self.dtype)
            twin(*writes, *scratch, *given, start, stop, gemm)

        with one_blas_thread:
            split(piece, batch * heads, max(1, _GRAIN // (length * keys)))

    def for_each(self, function: Callable[[_Tile], None]) -> None:
        """Call `function` for all tiles; those of the same heads in the same thread, in order."""
        batch, heads, length, keys = self.shape
        if prod(self.shape) == 0:
            return
        together = max(1, TILE_BYTES // (length * keys * self.dtype.itemsize))
        groups = [
            (sample, slice(start, start + together))
            for sample in range(batch)
            for start in range(0, heads, together)
        ]

        def piece(start: int, stop: int) -> None:
            for group in groups[start:stop]:
                for tile in self._tiles(*group):
                    function(tile)

        weights = prod(self.shape) // len(groups)
        with one_blas_thread:
            split(piece, len(groups), max(1, _GRAIN // weights))

    def _tiles(self, sample: int, heads: slice) -> Iterator[_Tile]:
        length, keys = self.shape[2:]
        rows = max(_ROWS, TILE_BYTES // (keys * self.dtype.itemsize))
        for first in range(0, length, rows):
            last = min(first + rows, length)
            yield _Tile(sample, heads, first, last, min(keys, last) if self.is_causal else keys)

    def logits(self, q: NDArray, k: NDArray, tile: _Tile) -> tuple[NDArray, float]:
        """The logits of a tile, and what is still to multiply them by."""
        logits = product(np.matmul, q[tile.queries], k[tile.seen].mT)
        if self.added is None:
            return logits, self.scale
        logits *= self.scale
        logits += self.added[tile.queries]
        return logits, 1.0

    def twins(self) -> Any:
        """The compiled twins, or None for NumPy's."""
        return twins("attention", self.dtype) if prod(self.shape) > _SMALL else None

    def gemm(self, *arrays: NDArray) -> int:
        """The address of the product that a twin can use on these; 0 where it cannot."""
        found = self.twins() is not None and all(map(_by_rows, arrays))
        return one_blas_thread.address_of_gemm(self.dtype) if found else 0


def _by_rows(x: NDArray) -> bool:
    """Whether each matrix of `x` lies row by row; not of one row, whose stride says little."""
    rows, columns = x.shape[2:]
    between, within = x.strides[2:]
    return (
        rows > 1 < columns and within == x.itemsize
        and between >= columns * x.itemsize and between % x.itemsize == 0
    )  # fmt: skip


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
    plan = _plan(q, k, mask, is_causal, scale)
    if gemm := plan.gemm(q, k, v, out):
        plan.run(plan.twins().attention, gemm, (out, logs), 1, (q, k, v))
        return narrow(out, dtype), logs
    fast = plan.twins()
    softmax = _softmax_tile if fast is None else fast.softmax_tile

    def compute(tile: _Tile) -> None:
        weights, scale = plan.logits(q, k, tile)
        sums = np.empty(weights.shape[:2], weights.dtype)
        softmax(weights, sums, scale, tile.first, is_causal)
        logs[tile.queries] = sums
        product(np.matmul, weights, v[tile.seen], out[tile.queries])

    plan.for_each(compute)
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
    plan = _plan(q, k, mask, is_causal, scale)
    results = [x for x in (of_q, of_k, of_v) if x is not None]
    if gemm := plan.gemm(q, k, v, *results):
        nothing = np.empty((0, 0, 0, 0), q.dtype)
        writes = [nothing if x is None else x for x in (of_q, of_k, of_v)]
        g = g if _by_rows(g) else np.array(g, order="C")
        reads = (q, k, v, g, np.ascontiguousarray(logs), *need)
        plan.run(plan.twins().attention_backward, gemm, writes, 2, reads)
    else:
        _backward_by_tiles(plan, g, (q, k, v), out, logs, (of_q, of_k, of_v))
    return (
        None if of_q is None else narrow(of_q, dtype),
        None if of_k is None else narrow(_over_heads(of_k, groups), dtype),
        None if of_v is None else narrow(_over_heads(of_v, groups), dtype),
    )


def _backward_by_tiles(
    plan: _Plan, g: NDArray, inputs: tuple[NDArray, NDArray, NDArray], out: NDArray, logs: NDArray,
    results: Gradients,
) -> None:  # fmt: skip
    """Write gradients into `results`, which are full of zeros."""
    (q, k, v), (of_q, of_k, of_v), scale = inputs, results, plan.scale
    means = np.einsum("nhle,nhle->nhl", g, out)
    fast = plan.twins()
    slopes_of = _slopes_tile if fast is None else fast.slopes_tile

    def compute(tile: _Tile) -> None:
        weights, rest = plan.logits(q, k, tile)
        slopes = product(np.matmul, g[tile.queries], v[tile.seen].mT)
        sums, mean = (np.ascontiguousarray(x[tile.queries]) for x in (logs, means))
        slopes_of(weights, slopes, sums, mean, rest, tile.first, plan.is_causal)
        if rest != scale:
            slopes *= scale
        if of_v is not None:
            add_product(weights.mT, g[tile.queries], of_v[tile.seen])
        if of_q is not None:
            product(np.matmul, slopes, k[tile.seen], of_q[tile.queries])
        if of_k is not None:
            add_product(slopes.mT, q[tile.queries], of_k[tile.seen])

    plan.for_each(compute)


def _softmax_tile(tile: NDArray, logs: NDArray, scale: float, first: int, causal: bool) -> None:
    """See `compiled.attention.softmax_tile`."""
    tile *= scale
    _hide(tile, first, causal, -np.inf)
    maximum = tile.max(axis=-1, keepdims=True)
    maximum[np.isneginf(maximum)] = 0
    tile -= maximum
    np.exp(tile, out=tile)
    total = tile.sum(axis=-1, keepdims=True)
    nothing = total == 0
    total[nothing] = 1
    tile /= total
    log = np.log(total) + maximum
    log[nothing] = np.inf
    logs[...] = log[..., 0]


def _slopes_tile(
    tile: NDArray, slopes: NDArray, logs: NDArray, means: NDArray, scale: float, first: int,
    causal: bool,
) -> None:  # fmt: skip
    """See `compiled.attention.slopes_tile`."""
    tile *= scale
    tile -= logs[..., None]
    np.exp(tile, out=tile)
    _hide(tile, first, causal, 0)
    slopes -= means[..., None]
    slopes *= tile
    slopes *= scale


def _hide(tile: NDArray, first: int, causal: bool, value: float) -> None:
    """Set what stands for keys that a query does not see."""
    rows, keys = tile.shape[1:]
    if causal and first < keys:
        tile[..., first:][..., ~np.tri(rows, keys - first, dtype=bool)] = value


def _plan(q: NDArray, k: NDArray, mask: NDArray | None, is_causal: bool, scale: float) -> _Plan:
    shape = (*q.shape[:3], k.shape[2])
    added = None
    if mask is not None:
        added = np.broadcast_to(widen(mask).astype(q.dtype, copy=False), shape)
    return _Plan(shape, q.dtype, added, is_causal, scale)


def _for_each_head(x: NDArray, q: NDArray) -> NDArray:
    """Keys or values for each head of `q`, where a group of heads shares them."""
    groups = q.shape[1] // x.shape[1] if x.shape[1] else 1
    return x if groups == 1 else np.repeat(x, groups, axis=1)


def _over_heads(grad: NDArray, groups: int) -> NDArray:
    """The adjoint: summed over the heads that share."""
    batch, heads, *rest = grad.shape
    return grad if heads == groups else grad.reshape(batch, groups, -1, *rest).sum(axis=2)


def causal_mask(length: int, keys: int, dtype: DTypeLike) -> NDArray:
    """What makes row i attend to the columns up to i only, when it is added to the logits."""
    mask = np.zeros((length, keys), dtype)
    mask[~np.tri(length, keys, dtype=bool)] = -np.inf
    return mask
