"""Tensors are made in several places; each gives them all that they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import clew


@pytest.mark.parametrize(
    "make", [lambda x: x, lambda x: x * 2, lambda x: x[0], lambda x: x.detach(),
             lambda x: x.max(0).values],
)  # fmt: skip
def test_each_slot_is_set(make: Callable[[Any], Any]) -> None:
    made = make(clew.ones(2, 3, requires_grad=True))
    assert [name for name in clew.Tensor.__slots__ if not hasattr(made, name)] == []
