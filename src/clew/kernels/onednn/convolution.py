"""A convolution and its gradients as primitives of oneDNN, each made once per shape.  Layer 1.

Shapes as in `kernels.conv`. Arrays are of float32, and not empty.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from ctypes import c_void_p
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from clew.kernels.onednn.library import (
    BIAS,
    RESULT,
    RESULT_GRADIENT,
    SOURCE,
    SOURCE_GRADIENT,
    WEIGHTS,
    WEIGHTS_GRADIENT,
    Handle,
    Library,
    Primitive,
    Unsupported,
    numbers,
)
from clew.kernels.windows import Ints, Windows

_FORWARD, _DIRECT = 64, 1
_KEPT = 256  # primitives of a thread


class Convolutions(threading.local):
    """The three functions of a convolution; each thread has primitives and a stream of its own.

    They return False, and write nothing, where oneDNN has no code for a convolution.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._stream = library.stream()
        self._primitive = lru_cache(_KEPT)(self._make)

    def correlate(
        self, x: NDArray, w: NDArray, bias: NDArray | None, out: NDArray, windows: Windows,
        groups: int,
    ) -> bool:  # fmt: skip
        """Write the convolution of `x` with `w`, plus `bias`, into the contiguous `out`."""
        reads = [x, w] if bias is None else [x, w, bias]
        kind = _forward if bias is None else _forward_with_bias
        return self._run(kind, x.shape, w.shape, windows, groups, reads, out)

    def correlate_back(
        self, grad: NDArray, w: NDArray, out: NDArray, windows: Windows, groups: int
    ) -> bool:
        """Write the gradient of the input, or a transposed convolution, into `out`."""
        return self._run(_backward_input, out.shape, w.shape, windows, groups, [grad, w], out)

    def backward_weight(
        self, grad: NDArray, x: NDArray, out: NDArray, windows: Windows, groups: int
    ) -> bool:
        """Write the gradient of the weight into the contiguous `out`."""
        return self._run(_backward_weight, x.shape, out.shape, windows, groups, [x, grad], out)

    def _run(
        self, kind: Callable[..., Primitive], x_shape: Ints, w_shape: Ints, windows: Windows,
        groups: int, reads: list[NDArray], out: NDArray,
    ) -> bool:  # fmt: skip
        with self._library.one_thread():
            primitive = self._primitive(kind, x_shape, w_shape, windows, groups)
            if primitive is None:
                return False
            primitive(self._stream, [np.ascontiguousarray(a) for a in reads], out)
        return True

    def _make(
        self, kind: Callable[..., Primitive], x_shape: Ints, w_shape: Ints, windows: Windows,
        groups: int,
    ) -> Primitive | None:  # fmt: skip
        try:
            return kind(_Geometry(self._library, x_shape, w_shape, windows, groups))
        except Unsupported:
            return None


class _Geometry:
    """What every primitive of a convolution is described with."""

    def __init__(
        self, library: Library, x_shape: Ints, w_shape: Ints, windows: Windows, groups: int
    ) -> None:
        self.library = library
        self.x = x_shape
        self.w = (groups, w_shape[0] // groups, *w_shape[1:]) if groups > 1 else w_shape
        self.out = (x_shape[0], w_shape[0], *windows.out)
        behind = [r - n - p for r, n, p in zip(windows.reach, windows.size, windows.padding)]
        if any(b <= -s for b, s in zip(behind, windows.stride)):
            raise Unsupported  # elements that no window reaches, one of which would fit another
        holes = [d - 1 for d in windows.dilation]
        self.moves = [numbers(v) for v in (windows.stride, holes, windows.padding, behind)]

    def describe(self, kind: str, *shapes: Ints | None, hint: Handle | None = None) -> Handle:
        """The description of a primitive of one direction."""
        memories = [c_void_p() if shape is None else self.library.free(shape) for shape in shapes]
        head = (_FORWARD, _DIRECT) if hint is None else (_DIRECT,)
        tail = () if hint is None else (hint,)
        return self.library.describe(f"convolution_{kind}", *head, *memories, *self.moves, *tail)

    def forward(self, bias: Ints | None = None) -> Handle:
        """The description of the convolution itself, which its gradients ask for."""
        return self.describe("forward", self.x, self.w, bias, self.out)


def _forward(g: _Geometry) -> Primitive:
    return Primitive(g.library, g.forward(), {SOURCE: g.x, WEIGHTS: g.w}, (RESULT, g.out))


def _forward_with_bias(g: _Geometry) -> Primitive:
    bias = g.out[1:2]
    reads = {SOURCE: g.x, WEIGHTS: g.w, BIAS: bias}
    return Primitive(g.library, g.forward(bias), reads, (RESULT, g.out))


def _backward_input(g: _Geometry) -> Primitive:
    description = g.describe("backward_data", g.x, g.w, g.out, hint=g.forward())
    reads = {RESULT_GRADIENT: g.out, WEIGHTS: g.w}
    return Primitive(g.library, description, reads, (SOURCE_GRADIENT, g.x))


def _backward_weight(g: _Geometry) -> Primitive:
    description = g.describe("backward_weights", g.x, g.w, None, g.out, hint=g.forward())
    reads = {SOURCE: g.x, RESULT_GRADIENT: g.out}
    return Primitive(g.library, description, reads, (WEIGHTS_GRADIENT, g.w))
