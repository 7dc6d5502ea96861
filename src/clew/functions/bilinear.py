"""Bilinear forms of two inputs."""

from __future__ import annotations

from math import prod

from clew.functions.calls import Tensor, call, require_tensors
from clew.publish import composite


@composite(method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[o] @ input2 + bias[o]`` for each o.

    Shapes: inputs ``(*, I)`` and ``(*, J)``, weight ``(O, I, J)``, bias ``(O,)``; the result is
    ``(*, O)``.

    Raises:
        RuntimeError: shapes do not fit.
    """
    require_tensors("bilinear", input1=input1, input2=input2, weight=weight)
    _check(input1, input2, weight, bias)
    lead = tuple(input1.shape[:-1])
    first, second = (x.reshape(prod(lead), x.size(-1)) for x in (input1, input2))
    result = call("bilinear_form", first, second, weight).reshape(*lead, weight.size(0))
    return result if bias is None else result + bias


def _check(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}"
        )
    for d, (m, n) in enumerate(zip(input1.shape[:-1], input2.shape[:-1])):
        if m != n:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {d}: got {m} and {n}"
            )
    for name, x, dim in (("input1", input1, 1), ("input2", input2, 2)):
        if x.size(-1) != weight.size(dim):
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {x.size(-1)} but "
                f"expected {weight.size(dim)}"
            )
    if bias is not None and bias.size(0) != weight.size(0):
        raise RuntimeError(
            "bilinear(): bias size does not match weight size: got "
            f"{bias.size(0)} but expected {weight.size(0)}"
        )
