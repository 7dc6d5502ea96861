"""`assert_close`: what passes in torch passes, what fails there fails with its text."""

from collections import OrderedDict

import numpy as np
import pytest

from engines import ENGINES, same

CALLS = {
    "equal": lambda t, e: t.assert_close(e.ones(2), e.ones(2)),
    "close": lambda t, e: t.assert_close(e.ones(2), e.ones(2) + 1e-6),
    "far": lambda t, e: t.assert_close(e.ones(2, 3), e.tensor([[1.0, 2, 1], [1, 1, 0.5]])),
    "halves": lambda t, e: t.assert_close(e.ones(2).half(), e.ones(2).half() * 1.01),
    "brains": lambda t, e: t.assert_close(e.ones(2).bfloat16(), e.ones(2).bfloat16() * 1.01),
    "ints": lambda t, e: t.assert_close(e.tensor([1, 2, 300]), e.tensor([1, 2, 3])),
    "bytes": lambda t, e: t.assert_close(
        e.tensor([0], dtype=e.uint8), e.tensor([255], dtype=e.uint8)
    ),
    "bools": lambda t, e: t.assert_close(e.tensor([True, False]), e.tensor([True, True])),
    "complex": lambda t, e: t.assert_close(e.tensor([1 + 2j]), e.tensor([1 + 3j])),
    "zero expected": lambda t, e: t.assert_close(e.ones(2), e.zeros(2)),
    "nan": lambda t, e: t.assert_close(e.tensor([1.0, e.nan]), e.tensor([1.0, e.nan])),
    "equal nan": lambda t, e: t.assert_close(e.tensor([e.nan]), e.tensor([e.nan]), equal_nan=True),
    "nan and more": lambda t, e: t.assert_close(e.tensor([5.0, e.nan]), e.tensor([1.0, 2.0])),
    "infinite": lambda t, e: t.assert_close(e.tensor([e.inf]), e.tensor([-e.inf])),
    "0-d": lambda t, e: t.assert_close(e.tensor(1.0), e.tensor(2.0)),
    "0-d zero": lambda t, e: t.assert_close(e.tensor(1.0), e.tensor(0.0)),
    "empty": lambda t, e: t.assert_close(e.ones(0), e.zeros(0)),
    "shape": lambda t, e: t.assert_close(e.ones(2), e.ones(3)),
    "dtype": lambda t, e: t.assert_close(e.ones(2), e.ones(2).double()),
    "dtype unchecked": lambda t, e: t.assert_close(
        e.ones(2), e.ones(2).double() * 2, check_dtype=False
    ),
    "int against float": lambda t, e: t.assert_close(
        e.tensor([1, 2]), e.tensor([1.0, 2.5]), check_dtype=False
    ),
    "stride": lambda t, e: t.assert_close(e.ones(2, 3).t(), e.ones(3, 2), check_stride=True),
    "stride unchecked": lambda t, e: t.assert_close(e.ones(2, 3).t(), e.ones(3, 2)),
    "tolerances": lambda t, e: t.assert_close(e.ones(2), e.ones(2) * 1.1, rtol=0.2, atol=0),
    "tight": lambda t, e: t.assert_close(e.ones(2), e.ones(2) * 1.1, rtol=0.05, atol=0.01),
    "exact": lambda t, e: t.assert_close(e.ones(2), e.ones(2) * 1.1, rtol=0, atol=0),
    "rtol only": lambda t, e: t.assert_close(e.ones(2), e.ones(2), rtol=0.1),
    "atol only": lambda t, e: t.assert_close(1.0, 1.0, atol=0.1),
    "message": lambda t, e: t.assert_close(1.0, 2.0, msg="wrong"),
    "message function": lambda t, e: t.assert_close([1.0], [2.0], msg=lambda m: f"<{m}>"),
    "numbers": lambda t, e: t.assert_close(1, 2),
    "number types": lambda t, e: t.assert_close(1, 1.0),
    "number types unchecked": lambda t, e: t.assert_close(1, 1.0, check_dtype=False),
    "numbers nan": lambda t, e: t.assert_close(e.nan, e.nan, equal_nan=True),
    "numbers complex": lambda t, e: t.assert_close(1j, 2j),
    "numpy numbers": lambda t, e: t.assert_close(np.float32(1), np.float32(2)),
    "python bools": lambda t, e: t.assert_close(True, np.bool_(False)),
    "none": lambda t, e: t.assert_close(None, None),
    "one none": lambda t, e: t.assert_close(None, 1),
    "arrays": lambda t, e: t.assert_close(np.ones(2), np.zeros(2)),
    "sequences": lambda t, e: t.assert_close([1.0, (2, e.ones(1))], (1.0, [2, e.zeros(1)])),
    "lengths": lambda t, e: t.assert_close([1, [2]], [1, [2, 3]]),
    "mappings": lambda t, e: t.assert_close({"a": 1, "b": {"c": 2}}, OrderedDict(b={"c": 3}, a=1)),
    "keys": lambda t, e: t.assert_close({"a": 1, "c": 2}, {"a": 1, "b": 2}),
    "structure first": lambda t, e: t.assert_close([1.0, [1]], [2.0, [1, 2]]),
    "records": lambda t, e: t.assert_close(e.ones(2, requires_grad=True), e.zeros(2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_same_as_torch(name):
    same(lambda e: CALLS[name](e.testing, e))


@pytest.mark.parametrize("pair", [("a", "a"), (1, "a"), (object, object), ("x", None)])
def test_what_cannot_be_compared(pair):
    def kind(e):
        try:
            e.testing.assert_close(*pair)
        except Exception as error:
            return type(error).__name__, str(error)[:40]

    ours, theirs = (kind(e) for e in ENGINES.values())
    assert ours == theirs is not None


def test_subclasses():
    def kinds(e):
        class Mine(e.nn.Parameter):
            pass

        e.testing.assert_close(Mine(e.ones(1)), e.ones(1), check_stride=True)
        try:
            e.testing.assert_close(Mine(e.ones(1)), e.ones(1), allow_subclasses=False)
        except TypeError as error:
            return str(error)[:40]

    same(kinds)
