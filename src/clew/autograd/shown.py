"""What a node shows of what it saved, as PyTorch shows it: ``_saved_*`` and ``_raw_saved_*``.

Layer 4; nodes come here when somebody asks.

Note [Shown values]
    A name is there if a rule of the op reads the value, whether this call kept it or not: where
    PyTorch keeps nothing, it shows None.  Attributes that no rule reads are not shown.  Where
    PyTorch saves something that follows from what clew saved (the number of elements of a tensor
    whose size is known), or in another form, `_SHOWN` says how.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from clew.autograd.saved import Freed, PackedTensor, Saved, SavedNone, SavedTensor, SavedTuple
from clew.kernels.pool import places_to_indices
from clew.kernels.pool_shapes import pool_windows
from clew.op import Op
from clew.ops.pool import Pooling
from clew.plan import (
    DTYPE,
    DTYPES,
    INPUT,
    INPUTS,
    OUTPUT,
    SHAPE,
    SHAPES,
    STRIDES,
    Plan,
    Save,
    plan_for,
)
from clew.tensor import Tensor

_KEPT = (SavedTensor, PackedTensor, SavedTuple)
_NUMBERS = (bool, int, float, complex)


def saved_name(save: Save) -> str:
    """PyTorch's name of a saved value: sizes of ``self`` are ``self_sym_sizes``."""
    name = save.name
    if save.kind in (SHAPE, SHAPES):
        return name.removesuffix("_shape") + ("_sym_sizes" if save.kind == SHAPE else "_sizes")
    if save.kind == STRIDES:
        return name.removesuffix("_strides") + "_sym_strides"
    if save.kind == DTYPES:
        return name.removesuffix("_dtype") + "_scalar_types"
    return name


def properties_of(op: Op) -> dict[str, property]:
    """What nodes of `op` show: ``_saved_self``, ``_raw_saved_self``, ``_saved_dim``, ...

    They are no business of a ``__getattr__``: Python is slow to read any attribute of an object
    whose class has one.
    """
    plan = _whole_plan(op)
    op_name = _declared_name(op)
    hidden = _HIDDEN.get(op.name, _HIDDEN.get(op_name, ()))
    saves = [s for s in plan.saves if s.kind != DTYPE]
    names = {saved_name(s) for s in saves} | {name for call in plan.calls for name in call.attrs}
    names |= {*_SHOWN.get(op_name, _NOTHING), *_UNREAD.get(op_name, ())}
    raw = {saved_name(s) for s in saves if _is_tensor(op, s)}
    found = {f"_saved_{n}": property(partial(_look_up, name=n)) for n in names - set(hidden)}
    return found | {f"_raw_saved_{n}": property(partial(_look_up_raw, name=n)) for n in raw}


def _look_up(node: Any, name: str) -> Any:
    """What a node shows as ``_saved_<name>``.

    Raises:
        RuntimeError: backward has released it, or it was changed in place.
    """
    form = _SHOWN.get(_declared_name(node.op), _NOTHING).get(name)
    if form is not None:
        return form(node) if callable(form) else form
    for position, save in enumerate(node.plan.saves):
        if saved_name(save) == name:
            return _shown(node, save, position)
    if name in node.attrs:
        return _in_form(node.op, name, node.attrs[name])
    # Kept by other calls.
    kinds = {saved_name(save): save.kind for save in _whole_plan(node.op).saves}
    return None if kinds[name] in (INPUT, OUTPUT, INPUTS) else ()


def _look_up_raw(node: Any, name: str) -> Any:
    """What a node shows as ``_raw_saved_<name>``."""
    for position, save in enumerate(node.plan.saves):
        if saved_name(save) == name:
            return _raw(node, save, position)
    return SavedNone()


def _declared_name(op: Op) -> str:
    """The name that the tables below know it by: that of the op that it was derived from."""
    return op.derived_from or op.name


def _whole_plan(op: Op) -> Plan:
    """What an op keeps when all inputs require grad."""
    return plan_for(op, (1 << len(op.inputs)) - 1, len(op.inputs))


def _is_tensor(op: Op, save: Save) -> bool:
    """Whether PyTorch keeps this as a tensor; some ops have an overload for a number instead."""
    scalar = save.name in (op.without, _SCALARS.get(op.name))
    return save.kind in (INPUT, OUTPUT, INPUTS) and not scalar


