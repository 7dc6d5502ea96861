"""Batching rules of reductions over all elements, and of what undoes broadcasting."""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply
from clew.func.batching.kinds import along_dims
from clew.func.batching.rules import Call, rule, run, total
from clew.op import Op


def _rows(call: Call, i: int = 0) -> Any:
    """Each example of input `i` as a vector."""
    return run("reshape", call.full(i), size=(call.size, total(call.shape(i))))


@rule("sum_all", "mean_all", "prod_all")
def of_all(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The sum, mean or product of each example."""
    name = op.name.removesuffix("_all")
    if name == "prod":
        return run(name, _rows(call), dim=1, keepdim=False, **attrs)
    ndim = call.ndim(0)
    if not ndim:
        return run(name, _rows(call), dim=(1,), keepdim=False, **attrs)
    return run(name, call.front(0), dim=tuple(range(1, ndim + 1)), keepdim=False, **attrs)


@rule("max_all", "min_all")
def extremum_of_all(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The extremum of each example."""
    return run("amax" if op.name == "max_all" else "amin", _rows(call), dim=(1,), keepdim=False)


@rule("median_all", "nanmedian_all")
def median_of_all(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The median of each example."""
    return run(op.name.replace("_all", "_dim"), _rows(call), dim=1, keepdim=False)[0]


@rule("argmax", "argmin", "cumsum", "cumprod")
def of_all_or_along(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Along a dimension, or in the flat order of each example."""
    if attrs["dim"] is not None:
        return along_dims(op, call, attrs)
    found = apply(op, (_rows(call),), {**attrs, "dim": 1})
    if not attrs.get("keepdim"):
        return found
    return run("reshape", found, size=(call.size, *(1,) * call.ndim(0)))


@rule("put_values", "take_values")
def places(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """To and from the places that a reduction chose; of a number there is but one."""
    of_number = attrs["size"] == () if op.name == "put_values" else not call.ndim(0)
    return run("clone", call.full(0)) if of_number else along_dims(op, call, attrs)


@rule("linalg_vector_norm")
def vector_norm(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Over dimensions, or over all of each example."""
    return along_dims(op, call, attrs)


@rule("sum_to_size")
def sum_to_size(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Broadcasting undone in each example."""
    x, size = call.front(0), tuple(attrs["size"])
    extra = call.ndim(0) - len(size)
    if extra > 0:
        x = run("sum", x, dim=tuple(range(1, extra + 1)), keepdim=False, dtype=None)
    return apply(op, (x,), {"size": (call.size, *size)})


@rule("trace")
def trace(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The sum of each matrix's diagonal."""
    if call.ndim(0) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {call.ndim(0)}")
    diagonal = run("diagonal", call.front(0), offset=0, dim1=1, dim2=2)
    return run("sum", diagonal, dim=(1,), keepdim=False, dtype=None)


@rule("dist")
def dist(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The norm of the difference in each example."""
    from clew.func.batching.kinds import aligned

    first, second = aligned(call)
    difference = run("sub", first, second)
    dims = tuple(range(1, difference._array.ndim))
    if not dims:
        difference, dims = run("unsqueeze", difference, dim=1), (1,)
    return run("linalg_vector_norm", difference, ord=attrs["p"], dim=dims)


@rule("prelu_kernel")
def prelu(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Weights broadcast to the inputs, from the last dimension."""
    from clew.func.batching.kinds import pointwise

    return pointwise(op, call, attrs)


@rule("convolution_backward_bias")
def bias(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The sum over entries and space, for each example."""
    x = call.front(0)
    dims = (1, *range(3, x._array.ndim))
    return run("sum", x, dim=dims, keepdim=False, dtype=None)


@rule("unfold_backward", "diagonal_copy", "renorm", "linalg_cross")
def mixed(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Ops along dimensions of which one is not like the others."""
    if op.name == "renorm":
        from clew.func.batching.rules import looped

        return looped(op, call, attrs)
    return along_dims(op, call, attrs)
