"""Print tensors as PyTorch prints them.  Layer 4.

The rules (which numbers are in scientific notation, how wide, where lines break, when the middle
is left out) are those that PyTorch's users know from ``torch.set_printoptions``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clew import dtypes
from clew.autograd.transforms import running


class PrintOptions:
    """The settings of `set_printoptions`."""

    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: bool | None = None


options = PrintOptions()

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed; None leaves a setting as it is, `profile` sets them all."""
    settings: dict[str, Any] = dict(_PROFILES[profile]) if profile is not None else {}
    given = {
        "precision": precision, "threshold": threshold, "edgeitems": edgeitems,
        "linewidth": linewidth,
    }  # fmt: skip
    settings.update({k: v for k, v in given.items() if v is not None})
    for name, value in settings.items():
        setattr(options, name, value)
    options.sci_mode = sci_mode


class _Formatter:
    """Formats the elements of one tensor alike, right-aligned to one width."""

    def __init__(self, array: np.ndarray) -> None:
        self.floating = array.dtype.kind in "fV"
        self.integral_floats = True
        self.scientific = False
        self.width = 1
        if not self.floating:
            self.width = max((len(str(v)) for v in array.ravel().tolist()), default=1)
            return
        flat = array.ravel().astype(np.float64)
        nonzero = flat[np.isfinite(flat) & (flat != 0)]
        if nonzero.size == 0:
            return
        self._choose_notation(nonzero)
        self.width = max(len(self.text(v)) for v in nonzero.tolist())

    def _choose_notation(self, nonzero: np.ndarray) -> None:
        sizes = np.abs(nonzero)
        largest, smallest = sizes.max(), sizes.min()
        self.integral_floats = bool(np.all(nonzero == np.ceil(nonzero)))
        if self.integral_floats:
            self.scientific = largest / smallest > 1000.0 or largest > 1.0e8
        else:
            self.scientific = largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4
        if options.sci_mode is not None:
            self.scientific = options.sci_mode

    def text(self, value: Any) -> str:
        """One element without padding."""
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{options.precision}e}"
        if self.integral_floats:
            text = f"{value:.0f}"
            return text if math.isinf(value) or math.isnan(value) else text + "."
        return f"{value:.{options.precision}f}"

    def __call__(self, value: Any) -> str:
        return self.text(value).rjust(self.width)


class _ComplexFormatter:
    """Formats real and imaginary parts, each with a formatter of its own."""

    def __init__(self, array: np.ndarray) -> None:
        self.real, self.imag = _Formatter(array.real), _Formatter(array.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: Any) -> str:
        imaginary = self.imag.text(value.imag).lstrip()
        sign = "" if imaginary.startswith("-") else "+"
        return f"{self.real(value.real)}{sign}{imaginary}j"


def _rows(array: np.ndarray, indent: int, summarize: bool, formatter: Any) -> str:
    if array.ndim == 0:
        return str(formatter(array.item()))
    edge = options.edgeitems
    cut = summarize and array.shape[0] > 2 * edge
    if array.ndim == 1:
        return _line(array, indent, cut, formatter)
    pieces = [*array[:edge], None, *array[-edge:]] if cut else list(array)
    rows = [
        "..." if piece is None else _rows(piece, indent + 1, summarize, formatter)
        for piece in pieces
    ]
    separator = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + separator.join(rows).replace("...,", "...,") + "]"


def _line(array: np.ndarray, indent: int, cut: bool, formatter: Any) -> str:
    edge = options.edgeitems
    per_line = max(1, math.floor((options.linewidth - indent) / (formatter.width + 2)))
    values = array.tolist() if array.dtype.kind != "V" else array.astype(np.float32).tolist()
    if cut:
        words = [formatter(v) for v in values[:edge]]
        words += [" ..."]
        words += [formatter(v) for v in values[-edge:]]
    else:
        words = [formatter(v) for v in values]
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + ("," + "\n" + " " * (indent + 1)).join(lines) + "]"


