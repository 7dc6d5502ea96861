"""Ctrl-C at every point of a backward pass: tensors, modes and the engine are as before.

The interpreter raises KeyboardInterrupt where a Python function begins and where a call of C code
ends (and at jumps backward).  A profile function sees these moments, so each of them is tried.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew
from clew.autograd import engine, modes
from clew.utils.checkpoint import checkpoint


class Twice(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 + x * 0


def plain(x, w):
    return ((x * w).tanh() * w).sum()


def with_hooks(x, w):
    h = (x * w).tanh()
    h.register_hook(lambda grad: grad * 1)
    h.retain_grad()
    y = h * w
    y.grad_fn.register_prehook(lambda grads: None)
    y.grad_fn.register_hook(lambda grads, outputs: None)
    return y.sum()


def with_a_function(x, w):
    return (Twice.apply(x * w).tanh() * w).sum()


def with_a_written_view(x, w):
    h = (x * w).clone()
    h[:2].mul_(3)
    return (h * w).sum()


def with_a_checkpoint(x, w):
    return (checkpoint(lambda h: (h * w).sin(), x * w, use_reentrant=False) * x).sum()


def with_saved_hooks(x, w):
    with clew.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        return ((x * w).tanh() * w).sum()


class Interrupt:
    """A profile function that raises KeyboardInterrupt the n-th time that Python would."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_return"):
            self.left -= 1
            if not self.left:
                sys.setprofile(None)
                raise KeyboardInterrupt


def states() -> tuple[Any, ...]:
    """All that a pass changes for its time, and puts back."""
    now = modes.state.now
    kept = tuple(getattr(now, name) for name in now.__slots__ if name != "quiet")
    return (*kept, engine.current.task, clew._C._current_autograd_node(), np.geterr()["divide"])


def leaves() -> tuple[clew.Tensor, clew.Tensor]:
    x = clew.tensor([0.5, -1.0, 2.0], requires_grad=True)
    return x, clew.tensor([1.5, 3.0, -2.0], requires_grad=True)


PROGRAMS = [
    plain, with_hooks, with_a_function, with_a_written_view, with_a_checkpoint, with_saved_hooks,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of generators
@pytest.mark.parametrize("create_graph", [False, True], ids=["", "create_graph"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_an_interrupt_at_any_point_of_backward(
    program: Callable[..., Any], create_graph: bool
) -> None:
    program(*leaves()).backward(create_graph=create_graph)  # what is made once is made
    before = states()
    x, w = leaves()
    whole = clew.autograd.grad(program(x, w), (x, w))
    for at in range(1, 100_000, 3 if create_graph else 1):
        x, w = leaves()
        loss = program(x, w)
        sys.setprofile(Interrupt(at))
        try:
            loss.backward(create_graph=create_graph)
        except KeyboardInterrupt:
            interrupted = True
        else:
            interrupted = False
        sys.setprofile(None)
        assert states() == before, at
        for leaf, grad in zip((x, w), whole):
            assert leaf.grad is None or leaf.grad.equal(grad), at  # all of it, or nothing
            leaf.grad = None
        try:
            loss.backward()
        except RuntimeError as error:
            assert "a second time" in str(error), at
        else:
            assert all(t.grad is not None and t.grad.equal(g) for t, g in zip((x, w), whole)), at
        with clew.no_grad():
            x.add_(1)
        x.grad = w.grad = None
        if not interrupted:
            break
    assert at > 30


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads")
def test_ctrl_c_ends_the_pass_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that went on in a thread of its own ends, and nothing is added to gradients later."""
    calls: list[Any] = []

    def hook(grad):
        if not calls:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        calls.append(grad)
        time.sleep(0.001)

    class Slow(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            with clew.enable_grad():
                y = w * 1
                for _ in range(3000):
                    y = y * 1
                    y.register_hook(hook)
                y.sum().backward()
            return grad

    x, w = leaves()
    monkeypatch.setattr(engine.deep_stack, "is_near_its_end", lambda: True)
    before = states()
    with pytest.raises(KeyboardInterrupt):
        Slow.apply(x).sum().backward()
    done = len(calls)
    time.sleep(0.02)
    assert len(calls) == done < 3000
    assert states() == before
    assert w.grad is None and x.grad is None
