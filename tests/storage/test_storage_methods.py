"""Storages, tensors that take another storage or size, and memory shared with other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew
from twins import assert_same


def names(engine: Any) -> dict[str, Any]:
    x = engine.arange(6.0).reshape(2, 3)
    return {
        "torch": engine, "np": np, "x": x, "v": x[1:], "y": engine.zeros(0),
        "p": engine.ones(3, requires_grad=True),
    }  # fmt: skip


EXPRESSIONS = """
x.untyped_storage().nbytes()
v.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
v.untyped_storage() == x.untyped_storage()
x.untyped_storage().tolist()
x.untyped_storage()[5]
len(x.untyped_storage())
list(x.untyped_storage().clone())
x.untyped_storage().element_size()
[v.storage().size(), v.storage().nbytes(), v.storage().element_size(), len(v.storage())]
v.storage().tolist()
v.storage()[2]
list(v.storage())
str(x.storage().device), str(x.storage().dtype), str(x.untyped_storage().device)
x.is_shared(), x.untyped_storage().is_shared()
x.resize_(3, 3).shape
x.resize_(1, 2), x._version
x.resize_((4,)), x._version
x.resize_(2, 3), x._version
x.resize_as_(torch.zeros(2, 2)), v
x.t().resize_(3, 2)
v.resize_(2), v.storage_offset()
y.set_(x), y.data_ptr() == x.data_ptr(), y._version
y.set_(x.storage(), 1, (2,), (1,)), y.storage_offset()
y.set_(x.untyped_storage(), 0, (2, 2), (3, 1))
y.set_(x.untyped_storage())
y.set_(x, 2, (2, 2))
x.set_()
x.apply_(lambda a: a * 2 + 1), x._version
x.map_(v, lambda a, b: a - b)
torch.frombuffer(bytearray(b"abcd"), dtype=torch.uint8)
torch.frombuffer(bytearray(b"abcdabcd"), dtype=torch.int16, count=2, offset=2)
torch.frombuffer(np.arange(3.0), dtype=torch.float64, requires_grad=True)
torch.from_dlpack(np.arange(3.0))
torch.from_dlpack(x)
np.from_dlpack(x).tolist(), list(x.__dlpack_device__())
np.array(x).tolist(), np.asarray(x, dtype=np.int64).dtype.name, np.sin(v)
""".strip().split("\n")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_as_in_pytorch(expression: str) -> None:
    result = assert_same(lambda engine: [eval(expression, names(engine))])
    assert isinstance(result, list), result


REFUSED = """
p.resize_(2)
p.set_(torch.zeros(2))
p.apply_(lambda a: a)
x.map_(p, lambda a, b: a)
y.set_(torch.zeros(2).long())
torch.frombuffer(bytearray(b"abc"), dtype=torch.int32)
torch.frombuffer(bytearray(b""), dtype=torch.int32)
torch.frombuffer(bytearray(b"abcd"), dtype=torch.uint8, offset=9)
torch.frombuffer(bytearray(b"abcd"), dtype=torch.uint8, count=9)
torch.frombuffer(bytearray(b"abcd"), dtype=torch.uint8, count=0)
torch.frombuffer("abc", dtype=torch.uint8)
np.from_dlpack(p)
np.asarray(p)
np.asarray(torch.ones(2, dtype=torch.bfloat16))
""".strip().split("\n")


@pytest.mark.parametrize("expression", REFUSED)
def test_refused(expression: str) -> None:
    kind, message = assert_same(lambda engine: eval(expression, names(engine)))
    assert kind.endswith("Error"), message


def test_storages_are_written_through() -> None:
    x = clew.zeros(3)
    x.storage()[1] = 5.0
    x.untyped_storage()[3] = 64
    assert x.tolist() == [2.0, 5.0, 0.0]


def test_foreign_memory_is_shared_both_ways() -> None:
    array = np.zeros(3)
    clew.from_dlpack(array)[0] = 1
    buffer = bytearray(4)
    clew.frombuffer(buffer, dtype=clew.uint8)[1] = 7
    x = clew.zeros(2)
    np.from_dlpack(x)[1] = 3
    assert (array.tolist(), list(buffer), x.tolist()) == ([1, 0, 0], [0, 7, 0, 0], [0, 3])


def test_what_numpy_cannot_do_is_refused() -> None:
    x = clew.ones(3)
    assert x.untyped_storage().resize_(12).nbytes() == 12
    with pytest.raises(RuntimeError, match="cannot resize a storage"):
        x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="no __dlpack__"):
        clew.from_dlpack(3)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        x.set_(x.storage(), 1, (3,), (1,))
    with pytest.raises(RuntimeError, match="negative"):
        x.resize_(-1)
    assert repr(x.storage()).endswith("TypedStorage(dtype=torch.float32, device=cpu) of size 3]")
    assert repr(x.untyped_storage()[:4]).endswith("UntypedStorage(device=cpu) of size 4]")
