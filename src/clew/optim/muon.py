"""Muon."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clew.kernels import optim as kernels
from clew.optim.optimizer import Optimizer, number, values, zeros_for
from clew.tensor import Tensor


class Muon(Optimizer):
    """Momentum whose matrix is orthogonalised before it is applied (Jordan et al. 2024).

    Only for matrices: hidden layers, not embeddings, biases or heads.

    Args:
        ns_coefficients, ns_steps: of the Newton-Schulz iteration.
        eps: the smallest norm to divide by.
        adjust_lr_fn: "original" or "match_rms_adamw": how the learning rate depends on the shape.

    Raises:
        ValueError: an option is out of range, or a parameter is no matrix.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        if isinstance(lr, Tensor) and lr._array.size != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not number(lr) >= 0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with "
                        f"size: {parameter.shape}"
                    )

    def _check_group(self, group: dict[str, Any]) -> None:
        if group["ns_steps"] >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(group["ns_coefficients"]) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")

    def update(self, parameter: Tensor, grad: np.ndarray, state: Any, group: Any) -> None:
        if parameter._array.dtype.kind == "c":
            raise RuntimeError("Muon does not support complex parameters")
        if not state:
            state["momentum_buffer"] = zeros_for(parameter)
        average, momentum = values(state["momentum_buffer"]), group["momentum"]
        average += (1 - momentum) * (grad - average)
        update = grad + momentum * (average - grad) if group["nesterov"] else average
        update = kernels.orthogonalized(
            update, group["ns_coefficients"], group["ns_steps"], group["eps"]
        )
        lr = number(group["lr"])
        array = values(parameter)
        array *= 1 - lr * group["weight_decay"]
        array -= lr * _ratio(group["adjust_lr_fn"], array.shape) * update.astype(array.dtype)


def _ratio(adjust: str | None, shape: tuple[int, ...]) -> float:
    """What the learning rate is multiplied by for a matrix of this shape."""
    rows, columns = shape
    if adjust == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
