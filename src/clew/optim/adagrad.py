"""Adagrad."""

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
from clew.tensor import Tensor


class Adagrad(Optimizer):
    """Adagrad: learning rates that fall with the sum of squared gradients.

    `foreach` and `fused` choose among PyTorch's implementations; clew has one.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_learning_rate(lr)
        check_range("lr_decay value", lr_decay, lr_decay >= 0)
        check_range("weight_decay value", weight_decay, weight_decay >= 0)
        start = initial_accumulator_value
        check_range("initial_accumulator_value value", start, start >= 0)
        check_range("epsilon value", eps, eps >= 0)
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": start, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                self._start(parameter)

    def _start(self, parameter: Tensor) -> None:
        state = self.state[parameter]
        state["step"] = zero_count()
        state["sum"] = zeros_for(parameter)
        values(state["sum"])[...] = self.defaults["initial_accumulator_value"]

    def share_memory(self) -> None:
        """Does nothing: the state of this process stays in this process."""

    def update_group(self, group: dict[str, Any], parameters: Parameters) -> None:
        lr, fast = number(group["lr"]), twins_of(group)
        for parameter, grad, state in parameters:
            if not state:  # of a group that was added later
                self._start(parameter)
            kernels.adagrad(
                values(parameter), grad, values(state["sum"]), step=count_step(state), lr=lr,
                lr_decay=group["lr_decay"], eps=group["eps"], decay=group["weight_decay"],
                fast=fast,
            )  # fmt: skip
