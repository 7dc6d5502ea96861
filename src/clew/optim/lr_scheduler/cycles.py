"""Schedules that rise and fall: cycles, restarts, one long cycle; some move the momentum too."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from clew.optim.lr_scheduler.base import (
    LRScheduler,
    one_for_each,
    require_optimizer,
    set_value,
)
from clew.optim.optimizer import Optimizer


class _WithMomentum(LRScheduler):
    """Moves the momentum (or the first beta) against the learning rate."""

    cycle_momentum: bool
    use_beta1: bool

    def _start_momentum(self, base: Any, largest: Any, last_epoch: int) -> None:
        """Check the optimizer, and set the momentum of the first epoch."""
        options = self.optimizer.defaults
        if "momentum" not in options and "betas" not in options:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in options
        if last_epoch != -1:
            return
        for group, low, high in zip(self.optimizer.param_groups, base, largest, strict=True):
            self._set_momentum(group, high)
            group["max_momentum"] = high
            group["base_momentum"] = low

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """Up and down between `base_lr` and `max_lr`, along lines.

    Source: Smith, "Cyclical learning rates for training neural networks", 2017.

    Args:
        optimizer: whose groups to change.
        base_lr, max_lr: the bounds, for all groups or for each.
        step_size_up, step_size_down: how many steps a rise and a fall take.
        mode: "triangular"; "triangular2", each cycle half as high; "exp_range", each step lower by
            the factor `gamma`.
        gamma: see `mode`.
        scale_fn: instead of `mode`, a function for the height.
        scale_mode: whether `scale_fn` takes the number of the "cycle" or of the "iterations".
        cycle_momentum: move the momentum from `max_momentum` to `base_momentum` and back.
        base_momentum, max_momentum: the bounds, for all groups or for each.
        last_epoch: the step to go on from; -1 to begin.

    Raises:
        ValueError: an unknown mode, or an optimizer without momentum.
        TypeError: `optimizer` is no Optimizer.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = one_for_each("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", lr)
        self.max_lrs = one_for_each("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums = one_for_each("base_momentum", optimizer, base_momentum)
            self.max_momentums = one_for_each("max_momentum", optimizer, max_momentum)
            self._start_momentum(self.base_momentums, self.max_momentums, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height in cycle (or step) `x`, as a part of the full one."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return self.gamma**x
        return 1.0 if self.mode == "triangular" else 1 / (2.0 ** (x - 1))

    def get_lr(self) -> list[Any]:
        self._warn_if_asked_directly()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        if x <= self.step_ratio:
            position = x / self.step_ratio
        else:
            position = (x - 1) / (self.step_ratio - 1)
        height = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            momentums = [high - (high - low) * position * height for low, high in bounds]
            for group, momentum in zip(self.optimizer.param_groups, momentums, strict=True):
                self._set_momentum(group, momentum)
        lr_bounds = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * position * height for low, high in lr_bounds]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and, as in `LambdaLR`, plain functions."""
        state = super().state_dict()
        function = state["_scale_fn_custom"]
        is_object = function is not None and not isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = function.__dict__.copy() if is_object else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        attributes = state_dict["_scale_fn_custom"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Along a cosine down to `eta_min`, then from the top again.

    Source: Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017.

    Args:
        optimizer: whose groups to change.
        T_0: how many epochs the first fall takes.
        T_mult: how many times longer each following fall is.
        eta_min: the lowest learning rate.
        last_epoch: the epoch to go on from; -1 to begin.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_if_asked_directly()
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to `epoch`, which may be a fraction.

        Raises:
            ValueError: `epoch` is negative.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        with self._computing():
            values = self.get_lr()
        self._set_lrs(values)

    def _go_to(self, epoch: float) -> None:
        """Find the fall that `epoch` is in."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            falls = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            passed = self.T_0 * (self.T_mult**falls - 1) / (self.T_mult - 1)
            self.T_cur = epoch - passed
            self.T_i = self.T_0 * self.T_mult**falls


class OneCycleLR(_WithMomentum):
    """Up to `max_lr`, then down to far below the start, once.

    Source: Smith and Topin, "Super-convergence: very fast training of neural networks using large
    learning rates", 2019.

    Args:
        optimizer: whose groups to change.
        max_lr: the top, for all groups or for each.
        total_steps: the number of steps, or
        epochs, steps_per_epoch: two numbers whose product it is.
        pct_start: the part of the steps that rise.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: move the momentum from `max_momentum` to `base_momentum` and back.
        base_momentum, max_momentum: the bounds, for all groups or for each.
        div_factor: the top over the start.
        final_div_factor: the start over the end.
        three_phase: fall to the start in as many steps as the rise took, then to the end.
        last_epoch: the step to go on from; -1 to begin.

    Raises:
        ValueError: an option is out of range, or the optimizer has no momentum.
        TypeError: `optimizer` is no Optimizer.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(pct_start, self.total_steps, three_phase)
        if not 0 <= pct_start <= 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        max_lrs = one_for_each("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, max_lrs):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            low = one_for_each("base_momentum", optimizer, base_momentum)
            high = one_for_each("max_momentum", optimizer, max_momentum)
            self._start_momentum(low, high, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, part: float) -> Any:
        """A number on the way from `start` to `end`."""
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[Any]:
        self._warn_if_asked_directly()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        part = (step - start) / (end - start)
        lrs = []
        for group in self.optimizer.param_groups:
            lrs.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                first, last = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(first, last, part))
        return lrs


def _count_steps(total: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    counts = {"total_steps": total}
    if total is None:
        counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, count in counts.items():
        if not isinstance(count, int) or count <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {count}")
    return math.prod(counts.values())


def _phases(pct_start: float, steps: int, three_phase: bool) -> list[dict[str, Any]]:
    """The step at which each phase ends, and the group's options between which it moves."""
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    rise_ends = float(pct_start * steps) - 1
    low, high = "base_momentum", "max_momentum"
    rows: list[tuple[Any, ...]] = [(rise_ends, "initial_lr", "max_lr", high, low)]
    if three_phase:
        fall_ends = float(2 * pct_start * steps) - 2
        rows.append((fall_ends, "max_lr", "initial_lr", low, high))
        rows.append((steps - 1, "initial_lr", "min_lr", high, high))
    else:
        rows.append((steps - 1, "max_lr", "min_lr", low, high))
    return [dict(zip(names, row)) for row in rows]
