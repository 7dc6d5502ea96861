"""What the model of a graph wants to know, of clew's own tensors and nodes.

Reads public attributes of the core.  `torch_adapter` answers the same questions for PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from clew import dtypes
from clew.autograd.node import AccumulateGrad, Node
from clew.autograd.saved import Freed, PackedTensor, SavedTensor
from clew.autograd.saved_small import SavedSmall
from clew.inspect.model import GraphNode, Saved
from clew.inspect.reasons import reason
from clew.plan import INPUT
from clew.site import SourceLine
from clew.site import resolve as resolve_site
from clew.storage import root
from clew.tensor import Tensor

name = "clew"


@functools.lru_cache(maxsize=4096)
def resolve(site: Any) -> SourceLine | None:
    """File, line and text of a site; many nodes are of few lines."""
    return resolve_site(site)


def owns(value: Any) -> bool:
    """Whether `value` is a tensor or node of clew."""
    return isinstance(value, (Tensor, Node))


def edge_of(value: Any) -> tuple[Any, int]:
    """(node, output number) of a tensor or node; the node is None if it has no graph."""
    if isinstance(value, Node):
        return value, 0
    node, output_nr = value._gradient_edge()
    return node, output_nr or 0


def edges(node: Any) -> tuple[tuple[Any, int], ...]:
    """(node, output number) of each input; (None, 0) of a constant one."""
    return node.edges


def seq(node: Any) -> int:
    """The number that orders nodes by when they were made."""
    return node.seq


def kind(node: Any) -> str:
    """PyTorch's name of this kind of node."""
    return node.name().removeprefix("torch::autograd::")


def site(node: Any) -> Any:
    """The user's line that made a node, resolved."""
    return resolve(node.site)


def shape_and_type(value: Any) -> tuple[tuple[int, ...], str]:
    """Shape and name of the dtype of a tensor, or of a node's first output."""
    if isinstance(value, Node):
        return next(iter(_outputs(value)), ((), "?"))
    array = value._array
    return array.shape, dtypes.of_numpy(array.dtype).name


def leaf_of(node: Any) -> Any:
    """The tensor whose gradient a node accumulates; None for other nodes."""
    return node.variable if isinstance(node, AccumulateGrad) else None


def describe(node: Any) -> GraphNode:
    """A node as plain data, but for its number, its edges and what a recording knows."""
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        made = leaf._meta.site if leaf._meta is not None else None
        return GraphNode(
            0, "AccumulateGrad", node.seq, [shape_and_type(leaf)], site=resolve(made),
            label=leaf.name, leaf=True, hooks=_hooks(node),
        )  # fmt: skip
    named = kind(node)
    saved = [_saved(label, kept, named) for label, kept in node.kept()]
    released = getattr(node, "saved", None)
    freed = isinstance(released, Freed)
    return GraphNode(
        0, named, node.seq, _outputs(node), saved=saved, attrs=_attrs(node),
        site=resolve(node.site), freed=freed, hooks=_hooks(node),
        freed_at=resolve(released.site) if isinstance(released, Freed) else None,
        inputs=_input_names(node),
    )  # fmt: skip


def named_leaves(params: Iterable[tuple[str, Any]]) -> dict[int, str]:
    """Names by the id of the tensor."""
    return {id(tensor): label for label, tensor in params}


def _outputs(node: Node) -> list[tuple[tuple[int, ...], str]]:
    """Shape and dtype of each output that a gradient may arrive for."""
    op = getattr(node, "op", None)
    without = op.no_grad_outputs if op is not None else ()
    return [
        (tuple(m[0]), dtypes.of_numpy(m[1]).name)
        for nr, m in enumerate(node.metas)
        if m and nr not in without and np.dtype(m[1]).kind in "fcV"
    ]


def _attrs(node: Any) -> dict[str, Any]:
    """The operation's attributes, and the numbers that it keeps."""
    found = dict(getattr(node, "attrs", {}))
    plan = getattr(node, "plan", None)
    if plan is not None and not node.is_released():
        for value, save in zip(node.saved, plan.saves):
            if save.kind == INPUT and isinstance(value, (int, float, complex)):
                found[save.name] = value
    return found


def _input_names(node: Any) -> list[str]:
    """The names of the op's inputs that its edges stand for."""
    plan = getattr(node, "plan", None)
    if plan is None:
        return []
    names = node.op.inputs
    return [names[i] if i < len(names) else f"{names[-1]}[{i}]" for i in plan.inputs]


def _saved(label: str, kept: SavedTensor | PackedTensor, kind: str) -> Saved:
    why = reason(kind, label)
    if isinstance(kept, PackedTensor) or kept.packed is not None:
        packed = kept if isinstance(kept, PackedTensor) else kept.packed
        assert packed is not None
        return _packed(label, packed.packed, why)
    tensor = kept.tensor
    array, counter = tensor._array, tensor._counter
    owner = root(array)
    shape, dtype = shape_and_type(tensor)
    changed = counter.value != kept.version
    nbytes = array.nbytes
    if isinstance(kept, SavedSmall) and kept.kept is not None:
        nbytes = owner.nbytes
        why = f"{why} ({kept.form.words})"
    writer = ""
    if changed and counter.writer_name:
        line = resolve(counter.writer)
        writer = counter.writer_name + (f", {line.file}:{line.line}" if line else "")
    return Saved(
        label, shape, dtype, nbytes, id(owner), owner.nbytes, _role(kept), changed,
        kept.version, counter.value, writer, why,
    )  # fmt: skip


def _packed(label: str, packed: Any, why: str) -> Saved:
    """What a hook made of a tensor, if that is a tensor; else only that it is there."""
    array = getattr(packed, "_array", None)
    if array is None:
        return Saved(
            label, (), type(packed).__name__, 0, id(packed), 0, "packed", reason=why
        )  # fmt: skip
    owner = root(array)
    shape, dtype = shape_and_type(packed)
    return Saved(
        label, shape, dtype, array.nbytes, id(owner), owner.nbytes, "packed", reason=why
    )  # fmt: skip


def _role(kept: SavedTensor) -> str:
    if kept.output_nr is not None:
        return "output"
    tensor = kept.tensor
    base = tensor._base if tensor._base is not None else tensor
    if base._node is None and base._requires_grad:
        return "parameter"
    return "leaf" if tensor._node is None else "input"


def _hooks(node: Any) -> list[str]:
    """Each hook in a few words, in the order in which they run."""
    found: list[str] = []
    leaf = getattr(node, "variable", None)
    meta = leaf._meta if leaf is not None else None
    if meta is not None:
        found += [f"tensor hook {_callable(h)}" for h in _callables(meta.hooks)]
    hooks = node.hooks
    if hooks is not None:
        found += [f"tensor hook {_callable(h)}" for t in hooks.tensor.values() for h in t.values()]
        found += ["retain_grad"] * len(hooks.retain)
        found += [f"node pre-hook {_callable(h)}" for h in hooks.before.values()]
        found += [f"node hook {_callable(h)}" for h in hooks.after.values()]
    if meta is not None:
        found += [f"post-accumulate hook {_callable(h)}" for h in _callables(meta.post_accumulate)]
    return found


def _callables(hooks: Any) -> Iterable[Any]:
    return hooks.values() if hooks else ()


def _callable(hook: Any) -> str:
    return getattr(hook, "__qualname__", None) or type(hook).__name__
