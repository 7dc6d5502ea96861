"""Ops whose result shares the memory of their input, and their adjoints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from clew.dtypes import described_type
from clew.op import op
from clew.ops.rules import wrap_dim, wrap_dims
from clew.storage import restrided

# -- shapes


def infer_size(size: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """`size` with its -1 worked out.

    Raises:
        RuntimeError: more than one -1, or no such size holds `numel` elements.
    """
    least, known = min(size) if size else 0, prod(size)
    if least >= 0 and known == numel:
        return size
    if least == -1 and known and numel % known == 0 and size.count(-1) == 1:
        i = size.index(-1)
        return (*size[:i], numel // -known, *size[i + 1 :])
    unknown = size.count(-1)
    if unknown > 1:
        raise RuntimeError("only one dimension can be inferred")
    if least < -1:
        negative = next(n for n in size if n < -1)
        raise RuntimeError(f"invalid shape dimension {negative}")
    if unknown and not known:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(size)} because the unspecified "
            "dimension size -1 can be any value and is ambiguous"
        )
    raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {numel}")


@op("view(self; *size)", view=True, publish=(), jvp="linear")
def view(x: Any, *, size: Any) -> Any:
    """The same elements under another shape.

    Raises:
        RuntimeError: the strides do not allow it (use `reshape`).
    """
    result = x.view()
    try:
        result.shape = infer_size(size, x.size) if size and min(size) < 0 else size
    except (AttributeError, ValueError):
        infer_size(size, x.size)  # says so where the size is wrong
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        ) from None
    return result


@view.grad("self")
def _(F: Any, grad: Any, self_shape: Any) -> Any:
    return F.reshape(grad, self_shape)


@op("reshape_alias(self; size)", view=True, publish=(), jvp="linear")
def reshape_alias(x: Any, *, size: Any) -> Any:
    """`view` of a tensor that is not contiguous, as `reshape` makes it."""
    return view.forward(x, size=size)


@reshape_alias.grad("self")
def _(F: Any, grad: Any, self_shape: Any) -> Any:
    return F.reshape(grad, self_shape)


@op("reshape(self; size)", publish=(), node="ReshapeAliasBackward0", jvp="linear")
def reshape(x: Any, *, size: Any) -> Any:
    """The elements under another shape, copied only if need be; for rules."""
    return x.reshape(size)


@reshape.grad("self")
def _(F: Any, grad: Any, self_shape: Any) -> Any:
    return F.reshape(grad, self_shape)


@op("unsafe_view(self; size)", publish=(), jvp="linear")
def unsafe_view(x: Any, *, size: Any) -> Any:
    """`view` of a tensor that nobody else has: not tracked as a view."""
    return x.reshape(size)


@unsafe_view.grad("self")
def _(F: Any, grad: Any, self_shape: Any) -> Any:
    return F.reshape(grad, self_shape)


@op("expand(self; *size)", view=True, publish=("method",), jvp="linear")
def expand(x: Any, *, size: Any) -> Any:
    """Repeat dimensions of size one without copying; -1 keeps a size."""
    return restrided(x, *_expanded(x.shape, x.strides, x.dtype, tuple(size)))


@lru_cache(maxsize=1024)
def _expanded(
    known_shape: tuple[int, ...], known_strides: tuple[int, ...], dtype: np.dtype,
    size: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...]]:  # fmt: skip
    """Shape and strides of an expanded array; the same few are asked for again and again."""
    extra = len(size) - len(known_shape)
    if not known_shape and min(size, default=1) > 1:  # as the gradient of a sum
        return size, (0,) * len(size)
    if extra < 0:
        raise RuntimeError(
            f"expand({described_type(dtype)}{{{list(known_shape)}}}, size={list(size)}): the "
            f"number of sizes provided ({len(size)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(known_shape)})"
        )
    shape, strides = list(size), [0] * len(size)
    for i in range(len(size) - 1, -1, -1):
        n = size[i]
        if i >= extra:
            known, stride = known_shape[i - extra], known_strides[i - extra]
        elif n == -1:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing "
                f"dimension {i}"
            )
        else:
            known = 1
            last = i == len(size) - 1
            stride = dtype.itemsize if last else shape[i + 1] * strides[i + 1]
        if n in (-1, known):
            shape[i], strides[i] = known, stride
        elif known != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({known}) at "
                f"non-singleton dimension {i}.  Target sizes: {list(size)}.  Tensor sizes: "
                f"{list(known_shape)}"
            )
    return tuple(shape), tuple(strides)


@expand.grad("self")
def _(F: Any, grad: Any, self_shape: Any) -> Any:
    return F.sum_to_size(grad, size=self_shape)


@op("permute(self; *dims)", view=True, jvp="linear")
def permute(x: Any, *, dims: Any) -> Any:
    """Reorder the dimensions."""
    if len(dims) != x.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {x.ndim} is not "
            f"equal to len(dims) = {len(dims)}"
        )
    try:
        return x.transpose(dims)
    except (ValueError, TypeError):
        for d in dims:
            wrap_dim(d, x.ndim)
        raise RuntimeError("permute(): duplicate dims are not allowed.") from None


@permute.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, dims: Any) -> Any:
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d % len(dims)] = i
    return F.permute(grad, tuple(inverse))


@op("transpose(self; dim0, dim1)", view=True, jvp="linear", aliases=("swapaxes", "swapdims"))
def transpose(x: Any, *, dim0: int, dim1: int) -> Any:
    """Swap two dimensions."""
    try:
        return x.swapaxes(dim0, dim1)
    except (ValueError, TypeError):  # a 0-d tensor has dimensions 0 and -1
        wrap_dim(dim0, x.ndim), wrap_dim(dim1, x.ndim)
        return x.view()


@transpose.grad("self")
def _(F: Any, grad: Any, *, dim0: int, dim1: int) -> Any:
    return F.transpose(grad, dim0, dim1)


@op("t(self)", view=True, jvp="linear")
def t(x: Any) -> Any:
    """The transpose of a matrix; a vector or a number as it is."""
    if x.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D")
    return x.T


@t.grad("self")
def _(F: Any, grad: Any) -> Any:
    return F.t(grad)


@op("unsqueeze(self; dim)", view=True, jvp="linear")
def unsqueeze(x: Any, *, dim: int) -> Any:
    """Insert a dimension of size one."""
    shape, at = x.shape, wrap_dim(dim, x.ndim + 1)
    return x.reshape((*shape[:at], 1, *shape[at:]))


@unsqueeze.grad("self")
def _(F: Any, grad: Any, *, dim: int) -> Any:
    return F.squeeze_dim(grad, dim=dim)


@op("squeeze_all(self)", view=True, publish=(), node="SqueezeBackward0", jvp="linear")
def squeeze_all(x: Any) -> Any:
    """Remove all dimensions of size one."""
    return np.squeeze(x) if x.ndim else x.view()


def _unsqueezed(F: Any, grad: Any, shape: Any, dims: Sequence[int]) -> Any:
    """The gradient with those of the dimensions put back that were of size one."""
    for d in sorted(dims):
        if shape[d] == 1:
            grad = F.unsqueeze(grad, d)
    return grad


@squeeze_all.grad("self")
def _(F: Any, grad: Any, self_shape: Any) -> Any:
    return _unsqueezed(F, grad, self_shape, range(len(self_shape)))


@op("squeeze_dim(self; dim)", view=True, publish=(), node="SqueezeBackward1", jvp="linear")
def squeeze_dim(x: Any, *, dim: int) -> Any:
    """Remove `dim` if its size is one."""
    d = wrap_dim(dim, x.ndim)
    return np.squeeze(x, d) if x.ndim and x.shape[d] == 1 else x.view()


@squeeze_dim.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, dim: int) -> Any:
    dims = (wrap_dim(dim, len(self_shape)),) if self_shape else ()
    return _unsqueezed(F, grad, self_shape, dims)


@op("squeeze_dims(self; dim)", view=True, publish=(), node="SqueezeBackward2", jvp="linear")
def squeeze_dims(x: Any, *, dim: Any) -> Any:
    """Remove those of the dimensions that are of size one."""
    dims = wrap_dims(dim, x.ndim) if dim else ()
    return np.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))


@squeeze_dims.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, dim: Any) -> Any:
    return _unsqueezed(F, grad, self_shape, wrap_dims(dim, len(self_shape)) if dim else ())


@op("fw_primal(self)", view=True, publish=(), jvp="linear", node="Identity",
    self=lambda F, grad: grad)  # fmt: skip
def fw_primal(x: Any) -> Any:
    """The whole of `self` again: what `unpack_dual` gives, without the tangent."""
    return x.view()


@op("alias(self)", view=True, publish=(), jvp="linear", self=lambda F, grad: grad)
def alias(x: Any) -> Any:
    """A view of the whole."""
    return x.view()


# -- parts


@op("select(self; dim, index)", view=True, jvp="linear")
def select(x: Any, *, dim: int, index: int) -> Any:
    """One slice along `dim`, without that dimension."""
    if x.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, x.ndim)
    n = x.shape[d]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(x.shape)} at "
            f"dimension {d}"
        )
    return x[(slice(None),) * d + (index, ...)]


@select.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, dim: int, index: int) -> Any:
    return F.select_backward(grad, size=self_shape, dim=dim, index=index)


@op("select_backward(self; size, dim, index)", publish=(), jvp="linear")
def select_backward(x: Any, *, size: Any, dim: int, index: int) -> Any:
    """Zeros of `size` with one slice filled: the adjoint of `select`."""
    out = np.zeros(size, x.dtype)
    out[(slice(None),) * wrap_dim(dim, len(size)) + (index, ...)] = x
    return out


@select_backward.grad("self")
def _(F: Any, grad: Any, *, dim: int, index: int) -> Any:
    return F.select(grad, dim, index)


@op("slice(self; dim=0, start=None, end=None, step=1)", view=True, publish=(), jvp="linear")
def slice_(x: Any, *, dim: int, start: Any, end: Any, step: int) -> Any:
    """``self[start:end:step]`` along `dim`."""
    if step <= 0:
        raise ValueError("step must be greater than zero")
    return x[(slice(None),) * wrap_dim(dim, x.ndim) + (slice(start, end, step),)]


@slice_.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, dim: int, start: Any, end: Any, step: int) -> Any:
    return F.slice_backward(grad, size=self_shape, dim=dim, start=start, end=end, step=step)


@op("slice_backward(self; size, dim, start, end, step)", publish=(), jvp="linear")
def slice_backward(x: Any, *, size: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    """Zeros of `size` with the slice filled: the adjoint of `slice`."""
    out = np.zeros(size, x.dtype)
    out[(slice(None),) * wrap_dim(dim, len(size)) + (slice(start, end, step),)] = x
    return out


@slice_backward.grad("self")
def _(F: Any, grad: Any, *, dim: int, start: Any, end: Any, step: int) -> Any:
    return F.slice(grad, dim, start, end, step)


@op("diagonal(self; offset=0, dim1=0, dim2=1)", view=True, jvp="linear")
def diagonal(x: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal of the planes that two dimensions span, as the last dimension."""
    first, second = wrap_dim(dim1, x.ndim), wrap_dim(dim2, x.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    read_only = np.diagonal(x, offset, first, second)
    return (
        restrided(x, read_only.shape, read_only.strides)
        if (offset == 0)
        else _writable_diagonal(x, offset, first, second)
    )


def _writable_diagonal(x: Any, offset: int, first: int, second: int) -> Any:
    """The diagonal off the main one begins further along one of the two dimensions."""
    start = [slice(None)] * x.ndim
    start[second if offset > 0 else first] = slice(abs(offset), None)
    part = x[tuple(start)]
    read_only = np.diagonal(part, 0, first, second)
    return restrided(part, read_only.shape, read_only.strides)


@diagonal.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    return F.diagonal_backward(grad, size=self_shape, offset=offset, dim1=dim1, dim2=dim2)


@op("diagonal_backward(self; size, offset, dim1, dim2)", publish=(), jvp="linear")
def diagonal_backward(x: Any, *, size: Any, offset: int, dim1: int, dim2: int) -> Any:
    """Zeros of `size` with the diagonal filled: the adjoint of `diagonal`."""
    out = np.zeros(size, x.dtype)
    diagonal.forward(out, offset=offset, dim1=dim1, dim2=dim2)[...] = x
    return out


@diagonal_backward.grad("self")
def _(F: Any, grad: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    return F.diagonal(grad, offset, dim1, dim2)


@op("unfold(self; dimension, size, step)", view=True, publish=("method",), jvp="linear")
def unfold(x: Any, *, dimension: int, size: int, step: int) -> Any:
    """All slices of `size` along a dimension, `step` apart, as a new last dimension."""
    if x.ndim == 0:
        return restrided(x, (size,), (x.itemsize,))
    d = wrap_dim(dimension, x.ndim)
    if size > x.shape[d]:
        raise RuntimeError(
            f"maximum size for tensor at dimension {d} is {x.shape[d]} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    shape = list(x.shape)
    strides = list(x.strides)
    shape[d] = (shape[d] - size) // step + 1
    inner = strides[d]
    strides[d] *= step
    return restrided(x, (*shape, size), (*strides, inner))


@unfold.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, dimension: int, size: int, step: int) -> Any:
    if not self_shape:
        return F.reshape(grad, ())
    return F.unfold_backward(grad, input_size=self_shape, dimension=dimension, size=size, step=step)


@op("unfold_backward(self; input_size, dimension, size, step)", publish=(), jvp="linear")
def unfold_backward(x: Any, *, input_size: Any, dimension: int, size: int, step: int) -> Any:
    """Add the slices back to where they came from: the adjoint of `unfold`."""
    d = wrap_dim(dimension, len(input_size))
    out = np.zeros(input_size, x.dtype)
    n = x.shape[d]
    for k in range(size):
        where = (slice(None),) * d + (slice(k, k + (n - 1) * step + 1, step),)
        out[where] += x[..., k]
    return out


@unfold_backward.grad("self")
def _(F: Any, grad: Any, *, dimension: int, size: int, step: int) -> Any:
    return F.unfold(grad, dimension, size, step)
