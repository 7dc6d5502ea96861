"""Functions that make tensors from data, numbers and sizes."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from clew import dtypes
from clew.autograd.transforms import like, running
from clew.device import require_cpu
from clew.functions.data import array_of, refuse_negative_strides
from clew.functions.shape import sizes
from clew.ops.layout import empty_alike
from clew.ops.scalars import checked_number
from clew.outputs import write_out
from clew.publish import composite
from clew.storage import Geometry, extent, strided
from clew.tensor import Tensor


def make(array: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """A leaf on `array`, checked against the device and dtype asked for.

    Raises:
        RuntimeError: `requires_grad` for a type that is neither floating nor complex.
    """
    require_cpu(device)
    if dtype is not None:
        array = array.astype(dtype.numpy, copy=False)
    if requires_grad and array.dtype.kind not in "fcV":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return Tensor._from_array(array, requires_grad)


@composite(method=False)
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A new leaf with a copy of `data`.

    Args:
        data: a number, nested sequences of numbers, an array or a tensor.
        dtype: the type; by default inferred (Python floats: the default type).
        device: the CPU.
        requires_grad: record operations on it.
        pin_memory: without effect on a CPU.
    """
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    return make(array_of(data, dtype), None, device, requires_grad)


@composite(method=False)
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`obj` as a tensor: without a copy if the type allows it, unless `copy` asks for one.

    Raises:
        ValueError: `copy` is False, and only a copy can be had.
    """
    require_cpu(device)
    shareable = isinstance(obj, (Tensor, np.ndarray))
    made: Tensor = as_tensor(obj, dtype) if shareable else _own(obj, dtype)
    shared = shareable and np.shares_memory(made._array, getattr(obj, "_array", obj))
    if copy and shared:
        made = made.clone()
    elif copy is False and not shared:
        raise ValueError("can't alias arbitrary object, or one of another type: copy=False")
    return made if isinstance(obj, Tensor) else made.requires_grad_(requires_grad)


def _own(data: Any, dtype: Any) -> Tensor:
    return make(array_of(data, dtype), None, None, False)


@composite(method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, without a copy where the type allows it."""
    require_cpu(device)
    if isinstance(data, Tensor):
        return data if dtype is None or data.dtype is dtype else data.to(dtype)
    if isinstance(data, np.ndarray):
        dtypes.of_numpy(data.dtype)
        kind = data.dtype if dtype is None else dtype.numpy
        return Tensor._from_array(data.astype(kind, copy=False))
    return make(array_of(data, dtype), None, device, False)


@composite(method=False)
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor on the memory of `ndarray`.

    Raises:
        TypeError: it is no array, or of a type that tensors do not have.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtypes.of_numpy(ndarray.dtype)
    refuse_negative_strides(ndarray)
    plain = ndarray if ndarray.__class__ is np.ndarray else ndarray.view(np.ndarray)
    return Tensor._from_array(plain)  # not a memmap, whose operations give memmaps


def _made(array: np.ndarray, out: Any, device: Any, requires_grad: bool) -> Tensor:
    """A leaf on the array; with `out`, its numbers written into that."""
    made: Tensor = make(array, None, device, requires_grad)
    return made if out is None else write_out(out, made)


def _kind(dtype: Any, out: Any) -> dtypes.dtype:
    """The type that was asked for, that of `out`, or the default."""
    if dtype is None and out is not None:
        dtype = out.dtype
    return dtype or dtypes.get_default_dtype()


def _only_strided(layout: Any) -> None:
    if layout not in (None, dtypes.strided):
        raise NotImplementedError(
            f"clew makes this tensor of layout torch.strided only, not {layout!r}; a sparse one "
            "comes from torch.sparse_coo_tensor or x.to_sparse()"
        )


def _refuse_unknown(function: str, names: dict[str, Any]) -> None:
    for name in names:
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")


