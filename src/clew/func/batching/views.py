"""Batching rules of views and of ops that change shapes."""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply
from clew.func.batching.kinds import whole_size
from clew.func.batching.rules import Call, Same, padded, rule, run, total
from clew.op import Op
from clew.ops.rules import wrap_dim
from clew.storage import Geometry, extent, geometry


@rule("view", "reshape", "unsafe_view", "reshape_alias")
def sizes(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Another shape for each example."""
    size = whole_size(attrs["size"], total(call.shape(0)))
    return apply(op, (call.front(0),), {"size": (call.size, *size)})


@rule("expand")
def expand(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Dimensions put in front of an example go behind the one that counts them."""
    size = tuple(attrs["size"])
    if len(size) < call.ndim(0):
        return apply(op, (run("select", call.front(0), dim=0, index=0),), attrs)  # its error
    return apply(op, (padded(call.front(0), len(size)),), {"size": (call.size, *size)})


@rule("permute")
def permute(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The examples' dimension stays where it is."""
    ndim = call.ndim(0)
    dims = tuple(wrap_dim(d, ndim) + 1 for d in attrs["dims"])
    return apply(op, (call.front(0),), {"dims": (0, *dims)})


@rule("t")
def t(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The transpose of each matrix."""
    ndim = call.ndim(0)
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    x = call.front(0)
    return run("alias", x) if ndim < 2 else run("transpose", x, dim0=1, dim1=2)


@rule("transpose")
def transpose(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Two dimensions swapped in each example."""
    ndim, x = call.ndim(0), call.front(0)
    first, second = (wrap_dim(attrs[name], ndim) for name in ("dim0", "dim1"))
    return run("transpose", x, dim0=first + 1, dim1=second + 1) if ndim else run("alias", x)


@rule("unsqueeze", "diag_embed")
def one_more(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Dimensions of the result, which has one more, are counted there."""
    ndim = call.ndim(0) + 1
    moved = {k: wrap_dim(v, ndim) + 1 if k in ("dim", "dim1", "dim2") else v
             for k, v in attrs.items()}  # fmt: skip
    return apply(op, (call.front(0),), moved)


@rule("squeeze_all")
def squeeze_all(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """All dimensions of size one of an example, not the one that counts them."""
    ones = tuple(i + 1 for i, n in enumerate(call.shape(0)) if n == 1)
    return run("squeeze_dims", call.front(0), dim=ones)


@rule("squeeze_dim", "squeeze_dims", "unsafe_squeeze")
def squeeze_dim(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Dimensions of one example, where they are of size one."""
    dim, ndim = attrs["dim"], call.ndim(0)
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    wrapped = tuple(wrap_dim(d, ndim) + 1 for d in dims) if ndim else ()
    return run("squeeze_dims", call.front(0), dim=wrapped)


@rule("select")
def select(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """One slice of each example."""
    shape = call.shape(0)
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(attrs["dim"], len(shape))
    return apply(op, (call.front(0),), {"dim": dim + 1, "index": attrs["index"]})


@rule("unfold")
def unfold(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Windows in each example; a number is a vector of one."""
    x, dim = call.front(0), wrap_dim(attrs["dimension"], call.ndim(0))
    x = x if call.ndim(0) else run("unsqueeze", x, dim=1)
    result = apply(op, (x,), {**attrs, "dimension": dim + 1})
    return result if call.ndim(0) else run("select", result, dim=1, index=0)


@rule("repeat")
def repeat(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Each example repeated."""
    repeats = tuple(attrs["repeats"])
    return apply(op, (padded(call.front(0), len(repeats)),), {"repeats": (1, *repeats)})


@rule("roll")
def roll(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Elements shifted within each example; without dimensions, in its flat order."""
    x, shape, dims = call.front(0), call.shape(0), attrs["dims"]
    dims = dims if isinstance(dims, (tuple, list)) else (dims,)
    if dims:
        wrapped = tuple(wrap_dim(d, len(shape)) + 1 for d in dims)
        return apply(op, (x,), {**attrs, "dims": wrapped})
    flat = run("reshape", x, size=(call.size, total(shape)))
    rolled = apply(op, (flat,), {**attrs, "dims": (1,)})
    return run("reshape", rolled, size=(call.size, *shape))


@rule("flip")
def flip(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Dimensions of each example reversed."""
    ndim = call.ndim(0)
    dims = tuple(wrap_dim(d, ndim) + 1 for d in attrs["dims"]) if ndim else ()
    return apply(op, (call.front(0),), {"dims": dims})


@rule("full")
def full(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The same for all examples: only the type of the input is looked at."""
    return Same(apply(op, call.values, attrs))


# -- geometries: views by strides, and the gradients of what was written to views


def _wide(place: Geometry, batch: int, step: int) -> Geometry:
    return Geometry((batch, *place.size), (step, *place.stride), place.offset)


@rule("take_strided", "add_strided", "put_strided")
def strided(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Each example in a storage of its own, one after the other."""
    view, base = attrs["view"], attrs["base"]
    step = max(extent(view), extent(base), 1)
    view, base = (_wide(g, call.size, step) for g in (view, base))
    values = [call.full(i) for i in range(len(call))]
    return apply(op, values, {**attrs, "view": view, "base": base})


@rule("as_strided")
def as_strided(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """The view of each example: offsets are counted from where the first example's storage begins.

    Examples lie one batch stride apart.
    """
    x = call.front(0)
    below = geometry(x._array)
    step = below.stride[0] if call.size > 1 else 0
    size = (call.size, *attrs["size"])
    stride = (step, *attrs["stride"])
    return run("as_strided", x, size=size, stride=stride,
               storage_offset=attrs["storage_offset"], base=below)  # fmt: skip
