"""RMSprop."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels import optim as kernels
from clew.optim.optimizer import (
    Optimizer,
    check_learning_rate,
    check_range,
    count_step,
    number,
    values,
    zero_count,
    zeros_for,
)
from clew.tensor import Tensor


class RMSprop(Optimizer):
    """RMSprop, with momentum, centring and weight decay.

    `foreach` and `capturable` choose among PyTorch's implementations; clew has one.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0, momentum: float = 0, centered: bool = False,
        capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_learning_rate(lr)
        check_range("epsilon value", eps, eps >= 0)
        check_range("momentum value", momentum, momentum >= 0)
        check_range("weight_decay value", weight_decay, weight_decay >= 0)
        check_range("alpha value", alpha, alpha >= 0)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, parameter: Tensor, grad: np.ndarray, state: Any, group: Any) -> None:
        if not state:
            state["step"] = zero_count()
            state["square_avg"] = zeros_for(parameter)
            if group["momentum"] > 0:
                state["momentum_buffer"] = zeros_for(parameter)
            if group["centered"]:
                state["grad_avg"] = zeros_for(parameter)
        count_step(state)
        if group["weight_decay"]:
            grad = grad + group["weight_decay"] * values(parameter)
        kernels.rmsprop(
            values(parameter), grad, values(state["square_avg"]),
            values(state["grad_avg"]) if group["centered"] else None,
            values(state["momentum_buffer"]) if group["momentum"] > 0 else None,
            lr=number(group["lr"]), alpha=group["alpha"], eps=group["eps"],
            momentum=group["momentum"],
        )  # fmt: skip
