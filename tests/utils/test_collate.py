"""Joining samples: values, types of containers, dtypes and errors are PyTorch's."""

from collections import OrderedDict, UserDict, UserList, namedtuple
from types import MappingProxyType

import numpy as np
import pytest

from engines import same

Point = namedtuple("Point", ["x", "y"])


class Tagged(dict):
    """A dict with an attribute, which a batch keeps."""

    tag = None


def tagged(**members):
    made = Tagged(members)
    made.tag = "kept"
    return made


BATCHES = {
    "tensors": lambda e: [e.ones(2), e.zeros(2)],
    "scalars": lambda e: [e.tensor(1), e.tensor(2)],
    "shapes": lambda e: [e.ones(2), e.zeros(3)],
    "ints": lambda e: [1, 2],
    "bools": lambda e: [True, False],
    "floats": lambda e: [1.5, 2],
    "text": lambda e: ["a", "b"],
    "bytes": lambda e: [b"a", b"b"],
    "arrays": lambda e: [np.ones(2, np.float32), np.zeros(2, np.float32)],
    "array of text": lambda e: [np.array(["a"])],
    "0-d arrays": lambda e: [np.array(1), np.array(2)],
    "numpy scalars": lambda e: [np.float32(1), np.float32(2)],
    "numpy bools": lambda e: [np.bool_(1), np.bool_(0)],
    "tuples": lambda e: [(e.ones(1), 2), (e.zeros(1), 3)],
    "lists": lambda e: [[1, 2.0], [3, 4.0]],
    "lengths": lambda e: [[1], [1, 2]],
    "dicts": lambda e: [{"a": 1, "b": (1, 2)}, {"a": 2, "b": (3, 4)}],
    "ordered": lambda e: [OrderedDict(a=1), OrderedDict(a=2)],
    "user dict": lambda e: [UserDict(a=1), UserDict(a=2)],
    "proxy": lambda e: [MappingProxyType({"a": 1})],
    "user list": lambda e: [UserList([1, 2]), UserList([3, 4])],
    "range": lambda e: [range(2), range(2)],
    "named": lambda e: [Point(1, 2.0), Point(3, 4.0)],
    "object": lambda e: [object],
    "none": lambda e: [None],
}


def shown(value):
    """Containers with their type's name."""
    if isinstance(value, UserDict):
        return "UserDict", value.data
    if isinstance(value, UserList):
        return "UserList", value.data
    return type(value).__name__, value


@pytest.mark.parametrize("name", BATCHES)
def test_default_collate_equals_torch(name):
    same(lambda e: shown(e.utils.data.default_collate(BATCHES[name](e))))


@pytest.mark.parametrize("name", BATCHES)
def test_default_convert_equals_torch(name):
    same(lambda e: shown(e.utils.data.default_convert(BATCHES[name](e)[0])))


def test_attributes_of_a_dict_are_kept():
    def run(e):
        batch = e.utils.data.default_collate([tagged(a=1), tagged(a=2)])
        return type(batch).__name__, batch.tag, dict(batch)

    same(run)


def test_a_map_of_functions_extends_collate():
    def run(e):
        functions = {str: lambda batch, *, collate_fn_map: "+".join(batch)}
        collate = e.utils.data._utils.collate.collate
        return collate([("a", "b"), ("c", "d")], collate_fn_map=functions)

    same(run)


def test_stacked_samples_keep_their_graph():
    import clew

    x = clew.ones(3, requires_grad=True)
    batch = clew.utils.data.default_collate([x * 2, x * 3])
    batch.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0, 5.0]
