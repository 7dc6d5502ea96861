"""Samples of views, of their adjoints, and of joining and taking apart."""

from __future__ import annotations

from collections.abc import Iterator

from clew.storage import Geometry
from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]

# -- shapes


@samples("view", "reshape_alias")
def view(v: Values) -> Samples:
    yield call("usual", v.real(2, 6), size=(3, 4), laid_out=True)
    yield call("inferred", v.real(2, 6), size=(-1, 2), laid_out=True)
    yield call("0-d", v.real(), size=(1, 1), laid_out=True)
    yield call("empty", v.real(0, 3), size=(3, 0), laid_out=True)


@samples("reshape", "unsafe_view")
def reshape(v: Values) -> Samples:
    yield call("usual", v.real(2, 6), size=(3, 4))
    yield call("inferred", v.real(2, 6), size=(-1, 2))
    yield call("0-d", v.real(1), size=())
    yield call("empty", v.real(0, 3), size=(3, 0))


@samples("expand")
def expand(v: Values) -> Samples:
    yield call("usual", v.real(3, 1), size=(2, 3, 4))
    yield call("kept", v.real(3, 1), size=(-1, 4))
    yield call("0-d", v.real(), size=(3,))
    yield call("empty", v.real(1, 3), size=(0, 3))


@samples("permute")
def permute(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 4), dims=(2, 0, 1))
    yield call("negative", v.real(2, 3), dims=(-1, 0))
    yield call("0-d", v.real(), dims=())
    yield call("empty", v.real(0, 3), dims=(1, 0))


@samples("transpose")
def transpose(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 4), dim0=0, dim1=-1)
    yield call("0-d", v.real(), dim0=0, dim1=-1)
    yield call("empty", v.real(0, 3), dim0=0, dim1=1)


@samples("t")
def t(v: Values) -> Samples:
    yield call("usual", v.real(2, 3))
    yield call("vector", v.real(3))
    yield call("0-d", v.real())
    yield call("empty", v.real(0, 3))


@samples("unsqueeze")
def unsqueeze(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), dim=1)
    yield call("last", v.real(2, 3), dim=-1)
    yield call("0-d", v.real(), dim=0)
    yield call("empty", v.real(0, 3), dim=0)


@samples("squeeze_all", "alias", "fw_primal")
def whole(v: Values) -> Samples:
    yield call("usual", v.real(1, 3, 1))
    yield call("0-d", v.real())
    yield call("empty", v.real(0, 1))


@samples("squeeze_dim")
def squeeze_dim(v: Values) -> Samples:
    yield call("usual", v.real(1, 3, 1), dim=0)
    yield call("0-d", v.real(), dim=0)
    yield call("empty", v.real(0, 1), dim=1)


@samples("squeeze_dims")
def squeeze_dims(v: Values) -> Samples:
    yield call("usual", v.real(1, 3, 1), dim=(0, 1, -1))
    yield call("none", v.real(1, 3, 1), dim=())
    yield call("0-d", v.real(), dim=(0,))
    yield call("empty", v.real(0, 1), dim=(1,))


@samples("unsafe_squeeze")
def unsafe_squeeze(v: Values) -> Samples:
    yield call("usual", v.real(1, 3, 1), dim=0)
    yield call("empty", v.real(0, 1), dim=1)


# -- parts


@samples("select")
def select(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 4), dim=1, index=2)
    yield call("negative", v.real(2, 3), dim=-1, index=-2)
    yield call("to 0-d", v.real(3), dim=0, index=1)
    yield call("empty", v.real(2, 0), dim=0, index=1)


@samples("select_backward")
def select_backward(v: Values) -> Samples:
    yield call("usual", v.real(2, 4), size=(2, 3, 4), dim=1, index=2)
    yield call("0-d", v.real(), size=(3,), dim=0, index=-1)
    yield call("empty", v.real(0), size=(2, 0), dim=0, index=1)


_SLICE = {"dim": 1, "start": 1, "end": 4, "step": 2}


