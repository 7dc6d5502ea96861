"""The array that owns the memory, whatever way a view was made."""

import mmap

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from clew.storage import geometry, root

OWNER = np.arange(12.0)

VIEWS = {
    "itself": lambda x: x,
    "slice of a slice": lambda x: x[2:][3:],
    "reshaped": lambda x: x.reshape(3, 4).T,
    "expanded": lambda x: np.broadcast_to(x, (2, 12)),
    "as_strided": lambda x: as_strided(x, (2, 3), (8, 16)),
    "as_strided of a view, then sliced": lambda x: as_strided(x[1:], (4, 2), (8, 8))[1:],
    "sliding windows": lambda x: sliding_window_view(x, 3)[2:],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_root_is_the_owner(view):
    assert root(view(OWNER)) is OWNER


def test_offset_of_a_strided_view():
    assert geometry(as_strided(OWNER[3:], (2, 2), (8, 8))).offset == 3


@pytest.mark.parametrize(
    "memory", [bytes(16), bytearray(16), mmap.mmap(-1, 16)], ids=lambda m: type(m).__name__
)
def test_memory_of_something_else(memory):
    array = np.frombuffer(memory)
    assert root(array) is array
    assert root(array[1:]) is array


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_strides_of_an_empty_array(shape):
    torch = pytest.importorskip("torch")
    assert geometry(np.empty(shape, np.float32)).stride == torch.empty(shape).stride()
