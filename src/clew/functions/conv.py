"""Convolutions under PyTorch's names, which are those of ``nn.functional`` too."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from clew.dispatch import apply
from clew.functions.linalg import refuse_non_tensors
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor

_CONVOLUTION = REGISTRY["convolution"]


def ints(value: Any, name: str, n: int) -> tuple[int, ...]:
    """One int for each of `n` dimensions, from an int or a sequence of one or `n`.

    Raises:
        RuntimeError: the sequence has another length.
        TypeError: these are no ints.
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        values = tuple(v.__index__() for v in value)
        if len(values) == 1:
            return values * n
        if len(values) != n:
            raise RuntimeError(
                f"expected {name} to be a single integer value or a list of {n} values to match "
                f"the convolution dimensions, but got {name}={list(values)}"
            )
        return values
    try:
        return (value.__index__(),) * n
    except AttributeError:
        raise TypeError(
            f"argument '{name}' must be tuple of ints, not {type(value).__name__}"
        ) from None


def _convolve(
    name: str, n: int, input: Any, weight: Any, bias: Any, transposed: bool, groups: int, /,
    **sizes: Any,
) -> Any:  # fmt: skip
    """Check and batch the input, then run the op."""
    if not (isinstance(input, Tensor) and isinstance(weight, Tensor)):
        refuse_non_tensors(name, input=input, weight=weight)
    ndim = input._array.ndim
    if ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input "
            f"of size: {list(input._array.shape)}"
        )
    if weight._array.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    attrs: dict[str, Any] = {key: ints(value, key, n) for key, value in sizes.items()}
    attrs |= {"transposed": transposed, "groups": groups}
    if not transposed and any(d < 0 for d in attrs["dilation"]):
        raise RuntimeError("dilation should be greater than zero")
    if ndim == n + 2:
        return apply(_CONVOLUTION, (input, weight, bias), attrs)
    batch = apply(REGISTRY["unsqueeze"], (input,), {"dim": 0})
    result = apply(_CONVOLUTION, (batch, weight, bias), attrs)
    return apply(REGISTRY["squeeze_dim"], (result,), {"dim": 0})


def _named_padding(
    padding: str, input: Tensor, weight: Tensor, stride: Any, dilation: Any, n: int
) -> tuple[Tensor, Any]:
    """The input and the padding that "same" and "valid" mean.

    An uneven amount of padding is put into the input, the odd element at the end.
    """
    if padding == "valid":
        return input, 0
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    ndim = weight._array.ndim
    if ndim != n + 2:
        raise RuntimeError(
            f"Expected {ndim}-dimensional input for {ndim}-dimensional weight"
            f"{list(weight._array.shape)}, but got {input._array.ndim}-dimensional input of size "
            f"{list(input._array.shape)} instead"
        )
    if any(s != 1 for s in ints(stride, "stride", n)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    kernel = weight._array.shape[2:]
    totals = [d * (k - 1) for d, k in zip(ints(dilation, "dilation", n), kernel)]
    if any(t % 2 for t in totals):
        warnings.warn(
            "Using padding='same' with even kernel lengths and odd dilation may require a "
            "zero-padded copy of the input be created",
            stacklevel=4,
        )
        pad = [amount for t in reversed(totals) for amount in (0, t % 2)]
        input = apply(REGISTRY["constant_pad_nd"], (input,), {"pad": tuple(pad), "value": 0})
    return input, tuple(t // 2 for t in totals)


def _declare_conv(n: int) -> Any:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        if isinstance(padding, str):
            input, padding = _named_padding(padding, input, weight, stride, dilation, n)
        return _convolve(
            f"conv{n}d", n, input, weight, bias, False, groups,
            stride=stride, padding=padding, dilation=dilation, output_padding=0,
        )  # fmt: skip

    conv.__name__ = conv.__qualname__ = f"conv{n}d"
    conv.__doc__ = f"""Cross-correlate an image of {n} spatial dimension(s) with `weight`.

    Args:
        input: ``(N, C, *size)`` or, unbatched, ``(C, *size)``.
        weight: ``(O, C / groups, *kernel)``.
        bias: ``(O,)`` or None.
        stride, dilation: an int or one for each spatial dimension.
        padding: the same, or "valid" (none) or "same" (the output has the input's size).

    Raises:
        RuntimeError: shapes, types or parameters do not fit.
    """
    return composite(method=False)(conv)


def _declare_conv_transpose(n: int) -> Any:
    def conv_transpose(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        return _convolve(
            f"conv_transpose{n}d", n, input, weight, bias, True, groups,
            stride=stride, padding=padding, dilation=dilation, output_padding=output_padding,
        )  # fmt: skip

    conv_transpose.__name__ = conv_transpose.__qualname__ = f"conv_transpose{n}d"
    conv_transpose.__doc__ = f"""The adjoint of `conv{n}d`, as an operation of its own.

    Args:
        input: ``(N, C, *size)`` or, unbatched, ``(C, *size)``.
        weight: ``(C, O / groups, *kernel)``.
        bias: ``(O,)`` or None.
        output_padding: how much larger the output is, at its end, than the smallest image that
            the convolution would take to `input`.

    Raises:
        RuntimeError: shapes, types or parameters do not fit.
    """
    return composite(method=False)(conv_transpose)


conv1d, conv2d, conv3d = map(_declare_conv, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_declare_conv_transpose, (1, 2, 3))


@composite(method=False)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Any:
    """`conv1d` with time first: input ``(T, N, C)``, weight ``(kernel, C, O)``, bias ``(O,)``."""
    result = conv1d(
        input.permute(1, 2, 0),
        weight.permute(2, 1, 0),
        bias,
        padding=pad,
    )
    return result.permute(2, 0, 1)
