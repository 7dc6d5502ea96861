"""What a write in place refuses because of memory, types or history.  Layer 4.

`apply_inplace` (``dispatch.py``) asks here, in PyTorch's order.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import storage
from clew.errors import ExpandedWriteError
from clew.op import Op
from clew.quiet import quietly
from clew.tensor import Tensor


def refuse_shared(target: Tensor, inputs: Sequence[Any]) -> None:
    """Refuse operands that overlap what is written to, unless they are that."""
    for x in inputs:
        if isinstance(x, Tensor) and (x._counter is target._counter or _is_one_storage(x, target)):
            storage.refuse_overlap(target._array, x._array, same=True)


def _is_one_storage(x: Tensor, target: Tensor) -> bool:
    """Whether two tensors that count their writes apart, as ``.data`` makes one, share memory."""
    first, second = x._array, target._array
    if second.base is None and (first.base is None or first.base.__class__ is np.ndarray):
        return first is second or first.base is second
    return storage.root(first) is storage.root(second)


_COMPARISONS = frozenset({"eq", "ge", "gt", "le", "lt", "ne"})
"""Ops without a gradient of which PyTorch makes nodes all the same before it looks at types."""


def ask_for_history(op: Op, inputs: Sequence[Any]) -> None:
    """Refuse operands whose history is lost; PyTorch asks for it though it records nothing."""
    for x in inputs if op.rules or op.name in _COMPARISONS else ():
        if isinstance(x, Tensor) and x.requires_grad:
            x._gradient_edge()


_HARMLESS = frozenset({"threshold_", "tril_", "triu_"})
"""Writes that PyTorch lets pass where elements share memory."""


def check_types(op: Op, operands: Sequence[Any], attrs: dict[str, Any]) -> None:
    """Let an operation refuse types, which PyTorch looks at before it looks at memory.

    What only a kernel refuses ("..." not implemented for ...) it refuses after that.
    """
    if op.name == "copy":
        return
    small = [np.ones((), x._array.dtype) if isinstance(x, Tensor) else x for x in operands]
    try:
        quietly(op.forward, small if op.promotion is None else op.promotion(small), attrs)
    except TypeError:
        return
    except RuntimeError as error:
        if not str(error).startswith('"'):
            raise


def check_expanded(target: Tensor, inputs: Sequence[Any], name: str) -> None:
    """Refuse a write to elements that share memory, unless it writes one value to all of them.

    PyTorch lets writes by an index pass as well, with a warning.
    """
    if name == "copy_" and storage.same_elements(target._array, inputs[0]._array):
        return
    if name in _HARMLESS:
        return
    if name == "nan_to_num_" and target._array.dtype.kind in "biu":
        return
    if name in ("index_fill_", "index_put_", "masked_fill_"):
        if name != "index_put_":
            warn_expanded(name)
        elif _is_fill(inputs):
            warn_expanded("masked_fill_")
    elif name not in ("fill_", "zero_") or any(isinstance(x, Tensor) for x in inputs):
        raise ExpandedWriteError(target, name)


def _is_fill(inputs: Sequence[Any]) -> bool:
    """Whether PyTorch takes a write of a value at indices for `masked_fill_`."""
    value, *indices = [x._array if isinstance(x, Tensor) else x for x in inputs]
    one_mask = [i.dtype == np.bool_ for i in indices if i is not None] == [True]
    return one_mask and getattr(value, "size", 1) == 1


def warn_expanded(name: str) -> None:
    """Warn of a write by an index to elements that share memory."""
    by_index = name == "index_put_"
    warnings.warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before "
        "performing this operation. This also applies to advanced indexing e.g. "
        f"tensor[{'indices' if by_index else 'mask'}] = {'tensor' if by_index else 'scalar'}",
        UserWarning,
        stacklevel=5,
    )
