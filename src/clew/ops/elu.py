"""The exponential linear units: elu, celu, and selu as elu with constants.

Layer 2: arrays only.  Each stands twice, because PyTorch's gradient reads the input out of place,
and in place has only the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels.pointwise import pointwise
from clew.kernels.select import keep_where
from clew.op import op
from clew.ops.checks import floating_only

_ELU = "alpha=1.0, scale=1.0, input_scale=1.0"


def _elu(x: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
    """``scale * self`` where positive, else ``scale * alpha * (exp(input_scale * self) - 1)``."""
    floating_only(x, "elu_cpu")
    return _scaled_elu(x, alpha=alpha, scale=scale, input_scale=input_scale)


@pointwise(twin="elu")
def _scaled_elu(x: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
    out = np.asarray(np.minimum(x, 0))
    out *= input_scale
    np.expm1(out, out=out)
    out *= alpha * scale
    positive = np.asarray(np.maximum(x, 0))
    positive *= scale
    out += positive
    return out


def _celu(x: Any, *, alpha: float) -> Any:
    """`self` where positive, else ``alpha * (exp(self / alpha) - 1)``.

    Raises:
        RuntimeError: `alpha` is 0.
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _elu(x, alpha=alpha, scale=1.0, input_scale=1 / alpha)


def _elu_grad(
    F: Any, grad: Any, self: Any, *, alpha: float, scale: float, input_scale: float
) -> Any:
    return F.elu_backward(
        grad, self, alpha=alpha, scale=scale, input_scale=input_scale, is_result=False
    )


def _elu_grad_by_result(
    F: Any, grad: Any, result: Any, *, alpha: float, scale: float, input_scale: float
) -> Any:
    if alpha < 0:
        raise RuntimeError(
            "In-place elu backward calculation is triggered with a negative slope which is not "
            "supported. This is caused by calling in-place forward function with a negative "
            "slope, please call out-of-place version instead."
        )
    return F.elu_backward(
        grad, result, alpha=alpha, scale=scale, input_scale=input_scale, is_result=True
    )


def _celu_grad(F: Any, grad: Any, self: Any, *, alpha: float) -> Any:
    return _elu_grad(F, grad, self, alpha=alpha, scale=1.0, input_scale=1 / alpha)


def _celu_grad_by_result(F: Any, grad: Any, result: Any, *, alpha: float) -> Any:
    return _elu_grad_by_result(F, grad, result, alpha=alpha, scale=1.0, input_scale=1 / alpha)


op(f"elu(self; {_ELU})", _elu, publish=(), domain="off_kinks", self=_elu_grad)
op(
    f"elu_inplace(self; {_ELU})", _elu, publish=(), inplace=True, node="EluBackward1",
    domain="off_kinks", self=_elu_grad_by_result,
)  # fmt: skip
op("celu(self; alpha=1.0)", _celu, publish=(), domain="off_kinks", self=_celu_grad)
op(
    "celu_inplace(self; alpha=1.0)", _celu, publish=(), inplace=True, node="CeluBackward1",
    domain="off_kinks", self=_celu_grad_by_result,
)  # fmt: skip


@op("elu_backward(grad_output, self_or_result; alpha, scale, input_scale, is_result)", publish=(),
    domain="off_kinks")  # fmt: skip
@pointwise(twin="elu_backward")
def elu_backward(
    grad: Any, x: Any, *, alpha: float, scale: float, input_scale: float, is_result: bool
) -> Any:
    """`grad_output` times the slope of `elu` at the input, or where the result is that."""
    out = np.asarray(np.minimum(x, 0))
    if is_result:
        out += alpha * scale
        out *= input_scale
    else:
        out *= input_scale
        np.exp(out, out=out)
        out *= alpha * scale * input_scale
    negative = np.less_equal(x, 0)
    out = np.asarray(keep_where(negative, out))
    out += np.multiply(np.logical_not(negative), scale, dtype=out.dtype)
    out *= grad
    return out


@elu_backward.grad("grad_output")
def _(
    F: Any, grad: Any, self_or_result: Any, *,
    alpha: float, scale: float, input_scale: float, is_result: bool,
) -> Any:  # fmt: skip
    return F.elu_backward(
        grad, self_or_result, alpha=alpha, scale=scale, input_scale=input_scale, is_result=is_result
    )


@elu_backward.grad("self_or_result")
def _(
    F: Any, grad: Any, grad_output: Any, self_or_result: Any, *,
    alpha: float, scale: float, input_scale: float, is_result: bool,
) -> Any:  # fmt: skip
    bend = grad * grad_output * input_scale
    if not is_result:
        bend = bend * (alpha * scale * input_scale) * F.exp(self_or_result * input_scale)
    return F.where(F.le(self_or_result, 0), bend, 0)
