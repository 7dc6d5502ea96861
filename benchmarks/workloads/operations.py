"""Chains of operations, short, long and large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Step = Callable[[], float]


def three_ops(t: Any) -> Step:
    """Three operations on three floats, and backward."""
    x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def step() -> float:
        x.grad = None
        loss = ((x * 3) ** 2).sum()
        loss.backward()
        return float(loss.item())

    return step


def chain(t: Any) -> Step:
    """200 operations in a row on 64 floats, and backward."""
    x = t.ones(64, requires_grad=True)

    def step() -> float:
        x.grad = None
        y = x
        for _ in range(100):
            y = y * 0.99 + 0.01
        loss = y.sum()
        loss.backward()
        return float(loss.item())

    return step


def deep(t: Any) -> Step:
    """A chain of 100,000 nodes on one float, and backward."""
    x = t.ones(1, requires_grad=True)

    def step() -> float:
        x.grad = None
        y = x
        for _ in range(100_000):
            y = y + 1
        loss = y.sum()
        loss.backward()
        return float(loss.item())

    return step


def elementwise(t: Any) -> Step:
    """Eight elementwise operations on 4 million floats, and backward: bound by memory."""
    t.manual_seed(0)
    x = t.randn(4_000_000, requires_grad=True)

    def forward() -> Any:
        y = (x * 1.5 + 0.5).tanh()
        y = (y * x).exp()
        return ((y + 1).log() * 0.5 - x).mean()

    def step() -> float:
        x.grad = None
        loss = forward()
        loss.backward()
        return float(loss.item())

    step.model, step.forward = t.nn.Module(), forward  # type: ignore[attr-defined]
    return step
