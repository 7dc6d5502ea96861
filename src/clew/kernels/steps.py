"""Runs the steps of a recurrent layer, forward or backward.

Imports NumPy, threads, oneDNN and sibling kernels. B sequences, H features of a state; N rows, one
for each sequence at each step.

Note [Steps]
    The rows of a step are the sequences that have one, longest first (all of them, or those of a
    packed sequence that have not ended), and lie behind those of the step before: so an array of
    all steps is (N, ...).  The state of a sequence that has no row stays what it is; so after the
    last step the states are the last ones of all sequences, in either direction.

    What a step does beside its matrix product is a function of arrays, or a compiled twin.  A twin
    can run all steps by itself, without coming back to Python: it is given the address of oneDNN's
    function for products (Note [Products in twins]).  Sequences do not see one another, so the
    batch is split among threads, each of which goes through all steps (Note [Threads]).  Without
    oneDNN, or for float64, `product` comes before each step, whose number the twin is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clew.threads import split

from . import onednn
from .compiled import twins
from .product import PIECE, add_product, product

Arrays = Sequence[NDArray]

SMALL = 4096
"""Elements of the gates of all steps from which twins run: they are faster for any number, by 30 us
a step at least, but their import and oneDNN's take a quarter of a second."""

ROWS = 16
"""Sequences of a thread, at least: those of half as many take a twentieth longer (measured)."""

_SINGLE = np.dtype(np.float32)


class Steps(NamedTuple):
    """The steps of a layer in the order in which they run; see Note [Steps].

    Attributes:
        spans: of each step the first row and the number of rows.
        table: the same for twins, (T, 2).
        reverse: the last step comes first.
        even: all steps have as many rows.
    """

    spans: tuple[tuple[int, int], ...]
    table: NDArray
    reverse: bool
    even: bool

    def before(self, n: int, rows: NDArray, initial: NDArray) -> NDArray:
        """What came before the n-th step to run: of the step before it, or `initial`."""
        count = self.spans[n][1]
        first, held = self.spans[n - 1] if n else (0, 0)
        if count <= held:
            return rows[first : first + count]
        if held == 0:
            return initial[:count]
        return np.concatenate((rows[first : first + held], initial[held:count]))


@lru_cache(64)
def steps_of(sizes: tuple[int, ...], reverse: bool) -> Steps:
    """The steps of these numbers of rows, which never grow."""
    ends = np.cumsum(sizes, dtype=np.int64)
    table = np.stack((ends - sizes, sizes), 1).astype(np.int64)
    table = np.ascontiguousarray(table[::-1] if reverse else table)
    return Steps(
        tuple((first, rows) for first, rows in table.tolist()),
        table, reverse, sizes[0] == sizes[-1],
    )  # fmt: skip


def project(x: NDArray, weight: NDArray, width: int) -> NDArray:
    """``x W`` for all rows (N, I), in the first columns of an array (N, width)."""
    out = np.empty((len(x), width), x.dtype)
    product(np.matmul, x, weight.T, out[:, : len(weight)])
    return out


def total(bias: NDArray | None, other: NDArray | None, like: NDArray, width: int) -> NDArray:
    """The sum of those of two biases that there are."""
    if bias is None or other is None:
        given = other if bias is None else bias
        return np.zeros(width, like.dtype) if given is None else np.ascontiguousarray(given)
    return bias + other


def forward(
    steps: Steps, weight: NDArray, sequences: Arrays, states: Arrays, constants: Sequence[Any],
    twin: str, step: Callable[..., None],
) -> None:  # fmt: skip
    """Run all steps.

    Args:
        steps: which they are.
        weight: (G, H) by which the hidden state is multiplied.
        sequences: contiguous arrays (N, ...) that a step reads and writes.
        states: contiguous arrays (B, H) that it replaces; the first is the hidden state.
        constants: what is the same at each step.
        twin: the name of one in ``compiled/recurrent.py``.
        step: what it does; is given the rows of sequences, states and products, and the constants.
    """
    products = np.empty((len(states[0]), len(weight)), weight.dtype)
    across, fast = _transposed(weight), _twin(twin, steps, weight)
    if fast is not None:
        arrays = (*sequences, *states, products, across, *constants)
        if _in_pieces(fast, arrays, steps, across, len(products)):
            return
    for n, (first, count) in enumerate(steps.spans):
        product(np.matmul, states[0][:count], across, products[:count])
        if fast is not None:
            fast(*arrays, steps.table, n, n + 1, 0, count, 0)
            continue
        now = slice(first, first + count)
        rows = (*[x[now] for x in sequences], *[x[:count] for x in states], products[:count])
        step(*rows, *constants)


def backward(
    steps: Steps, weight: NDArray, sequences: Arrays, states: Arrays, reads: Arrays,
    initial: NDArray, constants: Sequence[Any],
    twin: str, step: Callable[..., None],
) -> None:  # fmt: skip
    """Run all steps backward, the last first.

    Args:
        steps: as they ran forward.
        weight: (G, H) by which the hidden state was multiplied.
        sequences: contiguous arrays (N, ...) that a step writes; the last is the gradient of the
            product.
        states: contiguous arrays (B, H), the gradients of the states; of the first, that of the
            hidden state, a step leaves what does not come through the product.
        reads: contiguous arrays (N, ...), the last of them a state after all steps.
        initial: a contiguous array (B, H), that state before the first step.
        constants: what is the same at each step.
        twin: the name of one in ``compiled/recurrent.py``; none if empty.
        step: what it does; is given the rows of sequences, states and reads, the state before the
            step, and the constants.
    """
    weight = np.ascontiguousarray(weight)
    fast = _twin(twin, steps, weight)
    if fast is not None:
        arrays = (*sequences, *states, weight, *reads, initial, *constants)
        if _in_pieces(fast, arrays, steps, weight, len(initial)):
            return
    for n in reversed(range(len(steps.spans))):
        first, count = steps.spans[n]
        now = slice(first, first + count)
        if fast is not None:
            fast(*arrays, steps.table, n, n + 1, 0, count, 0)
        else:
            rows = (*[x[now] for x in sequences], *[x[:count] for x in states])
            step(*rows, *[x[now] for x in reads], steps.before(n, reads[-1], initial), *constants)
        add_product(sequences[-1][now], weight, states[0][:count])


def _transposed(x: NDArray) -> NDArray:
    """A contiguous copy of ``x.T``, by some columns at a time, which stay in the cache."""
    out = np.empty(x.shape[::-1], x.dtype)
    for start in range(0, len(x), 16):
        out[:, start : start + 16] = x[start : start + 16].T
    return out


def _twin(name: str, steps: Steps, weight: NDArray) -> Callable[..., None] | None:
    """The twin for so many steps; None where NumPy is to be used."""
    rows = sum(count for _, count in steps.spans)
    few = not name or rows * len(weight) <= SMALL
    found = None if few else twins("recurrent", weight.dtype)
    return None if found is None else getattr(found, name)


def _in_pieces(
    twin: Callable[..., None], arrays: Sequence[Any], steps: Steps, weight: NDArray, batch: int
) -> bool:
    """Run all steps by the twin, if oneDNN can multiply; whether it did."""
    products = onednn.products() if weight.dtype == _SINGLE else None
    if products is None or batch * weight.size > products.most:
        return False
    gemm, count = products.address, len(steps.spans)

    def piece(start: int, stop: int) -> None:
        with products.one_thread():
            twin(*arrays, steps.table, 0, count, start, stop, gemm)

    work = weight.size * sum(rows for _, rows in steps.spans)
    split(piece, batch, max(ROWS, -(-PIECE * batch // max(work, 1))))
    return True
