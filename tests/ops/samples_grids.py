"""Samples of reading images at the places of a grid, and of the grids of affine maps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clew.ops.grid_sample import MODES, PADDINGS, Sampling
from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]

_ONCE = "it is the second derivative, where PyTorch ends"


def _places(v: Values, *shape: int) -> np.ndarray:
    """Places inside and outside of an image, away from its pixels and edges."""
    return v.off_kinks(*shape) / 3


def _all_samplings() -> Iterator[tuple[str, Sampling]]:
    for m, mode in enumerate(MODES):
        for p, padding in enumerate(PADDINGS):
            yield f"{mode} {padding}", Sampling(m, p, align_corners=p != 1)


@samples("grid_sampler_2d")
def grid_sampler_2d(v: Values) -> Samples:
    for name, sampling in _all_samplings():
        yield call(name, v.real(2, 2, 3, 4), _places(v, 2, 2, 3, 2), **sampling._asdict())


@samples("grid_sampler_3d")
def grid_sampler_3d(v: Values) -> Samples:
    for name, sampling in _all_samplings():
        if not name.startswith("bicubic"):
            grid = _places(v, 1, 2, 1, 2, 3)
            yield call(name, v.real(1, 2, 3, 4, 2), grid, **sampling._asdict())


@samples("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler_backward(v: Values) -> Samples:
    image, grid = v.real(1, 2, 3, 4), _places(v, 1, 2, 3, 2)
    for name, sampling in _all_samplings():
        yield call(
            name, v.real(1, 2, 2, 3), image, grid, sampling=sampling, need=(True, True),
            once=_ONCE,
        )  # fmt: skip


@samples("grid_sampler_2d_double_backward", "grid_sampler_3d_double_backward")
def grid_sampler_double_backward(v: Values) -> Samples:
    image, grid = v.real(1, 2, 3, 4), _places(v, 1, 2, 3, 2)
    for name, sampling in _all_samplings():
        yield call(
            name, v.real(1, 2, 3, 4), v.real(1, 2, 3, 2), v.real(1, 2, 2, 3), image, grid,
            sampling=sampling, refuses="is not implemented",
        )  # fmt: skip


@samples("affine_grid_generator")
def affine_grid_generator(v: Values) -> Samples:
    yield call("usual", v.real(2, 2, 3), size=(2, 1, 3, 4), align_corners=False)
    yield call("aligned", v.real(2, 2, 3), size=(2, 1, 3, 4), align_corners=True)
    yield call("volume", v.real(1, 3, 4), size=(1, 1, 2, 1, 3), align_corners=False)


@samples("affine_grid_generator_backward")
def affine_grid_generator_backward(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 4, 2), size=(2, 1, 3, 4), align_corners=False)
