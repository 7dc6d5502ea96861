"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from clew.kernels import optim as kernels
from clew.optim.optimizer import (
    Optimizer,
    Parameters,
    check_learning_rate,
    check_range,
    number,
    twins_of,
    values,
    zeros_for,
)


class SGD(Optimizer):
    """``p -= lr * grad``, with momentum, dampening, Nesterov momentum and weight decay.

    `foreach` and `fused` choose among PyTorch's implementations; clew has one.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_learning_rate(lr)
        check_range("momentum value", momentum, momentum >= 0)
        check_range("weight_decay value", weight_decay, number(weight_decay) >= 0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def keeps_state(self, group: dict[str, Any]) -> bool:
        return bool(group["momentum"])

    def update_group(self, group: dict[str, Any], parameters: Parameters) -> None:
        lr, decay = number(group["lr"]), number(group["weight_decay"])
        momentum, dampening, nesterov = group["momentum"], group["dampening"], group["nesterov"]
        fast = twins_of(group)
        for parameter, grad, state in parameters:
            velocity, first = None, False
            if momentum:
                first = state.get("momentum_buffer") is None
                if first:
                    state["momentum_buffer"] = zeros_for(parameter)
                velocity = values(state["momentum_buffer"])
            kernels.sgd(
                values(parameter), grad, velocity, lr=lr, momentum=momentum, dampening=dampening,
                nesterov=nesterov, first=first, decay=decay, fast=fast,
            )  # fmt: skip
