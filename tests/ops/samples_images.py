"""Samples of operations on images: padding, pooling, sliding blocks, resizing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from clew.op import REGISTRY
from clew.ops.pool import Averaging, Pooling
from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]

# -- padding


@samples("constant_pad_nd")
def constant_pad_nd(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), pad=(1, 2), value=1.5)
    yield call("cropped", v.real(3, 4), pad=(-1, 1, 2, -1))
    yield call("empty", v.real(0, 3), pad=(1, 1))


# -- pooling

_IMAGE = {2: (2, 2, 5, 4), 3: (1, 2, 3, 4, 4)}
_WINDOWS = {
    "usual": {"kernel_size": 2, "stride": 2, "padding": 0, "ceil_mode": False},
    "overlapping": {"kernel_size": 3, "stride": 1, "padding": 1, "ceil_mode": False},
    "ceiling": {"kernel_size": 2, "stride": 2, "padding": 1, "ceil_mode": True},
}


def _windows(dims: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, attrs in _WINDOWS.items():
        yield name, {k: a if isinstance(a, bool) else (a,) * dims for k, a in attrs.items()}


def _pooling(dims: int) -> None:
    image, plane = _IMAGE[dims], _IMAGE[dims][-dims:]
    count = int(np.prod(plane))
    pooled = (*image[:-dims], *(2,) * dims)

    @samples(f"max_pool{dims}d_with_indices", f"max_pool{dims}d_with_places")
    def max_pool(v: Values) -> Samples:
        for name, attrs in _windows(dims):
            yield call(name, v.distinct(*image), **attrs, dilation=(1,) * dims)
        attrs = dict(_windows(dims))["usual"]
        yield call("unbatched", v.distinct(*image[1:]), **attrs, dilation=(1,) * dims)
        yield call("empty", v.distinct(0, *image[1:]), **attrs, dilation=(1,) * dims)

    @samples(f"adaptive_max_pool{dims}d")
    def adaptive_max_pool(v: Values) -> Samples:
        yield call("usual", v.distinct(*image), output_size=(2,) * dims)
        yield call("empty", v.distinct(0, *image[1:]), output_size=(2,) * dims)

    @samples(f"max_unpool{dims}d")
    def max_unpool(v: Values) -> Samples:
        index = np.argsort(v.real(*image[:-dims], count))[..., : 2**dims].reshape(pooled)
        yield call("usual", v.real(*pooled), index, output_size=plane)

    @samples(f"avg_pool{dims}d")
    def avg_pool(v: Values) -> Samples:
        for name, attrs in _windows(dims):
            plain = {"count_include_pad": name != "ceiling", "divisor_override": None}
            yield call(name, v.real(*image), **attrs, **plain)
        attrs = {**dict(_windows(dims))["usual"], "count_include_pad": True}
        yield call("divided", v.real(*image), **attrs, divisor_override=3)
        yield call("empty", v.real(0, *image[1:]), **attrs, divisor_override=None)

    @samples(f"avg_pool{dims}d_backward")
    def avg_pool_backward(v: Values) -> Samples:
        forward = REGISTRY[f"avg_pool{dims}d"].forward
        for name, attrs in _windows(dims):
            averaging = Averaging(
                **attrs, count_include_pad=name != "ceiling", divisor_override=None
            )
            shape = forward(np.zeros(image), **averaging._asdict()).shape
            yield call(name, v.real(*shape), size=image, averaging=averaging)

    @samples(f"adaptive_avg_pool{dims}d")
    def adaptive_avg_pool(v: Values) -> Samples:
        yield call("usual", v.real(*image), output_size=(2,) * dims)
        yield call("empty", v.real(0, *image[1:]), output_size=(2,) * dims)

    @samples(f"adaptive_avg_pool{dims}d_backward")
    def adaptive_avg_pool_backward(v: Values) -> Samples:
        yield call("usual", v.real(*pooled), size=image)


for _dims in (2, 3):
    _pooling(_dims)


@samples("take_in_planes")
def take_in_planes(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 4), v.integers(12, 2, 2, 2), dims=2)
    yield call("empty", v.real(0, 3, 4), v.integers(12, 0, 2, 2), dims=2)


@samples("add_in_planes")
def add_in_planes(v: Values) -> Samples:
    yield call("usual", v.real(2, 2, 2), v.integers(12, 2, 2, 2), size=(2, 3, 4), dims=2)
    yield call("empty", v.real(0, 2, 2), v.integers(12, 0, 2, 2), size=(0, 3, 4), dims=2)


_POOLING = Pooling((2, 2), (2, 1), (0, 0), (1, 2), ceil_mode=False)


@samples("take_in_windows")
def take_in_windows(v: Values) -> Samples:
    yield call("usual", v.real(2, 4, 5), v.integers(4, 2, 2, 3), pooling=_POOLING)
    yield call("empty", v.real(0, 2, 4, 5), v.integers(4, 0, 2, 2, 3), pooling=_POOLING)


@samples("add_in_windows")
def add_in_windows(v: Values) -> Samples:
    size, places = (2, 4, 5), v.integers(4, 2, 2, 3)
    yield call("usual", v.real(2, 2, 3), places, size=size, pooling=_POOLING)
    places = v.integers(4, 0, 2, 2, 3)
    yield call("empty", v.real(0, 2, 2, 3), places, size=(0, *size), pooling=_POOLING)


# -- padding with the image's own elements

_PADDING = {1: (1, 2), 2: (1, 0, 2, 1), 3: (0, 1, 1, 0, 1, 1)}


def _padding(word: str, dims: int) -> None:
    padding, image = _PADDING[dims], (2, *(3,) * dims)
    padded = (2, *(3 + sum(padding[i : i + 2]) for i in range(2 * dims - 2, -1, -2)))

    @samples(f"{word}_pad{dims}d")
    def pad(v: Values) -> Samples:
        yield call("usual", v.real(2, *image), padding=padding)
        yield call("unbatched", v.real(*image), padding=padding)
        yield call("cropped", v.real(*image), padding=(-1, 1) * dims)
        yield call("empty", v.real(0, *image), padding=padding)

    @samples(f"{word}_pad{dims}d_backward")
    def pad_backward(v: Values) -> Samples:
        yield call("usual", v.real(2, *padded), size=(2, *image), padding=padding)


for _word in ("reflection", "replication", "circular"):
    for _dims in (1, 2, 3):
        _padding(_word, _dims)


# -- sliding blocks

_BLOCKS = {"kernel_size": (2, 3), "dilation": (1, 2), "padding": (1, 0), "stride": (2, 1)}
_PLAIN_BLOCKS = {"kernel_size": (2, 2), "dilation": (1, 1), "padding": (0, 0), "stride": (1, 1)}


@samples("im2col")
def im2col(v: Values) -> Samples:
    yield call("usual", v.real(2, 2, 4, 6), **_BLOCKS)
    yield call("unbatched", v.real(2, 3, 3), **_PLAIN_BLOCKS)
    yield call("empty", v.real(0, 2, 3, 3), **_PLAIN_BLOCKS)


@samples("col2im")
def col2im(v: Values) -> Samples:
    yield call("usual", v.real(2, 12, 6), output_size=(4, 6), **_BLOCKS)
    yield call("unbatched", v.real(8, 4), output_size=(3, 3), **_PLAIN_BLOCKS)
    yield call("empty", v.real(0, 8, 4), output_size=(3, 3), **_PLAIN_BLOCKS)


# -- interpolation


def _upsampling(mode: str, dims: int) -> None:
    image, larger = (1, 2, 3, 4, 2)[: dims + 2], (5, 3, 3)[:dims]
    attrs: dict[str, Any] = {"align_corners": False, "scales": (None,) * dims}

    @samples(f"upsample_{mode}{dims}d")
    def upsample(v: Values) -> Samples:
        yield call("usual", v.real(*image), output_size=larger, **attrs)
        yield call("smaller", v.real(*image), output_size=(2,) * dims, **attrs)
        yield call("empty", v.real(0, *image[1:]), output_size=larger, **attrs)
        if mode in ("linear", "cubic"):
            corners = {**attrs, "align_corners": True}
            yield call("corners", v.real(*image), output_size=larger, **corners)

    @samples(f"upsample_{mode}{dims}d_backward")
    def upsample_backward(v: Values) -> Samples:
        yield call("usual", v.real(1, 2, *larger), input_size=image, **attrs)


for _mode, _dims in (
    *((mode, n) for mode in ("nearest", "nearest_exact", "linear") for n in (1, 2, 3)),
    ("cubic", 2),
    *((f"{mode}_smooth", 2) for mode in ("linear", "cubic", "lanczos")),
):
    _upsampling(_mode, _dims)


# -- between channels and space


@samples("pixel_shuffle")
def pixel_shuffle(v: Values) -> Samples:
    yield call("usual", v.real(2, 8, 2, 3), upscale_factor=2)
    yield call("unbatched", v.real(4, 2, 2), upscale_factor=2)
    yield call("empty", v.real(0, 4, 2, 2), upscale_factor=2)


@samples("pixel_unshuffle")
def pixel_unshuffle(v: Values) -> Samples:
    yield call("usual", v.real(2, 2, 4, 6), downscale_factor=2)
    yield call("unbatched", v.real(1, 4, 4), downscale_factor=2)
    yield call("empty", v.real(0, 1, 4, 4), downscale_factor=2)


@samples("channel_shuffle")
def channel_shuffle(v: Values) -> Samples:
    yield call("usual", v.real(2, 6, 3), groups=3)
    yield call("empty", v.real(0, 6, 3), groups=3)


@samples("fractional_max_pool2d")
def fractional_max_pool2d(v: Values) -> Samples:
    attrs = {"kernel_size": (2, 3), "output_size": (3, 2)}
    yield call("usual", v.distinct(2, 2, 6, 5), v.probabilities(2, 2, 2), **attrs)
    yield call("unbatched", v.distinct(2, 6, 5), v.probabilities(1, 2, 2), **attrs)


@samples("fractional_max_pool3d")
def fractional_max_pool3d(v: Values) -> Samples:
    attrs = {"kernel_size": (2, 1, 2), "output_size": (2, 3, 2)}
    yield call("usual", v.distinct(1, 2, 4, 4, 4), v.probabilities(1, 2, 3), **attrs)
