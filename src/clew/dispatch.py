"""The one door that every op passes: promote, run, save, link, tell the observers.

Layer 4.  `apply` computes a new tensor, `apply_inplace` writes into one.  Everything that an op
does comes from its declaration (see ``op.py``); here is only the order in which it happens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy import ndarray

from clew import dtypes, storage
from clew.autograd.modes import state
from clew.autograd.transforms import innermost, running
from clew.autograd.views import Creation, check_inplace, mark_view, refuse_inference
from clew.errors import OtherLayout
from clew.fields import new
from clew.kernels.pointwise import MANY
from clew.namespace import Namespace
from clew.observers import observers
from clew.op import NO_ATTRS, REQUIRED, Op
from clew.ops.layout import in_order_of_operands
from clew.ops.rules import broadcast_shape
from clew.quiet import quietly, quietly_again
from clew.recording import after_write, before_write, record
from clew.site import here
from clew.storage import new_counter
from clew.tensor import Tensor
from clew.writes import (
    ask_for_history,
    check_expanded,
    check_types,
    refuse_shared,
    warn_expanded,
)


def apply(op: Op, inputs: Sequence[Any], attrs: dict[str, Any] = NO_ATTRS) -> Any:
    """Run `op` on tensors (and numbers), recorded if anything requires grad; its output(s)."""
    if (running or (observers and observers.before_op)) and (
        taken := _before(op, inputs, attrs)
    ) is not None:
        return taken
    given: list[Any] = []
    mask, bit, cut = 0, 1, None
    try:
        for x in inputs:
            if isinstance(x, Tensor):
                tensor = x
                given.append(x._array)  # some subclasses have none and raise
                if tensor._requires_grad or (tensor._meta is not None and x.requires_grad):
                    mask |= bit
                elif tensor._cut is not None:
                    cut = tensor._cut
            else:
                plain = type(x) in _PLAIN and not op.tensors_only
                given.append(x if plain else _operand(op, x, len(given)))
            bit <<= 1
    except OtherLayout:
        return run_sparse(op.name, inputs, attrs)
    arrays = given if op.promotion is None else op.promotion(given)
    forward = op.forward
    if op.large is not None and type(arrays[0]) is ndarray and arrays[0].size >= MANY:
        forward = op.large
    now = state.now
    try:
        # An empty ** costs a tenth of a microsecond.
        result = now.quiet(forward, *arrays, **attrs) if attrs else now.quiet(forward, *arrays)
    except RuntimeError as error:
        result = quietly_again(error, forward, arrays, attrs)
    except ValueError as error:
        raise as_torch_says(error, arrays) from None
    if type(result) is tuple:
        return _many(op, inputs, attrs, mask, cut, result)
    if type(result) is not ndarray or (op.mixes and result.ndim > 1):
        result = in_order_of_operands(result, given)
    out = new(Tensor)
    out._array = result
    out._grad = out._meta = None
    if op.view:
        out._counter = inputs[0]._counter
        if not mark_view(out, inputs[0], Creation.NORMAL, (apply, op, attrs)):
            mask, cut = 0, inputs[0]._cut
    else:
        out._counter = new_counter()
    node = None
    if mask and now.grad_enabled and op.rules:
        node = record(op, inputs, attrs, mask, (out,))
    out._node, out._output_nr = node, 0
    out._requires_grad = node is not None
    out._cut = None if node is not None else _cut_by(op) if mask else cut
    if now.inference:
        _mark_inference(op, inputs, out)
    if observers:
        for on_op in observers.on_op:
            on_op(op, tuple(inputs), (out,), node, attrs)
    return out


def _before(op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """The result of an op, if a running transform takes it over; else observers are told of it."""
    level = innermost()
    if level is not None:
        return level.apply(op, inputs, attrs)
    for before_op in observers.before_op:
        before_op(op, tuple(inputs), attrs)
    return None


def run_sparse(name: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """What an op or function makes of inputs of which some are sparse."""
    from clew.sparse.operations import run

    return run(name, inputs, attrs)


def _many(
    op: Op, inputs: Sequence[Any], attrs: dict[str, Any], mask: int, cut: Any,
    results: tuple[Any, ...],
) -> tuple[Tensor, ...]:  # fmt: skip
    """The rest of `apply` for an op of several outputs; None is one that was not asked for."""
    outs: list[Any] = []
    for result in results:
        if result is None:
            outs.append(None)
            continue
        out = new(Tensor)
        out._array = result if result.__class__ is np.ndarray else np.asarray(result)
        out._grad = out._meta = out._node = out._cut = None
        out._output_nr = 0
        out._requires_grad = False
        if op.view:
            out._counter = inputs[0]._counter
            if not mark_view(out, inputs[0], Creation.MULTI_OUTPUT):
                mask, cut = 0, inputs[0]._cut
        else:
            out._counter = new_counter()
        if state.now.inference:
            _mark_inference(op, inputs, out)
        outs.append(out)
    node = None
    if mask and state.now.grad_enabled and op.rules:
        node = record(op, inputs, attrs, mask, outs)
        if node is not None:
            for nr, out in enumerate(outs):
                if out is None or nr in op.no_grad_outputs:
                    continue
                if out._array.dtype.kind in "fcV":
                    out._node = node
                    out._output_nr = nr
                    out._requires_grad = True
    if mask or cut:
        outside = [out for out in outs if out is not None and out._node is None]
        if mask and outside:
            cut = _cut_by(op)
        for out in outside:
            out._cut = cut
    if observers:
        for on_op in observers.on_op:
            on_op(op, tuple(inputs), tuple(outs), node, attrs)
    return tuple(outs)


def apply_inplace(
    op: Op,
    target: Tensor,
    inputs: Sequence[Any],
    attrs: dict[str, Any] = NO_ATTRS,
    name: str | None = None,
) -> Tensor:
    """Run `op` on ``(target, *inputs)`` and write the result into `target`.

    `name` is what messages call the write, if not the op's name with an underscore.

    Raises:
        RuntimeError: autograd cannot follow the write, the result does not fit the target's shape
            or type, or the target names one memory location more than once.
    """
    name = name or op.label + "_"
    if running and (level := innermost()) is not None:
        found: Tensor = level.apply_inplace(op, target, inputs, attrs, name)
        return found
    operands = (target, *inputs)
    arrays: list[Any] = []
    mask, bit = 0, 1
    for x in operands:
        if isinstance(x, Tensor):
            arrays.append(x._array)
            if x.requires_grad:
                mask |= bit
        else:
            plain = x.__class__ in _PLAIN and not op.tensors_only
            arrays.append(x if plain else _operand(op, x, len(arrays)))
        bit <<= 1
    array = target._array
    differentiable = array.dtype.kind in "fcV"
    records = bool(mask) and state.now.grad_enabled and (differentiable or op.name != "copy")
    check_inplace(target, name, records)
    elementwise = op.promotion is not None or op.domain is not None or op.name == "copy"
    expanded = storage.overlaps_itself(array)
    if elementwise:
        if expanded:
            check_types(op, operands, attrs)
            check_expanded(target, inputs, name)
        refuse_shared(target, inputs)
    if op.promotion is not None:
        arrays = op.promotion(arrays)
    if (expanded and not elementwise) or (target._meta is not None and target._meta.inference):
        _check_late(op, target, inputs, arrays, attrs, name)
    if observers:
        for before_inplace in observers.before_inplace:
            before_inplace(op, target, tuple(inputs), attrs)
    if records and not differentiable:
        ask_for_history(op, inputs)
        records = False
    pending = before_write(op, operands, attrs, mask) if records else None
    _write(op, arrays, attrs, array)
    target._counter.bump(name)
    node = None if pending is None else after_write(pending, target, attrs)
    if observers:
        for on_inplace in observers.on_inplace:
            on_inplace(op, target, node)
    return target


def _check_late(
    op: Op, target: Tensor, inputs: Sequence[Any], arrays: list[Any], attrs: dict[str, Any],
    name: str,
) -> None:  # fmt: skip
    """Refuse what PyTorch refuses after it has looked at the operands: writes to expanded tensors
    by other than elementwise operations, and to inference tensors outside of inference mode."""
    expanded = storage.overlaps_itself(target._array)
    if not expanded and state.now.inference:
        return
    if expanded and name == "index_put_":
        warn_expanded(name)
    elif expanded and name == "fill_" and inputs and not getattr(inputs[0], "ndim", 1):
        check_expanded(target, inputs, name)
    copied = target._array.copy()
    # An operand that is the target itself stays that for what `op.write` refuses.
    alike = arrays if op.write is not None else arrays[:1]
    given = [copied if x is target._array else x for x in alike]
    _write(op, given + arrays[len(given) :], attrs, copied, memory=target._array)
    if expanded:
        check_expanded(target, inputs, name)
    refuse_inference(target)


_READ_WHILE_WRITING = frozenset({"index_add", "index_reduce", "scatter", "scatter_add"})
"""Ops in place that refuse an operand in the memory that they write to."""


def _write(
    op: Op, arrays: list[Any], attrs: dict[str, Any], array: np.ndarray, memory: Any = None
) -> None:
    """Compute the result and put it into `array`, the memory of the target or a copy of `memory`.

    Raises:
        RuntimeError: the operation cannot be done in place on these operands.
    """
    if op.write is not None:
        quietly(op.write, arrays, attrs)
        return
    if op.large is not None and _are_like(arrays, array):
        quietly(op.large, arrays, {**attrs, "out": array})
        return
    try:
        result = quietly(op.forward, arrays, attrs)
    except ValueError as error:
        raise as_torch_says(error, arrays) from None
    check_fit(result, array)
    memory = array if memory is None else memory
    if op.name in _READ_WHILE_WRITING and not storage.overlaps_itself(memory):
        for x in arrays[1:]:
            if isinstance(x, np.ndarray):
                storage.refuse_overlap(memory, x, same=False)
    array[...] = result


def _are_like(arrays: list[Any], target: np.ndarray) -> bool:
    """Whether an elementwise result fits `target`, the first operand, as it is."""
    return arrays[0] is target and all(
        x.__class__ is not np.ndarray
        or (x.dtype == target.dtype and (x.shape == target.shape or not x.ndim))
        for x in arrays
    )


def _mark_inference(op: Op, inputs: Sequence[Any], out: Tensor) -> None:
    """Results of inference mode are inference tensors, but views of normal tensors are normal."""
    if op.view and not inputs[0].is_inference():
        return
    out._ensure_meta().inference = True
    out._cut = state.now.cut


def _cut_by(op: Op) -> tuple[str, Any]:
    """What keeps the result of `op`, of which an input requires grad, out of the graph."""
    if state.now.grad_enabled:
        return (op.label, here(2))
    return state.now.cut or _BACKWARD


_BACKWARD = ("a backward pass without create_graph", None)


_PLAIN = frozenset({bool, int, float, complex})


_NUMBERS = (Number, np.generic)
"""By name: in a tuple that is written out, Cython passes over what `Number` may raise: Ctrl-C."""


class OperandError(TypeError):
    """An operand is neither a tensor nor a number."""


def _operand(op: Op, x: Any, index: int) -> Any:
    """An operand that is neither a tensor nor a Python number that the op takes.

    Raises:
        OperandError: it cannot be one.
    """
    name = op.inputs[min(index, len(op.inputs) - 1)]
    if x is None and op.input_defaults[name] is None:
        return x
    if isinstance(x, _NUMBERS) and not op.tensors_only:
        x = x.item() if isinstance(x, np.generic) else x
        return x if isinstance(x, (bool, int, float, complex)) else float(x)
    name = "input" if name == "self" else name
    raise OperandError(
        f"{op.label}(): argument '{name}' (position {index + 1}) must be Tensor, not "
        f"{'numpy.ndarray' if isinstance(x, np.ndarray) else type(x).__name__}"
    )


def as_torch_says(error: ValueError, arrays: Sequence[Any] | None = None) -> Exception:
    """PyTorch's error for operands that cannot be broadcast; any other as it is.

    Without `arrays` the shapes are those that NumPy names.
    """
    if not str(error).startswith("operands could not be broadcast"):
        return error
    if arrays is None:
        shapes = [tuple(map(int, re.findall(r"\d+", s))) for s in _SHAPE.findall(str(error))]
    else:
        shapes = [x.shape for x in arrays if isinstance(x, np.ndarray)]
    try:
        broadcast_shape(*shapes)
    except RuntimeError as mismatch:
        return mismatch
    return error


_SHAPE = re.compile(r"\([\d,]*\)")


def check_fit(result: Any, array: np.ndarray) -> None:
    shape = getattr(result, "shape", ())
    if shape != array.shape:
        try:
            fits = np.broadcast_shapes(shape, array.shape) == array.shape
        except ValueError:
            fits = False
        if not fits:
            raise RuntimeError(
                f"output with shape {list(array.shape)} doesn't match the broadcast shape "
                f"{list(shape)}"
            )
    source, target = dtypes.of_numpy(result.dtype), dtypes.of_numpy(array.dtype)
    if not dtypes.can_cast(source, target):
        names = dtypes.SCALAR_NAMES
        raise RuntimeError(
            f"result type {names[source.name]} can't be cast to the desired output type "
            f"{names[target.name]}"
        )


def _of_tensors(op: Op) -> Callable[..., Any]:
    bind = _binder(op)

    def call(*args: Any, **kwargs: Any) -> Any:
        return apply(op, args) if bind is None else apply(op, *bind(args, kwargs))

    call.__name__ = call.__qualname__ = op.name
    return call


def _of_arrays(op: Op) -> Callable[..., Any]:
    forward, promote, mixes, bind = op.forward, op.promotion, op.mixes, _binder(op)
    plain = promote is None and not mixes
    if plain and bind is None:
        return forward

    def call(*args: Any, **kwargs: Any) -> Any:
        given: Any = args
        if bind is not None:
            given, kwargs = bind(args, kwargs)
        if plain:
            return forward(*given, **kwargs)
        inputs = given if promote is None else promote(list(given))
        result = forward(*inputs, **kwargs)
        if mixes and result.__class__ is np.ndarray and result.ndim > 1:
            return in_order_of_operands(result, given)
        return result

    call.__name__ = call.__qualname__ = op.name
    return call


Bind = Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, dict[str, Any]]]


def _binder(op: Op) -> Bind | None:
    """`op.bind`, faster for how rules call ops: with all attributes by position, or all by keyword;
    None if there is nothing to bind, for an op is called with its inputs only."""
    if op.order or op.variadic_input:
        return op.bind
    if not op.attrs and all(default is REQUIRED for default in op.input_defaults.values()):
        return None
    bind, count, names, attr_names = op.bind, op.plain_count, op.attrs, op.attr_names
    several = -1 if op.keyword_only or op.variadic_attr else count + len(names)

    def bound(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if len(args) == count and kwargs.keys() == attr_names:
            return args, kwargs
        if not kwargs and len(args) == several:
            return args[:count], dict(zip(names, args[count:]))
        return bind(args, kwargs)

    return bound


TENSORS = Namespace(_of_tensors)
"""Every op on Tensors, recording: the ``F`` of rules under ``create_graph``."""

ARRAYS = Namespace(_of_arrays)
"""Every op on NumPy arrays: the ``F`` of rules in a first-order backward."""