@samples("slice")
def slice_(v: Values) -> Samples:
    yield call("usual", v.real(2, 5), **_SLICE)
    yield call("open", v.real(2, 5), dim=-1, start=None, end=-1)
    yield call("nothing", v.real(2, 5), start=1, end=1)
    yield call("empty", v.real(0, 5), **_SLICE)


@samples("slice_backward")
def slice_backward(v: Values) -> Samples:
    yield call("usual", v.real(2, 2), size=(2, 5), **_SLICE)
    yield call("nothing", v.real(0, 5), size=(2, 5), dim=0, start=1, end=1, step=1)


_DIAGONALS = {
    "usual": {"offset": 0, "dim1": 0, "dim2": 1},
    "above": {"offset": 1, "dim1": 0, "dim2": -1},
    "below": {"offset": -1, "dim1": 1, "dim2": 0},
}


@samples("diagonal", "diagonal_copy")
def diagonal(v: Values) -> Samples:
    for name, attrs in _DIAGONALS.items():
        yield call(name, v.real(3, 4), **attrs)
    yield call("planes", v.real(2, 3, 3), dim1=1, dim2=2)
    yield call("empty", v.real(0, 3))


@samples("diagonal_backward")
def diagonal_backward(v: Values) -> Samples:
    yield call("usual", v.real(3), size=(3, 4), **_DIAGONALS["usual"])
    yield call("above", v.real(3), size=(3, 4), **_DIAGONALS["above"])
    yield call("empty", v.real(0), size=(0, 3), **_DIAGONALS["usual"])


@samples("diag_embed")
def diag_embed(v: Values) -> Samples:
    yield call("usual", v.real(2, 3))
    yield call("above", v.real(2, 3), offset=1, dim1=0, dim2=2)
    yield call("below", v.real(3), offset=-1)
    yield call("empty", v.real(0))


@samples("unfold")
def unfold(v: Values) -> Samples:
    yield call("usual", v.real(2, 7), dimension=1, size=3, step=2)
    yield call("0-d", v.real(), dimension=0, size=1, step=1)
    yield call("empty", v.real(0, 7), dimension=1, size=3, step=2)


@samples("unfold_backward")
def unfold_backward(v: Values) -> Samples:
    yield call("usual", v.real(2, 3, 3), input_size=(2, 7), dimension=1, size=3, step=2)
    yield call("empty", v.real(0, 3, 3), input_size=(0, 7), dimension=1, size=3, step=2)


# -- geometries

_BASE = Geometry((3, 4), (4, 1), 0)
_VIEWS = {
    "usual": Geometry((2, 2), (4, 2), 1),
    "overlapping": Geometry((3, 2), (1, 1), 0),
    "0-d": Geometry((), (), 5),
    "empty": Geometry((0, 2), (1, 1), 0),
}


@samples("as_strided")
def as_strided(v: Values) -> Samples:
    for name, g in _VIEWS.items():
        attrs = {"size": g.size, "stride": g.stride, "storage_offset": g.offset, "base": _BASE}
        yield call(name, v.real(3, 4), laid_out=True, **attrs)


@samples("take_strided")
def take_strided(v: Values) -> Samples:
    for name, g in _VIEWS.items():
        yield call(name, v.real(3, 4), view=g, base=_BASE)
    yield call("transposed", v.real(4, 3), view=_VIEWS["usual"], base=Geometry((4, 3), (1, 4), 0))


@samples("add_strided")
def add_strided(v: Values) -> Samples:
    for name, g in _VIEWS.items():
        yield call(name, v.real(*g.size), view=g, base=_BASE)


@samples("put_strided")
def put_strided(v: Values) -> Samples:
    for name, g in _VIEWS.items():
        if name != "overlapping":
            yield call(name, v.real(3, 4), v.real(*g.size), view=g, base=_BASE)
    yield call("zeros", v.real(3, 4), None, view=_VIEWS["usual"], base=_BASE)


@samples("as_strided_scatter")
def as_strided_scatter(v: Values) -> Samples:
    for name, g in _VIEWS.items():
        if name != "overlapping":
            yield call(name, v.real(3, 4), v.real(*g.size), view=g, base=_BASE)


