"""RAdam."""

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


class RAdam(Optimizer):
    """Adam that scales by the mean squares once enough gradients have been seen.

    `foreach` and `capturable` choose among PyTorch's implementations; clew has one.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_learning_rate(lr)
        check_range("epsilon value", eps, eps >= 0)
        check_betas(betas)
        check_range("weight_decay value", weight_decay, weight_decay >= 0)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, parameter: Tensor, grad: np.ndarray, state: Any, group: Any) -> None:
        if not state:
            state["step"] = zero_count()
            state["exp_avg"] = zeros_for(parameter)
            state["exp_avg_sq"] = zeros_for(parameter)
        lr, decay = number(group["lr"]), group["weight_decay"]
        if decay and group["decoupled_weight_decay"]:
            values(parameter)[...] *= 1 - lr * decay
        elif decay:
            grad = grad + decay * values(parameter)
        beta1, beta2 = group["betas"]
        kernels.radam(
            values(parameter), grad, values(state["exp_avg"]), values(state["exp_avg_sq"]),
            step=count_step(state), lr=lr, beta1=beta1, beta2=beta2, eps=group["eps"],
        )  # fmt: skip