def _filled(name: str, array: Any, doc: str) -> Any:
    def function(
        *size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
        **names: Any,
    ) -> Tensor:  # fmt: skip
        _only_strided(layout)
        shape = sizes((names.pop("size"),) if "size" in names else size)
        _refuse_unknown(name, names)
        return _made(array(shape, _kind(dtype, out).numpy), out, device, requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return composite(method=False)(function)


zeros = _filled("zeros", np.zeros, "A tensor of zeros.")
ones = _filled("ones", np.ones, "A tensor of ones.")
empty = _filled("empty", np.empty, "An uninitialised tensor.")


@composite(method=False)
def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """An uninitialised tensor of this size and these strides, both in elements.

    Raises:
        RuntimeError: there are more or fewer strides than sizes, or one is negative.
    """
    _only_strided(layout)
    shape, steps = tuple(size), tuple(stride)
    if len(shape) != len(steps):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
            f"({len(steps)})"
        )
    if any(n < 0 for n in shape):
        negative = next(n for n in shape if n < 0)
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {negative}: {list(shape)}"
        )
    if any(s < 0 for s in steps):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and "
            f"strides={list(steps)}"
        )
    place = Geometry(shape, steps, 0)
    memory = np.empty(extent(place), _kind(dtype, None).numpy)
    return make(strided(memory, place), None, device, requires_grad)


@composite(method=False)
def full(
    size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor filled with one value, whose type it takes by default."""
    _only_strided(layout)
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    kind = _kind(dtype, out) if out is not None else dtype or dtypes.of_python(type(value))
    return _made(np.full(sizes((size,)), value, kind.numpy), out, device, requires_grad)


def _like(name: str, fill: int | None, fresh: Any, doc: str) -> Any:
    def function(
        self: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        _only_strided(layout)
        kind = dtype.numpy if dtype else self._array.dtype
        if running and not isinstance(self._array, np.ndarray):
            # A batch of examples: each gets its own, which may then be written to.
            made: Tensor = like(
                self,
                lambda size: make(fresh(size, dtype=kind), None, device, requires_grad),
                self._array.shape,
            )
            return made
        if memory_format in (None, dtypes.preserve_format):
            filled = empty_alike(self._array, kind)
        else:
            filled = np.empty(self._array.shape, kind)
        if fill is not None:
            filled.fill(fill)
        return make(filled, None, device, requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return composite(method=False)(function)


zeros_like = _like("zeros_like", 0, np.zeros, "Zeros of the shape and type of a tensor.")
ones_like = _like("ones_like", 1, np.ones, "Ones of the shape and type of a tensor.")
empty_like = _like(
    "empty_like", None, np.empty, "Uninitialised, of the shape and type of a tensor."
)


@composite(method=False)
def full_like(
    self: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """One value, in the shape and type of a tensor."""
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    kind = dtype.numpy if dtype else self._array.dtype
    if not isinstance(self._array, np.ndarray):  # a batch of examples, which share the result
        return make(np.full(self._array.shape, value, kind), None, device, requires_grad)
    keeps = memory_format in (None, dtypes.preserve_format)
    filled = empty_alike(self._array, kind) if keeps else np.empty(self._array.shape, kind)
    filled.fill(checked_number(value, kind))
    return make(filled, None, device, requires_grad)


@composite(method=False)
def arange(
    *args: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, **names: Any,
) -> Tensor:  # fmt: skip
    """Numbers from `start` (0) up to but without `end`, `step` (1) apart.

    Raises:
        RuntimeError: the step is zero, or leads away from `end`.
    """
    _only_strided(layout)
    order = ("start", "end", "step") if len(args) > 1 or "end" in names else ("end",)
    given = {"start": 0, "step": 1} | dict(zip(order, args)) | names
    if "end" not in given or len(args) > len(order):
        raise TypeError("arange() received an invalid combination of arguments")
    _refuse_unknown("arange", {n: v for n, v in given.items() if n not in ("start", "end", "step")})
    start, end, step = (
        v.item() if isinstance(v, Tensor) else v
        for v in (given["start"], given["end"], given["step"])
    )
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    whole = all(isinstance(v, int) for v in (start, end, step))
    kind = dtypes.int64 if whole and dtype is None and out is None else _kind(dtype, out)
    if whole:
        count = -(-(end - start) // step)
        array = start + step * np.arange(count, dtype=np.int64)
    else:
        count = int(np.ceil((end - start) / step))
        array = start + step * np.arange(count, dtype=np.float64)
    return _made(array.astype(kind.numpy), out, device, requires_grad)


@composite(method=False)
def range(
    start: Any, end: Any, step: Any = 1, *, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers from `start` up to and with `end`, `step` apart; deprecated, see `arange`.

    Raises:
        RuntimeError: the step is zero, or leads away from `end`.
    """
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end).",
        UserWarning,
        stacklevel=3,
    )
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = int((end - start) / step) + 1
    array = (start + step * np.arange(count)).astype(_kind(dtype, out).numpy)
    return _made(array, out, device, requires_grad)


