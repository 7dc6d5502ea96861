"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels import optim as kernels
from clew.optim.optimizer import (
    Optimizer,
    check_learning_rate,
    check_range,
    number,
    values,
    zeros_for,
)
from clew.tensor import Tensor


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

    def update(self, parameter: Tensor, grad: np.ndarray, state: Any, group: Any) -> None:
        if group["weight_decay"]:
            grad = grad + number(group["weight_decay"]) * values(parameter)
        momentum = group["momentum"]
        velocity, first = None, False
        if momentum:
            first = state.get("momentum_buffer") is None
            if first:
                state["momentum_buffer"] = zeros_for(parameter)
                values(state["momentum_buffer"])[...] = grad
            velocity = values(state["momentum_buffer"])
        kernels.sgd(
            values(parameter), grad, velocity, lr=number(group["lr"]), momentum=momentum,
            dampening=group["dampening"], nesterov=group["nesterov"], first=first,
        )  # fmt: skip
