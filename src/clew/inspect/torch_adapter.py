"""What the model of a graph wants to know, of real PyTorch's tensors and nodes.

Never imports torch: it looks at the module that the user's program has loaded.  Reads what PyTorch
2.13 shows of a node: ``next_functions``, ``_input_metadata``, and what it saved through
``_raw_saved_*``, which do not raise on a freed or modified tensor as ``_saved_*`` do.

Note [What PyTorch shows of saved tensors]
    ``_raw_saved_x.data`` is the tensor, or what a pack hook made of it, and None when there is
    none or it was freed.  Whether it was freed or changed, and whether it is an output, only
    ``_saved_x`` tells, by raising or by its ``grad_fn``; it is asked unless an unpack hook would
    run.  What ``_raw_saved_x`` returns points into the node and must not outlive it.  The version
    at saving is not shown, nor what a `CopySlices` node keeps.
"""

from __future__ import annotations

import functools
import re
import sys
import weakref
from collections.abc import Iterable, Iterator
from importlib.machinery import ExtensionFileLoader
from types import ModuleType
from typing import Any

from clew.inspect.model import GraphNode, Saved
from clew.inspect.reasons import reason
from clew.site import SourceLine

name = "torch"

_FRAME = re.compile(r'  File "(.*)", line (\d+), in (.*)\n(?:    (.*)\n)?')


def loaded() -> ModuleType | None:
    """Real PyTorch, if the program has imported it (`torch` may also mean clew)."""
    core = sys.modules.get("torch._C")
    loader = getattr(getattr(core, "__spec__", None), "loader", None)
    return sys.modules.get("torch") if isinstance(loader, ExtensionFileLoader) else None


def owns(value: Any) -> bool:
    """Whether `value` is a tensor or node of PyTorch."""
    torch = loaded()
    if torch is None:
        return False
    return isinstance(value, torch.Tensor) or _is_node(value)


def _is_node(value: Any) -> bool:
    return hasattr(value, "next_functions") and hasattr(value, "_sequence_nr")


def edge_of(value: Any) -> tuple[Any, int]:
    """(node, output number) of a tensor or node; the node is None if it has no graph."""
    if _is_node(value):
        return value, 0
    if not value.requires_grad:
        return None, 0
    torch = loaded()
    assert torch is not None
    edge = torch.autograd.graph.get_gradient_edge(value)
    return edge.node, edge.output_nr


def reached(roots: Iterable[Any]) -> list[int]:
    """The numbers of all nodes that a backward pass from tensors or gradient edges leads to."""
    stack = [edge_of(getattr(root, "node", root))[0] for root in roots]
    seen = {node for node in stack if node is not None}
    stack = list(seen)
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                stack.append(node)
    return [node._sequence_nr() for node in seen]


def edges(node: Any) -> tuple[tuple[Any, int], ...]:
    """(node, output number) of each input; (None, 0) of a constant one."""
    return node.next_functions


def seq(node: Any) -> int:
    """The number that orders nodes by when they were made."""
    return node._sequence_nr()


def kind(node: Any) -> str:
    """PyTorch's name of this kind of node, without its C++ namespace."""
    return node.name().rpartition("::")[2]


def site(node: Any) -> SourceLine | None:
    """The user's line, where anomaly mode has noted it."""
    return _site_of(node.metadata.get("traceback_"))


def shape_and_type(value: Any) -> tuple[tuple[int, ...], str]:
    """Shape and name of the dtype of a tensor, or of a node's first output."""
    if _is_node(value):
        return next(iter(_outputs(value)), ((), "?"))
    return _sizes(value.shape), _dtype_name(value.dtype)


def _sizes(shape: Iterable[Any]) -> tuple[Any, ...]:
    """Sizes as numbers; those of a jagged tensor are symbols (``j1``), given by their names."""
    return tuple(n if type(n) is int else str(n) for n in shape)


def leaf_of(node: Any) -> Any:
    """The tensor whose gradient a node accumulates; None for other nodes."""
    return getattr(node, "variable", None) if kind(node) == "AccumulateGrad" else None


