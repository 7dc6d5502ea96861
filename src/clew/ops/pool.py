"""Max pooling, average pooling, their adaptive forms, and max unpooling.

The gradient of each is a linear op; its own gradient is the op's adjoint: for a maximum, reading
the places that the forward chose, and for an average the average again.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clew import kernels
from clew.dtypes import scalar_name
from clew.op import op
from clew.ops.checks import floating_only
from clew.packing import INDICES, SHAPE

if TYPE_CHECKING:
    from clew.kernels.windows import Ints, Windows

# -- places in planes: what max pooling and unpooling share


def _planes(shape: tuple[int, ...], dims: int) -> tuple[int, int]:
    """A shape whose last `dims` dimensions are a plane, as (planes, elements of each)."""
    return prod(shape[:-dims]), prod(shape[-dims:])


@op("take_in_planes(self, indices; dims)", publish=(), jvp="linear")
def take_in_planes(x: Any, indices: Any, *, dims: int) -> Any:
    """The elements that `indices` names, counted within the plane of the last `dims` dimensions."""
    flat = indices.reshape(_planes(indices.shape, dims))
    return np.take_along_axis(x.reshape(_planes(x.shape, dims)), flat, 1).reshape(indices.shape)


@take_in_planes.grad("self")
def _(F: Any, grad: Any, self_shape: Any, indices: Any, *, dims: int) -> Any:
    return F.add_in_planes(grad, indices, size=self_shape, dims=dims)


@op("add_in_planes(self, indices; size, dims)", publish=(), jvp="linear")
def add_in_planes(x: Any, indices: Any, *, size: Ints, dims: int) -> Any:
    """Zeros of `size` with the elements added where `indices` says: the adjoint of taking them."""
    return kernels.pool.max_pool_backward(x, indices, size, dims)


@add_in_planes.grad("self")
def _(F: Any, grad: Any, indices: Any, *, dims: int) -> Any:
    return F.take_in_planes(grad, indices, dims=dims)


# -- places in windows: max pooling of which nobody asks for indices


class Pooling(NamedTuple):
    """How the windows of a max pooling lie."""

    kernel_size: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    ceil_mode: bool


@op("take_in_windows(self, places; pooling)", publish=(), jvp="linear")
def take_in_windows(x: Any, places: Any, *, pooling: Pooling) -> Any:
    """The element of each window that `places` names, counted within the window."""
    windows = kernels.pool_shapes.pool_windows(x.shape, *pooling)
    flat = _planes(places.shape, len(windows.out))
    indices = kernels.pool.places_to_indices(places, windows).reshape(flat)
    planes = x.reshape(_planes(x.shape, len(windows.out)))
    return np.take_along_axis(planes, indices, 1).reshape(places.shape)


@take_in_windows.grad("self")
def _(F: Any, grad: Any, self_shape: Any, places: Any, *, pooling: Pooling) -> Any:
    return F.add_in_windows(grad, places, size=self_shape, pooling=pooling)


@op("add_in_windows(self, places; size, pooling)", publish=(), jvp="linear")
def add_in_windows(x: Any, places: Any, *, size: Ints, pooling: Pooling) -> Any:
    """Zeros of `size` with the elements added at `places`: the adjoint of taking them."""
    return kernels.pool.max_pool_places_backward(
        x, places, size, kernels.pool_shapes.pool_windows(size, *pooling)
    )


@add_in_windows.grad("self")
def _(F: Any, grad: Any, places: Any, *, pooling: Pooling) -> Any:
    return F.take_in_windows(grad, places, pooling=pooling)


# -- maxima


def _declare_max_pool(dims: int) -> None:
    def windows_of(x: Any, pooling: dict[str, Any]) -> Windows:
        if x.dtype.kind in "bc":
            raise NotImplementedError(
                f"\"max_pool{dims}d\" not implemented for '{scalar_name(x.dtype)}'"
            )
        return kernels.pool_shapes.pool_windows(x.shape, **pooling)

    def with_indices(x: Any, *, kernel_size: Ints, **others: Any) -> tuple[Any, Any]:
        windows = windows_of(x, {"kernel": kernel_size, **others})
        values, places = kernels.pool.max_pool(x, windows)
        return values, kernels.pool.places_to_indices(places, windows)

    def with_places(x: Any, *, kernel_size: Ints, **others: Any) -> tuple[Any, Any]:
        return kernels.pool.max_pool(x, windows_of(x, {"kernel": kernel_size, **others}))

    def rule(F: Any, grad: Any, self: Any, result1: Any) -> Any:
        return F.add_in_planes(grad, result1, size=tuple(self.shape), dims=dims)

    def places_rule(
        F: Any, grad: Any, self: Any, result1: Any, *, kernel_size: Ints, stride: Ints,
        padding: Ints, dilation: Ints, ceil_mode: bool,
    ) -> Any:  # fmt: skip
        pooling = Pooling(kernel_size, stride, padding, dilation, ceil_mode)
        return F.add_in_windows(grad, result1, size=tuple(self.shape), pooling=pooling)

    node = f"MaxPool{dims}DWithIndicesBackward0"
    op(
        f"max_pool{dims}d_with_indices(self; {', '.join(Pooling._fields)}) -> result0, result1",
        with_indices, publish=(), node=node, no_grad_outputs=(1,), self=rule,
        packings={"self": SHAPE, "result1": INDICES},
        doc="The maxima of windows, and their places in the plane.",
    )  # fmt: skip
    op(
        f"max_pool{dims}d_with_places(self; {', '.join(Pooling._fields)}) -> result0, result1",
        with_places, publish=(), node=node, no_grad_outputs=(1,), self=places_rule,
        packings={"self": SHAPE},
        doc="The maxima of windows, and their places in the window, of the smallest type for them.",
    )  # fmt: skip


def _declare_adaptive_max_pool(dims: int) -> None:
    def forward(x: Any, *, output_size: Ints) -> tuple[Any, Any]:
        floating_only(x, f"adaptive_max_pool{dims}d")
        return kernels.adaptive_pool.adaptive_max_pool(x, output_size)

    def rule(F: Any, grad: Any, self: Any, result1: Any) -> Any:
        return F.add_in_planes(grad, result1, size=tuple(self.shape), dims=dims)

    op(
        f"adaptive_max_pool{dims}d(self; output_size) -> result0, result1", forward, publish=(),
        node=f"AdaptiveMaxPool{dims}DBackward0", no_grad_outputs=(1,), self=rule,
        packings={"self": SHAPE, "result1": INDICES},
        doc="The maxima of windows that share out the image, and their places.",
    )  # fmt: skip


def _declare_max_unpool(dims: int) -> None:
    def forward(x: Any, indices: Any, *, output_size: Ints) -> Any:
        _check_unpool(x, indices, dims, output_size)
        size = (*x.shape[:-dims], *output_size)
        planes, length = _planes(size, dims)
        out = np.zeros((planes, length), x.dtype)
        flat = x.reshape(planes, -1) if x.size else np.zeros((planes, 0), x.dtype)
        np.put_along_axis(out, indices.reshape(flat.shape), flat, 1)
        return out.reshape(size)

    def rule(F: Any, grad: Any, indices: Any) -> Any:
        return F.take_in_planes(grad, indices, dims=dims)

    op(
        f"max_unpool{dims}d(self, indices; output_size)", forward, publish=(),
        node=f"MaxUnpool{dims}DBackward0", self=rule, jvp="linear", packings={"indices": INDICES},
        doc="Zeros with the elements put where `indices` says: the inverse of max pooling.",
    )  # fmt: skip


def _check_unpool(x: Any, indices: Any, dims: int, output_size: Ints) -> None:
    if indices.dtype != np.int64:
        raise RuntimeError(
            f"elements in indices should be type int64 but got: {scalar_name(indices.dtype)}"
        )
    if x.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but "
            f"got a tensor with {x.ndim} dimensions."
        )
    if indices.shape != x.shape:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({list(x.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    outside = indices[(indices < 0) | (indices >= prod(output_size))]
    if outside.size:
        volume = "x".join(map(str, output_size))
        raise RuntimeError(
            f"Found an invalid max index: {outside.flat[0]} (output volumes are of size {volume})"
        )


# -- averages


class Averaging(NamedTuple):
    """How the windows of an average pooling lie and what their sums are divided by."""

    kernel_size: Ints
    stride: Ints
    padding: Ints
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: int | None


def _declare_avg_pool(dims: int) -> None:
    name = f"avg_pool{dims}d"

    def forward(x: Any, **averaging: Any) -> Any:
        if x.dtype.kind in "bc":
            raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(x.dtype)}'")
        return kernels.avg_pool.avg_pool(x, *Averaging(**averaging))

    def rule(
        F: Any, grad: Any, self: Any, *, kernel_size: Ints, stride: Ints, padding: Ints,
        ceil_mode: bool, count_include_pad: bool, divisor_override: int | None,
    ) -> Any:  # fmt: skip
        averaging = Averaging(
            kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
        backward = getattr(F, f"{name}_backward")
        return backward(grad, size=tuple(self.shape), averaging=averaging)

    op(
        f"{name}(self; {', '.join(Averaging._fields)})", forward, publish=(),
        node=f"AvgPool{dims}DBackward0", self=rule, jvp="linear", packings={"self": SHAPE},
        doc="The means of windows.",
    )  # fmt: skip

    def spread(grad: Any, *, size: Ints, averaging: Averaging) -> Any:
        return kernels.avg_pool.avg_pool_backward(grad, size, *averaging)

    def gather(F: Any, grad: Any, *, averaging: Averaging) -> Any:
        return getattr(F, name)(grad, **averaging._asdict())

    op(
        f"{name}_backward(grad_output; size, averaging)", spread, publish=(),
        node=f"AvgPool{dims}DBackwardBackward0", grad_output=gather, jvp="linear",
        doc="Each mean's gradient, shared out over its window.",
    )  # fmt: skip


def _declare_adaptive_avg_pool(dims: int) -> None:
    name = f"adaptive_avg_pool{dims}d"

    def forward(x: Any, *, output_size: Ints) -> Any:
        floating_only(x, name)
        return kernels.adaptive_pool.adaptive_avg_pool(x, output_size)

    def rule(F: Any, grad: Any, self: Any) -> Any:
        return getattr(F, f"{name}_backward")(grad, size=tuple(self.shape))

    op(
        f"{name}(self; output_size)", forward, publish=(), node=f"AdaptiveAvgPool{dims}DBackward0",
        self=rule, jvp="linear", packings={"self": SHAPE},
        doc="The means of windows that share the image.",
    )  # fmt: skip

    def spread(grad: Any, *, size: Ints) -> Any:
        return kernels.adaptive_pool.adaptive_avg_pool_backward(grad, size, dims)

    def gather(F: Any, grad: Any, grad_output_shape: Any) -> Any:
        return getattr(F, name)(grad, output_size=grad_output_shape[-dims:])

    op(
        f"{name}_backward(grad_output; size)", spread, publish=(),
        node=f"AdaptiveAvgPool{dims}DBackwardBackward0", grad_output=gather, jvp="linear",
        doc="Each mean's gradient, shared out over its window.",
    )  # fmt: skip


for _dims in (2, 3):
    _declare_max_pool(_dims)
    _declare_adaptive_max_pool(_dims)
    _declare_max_unpool(_dims)
    _declare_avg_pool(_dims)
    _declare_adaptive_avg_pool(_dims)
