"""Adam and AdamW."""

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


class Adam(Optimizer):
    """Adam, with AMSGrad and weight decay (added to the gradient, or decoupled).

    `foreach`, `fused` and `capturable` choose among PyTorch's implementations; clew has one.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        check_learning_rate(lr)
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        check_range("epsilon value", eps, eps >= 0)
        for i, beta in enumerate(betas):
            check_range(f"beta parameter at index {i}", beta, 0 <= number(beta) < 1)
        check_range("weight_decay value", weight_decay, weight_decay >= 0)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update_group(self, group: dict[str, Any], parameters: Parameters) -> None:
        amsgrad, eps, fast = group["amsgrad"], group["eps"], twins_of(group)
        beta1, beta2 = map(number, group["betas"])
        lr, decay, shrink = number(group["lr"]), group["weight_decay"], 1
        if decay and group["decoupled_weight_decay"]:
            decay, shrink = 0, 1 - lr * decay
        for parameter, grad, state in parameters:
            if not state:
                self._start(parameter, state, amsgrad)
            kernels.adam(
                values(parameter), grad, values(state["exp_avg"]), values(state["exp_avg_sq"]),
                values(state["max_exp_avg_sq"]) if amsgrad else None,
                step=count_step(state), lr=lr, beta1=beta1, beta2=beta2, eps=eps, decay=decay,
                shrink=shrink, fast=fast,
            )  # fmt: skip

    def _start(self, parameter: Tensor, state: dict[str, Tensor], amsgrad: bool) -> None:
        state["step"] = zero_count()
        state["exp_avg"] = zeros_for(parameter)
        state["exp_avg_sq"] = zeros_for(parameter)
        if amsgrad:
            state["max_exp_avg_sq"] = zeros_for(parameter)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *,
        maximize: bool = False, foreach: bool | None = None, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True,
        )  # fmt: skip
