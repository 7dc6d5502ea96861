"""Rprop."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels import optim as kernels
from clew.optim.optimizer import (
    Optimizer,
    check_learning_rate,
    count_step,
    number,
    values,
    zero_count,
    zeros_for,
)
from clew.tensor import Tensor


class Rprop(Optimizer):
    """Rprop: steps that grow while a gradient keeps its sign and shrink when it turns.

    Args:
        etas: the factors by which steps shrink and grow.
        step_sizes: the smallest and the largest step.

    `foreach` and `capturable` choose among PyTorch's implementations; clew has one.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_learning_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, parameter: Tensor, grad: np.ndarray, state: Any, group: Any) -> None:
        if not state:
            state["step"] = zero_count()
            state["prev"] = zeros_for(parameter)
            state["step_size"] = zeros_for(parameter)
            values(state["step_size"])[...] = number(group["lr"])
        count_step(state)
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        kernels.rprop(
            values(parameter), grad, values(state["prev"]), values(state["step_size"]),
            shrink=shrink, grow=grow, smallest=smallest, largest=largest,
        )  # fmt: skip
