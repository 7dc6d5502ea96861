"""Computing gradients: `backward`, `grad`, grad modes, hooks, `Function`, `gradcheck`.

Layer 4: the public side of the engine.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clew import ahead

__path__[:0] = ahead.path_of("clew.autograd")

from clew.autograd import engine
from clew.autograd.algebra import ARRAY, TENSOR, UNRECORDED, ArrayAlgebra, is_broadcast_of
from clew.autograd.anomaly import detect_anomaly, set_detect_anomaly
from clew.autograd.engine import run_backward
from clew.autograd.function import Function as Function
from clew.autograd.modes import (
    _force_original_view_tracking,
    enable_grad,
    inference_mode,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
    state,
)
from clew.autograd.node import AccumulateGrad, GradientEdge, Node
from clew.autograd.seeds import as_tuple, batches_of, gradients_of, is_single
from clew.autograd.transforms import NO_BACKWARD, innermost, refuse_in_transform, running
from clew.config import warn_once
from clew.dispatch import TENSORS
from clew.dtypes import of_numpy
from clew.errors import (
    GradientMismatchError,
    InputsError,
    NoGradientPathError,
    UnusedInputError,
    recorded,
)
from clew.ops.layout import empty_alike
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

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward([x * x, 3 * x], [torch.ones(2), torch.ones(2)])
    >>> x.grad
    tensor([5., 7.])
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
    if running:
        refuse_in_transform(NO_BACKWARD)
    if inputs is not None:
        inputs = (inputs,) if is_single(inputs) else tuple(inputs)
        if not inputs:
            raise InputsError.empty("backward", as_tuple(tensors))
    roots = as_tuple(tensors)
    gradients = gradients_of(roots, grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    _run(roots, gradients, grad_tensors, keep, create_graph, accumulate=True, inputs=inputs)


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
) -> Any:
    """The gradients of `outputs` with respect to `inputs`, without touching any ``grad``.

    Args:
        outputs: what to differentiate.
        inputs: with respect to what: tensors or graph edges, one, a sequence or a dict of them.
        grad_outputs: the gradient of each output; None for one element means one.
        retain_graph: keep the saved values. Default: the value of `create_graph`.
        create_graph: record the computation, for higher derivatives.
        only_inputs: always true; the argument is PyTorch's and deprecated.
        allow_unused: give None for an input that the outputs do not depend on.
        is_grads_batched: `grad_outputs` has a leading batch dimension; run once for each entry.
        materialize_grads: give zeros instead of None (requiring grad under `create_graph`).

    Returns:
        One gradient for each input: a tuple, or for a dict a dict of the same keys.

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
    roots = as_tuple(outputs)
    wanted = as_tuple(inputs.values() if type(inputs) is dict else inputs)
    if not wanted:
        raise InputsError.empty("grad", roots)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        found = _batched(roots, wanted, grad_outputs, keep, create_graph, allow_unused)
    else:
        made = gradients_of(roots, grad_outputs)
        how: dict[str, Any] = {"accumulate": False, "inputs": wanted}
        found = _run(roots, made, grad_outputs, keep, create_graph, **how)
    if materialize_grads:
        found = [_or_zeros(g, x, create_graph) for g, x in zip(found, wanted)]
    elif not allow_unused:
        _refuse_unused(found, wanted)
    return dict(zip(inputs, found)) if type(inputs) is dict else tuple(found)


def _batched(
    roots: tuple[Any, ...],
    wanted: tuple[Any, ...],
    grad_outputs: Any,
    keep: bool,
    create_graph: bool,
    allow_unused: bool,
) -> list[Any]:
    """`grad` for all entries of a leading batch dimension at once, by `vmap`."""
    from clew.func.batching.level import VmapLevel

    batches = batches_of(roots, grad_outputs)
    with VmapLevel(batches[0]._array.shape[0], "refused") as level:
        rows = tuple(level.wrap(batch, 0) for batch in batches)
        found = grad(roots, wanted, rows, keep, create_graph, allow_unused=True)
        with level.lowered():
            found = [None if g is None else level.unwrap(g, 0) for g in found]
    if not allow_unused:
        _refuse_unused(found, wanted)
    return found


def _or_zeros(found: Any, x: Any, create_graph: bool) -> Any:
    if found is not None:
        return found
    if not isinstance(x, Tensor):
        raise InputsError(
            "materialize_grads cannot be used when the given input is a GradientEdge",
            "ask for the gradient of the tensor, or put zeros in the place of None yourself",
        )
    zeros = empty_alike(x._array)
    zeros[...] = 0
    return Tensor._from_array(zeros, requires_grad=create_graph)


