"""Which batching rule an op has: its own, or that of its kind.

Kinds, as far as a declaration shows them: an op with a domain or a promotion works element by
element; one with an attribute ``dim`` (or ``dims``, ``dim0``, ...) works along dimensions.  Of the
others, the tables here say which work on the last dimensions, with any number before them
(`LEADING`), and which have a first dimension of independent entries (`FOLDED`).
"""

from __future__ import annotations

from typing import Any

from clew import dtypes
from clew.dispatch import apply, apply_inplace
from clew.func.batching.rules import (
    RULES,
    Call,
    Rule,
    Same,
    one_by_one,
    padded,
    reshaped,
    run,
)
from clew.op import REGISTRY, Op
from clew.ops.rules import wrap_dim
from clew.ops.view import infer_size
from clew.tensor import Tensor

DIM_ATTRS = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")
SIZE_ATTRS = ("size", "input_size")
"""Attributes that are the whole shape of a tensor."""

_POINTWISE = """
where masked_fill masked_out complex polar angle imag real conj conj_physical copy to_dtype
cast_like clone fw_primal fill zero differentiable_once refuse_where heaviside gcd lcm
dropout_by_mask alias
igamma igammac logit special_xlog1py_of_number
special_xlog1py_with_number xlogy_of_number xlogy_with_number copysign_number rpow
"""
"""Elementwise ops that do not say so by a domain or a promotion."""

_LEADING = """
linalg_qr phase_checked linalg_svd linalg_eigh linalg_eig linalg_lu_factor_ex linalg_lu lu_unpack
linalg_inv_ex linalg_det cofactors linalg_slogdet linalg_cholesky_ex cholesky cholesky_solve
cholesky_inverse linalg_pinv linalg_matrix_exp tril triu cdist view_as_real view_as_complex
pixel_shuffle pixel_unshuffle constant_pad_nd permutation_matrices matrix_product
linalg_solve_triangular linalg_solve_ex linalg_lstsq one_hot dirichlet_grad standard_gamma_grad
linalg_householder_product ormqr
"""
"""Ops on the last dimensions of their inputs, which may have any number of others before."""

_FOLDED = """
reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
replication_pad3d circular_pad1d circular_pad2d circular_pad3d reflection_pad1d_backward
reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward
replication_pad2d_backward replication_pad3d_backward circular_pad1d_backward
circular_pad2d_backward circular_pad3d_backward max_pool2d_with_indices max_pool3d_with_indices
max_pool2d_with_places max_pool3d_with_places take_in_windows add_in_windows
adaptive_max_pool2d adaptive_max_pool3d max_unpool2d max_unpool3d avg_pool2d avg_pool3d
avg_pool2d_backward avg_pool3d_backward adaptive_avg_pool2d adaptive_avg_pool3d
adaptive_avg_pool2d_backward adaptive_avg_pool3d_backward fractional_max_pool2d
fractional_max_pool3d take_in_planes add_in_planes im2col col2im channel_shuffle grid_sampler_2d
grid_sampler_3d grid_sampler_2d_backward grid_sampler_3d_backward grid_sampler_2d_double_backward
grid_sampler_3d_double_backward affine_grid_generator affine_grid_generator_backward
"""
"""Ops whose dimension 0 counts independent entries, which examples are more of; and all of those
that resize images."""

POINTWISE = frozenset(_POINTWISE.split())
LEADING = frozenset(_LEADING.split())
FOLDED = frozenset(_FOLDED.split()) | {name for name in REGISTRY if name.startswith("upsample_")}

_found: dict[str, Rule] = {}


def rule_for(op: Op) -> Rule:
    """The batching rule of an op."""
    known = _found.get(op.name)
    if known is None:
        known = _found[op.name] = _rule_for(op)
    return known


def _rule_for(op: Op) -> Rule:
    from clew.func.batching import load_rules

    load_rules()
    if op.name in RULES:
        return RULES[op.name]
    source = op.name.removesuffix("_copy")
    if source != op.name and source in REGISTRY and REGISTRY[source].view:
        return copied_view
    if op.name in LEADING:
        return leading
    if op.name in FOLDED:
        return folded
    if is_pointwise(op):
        return pointwise
    if any(name in op.attrs for name in DIM_ATTRS) and not op.variadic_input:
        return along_dims
    return one_by_one


