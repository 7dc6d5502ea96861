"""Copies in which one part, as a view op would show it, is replaced: the inverses of the views."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.op import op
from clew.ops.layout import copy_alike
from clew.ops.strided import put_strided
from clew.ops.view import diagonal, select, slice_
from clew.storage import Geometry, flat_storage, geometry, overlaps_itself, strided


def copied_with_storage(x: Any) -> Any:
    """A copy that lies in a copy of the whole storage as `x` lies in its own."""
    if overlaps_itself(x) or not x.size:
        return copy_alike(x)
    return strided(flat_storage(x).copy(), geometry(x))


def _replaced(x: Any, src: Any, show: Any, **attrs: Any) -> Any:
    """A copy of `x` in which what the view op `show` shows is `src` (an array, or a number)."""
    out = copied_with_storage(x)
    part = show.forward(out, **attrs)
    if isinstance(src, np.ndarray) and src.shape != part.shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(part.shape)}"
        )
    part[...] = src
    return out


@op("select_scatter(self, src; dim, index)", jvp="linear")
def select_scatter(x: Any, src: Any, *, dim: int, index: int) -> Any:
    """`self` with `src` in place of ``self.select(dim, index)``."""
    return _replaced(x, src, select, dim=dim, index=index)


@select_scatter.grad("self")
def _(F: Any, grad: Any, *, dim: int, index: int) -> Any:
    return F.select_scatter(grad, 0, dim, index)


@select_scatter.grad("src")
def _(F: Any, grad: Any, *, dim: int, index: int) -> Any:
    return F.select(grad, dim, index)


@op("slice_scatter(self, src; dim=0, start=None, end=None, step=1)", jvp="linear")
def slice_scatter(x: Any, src: Any, *, dim: int, start: Any, end: Any, step: int) -> Any:
    """`self` with `src` in place of ``self[start:end:step]`` along `dim`."""
    return _replaced(x, src, slice_, dim=dim, start=start, end=end, step=step)


@slice_scatter.grad("self")
def _(F: Any, grad: Any, *, dim: int, start: Any, end: Any, step: int) -> Any:
    return F.slice_scatter(grad, 0, dim, start, end, step)


@slice_scatter.grad("src")
def _(F: Any, grad: Any, *, dim: int, start: Any, end: Any, step: int) -> Any:
    return F.slice(grad, dim, start, end, step)


@op("diagonal_scatter(self, src; offset=0, dim1=0, dim2=1)", jvp="linear")
def diagonal_scatter(x: Any, src: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    """`self` with `src` in place of ``self.diagonal(offset, dim1, dim2)``."""
    return _replaced(x, src, diagonal, offset=offset, dim1=dim1, dim2=dim2)


@diagonal_scatter.grad("self")
def _(F: Any, grad: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    return F.diagonal_scatter(grad, 0, offset, dim1, dim2)


@diagonal_scatter.grad("src")
def _(F: Any, grad: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    return F.diagonal(grad, offset, dim1, dim2)


@op("as_strided_scatter(self, src; view, base)", publish=(), jvp="linear")
def as_strided_scatter(x: Any, src: Any, *, view: Geometry, base: Geometry) -> Any:
    """`self`, laid out as `base`, with `src` in place of what the geometry `view` shows."""
    if src.shape != view.size:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(view.size)}"
        )
    return put_strided.forward(x, src, view=view, base=base)


@as_strided_scatter.grad("self")
def _(F: Any, grad: Any, *, view: Geometry, base: Geometry) -> Any:
    return F.put_strided(grad, None, view=view, base=base)


@as_strided_scatter.grad("src")
def _(F: Any, grad: Any, *, view: Geometry, base: Geometry) -> Any:
    return F.take_strided(grad, view=view, base=base)
