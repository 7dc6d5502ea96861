"""Expressions that clew and torch must agree on, down to the graph.

An expression is Python in which ``t`` is the engine, ``x(2, 3)`` a tensor that requires grad (the
first one of that shape is always the same, the second another), ``n(2, 3)`` one of integers and
``c(2, 3)`` a complex one.
"""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import numpy as np
import pytest

import clew
import clew.linalg
import clew.special

torch = pytest.importorskip("torch")


class Run:
    """One evaluation: the tensors in the result, the leaves, or the error.

    Attributes:
        outputs: the results, flat; tensors and whatever else.
        leaves: the tensors made that require grad.
        error: the error, or None.
    """

    def __init__(self, expression: str, engine: Any) -> None:
        self.engine = engine
        self.leaves: list[Any] = []
        self.error: Exception | None = None
        self.outputs: list[Any] = []
        self._rng = np.random.default_rng(5)
        names = {"t": engine, "x": self._real, "n": self._integer, "c": self._complex,
                 "inf": math.inf, "nan": math.nan}  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.kind, self.outputs = _flat(eval(expression, names))
            except Exception as error:  # the error is the outcome
                self.error = error

    def _leaf(self, values: Any) -> Any:
        made = self.engine.from_numpy(np.array(values)).requires_grad_()
        self.leaves.append(made)
        return made

    def _real(self, *shape: int) -> Any:
        return self._leaf(self._rng.uniform(-2, 2, shape))

    def _complex(self, *shape: int) -> Any:
        return self._leaf(self._rng.uniform(-2, 2, shape) + 1j * self._rng.uniform(-2, 2, shape))

    def _integer(self, *shape: int) -> Any:
        return self.engine.from_numpy(np.array(self._rng.integers(0, 9, shape)))

    def gradients(self) -> list[Any]:
        """The gradients of the leaves, for cotangents drawn at random."""
        rng = np.random.default_rng(6)
        outputs = [o for o in self.outputs if hasattr(o, "requires_grad") and o.requires_grad]
        if not outputs or not self.leaves:
            return []
        cotangents = [
            self.engine.from_numpy(np.array(rng.uniform(-1, 1, tuple(o.shape)))).to(o.dtype)
            for o in outputs
        ]
        found = self.engine.autograd.grad(outputs, self.leaves, cotangents, allow_unused=True)
        return [None if g is None else array(g) for g in found]


def _flat(value: Any) -> tuple[str, list[Any]]:
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [leaf for part in value for leaf in _flat(part)[1]]
    return type(value).__name__, [value]


def array(tensor: Any) -> np.ndarray:
    """The values of a tensor of either engine."""
    plain = tensor.detach()
    if isinstance(plain, torch.Tensor):
        plain = plain.resolve_conj().resolve_neg()
    return np.asarray(plain.numpy())


def tree(node: Any) -> str:
    """The graph behind a node, by the names of nodes; leaves are ``A``."""
    if node is None:
        return "-"
    name = re.sub(r"^torch::autograd::", "", node.name())
    if name == "AccumulateGrad":
        return "A"
    return f"{name}({', '.join(tree(below) for below, _ in node.next_functions)})"


def described(tensor: Any) -> tuple[Any, ...]:
    """What a tensor is, apart from its values; strides of what is longer than one.

    Conjugates, which torch computes late, are views there only.
    """
    strides = [s for s, n in zip(tensor.stride(), tensor.shape) if n > 1 and tensor.numel() > 1]
    view = tensor._is_view() and not tensor.is_conj()
    return tuple(tensor.shape), str(tensor.dtype), tensor.requires_grad, view, strides


def assert_as_torch(expression: str, *, graph: bool = True) -> None:
    """Same values, types, memory order, views, graph and gradients; or the same error."""
    ours, theirs = Run(expression, clew), Run(expression, torch)
    if theirs.error is not None or ours.error is not None:
        assert _clause(ours.error) == _clause(theirs.error)
        kind = RuntimeError if "LinAlg" in type(theirs.error).__name__ else type(theirs.error)
        assert isinstance(ours.error, kind)
        return
    assert ours.kind == theirs.kind
    for a, b in zip(ours.outputs, theirs.outputs, strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b
            continue
        assert described(a) == described(b)
        precise = array(b).dtype in (np.float64, np.complex128)
        np.testing.assert_allclose(array(a), array(b), 1e-9 if precise else 1e-6, 1e-12)
        if graph:
            assert tree(a.grad_fn) == tree(b.grad_fn)
    for a, b in zip(ours.gradients(), theirs.gradients(), strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            np.testing.assert_allclose(a, b, 1e-8, 1e-10)


def _clause(error: Exception | None) -> str:
    return "" if error is None else str(error).split("\n")[0]