def describe(node: Any) -> GraphNode:
    """A node as plain data, but for its number, its edges and what a recording knows."""
    named = kind(node)
    leaf = getattr(node, "variable", None) if named == "AccumulateGrad" else None
    if leaf is not None:
        return GraphNode(
            0, named, node._sequence_nr(), [shape_and_type(leaf)], leaf=True, hooks=_hooks(leaf)
        )
    attributes = _attributes_of(node)
    attrs = {label: getattr(node, f"_saved_{label}", None) for label in attributes.plain}
    saved: list[Saved] = []
    freed = False
    for label in attributes.raw:
        parts, released = _read(node, label, named, attrs)
        saved += parts
        freed = freed or released
    return GraphNode(
        0, named, node._sequence_nr(), _outputs(node), saved=saved, attrs=attrs, site=site(node),
        freed=freed,
    )  # fmt: skip


def named_leaves(params: Iterable[tuple[str, Any]]) -> dict[int, str]:
    """Names by the id of the tensor."""
    return {id(tensor): label for label, tensor in params}


class _Attributes:
    """What a type of nodes shows, read once: `dir` is slow."""

    def __init__(self, kind: type) -> None:
        names = dir(kind)
        self.raw = [n.removeprefix("_raw_saved_") for n in names if n.startswith("_raw_saved_")]
        shown = [n.removeprefix("_saved_") for n in names if n.startswith("_saved_")]
        self.plain = [n for n in shown if n not in self.raw]
        self.outputs: dict[str, bool] = {}


def _attributes_of(node: Any) -> _Attributes:
    kind = type(node)
    found = _known_types.get(kind)
    if found is None:
        found = _known_types[kind] = _Attributes(kind)
    return found


_known_types: weakref.WeakKeyDictionary[type, _Attributes] = weakref.WeakKeyDictionary()


def _read(
    node: Any, label: str, named: str, attrs: dict[str, Any]
) -> tuple[list[Saved], bool]:  # fmt: skip
    """What a node keeps under one name, and whether it was freed; numbers go to `attrs`."""
    raw = getattr(node, f"_raw_saved_{label}")
    parts = raw if isinstance(raw, (tuple, list)) else (raw,)
    hooked = any(p is not None and p.unpack_hook is not None for p in parts)
    value: Any = None
    failed = False
    if not hooked:
        try:
            value = getattr(node, "saved_tensors" if label == "tensors" else f"_saved_{label}")
        except RuntimeError:
            failed = True
    values = value if isinstance(value, (tuple, list)) else (value,) * len(parts)
    tensors = [None if p is None else p.data for p in parts]
    if failed and all(t is None for t in tensors):
        return [], True
    if len(tensors) == 1 and _is_number(only := tensors[0]):
        attrs[label] = only.item()  # type: ignore[union-attr]
        return [], False
    shown = "saved_tensors" if label == "tensors" else label
    found = [
        _saved(node, shown, tensor, value if not failed else None, hooked, failed, named)
        for tensor, value in zip(tensors, values)
        if tensor is not None
    ]
    return found, False


def _is_number(value: Any) -> bool:
    """Whether a tensor stands for a number of the program, like the 2 of ``x * 2``.

    Promotion tells: a number takes the type of any tensor of its kind, a 0-d tensor does not.
    """
    torch = loaded()
    assert torch is not None
    if value is None or not isinstance(value, torch.Tensor) or value.dim() or value.requires_grad:
        return False
    narrow = _narrow_types(torch).get(value.dtype)
    return narrow is not None and torch.result_type(value, narrow) == narrow.dtype


@functools.cache
def _narrow_types(torch: ModuleType) -> dict[Any, Any]:
    """For each type that PyTorch gives numbers, a 0-d tensor of a narrower type of its kind."""
    return {
        torch.int64: torch.zeros((), dtype=torch.int8),
        torch.float64: torch.zeros((), dtype=torch.float16),
        torch.complex128: torch.zeros((), dtype=torch.complex64),
    }


