"""What tensors hold: the fields of `Tensor`, which is a class of Python's in any case.  Layer 0.

Methods are installed on `Tensor`, and users derive from it; a class that is compiled ahead (Note
[Compiled core] in ``ahead.py``) takes no methods later.  So the fields, which every operation reads
and writes, have a class of their own.
"""

from __future__ import annotations

from typing import Any


class TensorFields:
    """The fields of a tensor; `Tensor` says what they are."""

    __slots__ = (
        "_array", "_counter", "_cut", "_grad", "_meta", "_node", "_output_nr", "_requires_grad",
    )  # fmt: skip


new: Any = TensorFields.__new__
"""``new(Tensor)``: a tensor whose fields the caller sets.  (`Tensor` itself takes what PyTorch's
legacy constructor takes.)"""
