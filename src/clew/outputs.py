"""What happens to a tensor that is given as ``out=``.  Layer 4.

The result is computed first and then put into `out`.  Before that `out` is checked: its type, its
history, and whether it shares memory with what the function has read.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from clew import dtypes
from clew.autograd.modes import no_grad, state
from clew.autograd.transforms import running
from clew.autograd.views import has_tangent
from clew.dispatch import apply_inplace
from clew.errors import RequiresGradError
from clew.observers import tell_memory
from clew.op import REGISTRY
from clew.rng.target import range_of
from clew.storage import has_no_gaps, refuse_overlap, resized, restrided
from clew.tensor import Tensor

_EXACTLY = "Expected out tensor to have dtype {want}, but got {got} instead"
_SAME = "{name}(): self and result must have the same scalar type"
_SCALAR = "Expected object of scalar type {Want} but got scalar type {Got} for argument 'out'"
_TYPES = {
    **dict.fromkeys(
        ("addmm", "aminmax", "baddbmm", "bmm", "gather", "max", "min", "mm", "sort", "topk"),
        _EXACTLY,
    ),
    **dict.fromkeys(("index_select", "masked_select"), _SAME),
    **dict.fromkeys(("complex", "polar"), _SCALAR),
    "take": "take(): self and out expected to have the same dtype, but got self.dtype = {Want} and "
    "out.dtype = {Got}",
    "multinomial": "multinomial expects {Want} tensor out, got: {Got}",
    "nonzero": "nonzero: Expected out tensor to have scalar type {Want} but got scalar type{Got}",
}
"""Functions that write to no other type than that of their result, and what they say."""

_APART = ("cat", "gather", "index_select", "kthvalue", "masked_select", "stack", "take", "topk")
"""Functions that may not write to what they read."""


def write_out(
    out: Any, result: Any, name: str = "this function", inputs: Sequence[Any] = ()
) -> Any:
    """Put a result of the function `name` into the tensor given as ``out=``, resized if need be.

    Args:
        out: the tensor, or a sequence of them for several results.
        result: what was computed.
        name: the function, for messages.
        inputs: what it was computed from, which `out` may be but must not overlap otherwise.

    Raises:
        RuntimeError: the result cannot be cast to the type of `out`, `out` overlaps one of the
            inputs, or one takes part in autograd.
        NotImplementedError: `out` or the result has a tangent.
    """
    if isinstance(out, (tuple, list)):
        for o, r in zip(out, result):
            _check(o, r, name, inputs)
        written = [_write(o, r) for o, r in zip(out, result)]
        return result._make(written) if hasattr(result, "_make") else tuple(written)
    _check(out, result, name, inputs)
    return _write(out, result)


def refuse_recorded(out: Any, name: str, inputs: Any) -> None:
    """Refuse an ``out=`` where something requires grad, before anything is computed."""
    if not state.now.grad_enabled:
        return
    outs = out if isinstance(out, (tuple, list)) else (out,)
    recorded = [x for x in (*outs, *inputs) if isinstance(x, Tensor) and x.requires_grad]
    if recorded:
        called = f"{name}(): " if name else ""
        raise RequiresGradError(
            f"{called}functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad.",
            recorded[0],
            "leave out= out, or compute inside `with torch.no_grad():`",
        )


def _check(out: Any, result: Tensor, name: str, inputs: Sequence[Any]) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    refuse_recorded(out, name, (result,))
    if running and (has_tangent(out) or has_tangent(result)):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an "
            "out= function"
        )
    _check_type(out._array.dtype, result._array.dtype, name)
    op = REGISTRY.get(name)
    elementwise = op is not None and (op.promotion is not None or op.domain is not None)
    if elementwise or name in _APART:
        for array in _arrays(inputs):
            refuse_overlap(out._array, array, same=elementwise)
    if out._array.shape != result._array.shape and any(x is out for x in inputs):
        raise RuntimeError(
            f"output with shape {list(out._array.shape)} doesn't match the broadcast shape "
            f"{list(result._array.shape)}"
        )


def _check_type(got: np.dtype, want: np.dtype, name: str) -> None:
    names = {"Got": dtypes.scalar_name(got), "Want": dtypes.scalar_name(want)}
    if got != want and name in _TYPES:
        plain = {"got": range_of(got).c_name, "want": range_of(want).c_name}
        raise RuntimeError(_TYPES[name].format(name=name, **names, **plain))
    if not dtypes.can_cast(dtypes.of_numpy(want), dtypes.of_numpy(got)):
        raise RuntimeError(
            f"result type {names['Want']} can't be cast to the desired output type {names['Got']}"
        )


def _arrays(inputs: Any) -> Iterator[np.ndarray]:
    """The arrays of the tensors among the arguments, also in lists of them."""
    for value in inputs:
        if isinstance(value, Tensor):
            yield value._array
        elif isinstance(value, (tuple, list)):
            yield from _arrays(value)


def _write(out: Tensor, result: Tensor) -> Tensor:
    with no_grad():
        if out._array.shape != result._array.shape:
            _resize(out, result._array)
        return apply_inplace(REGISTRY["copy"], out, (result,))


def _resize(out: Tensor, result: np.ndarray) -> None:
    """Give an output the size of a result, which it then lies as in memory, with PyTorch's warning
    if it has elements."""
    shape = result.shape
    if out._array.size:
        warnings.warn(
            "An output with one or more elements was resized since it had shape "
            f"{list(out._array.shape)}, which does not match the required output shape "
            f"{list(shape)}. This behavior is deprecated, and in a future PyTorch release outputs "
            "will not be resized unless they have zero elements. You can explicitly reuse an out "
            "tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            UserWarning,
            stacklevel=6,
        )
    array = resized(out._array, shape)
    if not result.flags.c_contiguous and has_no_gaps(result):
        steps = [s // result.itemsize * array.itemsize for s in result.strides]
        array = restrided(array, shape, tuple(steps))
    out._array = array
    tell_memory(out)
