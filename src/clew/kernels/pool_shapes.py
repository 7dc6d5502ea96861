"""The windows of a pooling, and the errors for arguments that do not fit.

Imports sibling kernels only. PyTorch pools one dimension as two, of which the first has size 1;
its messages say so.
"""

from .windows import Ints, Windows


def pool_windows(
    x_shape: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Windows:
    """The windows over (..., C, *size); RuntimeError with PyTorch's text if there are none."""
    _check(x_shape, kernel, stride, padding, dilation)
    size = x_shape[-len(kernel) :]
    windows = Windows.over(size, kernel, stride, padding, dilation, ceil_mode)
    if any(n < 1 for n in windows.out):
        channels = x_shape[-len(kernel) - 1]
        raise RuntimeError(
            f"Given input size: ({_by(channels, size)}). Calculated output size: "
            f"({_by(channels, windows.out)}). Output size is too small"
        )
    return windows


def _check(x_shape: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> None:
    if any(s == 0 for s in stride):
        raise RuntimeError("stride should not be zero")
    if any(k <= 0 for k in kernel):
        raise RuntimeError(
            f"kernel size should be greater than zero, but got {_named('k', kernel)}"
        )
    if any(s < 0 for s in stride):
        raise RuntimeError(f"stride should be greater than zero, but got {_named('d', stride)}")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(
            f"dilation should be greater than zero, but got {_named('dilation', dilation)}"
        )
    for k, p, d in zip(kernel, padding, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )
    dimensions = len(kernel)
    if len(x_shape) not in (dimensions + 1, dimensions + 2):
        raise RuntimeError(
            f"non-empty {dimensions + 1}D or {dimensions + 2}D (batch mode) tensor expected "
            "for input"
        )
    if any(n == 0 for n in x_shape[-dimensions - 1 :]):
        shape = list(x_shape) if dimensions > 1 else [*x_shape[:-1], 1, x_shape[-1]]
        dimensions = max(dimensions, 2)
        raise RuntimeError(
            f"Expected {dimensions + 1}D or {dimensions + 2}D (batch mode) tensor with optional "
            f"0 dim batch size for input, but got:{shape}"
        )
    if any(p > k // 2 for k, p in zip(kernel, padding)):
        raise RuntimeError(
            "pad should be smaller than or equal to half of kernel size, but got "
            f"{_kernel_and_padding(kernel, padding)}"
        )


def _named(name: str, values: Ints) -> str:
    """``kH: 2 kW: 3``."""
    if len(values) == 1:
        values = (1, *values)
    return " ".join(f"{name}{axis}: {n}" for axis, n in zip("THW"[-len(values) :], values))


def _kernel_and_padding(kernel: Ints, padding: Ints) -> str:
    if len(kernel) == 3:
        (k_t, k_h, k_w), (p_t, p_h, p_w) = kernel, padding
        return f"kT: {k_t} kW: {k_w} kH: {k_h} padT: {p_t} padW: {p_w} padH: {p_h}"
    (k_h, k_w), (p_h, p_w) = (1, *kernel)[-2:], (0, *padding)[-2:]
    return f"padW = {p_w}, padH = {p_h}, kW = {k_w}, kH = {k_h}"


def _by(channels: int, size: Ints) -> str:
    if len(size) == 1:
        size = (1, *size)
    return "x".join(map(str, (channels, *size)))
