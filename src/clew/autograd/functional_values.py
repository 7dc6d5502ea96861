"""What goes into and comes out of `autograd.functional`: checks, fresh inputs, structures.

Layer 4: built on `grad`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clew.autograd import grad
from clew.dispatch import TENSORS
from clew.errors import (
    FunctionalResultError,
    FunctionalTypeError,
    describe,
    shape_of,
    why_no_path,
)
from clew.tensor import Tensor

Tensors = tuple[Any, ...]


def as_tuple(value: Any, role: str, name: str) -> tuple[bool, Tensors]:
    """Whether there is one tensor and no tuple; the tuple."""
    single = not isinstance(value, tuple)
    tensors = (value,) if single else value
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            which = f"the given {role} has" if single else f"the value at index {i} has"
            raise FunctionalTypeError(
                f"The {role} given to {name} must be either a Tensor or a tuple of Tensors but "
                f"{which} type {type(tensor)}.",
                "make it a tensor, or a tuple of tensors; keep other arguments in a lambda: "
                f"{name}(lambda x: f(x, 3), x)",
            )
    return single, tensors


def given_tensors(value: Any, role: str, name: str, create_graph: bool) -> tuple[bool, Tensors]:
    """The inputs as new tensors that require grad.

    New ones always: a function that uses the caller's tensors by itself depends on those, not on
    its inputs.
    """
    single, tensors = as_tuple(value, role, name)
    return single, tuple(fresh(x, create_graph, True) for x in tensors)


def fresh(tensor: Any, create_graph: bool, requires_grad: bool) -> Any:
    if create_graph and tensor.requires_grad:
        return tensor.view_as(tensor)
    return tensor.detach().requires_grad_(requires_grad)


def outputs_of(
    func: Callable[..., Any], inputs: Tensors, name: str, strict: bool
) -> tuple[bool, Tensors]:
    single, outputs = as_tuple(func(*inputs), "outputs of the user-provided function", name)
    refuse_constants(outputs, "outputs", strict)
    return single, outputs


def one_number(func: Callable[..., Any], inputs: Tensors, name: str, strict: bool) -> Any:
    single, outputs = outputs_of(func, inputs, name, strict)
    if not single:
        raise FunctionalResultError(
            f"The function given to {name} should return a single Tensor",
            "return the one number whose second derivatives are asked for",
        )
    if outputs[0].numel() != 1:
        raise FunctionalResultError(
            f"The Tensor returned by the function given to {name} should contain a single element",
            "reduce it in the function (y.mean() or y.sum()), or ask for one element of it",
            ("tensor", describe(outputs[0])),
        )
    return outputs[0]


def slope_of(
    func: Callable[..., Any], inputs: Tensors, name: str, strict: bool
) -> tuple[Tensors, Tensors]:
    """The function's number, in a tuple, and its gradient, recorded."""
    outputs = (one_number(func, inputs, name, strict),)
    slope = gradients(outputs, inputs, None, True)
    refuse_constants(slope, "jacobian", strict)
    return outputs, slope


def vector_like(v: Any, like: Tensors, single: bool, name: str, create_graph: bool) -> Any:
    if v is None:
        return None
    vector = tuple(fresh(x, create_graph, False) for x in as_tuple(v, "v", name)[1])
    if len(vector) != len(like):
        if single:
            clause = "The given v should contain a single Tensor."
        else:
            clause = f"v is a tuple of invalid length: should be {len(like)} but got {len(vector)}."
        raise FunctionalResultError(clause, _LIKE[name])
    for i, (part, model) in enumerate(zip(vector, like)):
        if part.shape != model.shape:
            raise FunctionalResultError(
                f"{'' if single else f'Entry {i} in '}v has invalid size: should be {model.shape} "
                f"but got {part.shape}.",
                _LIKE[name],
                ("belongs to", describe(model)),
                ("v", shape_of(part)),
            )
    return vector


_INPUTS = "give v a tensor of the shape of each input, in a tuple if the inputs are one"
_LIKE = {
    "vjp": "give v a tensor of the shape of each output, in a tuple if the outputs are one",
    **dict.fromkeys(("jvp", "vhp", "hvp"), _INPUTS),
}


def vector_of_inputs(v: Any, inputs: Tensors, single: bool, name: str, create_graph: bool) -> Any:
    if v is None and (len(inputs) != 1 or inputs[0].numel() != 1):
        raise FunctionalResultError(
            "The vector v can only be None if the input to the user-provided function is a single "
            "Tensor with a single element.",
            _INPUTS,
        )
    return vector_like(v, inputs, single, name, create_graph)