def _shown(node: Any, save: Save, position: int) -> Any:
    if node.saved.__class__ is Freed:
        node.saved.raise_for(node)
    value = node.saved[position]
    if isinstance(value, _KEPT):
        return value.show(node) if isinstance(value, SavedTensor) else value.unpack(node)
    if isinstance(value, _NUMBERS) and _is_tensor(node.op, save):
        return _tensor_of(value)
    return value


def _raw(node: Any, save: Save, position: int) -> Any:
    if node.saved.__class__ is Freed:
        if save.kind != INPUTS:
            return node.saved
        node.saved.raise_for(node)
    value = node.saved[position]
    if isinstance(value, SavedTuple):
        return tuple(SavedNone() if item is None else item for item in value.items)
    if value is None:
        return SavedNone()
    if isinstance(value, _NUMBERS):
        # Hooks may be put on it, so from now on it is a tensor.
        tensor = _tensor_of(value)
        value = SavedTensor(tensor, tensor._counter.value)
        node.saved = (*node.saved[:position], value, *node.saved[position + 1 :])
    assert isinstance(value, Saved)
    return value


def _tensor_of(number: Any) -> Tensor:
    """A number as PyTorch keeps it, in the widest type of its kind."""
    made: Tensor = Tensor._from_array(np.array(number))
    return made


# -- other forms


def _shape_of(node: Any, name: str) -> tuple[int, ...] | None:
    """The shape of an input or output, from what the node kept or from what its edge leads to;
    None where neither tells."""
    for save, value in zip(node.plan.saves, () if node.is_released() else node.saved):
        if save.name == f"{name}_shape":
            found: tuple[int, ...] = value
            return found
        if save.name == name and isinstance(value, SavedTensor):
            found = value.tensor._array.shape
            return found
    if name in node.op.inputs:
        index = node.op.inputs.index(name)
        if index in node.plan.inputs:
            following, output_nr = node.edges[node.plan.inputs.index(index)]
            if following is not None:
                found = following.metas[output_nr][0]
                return found
    return None


def _of_shape(name: str, function: Callable[[tuple[int, ...]], Any]) -> Callable[[Any], Any]:
    def form(node: Any) -> Any:
        shape = _shape_of(node, name)
        return None if shape is None else function(shape)

    return form


def _size(name: str, dim: int) -> Callable[[Any], Any]:
    return _of_shape(name, lambda shape: shape[dim])


def _sizes(name: str) -> Callable[[Any], Any]:
    return _of_shape(name, lambda shape: shape)


def _numel(name: str) -> Callable[[Any], Any]:
    return _of_shape(name, math.prod)


def _scale(index: int) -> Callable[[Any], Any]:
    return lambda node: node.attrs["scales"][index]


def _indices_of_places(node: Any) -> Any:
    """Max pooling's places in windows as PyTorch's, which are of the plane."""
    position = [save.name for save in node.plan.saves].index("result1")
    places = _shown(node, node.plan.saves[position], position)
    shape = _shape_of(node, "self")
    assert shape is not None  # `_shown` refuses a node that has released what it kept
    windows = pool_windows(shape, *Pooling(**node.attrs))
    return Tensor._from_array(places_to_indices(places._array, windows))


_NOTHING: dict[str, Any] = {}