def _refuse_unused(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    for position, (gradient, x) in enumerate(zip(found, wanted)):
        if gradient is None:
            raise UnusedInputError(
                f"The differentiated Tensor at index {position} appears to not have been used in "
                "the graph. Set allow_unused=True if this is the desired behavior.",
                x,
                "compute the outputs from this very tensor (not from a copy made before), or pass "
                "allow_unused=True for None, or materialize_grads=True for zeros",
            )


def _run(
    roots: tuple[Any, ...],
    gradients: list[Any],
    given: Any,
    keep: bool,
    create_graph: bool,
    *,
    accumulate: bool,
    inputs: tuple[Any, ...] | None,
) -> list[Any]:
    """Start the engine; the checks come in PyTorch's order: roots, then inputs.

    `gradients` are those of the roots, `given` which of them the user gave.
    """
    # Gradients that have tangents, or that `vmap` has made batches of, are tensors in any case.
    tensors = running and innermost() is not None
    algebra: Any = TENSOR if create_graph else UNRECORDED if tensors else ARRAY
    if given is not None and algebra is ARRAY:
        algebra = ArrayAlgebra([g for g in as_tuple(given) if g is not None])
    places = []
    for i, root in enumerate(roots):
        edge = root._gradient_edge() if isinstance(root, Tensor) else (root.node, root.output_nr)
        if edge[0] is None:
            raise NoGradientPathError(i, root)
        places.append(edge)
    edges = inputs and [_input_edge(x, i, accumulate=accumulate) for i, x in enumerate(inputs)]
    start = [
        (edge, _of_root(gradient, edge, algebra, i))
        for i, (gradient, edge) in enumerate(zip(gradients, places))
    ]
    gradients.clear()  # the engine is to hold them alone
    if create_graph and accumulate:
        _warn_reference_cycle()
    now = state.now
    kept = now.grad_enabled, now.saved_hooks, now.in_rules
    try:
        now.grad_enabled = now.in_rules = create_graph and not now.inference
        now.saved_hooks = list(now.saved_hooks)  # what hooks and rules enter or leave is undone
        found = run_backward(start, algebra, keep_graph=keep, accumulate=accumulate, inputs=edges)
    finally:
        now.grad_enabled, now.saved_hooks, now.in_rules = kept
    return algebra.wrap_all(found)


def _of_root(gradient: Any, edge: Any, algebra: Any, position: int) -> Any:
    """The gradient of a root, in the root's shape and type when it was computed: an array or a
    Tensor, as the algebra has them.

    Raises:
        RuntimeError: the root's data was replaced by some of another shape, which this one has,
            and that is not the other one broadcast.
    """
    node, output_nr = edge
    meta = node.metas[output_nr]
    array = gradient if gradient.__class__ is np.ndarray else gradient._array
    if meta is not None and array.shape != meta[0]:
        if not is_broadcast_of(array.shape, meta[0]):
            got, want = list(array.shape), list(meta[0])
            raise GradientMismatchError(
                f"invalid gradient at index {position} - got {got} but expected shape compatible "
                f"with {want}",
                ("call", recorded(node)),
                cure="compute the output again after its data was replaced",
            )
        whole = Tensor._from_array(array) if gradient is array else gradient
        gradient = TENSORS.sum_to_size(whole, size=meta[0])
        array = gradient._array
    cast = meta is not None and array.dtype != meta[1]
    if isinstance(algebra, ArrayAlgebra) and not cast:
        return array
    if gradient is array:
        gradient = Tensor._from_array(array)
    if cast:
        gradient = TENSORS.to_dtype(gradient, dtype=of_numpy(meta[1]))
    return gradient._array if isinstance(algebra, ArrayAlgebra) else gradient


def _input_edge(x: Any, position: int, *, accumulate: bool) -> Any:
    if isinstance(x, GradientEdge):
        return (x.node, x.output_nr)
    if not isinstance(x, Tensor):
        raise InputsError(
            f"all inputs have to be Tensors or GradientEdges, but got {type(x).__name__}",
            f"look at position {position} of the inputs: a tensor belongs there, or the result "
            "of get_gradient_edge",
        )
    edge = x._gradient_edge()  # first, for the edge of a view may be out of date
    if accumulate:
        x.retain_grad()
    if edge[0] is None and x.requires_grad:  # a view without an edge: nothing leads to it
        return (AccumulateGrad(x), 0)
    if edge[0] is None:
        raise UnusedInputError(
            "One of the differentiated Tensors does not require grad",
            x,
            "call x.requires_grad_() before the outputs are computed from it",
        )
    return edge


def _warn_reference_cycle() -> None:
    warn_once(
        "cycle",
        "Using backward() with create_graph=True will create a reference cycle between the "
        "parameter and its gradient which can cause a memory leak. We recommend using "
        "autograd.grad when creating the graph to avoid this. If you have to use this function, "
        "make sure to reset the .grad fields of your parameters to None after use to break the "
        "cycle and avoid the leak.",
        stacklevel=5,
    )


_LAZY = {"kineto_available": "profiler", "_profiler_enabled": "profiler"}
"""Names that a submodule has; it is imported when one is first used."""


def __getattr__(name: str) -> Any:
    """Import the parts that few programs need when they are first used."""
    import importlib

    if name in _LAZY:
        return getattr(importlib.import_module(f"clew.autograd.{_LAZY[name]}"), name)
    try:
        return importlib.import_module(f"clew.autograd.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"clew.autograd.{name}":
            raise
    raise AttributeError(
        f"module 'clew.autograd' has no attribute '{name}': clew does not have it (yet)"
    )


# After the definitions that it imports; the function takes the module's name, as in PyTorch.
from clew.autograd.gradcheck import gradcheck, gradgradcheck

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "state",
]
