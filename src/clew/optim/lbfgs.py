"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew.autograd.modes import enable_grad
from clew.optim.line_search import Point, strong_wolfe
from clew.optim.optimizer import Optimizer, check_learning_rate, number, values
from clew.quiet import quietly
from clew.tensor import Tensor


class LBFGS(Optimizer):
    """A quasi-Newton method of limited memory, for a function that `step` can evaluate again.

    Source: Nocedal and Wright, "Numerical optimization", 2006, algorithms 7.4 and 3.5.

    Args:
        params: the parameters, in one group.
        lr: the length of steps, without a line search.
        max_iter: how many iterations a call of `step` makes at most.
        max_eval: how many times it calls the closure at most; by default 5/4 of that.
        tolerance_grad: stop when no gradient is larger.
        tolerance_change: stop when neither the loss nor a parameter changes more.
        history_size: how many steps to remember.
        line_search_fn: "strong_wolfe", or None.

    Raises:
        ValueError: an option is out of range, or there are several groups.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_learning_rate(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _flat_grad(self) -> np.ndarray:
        """The gradients of all parameters, one after another."""
        return np.concatenate(
            [
                np.zeros_like(values(p)).reshape(-1) if p._grad is None
                else values(p._grad).reshape(-1)
                for p in self._params
            ]
        )  # fmt: skip

    def _move(self, length: Any, direction: np.ndarray) -> None:
        """Add ``length * direction`` to the parameters."""
        start = 0
        for parameter in self._params:
            array = values(parameter)
            part = direction[start : start + array.size].reshape(array.shape)
            array += length * part
            start += array.size
            parameter._counter.bump("optimizer step of LBFGS")

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Make some iterations.

        Args:
            closure: computes the loss and its gradients again, and returns the loss.

        Returns:
            The loss before the first of them.
        """
        group = self.param_groups[0]
        evaluate = enable_grad()(closure)
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = evaluate()
        state["func_evals"] += 1
        grad = self._flat_grad()
        if np.abs(grad).max() > group["tolerance_grad"]:
            _Run(self, group, state, evaluate, float(first_loss), grad).iterate()
        return first_loss


class _Run:
    """The iterations of one call of `step`."""

    def __init__(
        self, owner: LBFGS, group: Any, state: Any, evaluate: Any, loss: float, grad: np.ndarray
    ) -> None:
        self.owner = owner
        self.group = group
        self.state = state
        self.evaluate = evaluate
        self.loss = loss
        self.grad = grad
        self.evaluations = 1
        self.direction: Any = _array_of(state.get("d"))
        self.length: Any = _scalar_of(state.get("t"))
        self.before: Any = _array_of(state.get("prev_flat_grad"))
        self.changes = [_array_of(y) for y in state.get("old_dirs") or ()]
        self.moves = [_array_of(s) for s in state.get("old_stps") or ()]
        self.inverses = [_scalar_of(r) for r in state.get("ro") or ()]
        self.scale: Any = _scalar_of(state.get("H_diag"))

    def iterate(self) -> None:
        """Iterate until something says to stop, and leave what the next call needs."""
        group = self.group
        for iteration in range(1, group["max_iter"] + 1):
            self.state["n_iter"] += 1
            quietly(self._choose_direction, (), {})
            self.before = self.grad.copy()
            loss_before = self.loss
            lr = number(group["lr"])
            first = self.state["n_iter"] == 1
            self.length = min(1.0, 1.0 / np.abs(self.grad).sum()) * lr if first else lr
            slope = self.grad.dot(self.direction)
            if slope > -group["tolerance_change"]:
                break
            last = iteration == group["max_iter"]
            flat = self._advance(slope, last)
            if last or flat or self.evaluations >= group["max_eval"]:
                break
            if np.abs(self.direction * self.length).max() <= group["tolerance_change"]:
                break
            if abs(self.loss - loss_before) < group["tolerance_change"]:
                break
        self._leave_state(loss_before)

    def _choose_direction(self) -> None:
        """Minus the gradient, times the inverse of the curvature seen so far (two loops)."""
        if self.state["n_iter"] == 1:
            self.direction = -self.grad
            self.scale = 1
            return
        self._remember()
        q = -self.grad
        weights = []
        pairs = list(zip(self.changes, self.moves, self.inverses))
        for change, move, inverse in reversed(pairs):
            weight = move.dot(q) * inverse
            q -= weight * change
            weights.append(weight)
        direction = q * self.scale
        for change, move, inverse in pairs:
            direction += (weights.pop() - change.dot(direction) * inverse) * move
        self.direction = direction

    def _remember(self) -> None:
        change = self.grad - self.before
        move = self.direction * self.length
        curvature = change.dot(move)
        if curvature <= 1e-10:
            return
        if len(self.changes) == self.group["history_size"]:
            for history in (self.changes, self.moves, self.inverses):
                history.pop(0)
        self.changes.append(change)
        self.moves.append(move)
        self.inverses.append(1.0 / curvature)
        self.scale = curvature / change.dot(change)

    def _advance(self, slope: Any, last: bool) -> bool:
        """Move along the direction; whether the gradient is small enough there."""
        search = self.group["line_search_fn"]
        evaluations = 0
        if search is None:
            self.owner._move(self.length, self.direction)
            if last:
                return False
            self.loss = float(self.evaluate())
            self.grad = self.owner._flat_grad()
            evaluations = 1
        elif search == "strong_wolfe":
            evaluations = self._search(slope)
        else:
            raise RuntimeError("only 'strong_wolfe' is supported")
        self.evaluations += evaluations
        self.state["func_evals"] += evaluations
        return bool(np.abs(self.grad).max() <= self.group["tolerance_grad"])

    def _search(self, slope: Any) -> int:
        """Find the length of the step and go there; the number of evaluations."""
        owner, direction = self.owner, self.direction
        start = [values(p).copy() for p in owner._params]

        def at(length: Any) -> Point:
            owner._move(length, direction)
            loss = float(self.evaluate())
            grad = owner._flat_grad()
            for parameter, array in zip(owner._params, start):
                values(parameter)[...] = array
                parameter._counter.bump("optimizer step of LBFGS")
            return Point(length, loss, grad, grad.dot(direction))

        found, evaluations = strong_wolfe(
            at,
            Point(0, self.loss, self.grad.copy(), slope),
            self.length,
            largest=np.abs(direction).max(),
            tolerance_change=1e-9,
            most=self.group["max_eval"] - self.evaluations,
        )
        self.length, self.loss, self.grad = found.length, found.loss, found.grad
        owner._move(self.length, direction)
        return evaluations

    def _leave_state(self, loss_before: float) -> None:
        wrap = Tensor._from_array
        self.state.update(
            d=wrap(self.direction),
            t=self.length if isinstance(self.length, (int, float)) else float(self.length),
            old_dirs=[wrap(y) for y in self.changes],
            old_stps=[wrap(s) for s in self.moves],
            ro=[wrap(np.asarray(r)) for r in self.inverses],
            H_diag=self.scale if isinstance(self.scale, int) else wrap(np.asarray(self.scale)),
            prev_flat_grad=wrap(self.before),
            prev_loss=loss_before,
        )
        if self.state["n_iter"] > 1:
            self.state.setdefault("al", [None] * self.group["history_size"])


def _array_of(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value


def _scalar_of(value: Any) -> Any:
    """A NumPy scalar of a 0-d tensor, so that numbers of its type come of it."""
    return value._array[()] if isinstance(value, Tensor) else value
