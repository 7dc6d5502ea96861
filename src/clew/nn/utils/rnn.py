"""Sequences of different lengths in one batch: padded, or packed without padding.

May import the core of clew.

Packed sequences are sorted by length, longest first, and stored step by step: first the first
elements of all, then the second elements of all that have one, and so on.  `batch_sizes` says how
many there are at each step.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple, Self

import clew

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
    "pack_sequence",
    "unpack_sequence",
]


class PackedSequence_(NamedTuple):
    """The fields of a `PackedSequence`."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(PackedSequence_):
    """Packed sequences, as `pack_padded_sequence` and `pack_sequence` make them.

    Attributes:
        data: the elements of all steps, (N, *).
        batch_sizes: how many belong to each step.
        sorted_indices: where each sequence was before it was sorted by length, or None.
        unsorted_indices: the inverse of that.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> Self:
        if batch_sizes is None:
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The data in another type; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """Itself: it is on the CPU."""
        return self

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Raises AssertionError: clew runs on the CPU."""
        return self.to(*args, device="cuda", **kwargs)

    def double(self) -> Self:
        """The data as float64."""
        return self.to(dtype=clew.float64)

    def float(self) -> Self:
        """The data as float32."""
        return self.to(dtype=clew.float32)

    def half(self) -> Self:
        """The data as float16."""
        return self.to(dtype=clew.float16)

    def long(self) -> Self:
        """The data as int64."""
        return self.to(dtype=clew.int64)

    def int(self) -> Self:
        """The data as int32."""
        return self.to(dtype=clew.int32)

    def short(self) -> Self:
        """The data as int16."""
        return self.to(dtype=clew.int16)

    def char(self) -> Self:
        """The data as int8."""
        return self.to(dtype=clew.int8)

    def byte(self) -> Self:
        """The data as uint8."""
        return self.to(dtype=clew.uint8)

    @property
    def is_cuda(self) -> bool:
        """False: the data is on the CPU."""
        return False

    def is_pinned(self) -> bool:
        """False: pinned memory serves GPUs."""
        return False


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes another; None for None."""
    return None if permutation is None else permutation.argsort()


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Take the padding out.

    Args:
        input: padded sequences (T, B, *), or (B, T, *) with `batch_first`.
        lengths: of the sequences.
        batch_first: see `input`.
        enforce_sorted: the sequences must come sorted by falling length; else they are sorted.

    Raises:
        RuntimeError: a length is not positive, they are not sorted, or not as many as sequences.
    """
    lengths = clew.as_tensor(lengths, dtype=clew.int64)
    order = None
    if not enforce_sorted:
        lengths, order = clew.sort(lengths, descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    padded = input.transpose(0, 1) if batch_first else input
    sizes = _batch_sizes(lengths.tolist(), padded.shape[1])
    steps = [padded[t].narrow(0, 0, size) for t, size in enumerate(sizes)]
    return PackedSequence(clew.cat(steps), clew.as_tensor(sizes), order, None)


def _batch_sizes(lengths: list[int], batch: int) -> list[int]:
    """How many sequences are as long as each step."""
    if len(lengths) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} "
            f"(batch_size={batch})"
        )
    if any(short > long for long, short in pairwise(lengths)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if lengths[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    return [sum(length > step for length in lengths) for step in range(lengths[0])]


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:
    """Put the padding back.

    Args:
        sequence: packed sequences.
        batch_first: give (B, T, *) and not (T, B, *).
        padding_value: what to pad with.
        total_length: T; by default that of the longest sequence.

    Returns:
        The padded sequences, in their order from before packing, and their lengths.

    Raises:
        ValueError: `total_length` is too short.
    """
    sizes = sequence.batch_sizes.tolist()
    total = len(sizes) if total_length is None else total_length
    if total < len(sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but "
            f"got total_length={total} and max sequence length being {len(sizes)}"
        )
    # A row of padding after the data, to which every missing element points.
    data = sequence.data
    row = data.new_full((1, *data.shape[1:]), padding_value)
    places = [len(data)] * (total * sizes[0])
    start = 0
    for step, size in enumerate(sizes):
        places[step * sizes[0] : step * sizes[0] + size] = range(start, start + size)
        start += size
    padded = clew.cat([data, row]).index_select(0, clew.as_tensor(places, dtype=clew.int64))
    padded = padded.view(total, sizes[0], *data.shape[1:])
    if batch_first:
        padded = padded.transpose(0, 1)
    lengths = clew.as_tensor([sum(size > b for size in sizes) for b in range(sizes[0])])
    original = sequence.unsorted_indices
    if original is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, original), lengths[original]


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Sequences (T_i, *) as one tensor (T, B, *), or (B, T, *) with `batch_first`.

    Args:
        sequences: tensors that differ in their first dimension only.
        batch_first: see above.
        padding_value: what to pad with.
        padding_side: "right" or "left".

    Raises:
        RuntimeError: `sequences` is not iterable, or empty, or the side is another.
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    listed: list[Any] = list(sequences)
    if not listed:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    longest = max(len(sequence) for sequence in listed)
    padded = [_padded(s, longest - len(s), padding_value, padding_side) for s in listed]
    return clew.stack(padded, 0 if batch_first else 1)


def _padded(sequence: Any, missing: int, value: float, side: str) -> Any:
    if not missing:
        return sequence
    padding = sequence.new_full((missing, *sequence.shape[1:]), value)
    return clew.cat([padding, sequence] if side == "left" else [sequence, padding])


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences that `pad_sequence` has padded on the right."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[: int(length)] for sequence, length in zip(padded_sequences, lengths.tolist())]


def pack_sequence(sequences: list[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (T_i, *).

    Raises:
        RuntimeError: they are not sorted by falling length, and must be.
    """
    lengths = [sequence.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences that `pack_sequence` has packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