def _saved(
    node: Any, label: str, tensor: Any, value: Any, hooked: bool, failed: bool, named: str
) -> Saved:
    torch = loaded()
    assert torch is not None
    why = reason(named, label)
    if not isinstance(tensor, torch.Tensor):
        return Saved(
            label, (), type(tensor).__name__, 0, id(tensor), 0, "packed", reason=why
        )  # fmt: skip
    role = "packed" if hooked else _role(node, label, tensor, value)
    storage, nbytes = _storage(tensor)
    shape, dtype = shape_and_type(tensor)
    return Saved(
        label, shape, dtype, _bytes(tensor), storage, nbytes, role,
        failed, None, None if tensor.is_inference() else tensor._version, "", why,
    )  # fmt: skip


def _role(node: Any, label: str, tensor: Any, value: Any) -> str:
    """See Note [What PyTorch shows of saved tensors]."""
    if _is_output(node, label, tensor, value):
        return "output"
    base = tensor._base if tensor._base is not None else tensor
    if base.is_leaf and base.requires_grad:
        return "parameter"
    return "input" if tensor.grad_fn is not None else "leaf"


def _is_output(node: Any, label: str, tensor: Any, value: Any) -> bool:
    if tensor.requires_grad:  # kept with its history: an input
        return False
    known = _attributes_of(node).outputs
    if value is not None and value.requires_grad and label != "saved_tensors":
        known[label] = value.grad_fn is node
        return known[label]
    if value is not None and value.requires_grad:
        return value.grad_fn is node
    return known.get(
        label, label in _OUTPUT_NAMES or label.startswith("result")
    ) and not isinstance(getattr(node, f"_raw_saved_{label}", None), (tuple, list))


_OUTPUT_NAMES = frozenset({"indices", "total_weight", "output", "logsumexp", "log_sumexp"})
"""What PyTorch's rules call outputs; used only where the tensor itself does not tell."""


def _storage(tensor: Any) -> tuple[int, int]:
    """A key of the memory behind a tensor, and its bytes."""
    try:
        storage = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # a sparse or opaque tensor has none
        return id(tensor), _bytes(tensor)
    return storage._cdata, storage.nbytes()


def _bytes(tensor: Any) -> int:
    """Bytes of the elements; 0 where their number is a symbol."""
    count = tensor.numel()
    return count * tensor.element_size() if type(count) is int else 0


def _outputs(node: Any) -> list[tuple[tuple[int, ...], str]]:
    return [(_sizes(m.shape), _dtype_name(m.dtype)) for m in node._input_metadata]


@functools.cache
def _dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _hooks(leaf: Any) -> list[str]:
    """The hooks of a leaf; PyTorch does not list those of other tensors and of nodes."""
    tables = {
        "tensor hook": leaf._backward_hooks,
        "post-accumulate hook": getattr(leaf, "_post_accumulate_grad_hooks", None),
    }
    return [
        f"{what} {getattr(hook, '__qualname__', type(hook).__name__)}"
        for what, table in tables.items()
        for hook in (table or {}).values()
    ]


def _site_of(traceback: list[str] | None) -> SourceLine | None:
    """The innermost frame outside PyTorch of a traceback that anomaly mode noted."""
    for file, line, function, text in _frames(traceback or ()):
        if not file.startswith(own_folder()):
            return SourceLine(file, line, function, text)
    return None


def _frames(traceback: Iterable[str]) -> Iterator[tuple[str, int, str, str]]:
    for entry in reversed(list(traceback)):
        match = _FRAME.match(entry)
        if match is not None:
            file, line, function, text = match.groups()
            yield file, int(line), function, text or ""


@functools.cache
def own_folder() -> str:
    """Where PyTorch is installed; what runs there is not the user's program."""
    torch = loaded()
    file = getattr(torch, "__file__", None)
    return file.removesuffix("__init__.py") if file else "\0"