def is_pointwise(op: Op) -> bool:
    """Whether each element of the result depends on one element of each input."""
    if op.name in RULES or op.variadic_input:
        return False
    if any(name in op.attrs for name in (*DIM_ATTRS, *SIZE_ATTRS)):
        return False
    return op.name in POINTWISE or op.domain is not None or op.promote is not None


def copied_view(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """A copy of what the view op of the same name shows."""
    source = REGISTRY[op.name.removesuffix("_copy")]
    shown = rule_for(source)(source, call, attrs)
    if isinstance(shown, tuple):
        return tuple(run("clone", x, memory_format="contiguous") for x in shown)
    return run("clone", shown, memory_format="contiguous")


# -- element by element


def pointwise(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Examples along dimension 0, the other dimensions aligned from the last.

    The kernels of ops that promote broadcast; others may count on operands of one shape.
    """
    values = aligned(call)
    if op.promote is None and len(values) > 1:
        ndim = max(map(call.ndim, range(len(call))))
        for i, x in enumerate(values):
            if isinstance(x, Tensor) and not call.is_batched(i):
                values[i] = padded(call.full(i), ndim)
    return apply(op, values, attrs)


def aligned(call: Call) -> list[Any]:
    """The inputs so that they broadcast as those of one example do, in the same types."""
    indices = range(len(call))
    ndim = max(call.ndim(i) for i in indices)
    values = [padded(call.front(i), ndim) if call.is_batched(i) else call.values[i]
              for i in indices]  # fmt: skip
    kinds = {x._array.dtype for x in values if isinstance(x, Tensor)}
    if len(kinds) > 1 and ndim:
        values = _as_in_one_example(call, values)
    return values


class _Like:
    """An operand of one example, for the rules of promotion."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype = dtype
        self.ndim = ndim


def _as_in_one_example(call: Call, values: list[Any]) -> list[Any]:
    """A 0-d tensor has less say in promotion than others: what a batch of numbers has not."""
    found: dict[bool, dtypes.dtype] = {}
    for i, x in enumerate(values):
        if isinstance(x, Tensor):
            sized, kind = call.ndim(i) > 0, x.dtype
            found[sized] = dtypes.promote_types(found[sized], kind) if sized in found else kind
    if len(found) < 2 or found[False].category > found[True].category:
        return values
    return [
        run("to_dtype", x, dtype=found[True])
        if isinstance(x, Tensor) and call.is_batched(i) and not call.ndim(i) else x
        for i, x in enumerate(values)
    ]  # fmt: skip


# -- along dimensions


def along_dims(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Dimensions of one example are one further on in the batch; sizes have one more."""
    ndim = call.ndim(0)
    values = [call.full(i) for i in range(len(call))]
    if ndim == 0 and not any(attrs.get(name) for name in SIZE_ATTRS):
        return _of_numbers(op, call, values, attrs)
    return apply(op, values, shifted(attrs, call.size, ndim))


def shifted(attrs: dict[str, Any], batch: int, ndim: int) -> dict[str, Any]:
    """Attributes of one example of `ndim` dimensions as those of the batch."""
    attrs = dict(attrs)
    for name in SIZE_ATTRS:
        if isinstance(attrs.get(name), tuple):
            ndim = len(attrs[name])
            attrs[name] = (batch, *attrs[name])
    for name in DIM_ATTRS:
        if name in attrs:
            attrs[name] = _shifted(attrs[name], ndim)
    return attrs


def _shifted(dim: Any, ndim: int) -> Any:
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(1, ndim + 1))
    if isinstance(dim, (tuple, list)):
        return tuple(wrap_dim(d, ndim) + 1 for d in dim)
    return wrap_dim(dim, ndim) + 1


def _of_numbers(op: Op, call: Call, values: list[Any], attrs: dict[str, Any]) -> Any:
    """An op along the dimension of a number, which is taken for a vector of one."""
    for name in DIM_ATTRS:
        dims = attrs.get(name)
        for d in dims if isinstance(dims, (tuple, list)) else (dims,):
            if d is not None:
                wrap_dim(d, 0)
    vectors = [
        run("view", x, size=(call.size, 1)) if isinstance(x, Tensor) and x._array.ndim == 1 else x
        for x in values
    ]
    attrs = {k: (1,) if k in SIZE_ATTRS and v == () else v for k, v in attrs.items()}
    result = apply(op, vectors, shifted(attrs, call.size, 1))
    if isinstance(result, tuple):
        return tuple(None if r is None else reshaped(r, call.size) for r in result)
    return reshaped(result, call.size)


# -- independent entries


def leading(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Examples are one more dimension before the last ones, which the op works on."""
    tensors = [i for i in range(len(call)) if call.values[i] is not None]
    ranks = {call.ndim(i) for i in tensors}
    values = [call.full(i) for i in range(len(call))]
    if len(ranks) > 1 and op.name not in _WITH_VECTORS and not _is_of_vectors(call):
        values = [None if x is None else padded(x, max(ranks)) for x in values]
    result = apply(op, values, attrs)
    if isinstance(result, tuple):
        return tuple(None if r is None else _of_each(r, call.size) for r in result)
    return result


def _of_each(x: Any, batch: int) -> Any:
    """A result that is empty, with examples all the same."""
    shape = x._array.shape
    return run("expand", x, size=(batch, *shape)) if shape == (0,) and batch else x


_WITH_VECTORS = frozenset(["lu_unpack", "linalg_householder_product", "ormqr"])
"""Ops of which one input has a dimension less than another, and is not to be broadcast to it."""


def _is_of_vectors(call: Call) -> bool:
    """Whether the second input is a vector for each matrix of the first."""
    return call.shape(1) == call.shape(0)[:-1]


def folded(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Examples and entries of dimension 0 are counted together."""
    values = []
    for i in range(len(call)):
        x = call.full(i)
        if x is not None:
            batch, first, *rest = x._array.shape
            x = reshaped(x, batch * first, *rest)
        values.append(x)
    ndim = call.ndim(0)
    attrs = dict(attrs)
    for name in SIZE_ATTRS:
        size = attrs.get(name)
        if isinstance(size, (tuple, list)) and len(size) >= ndim:
            attrs[name] = (call.size * size[0], *size[1:])
    result = apply(op, values, attrs)
    if isinstance(result, tuple):
        return tuple(None if r is None else _unfolded(r, call.size) for r in result)
    return _unfolded(result, call.size)


def _unfolded(x: Any, batch: int) -> Any:
    first, *rest = x._array.shape
    entries = first // batch if batch else first
    return reshaped(x, batch, entries, *rest)


# -- writes


def write(op: Op, call: Call, attrs: dict[str, Any], name: str) -> None:
    """Run the op and put the result into the first input."""
    from clew.func.batching import load_rules
    from clew.func.batching.randoms import write_random

    load_rules()
    if write_random(op, call, attrs, name):
        return
    target = call.front(0)
    if (
        is_pointwise(op)
        and call.is_batched(0)
        and call.ndim(0) == max(map(call.ndim, range(len(call))))
    ):
        apply_inplace(op, target, aligned(call)[1:], attrs, name)
        return
    if all(d is None for d in call.dims):
        apply_inplace(op, target, call.values[1:], attrs, name)
        return
    result = rule_for(op)(op, call, attrs)
    if result.__class__ is Same:
        result = result.result
    _check_fits(call, result)
    apply_inplace(REGISTRY["copy"], target, (result,), name=name)


def _check_fits(call: Call, result: Any) -> None:
    target, source = call.values[0].dtype, result.dtype
    if not dtypes.can_cast(source, target):
        names = dtypes.SCALAR_NAMES
        raise RuntimeError(
            f"result type {names[source.name]} can't be cast to the desired output type "
            f"{names[target.name]}"
        )


def whole_size(size: Any, numel: int) -> tuple[int, ...]:
    """A size of one example, -1 worked out."""
    return infer_size(tuple(size), numel)


__all__ = ["Same", "aligned", "rule_for", "shifted", "whole_size", "write"]