def _shown(array: np.ndarray) -> np.ndarray:
    """The elements that will be printed: the edges of a large tensor."""
    edge = options.edgeitems
    if array.ndim == 0:
        return array
    for axis in range(array.ndim):
        if array.shape[axis] > 2 * edge:
            places = np.r_[:edge, array.shape[axis] - edge : array.shape[axis]]
            array = np.take(array, places, axis)
    return array


def format_tensor(tensor: Any) -> str:
    """The text of a tensor: ``tensor([1., 2.], requires_grad=True)``."""
    array = tensor._array
    if not isinstance(array, np.ndarray):
        return _format_batch(array)
    prefix = "tensor("
    indent = len(prefix)
    suffixes = _suffixes(tensor)
    if array.size == 0:
        body = "[]"
        if array.ndim != 1:
            suffixes.insert(0, f"size={tuple(array.shape)}")
    else:
        summarize = array.size > options.threshold
        shown = _shown(array) if summarize else array
        formatter: Any = _ComplexFormatter(shown) if array.dtype.kind == "c" else _Formatter(shown)
        body = _rows(array, indent, summarize, formatter)
    return _with_suffixes(prefix, body, suffixes, indent)


def _format_batch(batch: Any) -> str:
    """The text of a tensor that `vmap` sees as one example: all examples."""
    inside = format_tensor(batch.value)
    if batch.bdim is None:
        return inside
    lines = inside.replace("\n", "\n    ")
    return f"BatchedTensor(lvl={batch.level.depth}, bdim={batch.bdim}, value=\n    {lines}\n)"


def format_sparse(tensor: Any) -> str:
    """The text of a sparse tensor: coordinates, values, size, how many, and the layout."""
    indent = len("tensor(")
    text = "tensor("
    for name, part in (("indices", tensor._indices()), ("values", tensor._values())):
        if name == "values":
            text += ",\n" + " " * indent
        text += f"{name}={_with_suffixes('tensor(', *_body(part._array, indent + len(name) + 8))}"
    suffixes = [f"nnz={tensor._nnz()}"]
    if tensor.dtype not in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_):
        suffixes.append(f"dtype={tensor.dtype!r}")
    suffixes.append(f"layout={tensor.layout!r}")
    text += ",\n" + " " * indent + f"size={tuple(tensor.shape)}"
    return _with_suffixes("", text, [*suffixes, *_history(tensor)], indent)


def _body(array: np.ndarray, indent: int) -> tuple[str, list[str], int]:
    """The elements of a part of a sparse tensor, its suffixes, and the indentation."""
    if array.size == 0:
        return "[]", [f"size={tuple(array.shape)}"], indent
    summarize = array.size > options.threshold
    shown = _shown(array) if summarize else array
    formatter: Any = _ComplexFormatter(shown) if array.dtype.kind == "c" else _Formatter(shown)
    return _rows(array, indent, summarize, formatter), [], indent


def _suffixes(tensor: Any) -> list[str]:
    dtype = tensor.dtype
    usual = (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_)
    default_complex = dtypes.get_default_dtype().to_complex()
    suffixes = []
    if (dtype not in usual and dtype is not default_complex) or (
        tensor._array.size == 0 and dtype is not dtypes.get_default_dtype()
    ):
        suffixes.append(f"dtype={dtype!r}")
    return suffixes + _history(tensor) + _tangent(tensor)


def _history(tensor: Any) -> list[str]:
    """What is printed of the node that made a tensor."""
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view that may not have been written to
        return ["grad_fn=<Invalid>"]
    if node is not None:
        return [f"grad_fn=<{type(node).__name__}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def _tangent(tensor: Any) -> list[str]:
    """The tangent at the level that was entered last, if there is one."""
    if not running:
        return []
    from clew.autograd.dual import levels, tangent_of

    seen = levels()
    tangent = tangent_of(tensor, seen[-1]) if seen else None
    return [] if tangent is None else [f"tangent={tangent}"]


def _with_suffixes(prefix: str, body: str, suffixes: list[str], indent: int) -> str:
    text = prefix + body
    last_line = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if last_line + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * indent + suffix
            last_line = indent + len(suffix)
        else:
            text += ", " + suffix
            last_line += len(suffix) + 2
    return text + ")"
