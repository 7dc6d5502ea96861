"""Computing gradients: `backward`, `grad`, grad modes, hooks, `Function`, `gradcheck`.

Layer 4: the public side of the engine.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clew.autograd import engine
from clew.autograd.algebra import ARRAY, TENSOR
from clew.autograd.anomaly import detect_anomaly, set_detect_anomaly
from clew.autograd.engine import run_backward
from clew.autograd.function import Function as Function
from clew.autograd.modes import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    state,
)
from clew.autograd.node import GradientEdge
from clew.dispatch import TENSORS
from clew.dtypes import of_numpy
from clew.errors import (
    GradientMismatchError,
    NoGradientPathError,
    NonScalarBackwardError,
    UnusedInputError,
    describe,
    describe_end,
)
from clew.tensor import Tensor

Tensors = Tensor | Sequence[Tensor]


class _VariableType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableType):
    """PyTorch 0.3's name of a tensor that takes part in autograd; today every tensor may."""

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        made = Tensor() if data is None else data.detach()
        return made.requires_grad_() if requires_grad else made


class _ExecutionEngine:
    """What users reach as ``Variable._execution_engine``."""

    @staticmethod
    def queue_callback(callback: Callable[[], None]) -> None:
        """Call `callback` when the backward pass that runs now is over."""
        engine.queue_callback(callback)


