"""Chains of operations, short, long and large."""

from __future__ import annotations

from typing import Any

from workloads.step import Step, eager


def _gradient(forward: Any, x: Any, count_saved: bool = False) -> Step:
    """Forward and backward of a function of one leaf."""

    def run() -> float:
        x.grad = None
        loss = forward(x)
        loss.backward()
        return float(loss.item())

    return Step(run, [x], (lambda: forward(x)) if count_saved else None)


def three_ops(t: Any, compiled: Any = eager) -> Step:
    """Three operations on three floats, and backward."""
    x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
    return _gradient(compiled(lambda x: ((x * 3) ** 2).sum()), x)


def chain(t: Any, compiled: Any = eager) -> Step:
    """200 operations in a row on 64 floats, and backward."""

    def forward(x: Any) -> Any:
        for _ in range(100):
            x = x * 0.99 + 0.01
        return x.sum()

    return _gradient(compiled(forward), t.ones(64, requires_grad=True))


def deep(t: Any, compiled: Any = eager) -> Step:
    """A chain of 100,000 nodes on one float, and backward."""

    def forward(x: Any) -> Any:
        for _ in range(100_000):
            x = x + 1
        return x.sum()

    return _gradient(compiled(forward), t.ones(1, requires_grad=True))


def elementwise(t: Any, compiled: Any = eager) -> Step:
    """Eight elementwise operations on 4 million floats, and backward: bound by memory."""
    t.manual_seed(0)

    def forward(x: Any) -> Any:
        y = (x * 1.5 + 0.5).tanh()
        y = (y * x).exp()
        return ((y + 1).log() * 0.5 - x).mean()

    x = t.randn(4_000_000, requires_grad=True)
    return _gradient(compiled(forward), x, count_saved=True)
