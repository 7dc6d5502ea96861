"""Writes to memory that is also read: refused where PyTorch refuses them, correct elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from twins import assert_same

STATEMENTS = """
x[:2] = x[1:]
x[1:].add_(x[:-1])
x.add_(x.t())
x.copy_(x.t())
x.copy_(x)
x.mul_(x)
x[:, 0].add_(x[0])
x[:, 0].add_(x[:, 1])
y[::2].add_(y[1::2])
y[:4].add_(y[2:])
y[:3].add_(y[3:])
x.addcmul_(x.t(), x)
x.index_put_((i,), x[:2])
x.index_copy_(0, i, x[1:])
x.put_(i, x[0, :2])
x.lerp_(x.t(), 0.5)
x.pow_(x.t())
x.fill_(x[0, 0])
x[0].fill_(x[0, 0])
x.add_(x[0, 0])
x.div_(x[:, :1] + 1)
x.sub_(x.mean())
x.add_(x[0])
x.masked_fill_(x > 2, x[0, 0])
x.atan2_(x.t())
x.view(9)[1:].copy_(x.view(9)[:-1])
x[i] = x[i]
x[[0, 1]] = x[1:]
""".strip().split("\n")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_overlapping_writes(statement: str) -> None:
    def run(engine: Any) -> Any:
        x, y = engine.arange(9.0).reshape(3, 3), engine.arange(6.0)
        exec(statement, {"x": x, "y": y, "i": engine.tensor([0, 1])})
        return [x, y]

    assert_same(run)
