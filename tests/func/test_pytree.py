"""`torch.utils._pytree`, like torch."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

import clew
from clew.utils import _pytree as ours

Point = namedtuple("Point", "x y")

TREES: list[Any] = [
    1,
    None,
    [],
    {"a": 1, "b": (2, [3, None])},
    (1, Point(2, {"k": 3})),
    OrderedDict(z=1, a=[2]),
    deque([1, 2], maxlen=3),
    defaultdict(int, {"q": 4}),
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_round_trip_and_map(tree):
    theirs = pytest.importorskip("torch").utils._pytree
    leaves, spec = ours.tree_flatten(tree)
    assert leaves == theirs.tree_flatten(tree)[0] == ours.tree_leaves(tree)
    assert ours.tree_unflatten(leaves, spec) == tree
    assert spec.num_leaves == len(leaves)
    text = lambda x: f"<{x}>"  # noqa: E731
    assert ours.tree_map(text, tree) == theirs.tree_map(text, tree)
    assert leaves == [tree] or type(ours.tree_map(text, tree)) is type(tree)


def test_several_trees_and_types():
    theirs = pytest.importorskip("torch").utils._pytree
    trees = {"a": 1, "b": [2, 3]}, {"a": 10, "b": [20, 30]}
    add = lambda x, y: x + y  # noqa: E731
    assert ours.tree_map(add, *trees) == theirs.tree_map(add, *trees)
    assert ours.tree_map_only(int, str, [1, "a"]) == theirs.tree_map_only(int, str, [1, "a"])
    assert ours.tree_all(bool, [1, 0]) is False and ours.tree_any(bool, [1, 0]) is True


def test_structures_show_and_compare():
    theirs = pytest.importorskip("torch").utils._pytree
    tree = {"a": 1, "b": (2, [3])}
    assert ours.treespec_pprint(ours.tree_structure(tree)) == theirs.treespec_pprint(
        theirs.tree_structure(tree)
    )
    assert repr(ours.tree_structure((1, 2))) == repr(theirs.tree_structure((1, 2)))
    assert ours.tree_structure([1]) == ours.tree_structure([2])
    assert ours.tree_structure([1]) != ours.tree_structure((1,))


def test_a_registered_type():
    class Pair:
        def __init__(self, first, second):
            self.first, self.second = first, second

    ours.register_pytree_node(
        Pair, lambda p: ([p.first, p.second], None), lambda parts, _: Pair(*parts)
    )
    try:
        found = clew.vmap(lambda p: Pair(p.first + p.second, p.first))(
            Pair(clew.ones(2), clew.ones(2))
        )
        assert found.first.tolist() == [2, 2]
        with pytest.raises(ValueError, match="already registered"):
            ours.register_pytree_node(Pair, None, None)
    finally:
        del ours.SUPPORTED_NODES[Pair]


def test_leaves_must_fit():
    spec = ours.tree_structure([1, 2])
    with pytest.raises(ValueError, match="has length 1 but the spec refers to"):
        ours.tree_unflatten([1], spec)
    with pytest.raises(TypeError, match="to be an instance of PyTreeSpec"):
        ours.tree_unflatten([1], [1])
