"""Derivatives of Python functions: products with a Jacobian or Hessian, and the whole matrices.

Layer 4: built on `grad`.

Note [Double backward trick]
    A backward pass is linear in the gradient that it is given: ``v -> v J``.  Differentiating
    that map with respect to ``v`` and sending ``u`` through its backward gives ``J u``: a
    forward-mode product from two reverse passes.  What ``v`` is does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.autograd import grad
from clew.autograd.forward_ad import dual_level, make_dual, unpack_dual
from clew.autograd.functional_values import (
    CONSTANT_MATRIX,
    as_tuple,
    filled,
    given_tensors,
    gradients,
    independent,
    one_number,
    outputs_of,
    refuse_constants,
    released,
    slope_of,
    trial_weights,
    vector_like,
    vector_of_inputs,
)
from clew.autograd.modes import enable_grad, set_grad_enabled, state
from clew.dispatch import TENSORS
from clew.errors import (
    FunctionalError,
    FunctionalOptionError,
    FunctionalResultError,
    describe,
)

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Any, ...]


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The product of a vector with the Jacobian of a function: ``v J``.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: of the shapes of the outputs; needless if there is one output of one element.
        create_graph: record, so that the results can be differentiated.
        strict: raise if an output does not depend on an input; otherwise that part is zero.

    Returns:
        The outputs, and the product, of the shapes of the inputs.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: `v` has the wrong shape or is missing; or what `strict` refuses.
    """
    with enable_grad():
        one_input, inputs = given_tensors(inputs, "inputs", "vjp", create_graph)
        one_output, outputs = outputs_of(func, inputs, "vjp", strict)
        if v is None and (len(outputs) != 1 or outputs[0].numel() != 1):
            raise FunctionalResultError(
                "The vector v can only be None if the user-provided function returns a single "
                "Tensor with a single element.",
                "give v a tensor of the shape of each output: vjp(f, x, torch.ones_like(f(x)))",
                ("tensor", describe(outputs[0])),
            )
        v = vector_like(v, outputs, one_output, "vjp", create_graph)
    with set_grad_enabled(create_graph or state.now.grad_enabled):
        found = gradients(outputs, inputs, v, create_graph)
        product = filled(found, inputs, "back", strict, create_graph)
    return released(outputs, one_output, create_graph), released(product, one_input, create_graph)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The product of the Jacobian of a function with a vector: ``J v``.

    Computed by Note [Double backward trick].

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: of the shapes of the inputs; needless if there is one input of one element.
        create_graph: record, so that the results can be differentiated.
        strict: raise if an output does not depend on an input; otherwise that part is zero.

    Returns:
        The outputs, and the product, of the shapes of the outputs.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: `v` has the wrong shape or is missing; or what `strict` refuses.
    """
    with enable_grad():
        one_input, inputs = given_tensors(inputs, "inputs", "jvp", create_graph)
        v = vector_of_inputs(v, inputs, one_input, "jvp", create_graph)
        one_output, outputs = outputs_of(func, inputs, "jvp", strict)
        weights = trial_weights(outputs)
        backwards = gradients(outputs, inputs, weights, True)
        refuse_constants(backwards, "grad_inputs", strict)
    with set_grad_enabled(create_graph or state.now.grad_enabled):
        found = gradients(backwards, weights, v, create_graph)
        product = filled(found, outputs, "back_trick", strict, create_graph)
    return (
        released(outputs, one_output, create_graph),
        released(product, one_output, create_graph),
    )


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The product of a vector with the Hessian of a function of one number: ``v H``.

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor or a tuple of tensors.
        v: of the shapes of the inputs; needless if there is one input of one element.
        create_graph: record, so that the results can be differentiated.
        strict: raise if the result does not depend on an input; otherwise that part is zero.

    Returns:
        The output, and the product, of the shapes of the inputs.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: `v` has the wrong shape or is missing; the output is not one number; or what
            `strict` refuses.
    """
    with enable_grad():
        one_input, inputs = given_tensors(inputs, "inputs", "vhp", create_graph)
        v = vector_of_inputs(v, inputs, one_input, "vhp", create_graph)
        outputs, slope = slope_of(func, inputs, "vhp", strict)
    with set_grad_enabled(create_graph or state.now.grad_enabled):
        found = gradients(slope, inputs, v, create_graph)
        product = filled(found, inputs, "double_back", strict, create_graph)
    return released(outputs, True, create_graph), released(product, one_input, create_graph)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The product of the Hessian of a function of one number with a vector: ``H v``.

    A Hessian of continuous second derivatives is symmetric, and then `vhp` gives the same for
    less: this one takes a pass more (see Note [Double backward trick]).

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor or a tuple of tensors.
        v: of the shapes of the inputs; needless if there is one input of one element.
        create_graph: record, so that the results can be differentiated.
        strict: raise if the result does not depend on an input; otherwise that part is zero.

    Returns:
        The output, and the product, of the shapes of the inputs.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: `v` has the wrong shape or is missing; the output is not one number; or what
            `strict` refuses.
    """
    with enable_grad():
        one_input, inputs = given_tensors(inputs, "inputs", "hvp", create_graph)
        v = vector_of_inputs(v, inputs, one_input, "hvp", create_graph)
        outputs, slope = slope_of(func, inputs, "hvp", strict)
        weights = trial_weights(inputs)
        backwards = gradients(slope, inputs, weights, True)
        refuse_constants(slope, "hessian", strict)
    with set_grad_enabled(create_graph or state.now.grad_enabled):
        found = gradients(backwards, weights, v, create_graph)
        product = filled(found, inputs, "double_back_trick", strict, create_graph)
    return released(outputs, True, create_graph), released(product, one_input, create_graph)


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Jacobian of a function.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: record, so that the Jacobian can be differentiated.
        strict: raise if an output does not depend on an input; otherwise that part is zero.
        vectorize: ask for all rows in one call of `grad`.
        strategy: "reverse-mode", a row (an output's element) at a time, or "forward-mode", a column
            (an input's element) at a time, only with `vectorize`.

    Returns:
        ``jacobian[i][j]`` is that of output i in input j, of the output's shape followed by the
        input's.  Where there is one output or one input that is no tuple, that index is dropped.

    Raises:
        TypeError: something is neither a tensor nor a tuple of tensors.
        RuntimeError: what `strict` refuses; or `strict` with `vectorize` or forward mode.
        NotImplementedError: forward mode without `vectorize`, or with `create_graph`.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise _unsupported("create_graph", *_FORWARD, FunctionalOptionError)
        return _jacobian_by_columns(func, inputs, strict, vectorize)
    with enable_grad():
        one_input, inputs = given_tensors(inputs, "inputs", "jacobian", create_graph)
        one_output, outputs = outputs_of(func, inputs, "jacobian", strict)
        if vectorize and strict:
            raise _unsupported("strict", "vectorized=True", "vectorize=False")
        if vectorize:
            found = _jacobian_at_once(outputs, inputs, create_graph)
        else:
            found = tuple(
                _rows(out, i, inputs, create_graph, strict) for i, out in enumerate(outputs)
            )
        parts = [released(row, one_input, create_graph) for row in found]
    return parts[0] if one_output else tuple(parts)


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Hessian of a function of one number: the Jacobian of its gradient.

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor or a tuple of tensors.
        create_graph: record, so that the Hessian can be differentiated.
        strict: raise if the result does not depend on an input; otherwise that part is zero.
        vectorize: ask for all rows in one call of `grad`.
        outer_jacobian_strategy: how the gradient is differentiated, see `jacobian`.

    Returns:
        ``hessian[i][j]`` is that of inputs i and j, of the shapes of both; for an input that is
        no tuple just the tensor.

    Raises:
        RuntimeError: the output is not one number; and what `jacobian` raises.
    """
    one_input, inputs = as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def number(*values: Any) -> Any:
        return one_number(func, values, "hessian", strict).squeeze()

    def slope(*values: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            values = tuple(x.requires_grad_() for x in values)  # `jacobian` detaches others
        found = jacobian(number, values, create_graph=True)
        refuse_constants(found, "jacobian", strict)
        return found

    found = jacobian(slope, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found[0][0] if one_input else found


# -- whole matrices


def _rows(out: Any, position: int, inputs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobians of an output in each input, one backward pass for each of its elements."""
    rows: list[list[Any]] = [[] for _ in inputs]
    for j in range(out.numel()):
        element = out.reshape(-1)[j]
        if element.requires_grad:
            found = grad(element, inputs, None, True, create_graph, allow_unused=True)
        else:
            found = (None,) * len(inputs)
        for i, (row, part) in enumerate(zip(rows, found)):
            if strict and part is None:
                raise independent(
                    f"Output {position} of the user-provided function is independent of input {i}. "
                    "This is not allowed in strict mode.",
                    inputs[i],
                )
            if strict and create_graph and not part.requires_grad:
                raise independent(CONSTANT_MATRIX.format("jacobian", position), inputs[i])
            row.append(TENSORS.zeros_like(inputs[i]) if part is None else part)
    return tuple(
        TENSORS.stack(tuple(row), dim=0).view(out.shape + x.shape) for row, x in zip(rows, inputs)
    )


def _jacobian_at_once(outputs: Tensors, inputs: Tensors, create_graph: bool) -> Any:
    """For each output the Jacobians in each input, from one call of `grad`."""
    sizes = tuple(out.numel() for out in outputs)
    weights = _construct_standard_basis_for(outputs, sizes)
    pairs = [(out.reshape(-1), w) for out, w in zip(outputs, weights) if out.requires_grad]
    found: Tensors = (None,) * len(inputs)
    if pairs:
        flat, given = zip(*pairs)
        found = grad(
            flat, inputs, given, create_graph=create_graph, allow_unused=True,
            is_grads_batched=True,
        )  # fmt: skip
    columns = []
    for part, x in zip(found, inputs):
        if part is None:
            part = TENSORS.zeros_like(x).expand((sum(sizes), *x.shape))
        pieces = zip(part.split(sizes, 0), outputs)
        columns.append([piece.view(out.shape + x.shape) for piece, out in pieces])
    return tuple(zip(*columns))


def _construct_standard_basis_for(tensors: Tensors, sizes: tuple[int, ...]) -> Tensors:
    """An identity matrix cut into columns: a tensor of ``sum(sizes)`` rows for each tensor."""
    total, start = sum(sizes), 0
    parts = []
    for tensor, size in zip(tensors, sizes):
        part = tensor.detach().new_zeros(total, size)
        part.diagonal(-start).fill_(1)
        parts.append(part)
        start += size
    return tuple(parts)


def _jacobian_by_columns(
    func: Callable[..., Any], inputs: Any, strict: bool, vectorize: bool
) -> Any:
    """The Jacobian a column at a time, by forward mode along each element of the inputs."""
    if strict:
        raise _unsupported("strict", *_FORWARD)
    one_input, inputs = as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise FunctionalOptionError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
            "only implemented for `vectorize=True`.",
            "add vectorize=True, or leave out the strategy",
        )
    sizes = tuple(x.numel() for x in inputs)
    basis = _construct_standard_basis_for(inputs, sizes)
    columns = []
    with dual_level():
        for row in range(sum(sizes)):
            directions = (part[row].view(x.shape) for part, x in zip(basis, inputs))
            duals = tuple(make_dual(x, t) for x, t in zip(inputs, directions))
            one_output, outputs = as_tuple(func(*duals), "outputs", "jacobian")
            tangents = [unpack_dual(out).tangent for out in outputs]
            columns.append(
                [TENSORS.zeros_like(o) if t is None else t for o, t in zip(outputs, tangents)]
            )
    found = []
    for nr, out in enumerate(outputs):
        whole = TENSORS.stack(tuple(column[nr] for column in columns), dim=-1)
        parts = zip(whole.split(sizes, -1), inputs)
        found.append(tuple(part.reshape(out.shape + x.shape) for part, x in parts))
    rows = [row[0] if one_input else row for row in found]
    return rows[0] if one_output else tuple(rows)


_FORWARD = ('strategy="forward-mode"', 'strategy="reverse-mode"')


def _unsupported(
    option: str, other: str, cure: str, kind: type[FunctionalError] = FunctionalResultError
) -> Exception:
    """The error for two options that do not go together."""
    yet = " (yet)" if "forward" in other else ""
    return kind(
        f"torch.autograd.functional.jacobian: `{option}=True` and `{other}` are not supported "
        f"together{yet}. Please either set `{option}=False` or `{cure}`.",
        f"leave out {option}=True, or pass {cure}",
    )
