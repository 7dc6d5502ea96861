"""Nested containers as a list of leaves and the structure around them.

May import the standard library only.  The names are those of PyTorch's module, which scripts use.
A container is a list, tuple, named tuple, dict, ``OrderedDict``, ``defaultdict`` or ``deque``, or
of a type given to `register_pytree_node`; everything else, None included, is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

__all__ = [
    "LeafSpec", "TreeSpec", "register_pytree_node", "tree_all", "tree_any", "tree_flatten",
    "tree_iter", "tree_leaves", "tree_map", "tree_map_", "tree_map_only", "tree_structure",
    "tree_unflatten", "treespec_pprint",
]  # fmt: skip

Flatten = Callable[[Any], tuple[list[Any], Any]]
Unflatten = Callable[[Iterable[Any], Any], Any]


class _Container(NamedTuple):
    """How a kind of container is taken apart and put together again.

    Attributes:
        flatten: from a container to its children and a context: what else makes it.
        unflatten: from children and context to a container.
    """

    flatten: Flatten
    unflatten: Unflatten


def _of_dict(make: Callable[[Any, Any], Any], context: Callable[[Any], Any]) -> _Container:
    return _Container(lambda d: (list(d.values()), context(d)), make)


SUPPORTED_NODES: dict[Any, _Container] = {
    list: _Container(lambda x: (x, None), lambda children, _: list(children)),
    tuple: _Container(lambda x: (list(x), None), lambda children, _: tuple(children)),
    dict: _of_dict(lambda children, keys: dict(zip(keys, children)), list),
    OrderedDict: _of_dict(lambda children, keys: OrderedDict(zip(keys, children)), list),
    defaultdict: _of_dict(
        lambda children, context: defaultdict(context[0], zip(context[1], children)),
        lambda d: [d.default_factory, list(d)],
    ),
    deque: _Container(
        lambda d: (list(d), d.maxlen), lambda children, maxlen: deque(children, maxlen)
    ),
}
_NAMED_TUPLE = _Container(lambda x: (list(x), type(x)), lambda children, kind: kind(*children))


def register_pytree_node(
    cls: Any, flatten_fn: Flatten, unflatten_fn: Unflatten, **serialization: Any
) -> None:
    """Make `cls` a container.

    Args:
        cls: the type; types derived from it are other types.
        flatten_fn: from an instance to its children and a context.
        unflatten_fn: from children and context to an instance.
        serialization: accepted as PyTorch's arguments for exporting programs, which clew does not.

    Raises:
        ValueError: `cls` is a container already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = _Container(flatten_fn, unflatten_fn)


def _kind_of(tree: Any) -> Any:
    kind = type(tree)
    if isinstance(tree, tuple) and kind is not tuple and hasattr(kind, "_fields"):
        return "namedtuple"
    return kind


def _container(tree: Any, is_leaf: Callable[[Any], bool] | None) -> _Container | None:
    if is_leaf is not None and is_leaf(tree):
        return None
    kind = _kind_of(tree)
    return _NAMED_TUPLE if kind == "namedtuple" else SUPPORTED_NODES.get(kind)