Tensor._execution_engine = Variable._execution_engine = _ExecutionEngine()  # type: ignore[attr-defined]


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of `tensors` into the ``grad`` of the leaves they depend on.

    Args:
        tensors: what to differentiate: a tensor or a sequence of them.
        grad_tensors: the gradient of each; None for a tensor of one element means one.
        retain_graph: keep the saved values, so that backward can run again. Default: the value of
            `create_graph`.
        create_graph: record the computation of the gradients, for higher derivatives.
        grad_variables: the old name of `grad_tensors`.
        inputs: accumulate only into these leaves (and non-leaves).

    Raises:
        RuntimeError: a tensor requires no grad; a gradient is missing or has another shape; the
            graph's saved values are gone or were changed (see docs/errors.md).
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    edges = None
    if inputs is not None:
        given = (inputs,) if _is_single(inputs) else tuple(inputs)
        if not given:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        edges = [_input_edge(x, i, accumulate=True) for i, x in enumerate(given)]
    if create_graph:
        _warn_reference_cycle()
    roots = _as_tuple(tensors)
    gradients = _gradients(roots, grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    _run(roots, gradients, keep, create_graph, accumulate=True, edges=edges)


def grad(
    outputs: Tensors,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`, without touching any ``grad``.

    Args:
        outputs: what to differentiate.
        inputs: with respect to what: tensors, or graph edges.
        grad_outputs: the gradient of each output; None for one element means one.
        retain_graph: keep the saved values. Default: the value of `create_graph`.
        create_graph: record the computation, for higher derivatives.
        only_inputs: always true; the argument is PyTorch's and deprecated.
        allow_unused: give None for an input that the outputs do not depend on.
        is_grads_batched: `grad_outputs` has a leading batch dimension; run once for each entry.
        materialize_grads: give zeros instead of None.

    Returns:
        One gradient for each input.

    Raises:
        RuntimeError: as `backward`, and for an unused input without `allow_unused`.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    roots = _as_tuple(outputs)
    wanted = (inputs,) if _is_single(inputs) else tuple(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if materialize_grads and any(not isinstance(x, Tensor) for x in wanted):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge"
        )
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(roots, wanted, grad_outputs, keep, create_graph, allow_unused)
    gradients = _gradients(roots, grad_outputs)
    edges = [_input_edge(x, i, accumulate=False) for i, x in enumerate(wanted)]
    found = _run(roots, gradients, keep, create_graph, accumulate=False, edges=edges)
    return tuple(
        _or_unused(g, x, i, allow_unused, materialize_grads)
        for i, (g, x) in enumerate(zip(found, wanted))
    )


def _batched(
    roots: tuple[Any, ...],
    wanted: tuple[Any, ...],
    grad_outputs: Any,
    keep: bool,
    create_graph: bool,
    allow_unused: bool,
) -> tuple[Any, ...]:
    """`grad` for each entry of a leading batch dimension, stacked."""
    batch = _as_tuple(grad_outputs)
    count = next(g.shape[0] for g in batch if g is not None)
    rows = []
    for i in range(count):
        row = tuple(None if g is None else g[i] for g in batch)
        last = i == count - 1
        rows.append(
            grad(roots, wanted, row, keep or not last, create_graph, allow_unused=allow_unused)
        )
    return tuple(None if parts[0] is None else TENSORS.stack(parts) for parts in zip(*rows))


def _or_unused(found: Any, x: Any, position: int, allow_unused: bool, materialize: bool) -> Any:
    if found is not None:
        return found
    if materialize:
        return Tensor._from_array(np.zeros_like(x._array))
    if not allow_unused:
        raise UnusedInputError(
            f"The differentiated Tensor at index {position} appears to not have been used in the "
            "graph. Set allow_unused=True if this is the desired behavior.",
            x,
            "compute the outputs from this very tensor (not from a copy made before), or pass "
            "allow_unused=True for None, or materialize_grads=True for zeros",
        )
    return None


def _run(
    roots: tuple[Any, ...],
    gradients: list[Any],
    keep: bool,
    create_graph: bool,
    *,
    accumulate: bool,
    edges: Any,
) -> list[Any]:
    algebra: Any = TENSOR if create_graph else ARRAY
    start = []
    for i, (root, gradient) in enumerate(zip(roots, gradients)):
        edge = _root_edge(root)
        if edge[0] is None:
            raise NoGradientPathError(i, root)
        start.append((edge, gradient if create_graph else gradient._array))
    gradients.clear()  # the engine is to hold them alone
    recorded = state.grad_enabled
    state.grad_enabled = create_graph
    try:
        found = run_backward(start, algebra, keep_graph=keep, accumulate=accumulate, inputs=edges)
    finally:
        state.grad_enabled = recorded
    return [algebra.wrap(g) for g in found]


def _root_edge(root: Any) -> Any:
    if isinstance(root, GradientEdge):
        return (root.node, root.output_nr)
    return root._gradient_edge()


def _input_edge(x: Any, position: int, *, accumulate: bool) -> Any:
    if isinstance(x, GradientEdge):
        return (x.node, x.output_nr)
    if not isinstance(x, Tensor):
        raise TypeError(
            f"expected Tensor or GradientEdge as input {position}, but got {type(x).__name__}"
        )
    if accumulate:
        x.retain_grad()
    edge = x._gradient_edge()
    if edge[0] is None:
        raise UnusedInputError(
            "One of the differentiated Tensors does not require grad",
            x,
            "call x.requires_grad_() before the outputs are computed from it",
        )
    return edge


def _is_single(value: Any) -> bool:
    return isinstance(value, (Tensor, GradientEdge))


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if value is None or _is_single(value) else tuple(value)


def _gradients(roots: tuple[Any, ...], given: Any) -> list[Any]:
    """The gradient of each root."""
    values = _as_tuple(given) if given is not None else (None,) * len(roots)
    if len(values) < len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(values)} gradients")
    return [_gradient_of(root, value, i) for i, (root, value) in enumerate(zip(roots, values))]


def _gradient_of(root: Any, value: Any, position: int) -> Tensor:
    shape, dtype = _meta_of(root)
    if value is None:
        if not isinstance(root, Tensor):
            return Tensor._from_array(_ones(shape, dtype))
        if root._gradient_edge()[0] is None:
            return Tensor._from_array(_ones(shape, dtype))  # _run names the reason
        if root._array.size != 1 or dtype.kind not in "fV":
            raise NonScalarBackwardError(root)
        return Tensor._from_array(_ones(shape, dtype))
    if not isinstance(value, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(value).__name__}")
    if value._array.shape != shape:
        raise GradientMismatchError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {value.shape} and "
            f"output[{position}] has a shape of torch.Size({list(shape)}).",
            ("output", describe_end(root)),
            ("gradient", describe(value)),
            cure="pass a gradient of the output's shape: torch.ones_like(y) for the plain sum",
        )
    if (value._array.dtype.kind == "c") != (dtype.kind == "c"):
        raise GradientMismatchError(
            "For complex Tensors, both grad_output and output are required to have the same "
            f"dtype. Mismatch in dtype: grad_output[{position}] has a dtype of {value.dtype} and "
            f"output[{position}] has a dtype of {of_numpy(dtype)!r}.",
            ("output", describe_end(root)),
            ("gradient", describe(value)),
            cure="pass a gradient of the output's dtype",
        )
    return value


def _ones(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """`np.ones` without its checks, which cost more than a small backward's node."""
    array = np.empty(shape, dtype)
    array.fill(1)
    return array


def _meta_of(root: Any) -> Any:
    if isinstance(root, Tensor):
        return root._array.shape, root._array.dtype
    return root.node.meta(root.output_nr)


_warned: set[str] = set()


def _warn_reference_cycle() -> None:
    from clew.config import switches

    if "cycle" in _warned and not switches.warn_always:
        return
    _warned.add("cycle")
    warnings.warn(
        "Using backward() with create_graph=True will create a reference cycle between the "
        "parameter and its gradient which can cause a memory leak. We recommend using "
        "autograd.grad when creating the graph to avoid this. If you have to use this function, "
        "make sure to reset the .grad fields of your parameters to None after use to break the "
        "cycle and avoid the leak.",
        UserWarning,
        stacklevel=4,
    )


def __getattr__(name: str) -> Any:
    """Import the parts that few programs need when they are first used."""
    import importlib

    try:
        return importlib.import_module(f"clew.autograd.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"clew.autograd.{name}":
            raise
    raise AttributeError(
        f"module 'clew.autograd' has no attribute '{name}': clew does not have it (yet)"
    )


# After the definitions that it imports; the function takes the module's name, as in PyTorch.
from clew.autograd.gradcheck import gradcheck, gradgradcheck  # noqa: E402

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "state",
]
