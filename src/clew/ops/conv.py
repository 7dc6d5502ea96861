"""Convolution and transposed convolution: one op, as PyTorch has one node for all of them.

A convolution is linear in its input and in its weight, and its two gradients are linear in the
same things; so three ops are enough for derivatives of any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from clew import kernels
from clew.dtypes import legacy_type, scalar_name
from clew.op import op
from clew.ops.linalg import cpp_name
from clew.ops.rules import conj
from clew.packing import SHAPE

if TYPE_CHECKING:
    from clew.kernels.windows import Ints


class Geometry(NamedTuple):
    """How a convolution moves; one int per spatial dimension in the tuples."""

    stride: Ints
    padding: Ints
    dilation: Ints
    transposed: bool
    output_padding: Ints
    groups: int


@op(f"convolution(input, weight, bias=None; {', '.join(Geometry._fields)})",
    publish=("function",), jvp="bilinear plus bias",
    packings={"input": SHAPE._replace(unless="weight")})  # fmt: skip
def convolution(x: Any, w: Any, bias: Any, **geometry: Any) -> Any:
    """Cross-correlate ``(N, C, *size)`` with a weight; `transposed`: the adjoint of that.

    Weights are ``(O, C / groups, *kernel)``, those of a transposed convolution
    ``(C, O / groups, *kernel)``; the other arguments have one int for each spatial dimension.

    Raises:
        RuntimeError: shapes, types or parameters do not fit.
    """
    g = Geometry(**geometry)
    _check_types(x, w, bias)
    if g.transposed:
        return kernels.conv_transpose.conv_transpose_forward(
            x, w, bias, g.stride, g.padding, g.output_padding, g.dilation, g.groups
        )
    return kernels.conv.conv_forward(x, w, bias, g.stride, g.padding, g.dilation, g.groups)


def _check_types(x: Any, w: Any, bias: Any) -> None:
    if x.dtype != w.dtype:
        if x.dtype.kind not in "fV":
            raise RuntimeError(
                f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(w.dtype)}"
            )
        raise RuntimeError(
            f"Input type (torch.{legacy_type(x.dtype)}) and weight type "
            f"(torch.{legacy_type(w.dtype)}) should be the same"
        )
    if bias is not None and bias.dtype != x.dtype:
        names = map(cpp_name, (x.dtype, bias.dtype))
        raise RuntimeError("Input type ({}) and bias type ({}) should be the same".format(*names))


@convolution.grad("input", "weight", "bias")
def _(
    F: Any, grad: Any, input: Any, weight: Any, *, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, need: Any,
) -> Any:  # fmt: skip
    g = Geometry(stride, padding, dilation, transposed, output_padding, groups)
    x_shape, w_shape = tuple(input.shape), tuple(weight.shape)
    return [
        F.convolution_backward_input(grad, conj(F, weight), size=x_shape, geometry=g)
        if need[0] else None,
        F.convolution_backward_weight(grad, conj(F, input), size=w_shape, geometry=g)
        if need[1] else None,
        F.convolution_backward_bias(grad) if need[2] else None,
    ]  # fmt: skip


@op("convolution_backward_input(grad_output, weight; size, geometry)", publish=(),
    jvp="bilinear")  # fmt: skip
def convolution_backward_input(grad: Any, w: Any, *, size: Ints, geometry: Geometry) -> Any:
    """Gradient of the input, whose shape is `size`."""
    g = geometry
    backward = (
        kernels.conv_transpose.conv_transpose_backward_input if g.transposed
        else kernels.conv.conv_backward_input
    )  # fmt: skip
    return backward(grad, w, size, g.stride, g.padding, g.dilation, g.groups)


@convolution_backward_input.grad("grad_output")
def _(F: Any, grad: Any, weight: Any, *, geometry: Geometry) -> Any:
    return F.convolution(grad, conj(F, weight), **geometry._asdict())


@convolution_backward_input.grad("weight")
def _(F: Any, grad: Any, grad_output: Any, weight_shape: Any, *, geometry: Geometry) -> Any:
    grad_output = conj(F, grad_output)
    return F.convolution_backward_weight(grad_output, grad, size=weight_shape, geometry=geometry)


@op("convolution_backward_weight(grad_output, input; size, geometry)", publish=(),
    jvp="bilinear")  # fmt: skip
def convolution_backward_weight(grad: Any, x: Any, *, size: Ints, geometry: Geometry) -> Any:
    """Gradient of the weight, whose shape is `size`."""
    g = geometry
    backward = (
        kernels.conv_transpose.conv_transpose_backward_weight if g.transposed
        else kernels.conv.conv_backward_weight
    )  # fmt: skip
    return backward(grad, x, size, g.stride, g.padding, g.dilation, g.groups)


@convolution_backward_weight.grad("grad_output")
def _(F: Any, grad: Any, input: Any, *, geometry: Geometry) -> Any:
    return F.convolution(conj(F, input), grad, **geometry._asdict())


@convolution_backward_weight.grad("input")
def _(F: Any, grad: Any, grad_output: Any, input_shape: Any, *, geometry: Geometry) -> Any:
    grad_output = conj(F, grad_output)
    return F.convolution_backward_input(grad_output, grad, size=input_shape, geometry=geometry)


@op("convolution_backward_bias(grad_output)", publish=(), jvp="linear")
def convolution_backward_bias(grad: Any) -> Any:
    """Gradient of the bias: the sum over batch and space."""
    return kernels.conv.conv_backward_bias(grad)


@convolution_backward_bias.grad("grad_output")
def _(F: Any, grad: Any, grad_output_shape: Any) -> Any:
    column = (-1,) + (1,) * (len(grad_output_shape) - 2)
    return F.expand(F.reshape(grad, column), grad_output_shape)