class TreeSpec:
    """The structure of a tree: what kind of container stands where.

    Attributes:
        type: the kind of container; None for a leaf.
        context: what, beside its children, makes it: the keys of a dict.
        num_leaves: how many leaves it holds.
    """

    __slots__ = ("_children", "context", "num_leaves", "type")

    def __init__(self, type: Any, context: Any, children: Iterable[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self._children = list(children)
        self.num_leaves: int = 1 if type is None else sum(c.num_leaves for c in self._children)

    def children(self) -> list[TreeSpec]:
        """The structures inside."""
        return list(self._children)

    def is_leaf(self) -> bool:
        """Whether this is no container."""
        return self.type is None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type == other.type
            and self.context == other.context
            and self._children == other._children
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        name = self.type if isinstance(self.type, str) else self.type.__name__
        prefix = f"TreeSpec({name}, {self.context}, ["
        indent += 2
        parts = [c.__repr__(indent) for c in self._children]
        return prefix + (",\n" + " " * indent).join(parts) + "])"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure that has these leaves."""
        return tree_unflatten(leaves, self)


LEAF = TreeSpec(None, None, ())


def LeafSpec() -> TreeSpec:
    """The structure of what is no container."""
    return LEAF


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves, in order, and the structure.

    >>> from clew.utils._pytree import tree_flatten
    >>> tree_flatten({"a": 1, "b": (2, 3)})[0]
    [1, 2, 3]
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    container = _container(tree, is_leaf)
    if container is None:
        leaves.append(tree)
        return LEAF
    children, context = container.flatten(tree)
    return TreeSpec(_kind_of(tree), context, [_flatten(c, leaves, is_leaf) for c in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of a structure, with these leaves.

    Raises:
        TypeError: `treespec` is no structure.
        ValueError: there are more or fewer leaves than it holds.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers to "
            f"a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    return _unflatten(iter(given), treespec)


def _unflatten(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    container = _NAMED_TUPLE if spec.type == "namedtuple" else SUPPORTED_NODES[spec.type]
    return container.unflatten([_unflatten(leaves, c) for c in spec._children], spec.context)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves, in order."""
    return tree_flatten(tree, is_leaf)[0]


tree_iter = tree_leaves


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:  # fmt: skip
    """The same structure with ``func(leaf, ...)`` for each leaf.

    Args:
        func: takes a leaf of each tree.
        tree: the tree.
        rests: more trees that have its structure, or more below its leaves.
        is_leaf: says of a container that it is to be taken as a leaf.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    more = [_flatten_up_to(spec, rest) for rest in rests]
    return tree_unflatten([func(*parts) for parts in zip(leaves, *more)], spec)


def _flatten_up_to(spec: TreeSpec, tree: Any) -> list[Any]:
    """What of `tree` stands where `spec` has its leaves."""
    if spec.type is None:
        return [tree]
    if _kind_of(tree) != spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {type(tree)!r}.")
    container = _container(tree, None)
    assert container is not None
    children, context = container.flatten(tree)
    if len(children) != len(spec._children):
        raise ValueError(
            f"Node arity mismatch; expected {len(spec._children)}, but got {len(children)}."
        )
    if context != spec.context:
        raise ValueError(f"Node context mismatch: {context} instead of {spec.context}.")
    return [x for c, s in zip(children, spec._children) for x in _flatten_up_to(s, c)]


def tree_map_(
    func: Callable[..., Any], tree: Any, *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:  # fmt: skip
    """Call `func` on each leaf; the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    type_or_types: Any, func: Callable[[Any], Any], tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:  # fmt: skip
    """`tree_map` of the leaves of some types; the others stay as they are."""
    return tree_map(lambda x: func(x) if isinstance(x, type_or_types) else x, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_leaves(tree)))


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether `pred` holds for a leaf."""
    return any(map(pred, tree_leaves(tree)))


def treespec_pprint(treespec: TreeSpec) -> str:
    """The structure as a tree whose leaves are asterisks."""

    class _Asterisk:
        def __repr__(self) -> str:
            return "*"

    return repr(tree_unflatten([_Asterisk()] * treespec.num_leaves, treespec))


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any] | None:
    """The leaves of a tree that has the upper part of a structure, each for all that it stands for.

    None if it has not.
    """
    if treespec.type is None:
        return [tree] if _container(tree, is_leaf) is None else None
    container = _container(tree, is_leaf)
    if container is None:
        return [tree] * treespec.num_leaves
    if _kind_of(tree) != treespec.type:
        return None
    children, context = container.flatten(tree)
    if len(children) != len(treespec._children) or context != treespec.context:
        return None
    result: list[Any] = []
    for child, spec in zip(children, treespec._children):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        result += flat
    return result
