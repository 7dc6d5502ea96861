"""RMSprop."""

from __future__ import annotations

from typing import Any

from clew.kernels import optim as kernels
from clew.optim.optimizer import (
    Optimizer,
    Parameters,
    check_learning_rate,
    check_range,
    count_step,
    number,
    twins_of,
    values,
    zero_count,
    zeros_for,
)


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

    def update_group(self, group: dict[str, Any], parameters: Parameters) -> None:
        centered, momentum = group["centered"], group["momentum"]
        lr, fast = number(group["lr"]), twins_of(group)
        for parameter, grad, state in parameters:
            if not state:
                state["step"] = zero_count()
                state["square_avg"] = zeros_for(parameter)
                if momentum > 0:
                    state["momentum_buffer"] = zeros_for(parameter)
                if centered:
                    state["grad_avg"] = zeros_for(parameter)
            count_step(state)
            kernels.rmsprop(
                values(parameter), grad, values(state["square_avg"]),
                values(state["grad_avg"]) if centered else None,
                values(state["momentum_buffer"]) if momentum > 0 else None,
                lr=lr, alpha=group["alpha"], eps=group["eps"], momentum=momentum,
                decay=group["weight_decay"], fast=fast,
            )  # fmt: skip
