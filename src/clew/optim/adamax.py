"""Adamax."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels import optim as kernels
from clew.optim.optimizer import (
    Optimizer,
    check_betas,
    check_learning_rate,
    check_range,
    count_step,
    number,
    values,
    zero_count,
    zeros_for,
)
from clew.tensor import Tensor


class Adamax(Optimizer):
    """Adam by the largest gradient, which fades, in place of the mean square.

    `foreach` and `capturable` choose among PyTorch's implementations; clew has one.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        check_learning_rate(lr)
        check_range("epsilon value", eps, eps >= 0)
        check_betas(betas)
        check_range("weight_decay value", weight_decay, weight_decay >= 0)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, parameter: Tensor, grad: np.ndarray, state: Any, group: Any) -> None:
        if not state:
            state["step"] = zero_count()
            state["exp_avg"] = zeros_for(parameter)
            state["exp_inf"] = zeros_for(parameter)
        if group["weight_decay"]:
            grad = grad + group["weight_decay"] * values(parameter)
        beta1, beta2 = group["betas"]
        kernels.adamax(
            values(parameter), grad, values(state["exp_avg"]), values(state["exp_inf"]),
            step=count_step(state), lr=number(group["lr"]), beta1=beta1, beta2=beta2,
            eps=group["eps"],
        )  # fmt: skip
