"""Bilinear forms: linear in two vectors and in the tensor of their coefficients.

The gradient of each vector is a bilinear form of the other and of the result's gradient, with the
coefficients turned; so this op and a matrix product are enough for derivatives of any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels.half import narrow, widen
from clew.kernels.product import product
from clew.op import op


@op("bilinear_form(input1, input2, weight)", publish=(), node="TrilinearBackward0",
    tensors_only=True)  # fmt: skip
def bilinear_form(x: Any, y: Any, weight: Any) -> Any:
    """``sum(weight[o, i, j] * input1[:, i] * input2[:, j])`` over i and j.

    Shapes: inputs ``(N, I)`` and ``(N, J)``, weight ``(O, I, J)``, result ``(N, O)``.
    """
    outputs, first, second = weight.shape
    turned = widen(weight).transpose(1, 0, 2).reshape(first, outputs * second)
    rows = product(np.matmul, widen(x), turned).reshape(len(x), outputs, second)
    return narrow(np.matmul(rows, widen(y)[:, :, None])[:, :, 0], x.dtype)


@bilinear_form.grad("input1")
def _(F: Any, grad: Any, input2: Any, weight: Any) -> Any:
    return F.bilinear_form(grad, input2, F.permute(weight, (1, 0, 2)))


@bilinear_form.grad("input2")
def _(F: Any, grad: Any, input1: Any, weight: Any) -> Any:
    return F.bilinear_form(grad, input1, F.permute(weight, (2, 0, 1)))


@bilinear_form.grad("weight")
def _(F: Any, grad: Any, input1: Any, input2: Any, weight_shape: Any) -> Any:
    batch = input1.shape[0]
    _, first, second = weight_shape
    pairs = F.unsqueeze(input1, 2) * F.unsqueeze(input2, 1)
    flat = F.mm(F.t(grad), F.reshape(pairs, (batch, first * second)))
    return F.reshape(flat, weight_shape)
