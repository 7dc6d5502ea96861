"""Shapes of convolutions, and the errors for arguments that do not fit. Imports NumPy only."""

from numpy.typing import NDArray

Ints = tuple[int, ...]


def check_conv(
    x_shape: Ints,
    w_shape: Ints,
    bias: NDArray | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> None:
    """Raise PyTorch's RuntimeError unless a convolution with these arguments exists."""
    _check_parameters(stride, padding, dilation, groups)
    _check_weight(x_shape, w_shape, groups)
    if x_shape[1] != w_shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w_shape)}, expected input"
            f"{list(x_shape)} to have {w_shape[1] * groups} channels, "
            f"but got {x_shape[1]} channels instead"
        )
    _check_bias(w_shape, bias, w_shape[0])
    size = tuple(n + 2 * p for n, p in zip(x_shape[2:], padding))
    kernel = tuple(d * (k - 1) + 1 for k, d in zip(w_shape[2:], dilation))
    if any(n < k for n, k in zip(size, kernel)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_by(size)}). Kernel size: "
            f"({_by(kernel)}). Kernel size can't be greater than actual input size"
        )
    _check_not_empty(x_shape, w_shape)


def check_conv_transpose(
    x_shape: Ints,
    w_shape: Ints,
    bias: NDArray | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
    groups: int,
) -> None:
    """Raise PyTorch's RuntimeError unless a transposed convolution with these arguments exists."""
    if any(p < 0 for p in output_padding):
        raise RuntimeError("negative output_padding is not supported")
    _check_parameters(stride, padding, dilation, groups)
    _check_weight(x_shape, w_shape, groups)
    if x_shape[1] != w_shape[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w_shape)}, expected input{list(x_shape)} "
            f"to have {w_shape[0]} channels, but got {x_shape[1]} channels instead"
        )
    _check_bias(w_shape, bias, w_shape[1] * groups, "transposed=1, ")
    _check_not_empty(x_shape, w_shape)
    if any(p >= max(s, d) for p, s, d in zip(output_padding, stride, dilation)):
        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got "
            f"output_padding={list(output_padding)}, stride={list(stride)}, "
            f"dilation={list(dilation)}"
        )


def conv_transpose_shape(
    x_shape: Ints,
    w_shape: Ints,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
    groups: int,
) -> Ints:
    """Shape of a transposed convolution of `x_shape` with a weight (C, O / groups, *kernel)."""
    size = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + extra + 1
        for n, k, s, p, extra, d in zip(
            x_shape[2:], w_shape[2:], stride, padding, output_padding, dilation
        )
    )
    if any(n < 1 for n in size):
        raise RuntimeError(
            f"Given input size per channel: ({_by(x_shape[2:])}). Calculated output size per "
            f"channel: ({_by(size)}). Output size is too small"
        )
    return (x_shape[0], w_shape[1] * groups, *size)


def _check_parameters(stride: Ints, padding: Ints, dilation: Ints, groups: int) -> None:
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError("non-positive dilation is not supported")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def _check_weight(x_shape: Ints, w_shape: Ints, groups: int) -> None:
    if len(x_shape) != len(w_shape):
        raise RuntimeError(
            f"Expected {len(w_shape)}-dimensional input for {len(w_shape)}-dimensional weight "
            f"{list(w_shape)}, but got {len(x_shape)}-dimensional input of size {list(x_shape)} "
            "instead"
        )
    if w_shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, "
            f"but got weight of size {list(w_shape)} instead"
        )
    if w_shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{list(w_shape)}] instead"
        )


def _check_not_empty(x_shape: Ints, w_shape: Ints) -> None:
    if 0 in x_shape[2:] and 0 not in x_shape[:2]:
        raise RuntimeError(
            "Only zero batch or zero channel inputs are supported, but got input shape: "
            f"{list(x_shape)}"
        )
    if 0 in w_shape[2:]:
        kernel = w_shape[2:] if len(w_shape) > 3 else (1, w_shape[2])
        names = ("depth", "height", "width")[-len(kernel) :]
        sizes = " ".join(f"kernel_{name}: {n}" for name, n in zip(names, kernel))
        raise RuntimeError(f"kernel size should be greater than zero, but got {sizes}")


def _check_bias(w_shape: Ints, bias: NDArray | None, expected: int, kind: str = "") -> None:
    if bias is not None and bias.shape != (expected,):
        raise RuntimeError(
            f"Given {kind}weight of size {list(w_shape)}, expected bias to be 1-dimensional with "
            f"{expected} elements, but got bias of size {list(bias.shape)} instead"
        )


def _by(size: Ints) -> str:
    return " x ".join(map(str, size))