def _ends(name: str, start: Any, end: Any, steps: Any) -> tuple[Any, Any]:
    """The ends of a range as numbers, and a look at the number of steps."""
    if not isinstance(steps, (int, np.integer)):
        kinds = ", ".join(type(value).__name__ for value in (start, end, steps))
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({kinds}), but expected "
            "one of:\n * (Tensor start, Tensor end, int steps)\n * (Number start, Number end, int "
            "steps)"
        )
    given = {"start": start, "end": end}
    with_dims = {n: v.ndim for n, v in given.items() if isinstance(v, Tensor) and v.ndim}
    if with_dims:
        got = " and ".join(f"{n} with {ndim} dimension(s)" for n, ndim in with_dims.items())
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got {got}."
        )
    first, last = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    return first, last


@composite(method=False)
def linspace(
    start: Any, end: Any, steps: int, *, out: Any = None, dtype: Any = None, device: Any = None,
    layout: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` evenly spaced numbers from `start` to `end`, both included.

    Raises:
        RuntimeError: `steps` is negative, or `start` or `end` is a tensor with dimensions.
        TypeError: `steps` is no integer.
    """
    start, end = _ends("linspace", start, end, steps)
    _only_strided(layout)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    kind = _kind(dtype, out)
    # PyTorch counts from both ends, each with the step in the result's type.
    first, last = kind.numpy.type(start), kind.numpy.type(end)
    step = (last - first) / kind.numpy.type(max(steps - 1, 1))
    index = np.arange(steps)
    front = first + step * index.astype(kind.numpy)
    back = last - step * (steps - 1 - index).astype(kind.numpy)
    array = np.where(index < steps // 2, front, back).astype(kind.numpy)
    if steps == 1:
        array[:] = start
    return _made(array, out, device, requires_grad)


@composite(method=False)
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, out: Any = None, dtype: Any = None,
    device: Any = None, layout: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers ``base ** e`` for `steps` evenly spaced exponents; `linspace` says what it raises."""
    start, end = _ends("logspace", start, end, steps)
    _only_strided(layout)
    exponents = linspace(start, end, steps, dtype=dtypes.float64)._array
    array = np.power(base, exponents).astype(_kind(dtype, out).numpy)
    return _made(array, out, device, requires_grad)


@composite(method=False)
def eye(
    n: int, m: int | None = None, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Ones on the diagonal of an n by m matrix of zeros."""
    _only_strided(layout)
    for name, size in (("n", n), ("m", m)):
        if size is not None and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return _made(np.eye(n, m, dtype=_kind(dtype, out).numpy), out, device, requires_grad)


@composite(method=False)
def scalar_tensor(
    s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A 0-d tensor of a number, of the default floating type."""
    value = s.item() if isinstance(s, Tensor) else s
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        raise TypeError(
            f"scalar_tensor(): argument 's' (position 1) must be Number, not {type(s).__name__}"
        )
    kind = dtype or dtypes.get_default_dtype()
    return make(np.array(value, kind.numpy), None, device, requires_grad)


def _new_method(name: str, function: Any) -> None:
    def method(self: Tensor, *size: Any, dtype: Any = None, **options: Any) -> Tensor:
        kind = dtype or self.dtype
        if running and not isinstance(self._array, np.ndarray):
            shape, rest = (size[:1], size[1:]) if name == "new_full" else (size, ())
            made: Tensor = like(
                self, lambda n: function(n, *rest, dtype=kind, **options), sizes(shape)
            )
            return made
        return function(*size, dtype=kind, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{name.removeprefix('new_')}` in the type of this tensor."
    composite(function=False)(method)


for _name, _function in (
    ("new_zeros", zeros),
    ("new_ones", ones),
    ("new_empty", empty),
    ("new_full", full),
):
    _new_method(_name, _function)


@composite(function=False)
def new_empty_strided(
    self: Tensor, size: Any, stride: Any, *, dtype: Any = None, **options: Any
) -> Tensor:
    """`empty_strided` in the type of this tensor."""
    return empty_strided(size, stride, dtype=dtype or self.dtype, **options)


@composite(function=False)
def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """`tensor` in the type of this tensor."""
    return make(array_of(data, dtype or self.dtype), None, None, requires_grad)
