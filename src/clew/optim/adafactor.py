"""Adafactor."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels import optim as kernels
from clew.limits import finfo
from clew.optim.optimizer import Optimizer, count_step, number, values, zero_count, zeros_for
from clew.tensor import Tensor


class Adafactor(Optimizer):
    """Adam whose state for a matrix is a row and a column.

    Args:
        beta2_decay: the power of the step by which the newest squares weigh less.
        eps: the smallest mean square (None: the machine epsilon) and parameter size.
        d: updates of a larger root mean square are scaled down to it.

    `foreach` chooses among PyTorch's implementations; clew has one.

    Raises:
        ValueError: an option is out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
        *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        if isinstance(lr, Tensor) and lr._array.size != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not number(lr) >= 0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
            "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, parameter: Tensor, grad: np.ndarray, state: Any, group: Any) -> None:
        array = parameter._array
        if array.dtype.kind == "c":
            raise RuntimeError("Adafactor does not support complex parameters")
        if not state:
            state["step"] = zero_count()
            if array.ndim > 1:
                state["row_var"] = zeros_for(parameter[..., :1])
                state["col_var"] = zeros_for(parameter[..., :1, :])
            else:
                state["variance"] = zeros_for(parameter)
        eps1, eps2 = group["eps"]
        rows, columns, square = (
            values(state[name]) if name in state else None
            for name in ("row_var", "col_var", "variance")
        )
        kernels.adafactor(
            values(parameter), grad, rows, columns, square, step=count_step(state),
            lr=number(group["lr"]), beta2_decay=group["beta2_decay"],
            eps1=finfo(parameter.dtype).eps if eps1 is None else eps1, eps2=eps2, d=group["d"],
            weight_decay=group["weight_decay"],
        )  # fmt: skip