def trial_weights(tensors: Tensors) -> Tensors:
    """Zeros to be given as gradients and differentiated."""
    return tuple(TENSORS.zeros_like(x).requires_grad_() for x in tensors)


def released(tensors: Tensors, single: bool, create_graph: bool) -> Any:
    """What the user gets: without a history unless one was asked for."""
    kept = tensors if create_graph else tuple(x.detach() for x in tensors)
    return kept[0] if single else kept


# -- gradients


def gradients(outputs: Tensors, inputs: Tensors, weights: Any, create_graph: bool) -> Tensors:
    """`grad` of those outputs that require grad; None where nothing leads to an input."""
    pairs = [
        (out, weight)
        for out, weight in zip(outputs, weights or (None,) * len(outputs))
        if out is not None and out.requires_grad
    ]
    if not pairs:
        return (None,) * len(inputs)
    roots, given = zip(*pairs)
    return grad(roots, inputs, given, create_graph=create_graph, allow_unused=True)


def filled(found: Tensors, like: Tensors, stage: str, strict: bool, create_graph: bool) -> Tensors:
    """Zeros for what is None; in strict mode an error."""
    for i, part in enumerate(found):
        if strict and part is None:
            raise independent(_INDEPENDENT[stage].format(i), like[i])
        if strict and create_graph and not part.requires_grad:
            matrix = "hessian" if "double" in stage else "jacobian"
            raise independent(CONSTANT_MATRIX.format(matrix, i), like[i])
    return tuple(TENSORS.zeros_like(x) if g is None else g for g, x in zip(found, like))


_INDEPENDENT = {
    "back": (
        "The output of the user-provided function is independent of input {}. This is not allowed "
        "in strict mode."
    ),
    "back_trick": (
        "The gradient with respect to the input is independent of entry {} in the grad_outputs "
        "when using the double backward trick to compute forward mode gradients. This is not "
        "allowed in strict mode."
    ),
    "double_back": (
        "The jacobian of the user-provided function is independent of input {}. This is not "
        "allowed in strict mode."
    ),
    "double_back_trick": (
        "The hessian of the user-provided function is independent of entry {} in the "
        "grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
        "backward trick to replace forward mode AD."
    ),
}

CONSTANT_MATRIX = (
    "The {} of the user-provided function is independent of input {}. This is not allowed in "
    "strict mode when create_graph=True."
)


def independent(clause: str, tensor: Any) -> FunctionalResultError:
    """The error of strict mode for something that does not depend on the input `tensor`."""
    return FunctionalResultError(
        clause,
        "compute it from the input, not from a tensor of the same name outside; or leave out "
        "strict=True, which gives zeros there",
        ("input", None if tensor is None else shape_of(tensor)),
    )


def refuse_constants(tensors: Sequence[Any] | Any, what: str, strict: bool) -> None:
    """In strict mode, raise if one of the tensors depends on nothing."""
    if not strict:
        return
    for i, tensor in enumerate(tensors if isinstance(tensors, tuple) else (tensors,)):
        if tensor is None:
            raise independent(_INDEPENDENT["back"].format(i), None)
        if not tensor.requires_grad:
            raise FunctionalResultError(
                _CONSTANT[what].format(i), _NO_CONSTANTS, ("tensor", describe(tensor)),
                ("why", why_no_path(tensor)),
            )  # fmt: skip


_NO_CONSTANTS = (
    "compute it from the inputs by recorded operations; or leave out strict=True, which gives zeros"
)

_CONSTANT = {
    "outputs": (
        "Output {} of the user-provided function does not require gradients. The outputs must be "
        "computed in a differentiable manner from the input when running in strict mode."
    ),
    "grad_inputs": (
        "The gradient with respect to input {} is independent of the inputs of the user-provided "
        "function. This is not allowed in strict mode."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided function with "
        "respect to input {} is independent of the input. This is not allowed in strict mode. You "
        "should ensure that your function is twice differentiable and that the jacobian depends on "
        "the inputs (this would be violated by a linear function for example)."
    ),
    "hessian": (
        "The hessian of the user-provided function with respect to input {} is independent of the "
        "input. This is not allowed in strict mode. You should ensure that your function is thrice "
        "differentiable and that the hessian depends on the inputs."
    ),
}
