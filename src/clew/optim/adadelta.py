"""Adadelta."""

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


class Adadelta(Optimizer):
    """Adadelta: updates as large as the ones before.

    `foreach` and `capturable` choose among PyTorch's implementations; clew has one.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6,
        weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_learning_rate(lr)
        check_range("rho value", rho, 0 <= rho <= 1)
        check_range("epsilon value", eps, eps >= 0)
        check_range("weight_decay value", weight_decay, weight_decay >= 0)
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, parameter: Tensor, grad: np.ndarray, state: Any, group: Any) -> None:
        if not state:
            state["step"] = zero_count()
            state["square_avg"] = zeros_for(parameter)
            state["acc_delta"] = zeros_for(parameter)
        count_step(state)
        if group["weight_decay"]:
            grad = grad + group["weight_decay"] * values(parameter)
        kernels.adadelta(
            values(parameter), grad, values(state["square_avg"]), values(state["acc_delta"]),
            lr=number(group["lr"]), rho=group["rho"], eps=group["eps"],
        )  # fmt: skip