_SHOWN: dict[str, dict[str, Any]] = {
    "add": {"alpha": 1},
    "sub": {"alpha": 1},
    "rsub": {"alpha": 1},
    "rpow": {"self": lambda node: node.saved[[s.name for s in node.plan.saves].index("base")]},
    "mean": {"self_sym_numel": _numel("self")},
    "mean_all": {"self_sym_numel": _numel("self")},
    "mm": {"self_sym_sizes": _sizes("self"), "mat2_sym_sizes": _sizes("mat2")},
    "addmm": {"mat1_sym_sizes": _sizes("mat1"), "mat2_sym_sizes": _sizes("mat2")},
    "addbmm": {
        "batch1_sym_argsize_0": _size("batch1", 0),
        "batch1_sym_argsize_1": _size("batch1", 1),
        "batch2_sym_argsize_2": _size("batch2", 2),
    },
    "embedding": {"weight_sym_argsize_0": _size("weight", 0)},
    "im2col": {
        "self_sym_argsize_minus_1": _size("self", -1),
        "self_sym_argsize_minus_2": _size("self", -2),
    },
    "lu_unpack": {
        "LU_data_sym_argsize_minus_1": _size("LU_data", -1),
        "LU_data_sym_argsize_minus_2": _size("LU_data", -2),
    },
    "linalg_lu": {"pivot": True},
    "linalg_lu_factor_ex": {"pivot": True},
    "linalg_svd": {"S_sym_argsize_minus_1": _size("S", -1)},
    "index_add": {"source_dim": _of_shape("source", len)},
    "index_copy": {"source_dim": _of_shape("source", len)},
    "native_group_norm": {
        "N": _size("input", 0),
        "C": _size("input", 1),
        "HxW": _of_shape("input", lambda shape: math.prod(shape[2:])),
    },
    "max_pool2d_with_places": {"result1": _indices_of_places},
    "max_pool3d_with_places": {"result1": _indices_of_places},
    "scaled_dot_product_flash_attention_for_cpu": {"dropout_p": 0.0},
}
"""By op: values that PyTorch shows under other names, or that are always the same in clew."""

for _kind in ("nearest", "nearest_exact", "linear", "cubic"):
    for _dims, _names in ((1, ("scales",)), (2, ("scales_h", "scales_w")),
                          (3, ("scales_d", "scales_h", "scales_w"))):  # fmt: skip
        _SHOWN[f"upsample_{_kind}{_dims}d"] = {n: _scale(i) for i, n in enumerate(_names)}

_POOL = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
_UNREAD: dict[str, tuple[str, ...]] = {
    "div_rounded": ("rounding_mode",),
    "embedding": ("sparse",),
    "fractional_max_pool2d": ("kernel_size", "output_size"),
    "fractional_max_pool3d": ("kernel_size", "output_size"),
    "gather": ("sparse_grad",),
    "index_put": ("accumulate",),
    "linalg_svd": ("full_matrices",),
    "max_pool2d_with_indices": _POOL,
    "max_pool3d_with_indices": _POOL,
    "squeeze_dim": ("dim",),
    "squeeze_dims": ("dim",),
    "unsqueeze": ("dim",),
    **{f"upsample_{kind}{dims}d": ("output_size",) for dims in (1, 2, 3)
       for kind in ("nearest", "nearest_exact", "linear", "cubic")},
}  # fmt: skip
"""By op: attributes that PyTorch saves, and that clew's rules do without."""

_HIDDEN: dict[str, tuple[str, ...]] = {
    "rpow": ("base",),
    "as_strided": ("base",),
    "permute_copy": ("self_sym_sizes",),
    "unsqueeze_copy": ("self_sym_sizes",),
    "addbmm": ("batch1_sym_sizes",),
    "embedding": ("weight_sym_sizes",),
    "im2col": ("self_sym_sizes",),
    "lu_unpack": ("LU_data_sym_sizes",),
    "native_layer_norm": ("eps",),
    **{f"upsample_{k}{d}d": ("scales", "align_corners") for k in ("nearest", "nearest_exact")
       for d in (2, 3)},
    **{f"upsample_{k}1d": ("align_corners",) for k in ("nearest", "nearest_exact")},
    **{f"upsample_{k}{d}d": ("scales",) for k in ("linear", "cubic") for d in (2, 3)},
}  # fmt: skip
"""By op: what PyTorch has under another name, or not at all."""

_SCALARS = {"rpow": "base", "xlogy_of_number": "self", "xlogy_with_number": "other"}
"""By op: the input that is a number in PyTorch's overload, and kept as one."""

_LISTS_OF_DIMS = frozenset(
    {"amax", "amin", "linalg_vector_norm", "logsumexp", "mean", "nansum", "std", "std_mean", "sum",
     "var", "var_mean"}
)  # fmt: skip

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _in_form(op: Op, name: str, value: Any) -> Any:
    """An attribute in the type that PyTorch has it in."""
    if name == "dim" and isinstance(value, int) and op.name in _LISTS_OF_DIMS:
        return (value,)
    if name in ("shifts", "dims") and isinstance(value, int):
        return (value,)
    if name == "reduction":
        return _REDUCTIONS[value]
    if name == "p" and op.name == "cdist":
        return float(value)
    return value