@samples("select_scatter")
def select_scatter(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(2), dim=1, index=2)
    yield call("0-d", v.real(3), v.real(), dim=0, index=-1)
    yield call("empty", v.real(2, 0), v.real(0), dim=0, index=1)


@samples("slice_scatter")
def slice_scatter(v: Values) -> Samples:
    yield call("usual", v.real(2, 5), v.real(2, 2), **_SLICE)
    yield call("nothing", v.real(2, 5), v.real(0, 5), start=1, end=1)


@samples("diagonal_scatter")
def diagonal_scatter(v: Values) -> Samples:
    yield call("usual", v.real(3, 4), v.real(3))
    yield call("above", v.real(3, 4), v.real(3), offset=1)
    yield call("empty", v.real(0, 3), v.real(0))


# -- joining, taking apart


@samples("cat")
def cat(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(1, 3), v.real(2, 3), dim=0)
    yield call("last", v.real(2, 3), v.real(2, 2), dim=-1)
    yield call("legacy empty", v.real(0), v.real(2, 3), dim=0)
    yield call("empty", v.real(0, 3), v.real(0, 3), dim=0)


@samples("stack")
def stack(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(2, 3), v.real(2, 3), dim=1)
    yield call("0-d", v.real(), v.real())
    yield call("empty", v.real(0, 3), v.real(0, 3), dim=-1)


@samples("block_diag")
def block_diag(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), v.real(1, 2), v.real(3))
    yield call("0-d", v.real(), v.real(2, 2))
    yield call("empty", v.real(0, 3), v.real(1, 2))


@samples("split", "unsafe_split")
def split(v: Values) -> Samples:
    yield call("usual", v.real(5, 2), split_size=2)
    yield call("last", v.real(2, 4), split_size=2, dim=-1)
    yield call("empty", v.real(0, 3), split_size=2)


@samples("split_with_sizes", "unsafe_split_with_sizes")
def split_with_sizes(v: Values) -> Samples:
    yield call("usual", v.real(5, 2), split_sizes=(1, 4))
    yield call("last", v.real(2, 4), split_sizes=(2, 0, 2), dim=-1)
    yield call("empty", v.real(0, 3), split_sizes=(0,))


@samples("unbind")
def unbind(v: Values) -> Samples:
    yield call("usual", v.real(2, 3))
    yield call("last", v.real(2, 3), dim=-1)
    yield call("to 0-d", v.real(2))


# -- order and repetition


@samples("flip")
def flip(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), dims=(0, -1))
    yield call("none", v.real(2, 3), dims=())
    yield call("0-d", v.real(), dims=())
    yield call("empty", v.real(0, 3), dims=(1,))


@samples("roll")
def roll(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), shifts=(1, -1), dims=(0, 1))
    yield call("flat", v.real(2, 3), shifts=2)
    yield call("empty", v.real(0, 3), shifts=1, dims=1)


@samples("rot90")
def rot90(v: Values) -> Samples:
    yield call("usual", v.real(2, 3))
    yield call("twice", v.real(2, 3), k=2)
    yield call("back", v.real(2, 3, 4), k=-1, dims=(1, 2))
    yield call("empty", v.real(0, 3))


@samples("repeat")
def repeat(v: Values) -> Samples:
    yield call("usual", v.real(2, 3), repeats=(2, 1, 3))
    yield call("0-d", v.real(), repeats=(3,))
    yield call("none", v.real(2, 3), repeats=(0, 2))
    yield call("empty", v.real(0, 3), repeats=(2, 2))


@samples("tril", "triu")
def triangle(v: Values) -> Samples:
    yield call("usual", v.real(3, 4))
    yield call("above", v.real(2, 3, 3), diagonal=1)
    yield call("below", v.real(3, 3), diagonal=-1)
    yield call("empty", v.real(0, 3))


@samples("narrow_copy")
def narrow_copy(v: Values) -> Samples:
    yield call("usual", v.real(2, 5), dim=1, start=1, length=3)
    yield call("negative", v.real(5, 2), dim=-2, start=-3, length=2)
    yield call("empty", v.real(5, 2), dim=0, start=5, length=0)
