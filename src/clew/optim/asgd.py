"""Averaged gradient descent."""

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


class ASGD(Optimizer):
    """Gradient descent whose parameters are averaged, from step `t0` on, into the state "ax".

    `foreach` and `capturable` choose among PyTorch's implementations; clew has one.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
        t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        check_learning_rate(lr)
        check_range("weight_decay value", weight_decay, weight_decay >= 0)
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, parameter: Tensor, grad: np.ndarray, state: Any, group: Any) -> None:
        lr, lambd = number(group["lr"]), group["lambd"]
        if not state:
            state["step"] = zero_count()
            state["eta"] = Tensor._from_array(np.full((), lr, np.float32))
            state["mu"] = Tensor._from_array(np.ones((), np.float32))
            state["ax"] = zeros_for(parameter)
        step = count_step(state)
        if group["weight_decay"]:
            grad = grad + group["weight_decay"] * values(parameter)
        eta, mu = state["eta"]._array, state["mu"]._array
        kernels.asgd(
            values(parameter), grad, values(state["ax"]), eta=float(eta), mu=float(mu), lambd=lambd
        )
        eta[...] = lr / (1 + lambd * lr * step) ** group["alpha"]
        mu[...] = 1 / max(1, step - group["t0"])
