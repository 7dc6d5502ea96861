"""The transforms of ``clew.fft``: types, sizes and norms brought together, then an op.

What is cut, padded, converted or conjugated around the op is as in PyTorch: the graph shows the
same nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew import dtypes
from clew.dispatch import apply
from clew.functions.create import make
from clew.functions.linalg import refuse_non_tensors
from clew.op import REGISTRY
from clew.ops.rules import wrap_dim
from clew.outputs import write_out
from clew.publish import taking_other_names
from clew.tensor import Tensor

_C2C, _R2C, _C2R, _PAD, _ROLL = (
    REGISTRY[name] for name in ("fft_c2c", "fft_r2c", "fft_c2r", "constant_pad_nd", "roll")
)


# -- arguments


def _promoted(function: str, x: Any, *, to_complex: bool = False) -> Tensor:
    """`x` in a type that has a transform: floating or, if asked for, complex.

    Raises:
        TypeError: `x` is no tensor.
        RuntimeError: it is of half precision.
    """
    refuse_non_tensors(f"fft_{function}", input=x)
    kind = x.dtype
    if not (kind.is_floating_point or kind.is_complex):
        kind = dtypes.get_default_dtype()
    if kind.numpy.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {dtypes.scalar_name(kind.numpy)}")
    return x.to(kind.to_complex() if to_complex else kind)


def _refuse_complex(text: str, x: Any) -> None:
    if isinstance(x, Tensor) and x._array.dtype.kind == "c":
        raise RuntimeError(f"{text}, but got {dtypes.scalar_name(x._array.dtype)}")


def _normalization(norm: str | None, forward: bool) -> int:
    """The scale of a transform: 0 none, 1 by the root of its size, 2 by its size.

    Raises:
        RuntimeError: there is no such `norm`.
    """
    if norm == "ortho":
        return 1
    if norm in (None, "backward"):
        return 0 if forward else 2
    if norm == "forward":
        return 2 if forward else 0
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _one_dim(x: Tensor, dim: int) -> int:
    if x._array.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, x._array.ndim)


def _check_points(n: int) -> int:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _as_ints(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    return tuple(value) if isinstance(value, Sequence) else (int(value),)


def _dims_and_sizes(x: Tensor, s: Any, dim: Any) -> tuple[tuple[int, ...], list[int]]:
    """The dimensions to transform and how many numbers each has.

    Raises:
        RuntimeError: a dimension is named twice, `s` does not go with `dim`, or a size is below 1.
    """
    shape = x._array.shape
    s, dim = _as_ints(s), _as_ints(dim)
    if dim is not None:
        dims = tuple(_one_dim(x, d) for d in dim)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > len(shape):
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {len(shape)} dimensions."
            )
        dims = tuple(range(len(shape) - len(s), len(shape)))
    else:
        dims = tuple(range(len(shape)))
    given = (-1,) * len(dims) if s is None else s
    sizes = [shape[d] if n == -1 else n for d, n in zip(dims, given)]
    for n in sizes:
        _check_points(n)
    return dims, sizes


def _resized(x: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """`x` cut or padded with zeros at the end of each of `dims` to the given size."""
    ndim = x._array.ndim
    pad = [0] * (2 * ndim)
    for d, n in zip(dims, sizes):
        known = x._array.shape[d]
        if n < known:
            x = x.narrow(d, 0, n)
        elif n > known:
            pad[2 * (ndim - 1 - d) + 1] = n - known
    if not any(pad):
        return x
    padded: Tensor = apply(_PAD, (x,), {"pad": tuple(pad), "value": 0})
    return padded


def _written(result: Any, out: Any, function: str, *, to_complex: bool = True) -> Any:
    """`result`, or `out` with it written there.

    Raises:
        RuntimeError: `out` is real and the result is not, or the other way round.
    """
    if out is None:
        return result
    if isinstance(out, Tensor) and (out._array.dtype.kind == "c") != to_complex:
        wanted = "complex" if to_complex else "floating point"
        raise RuntimeError(
            f"{function} expects a {wanted} output tensor, but got "
            f"{dtypes.scalar_name(out._array.dtype)}"
        )
    return write_out(out, result)


# -- one dimension


def _complex_to_complex(
    name: str, x: Any, n: int | None, dim: int, norm: str | None, forward: bool
) -> Any:
    x = _promoted(name, x)
    real = x._array.dtype.kind != "c"
    if real:  # the conjugate of a forward transform is an inverse one
        result = _real_to_complex(name, x, n, dim, norm, forward, onesided=False)
        return result if forward else result.conj()
    d = _one_dim(x, dim)
    _check_points(x._array.shape[d] if n is None else n)
    if n is not None:
        x = _resized(x, (d,), (n,))
    attrs = {"dim": (d,), "normalization": _normalization(norm, forward), "forward": forward}
    return apply(_C2C, (x,), attrs)


def _real_to_complex(
    name: str, x: Any, n: int | None, dim: int, norm: str | None, forward: bool,
    *, onesided: bool = True,
) -> Any:  # fmt: skip
    _refuse_complex(f"{name} expects a real input tensor", x)
    x = _promoted(name, x)
    d = _one_dim(x, dim)
    _check_points(x._array.shape[d] if n is None else n)
    if n is not None:
        x = _resized(x, (d,), (n,))
    attrs = {"dim": (d,), "normalization": _normalization(norm, forward), "onesided": onesided}
    return apply(_R2C, (x,), attrs)


def _complex_to_real(
    name: str, x: Any, n: int | None, dim: int, norm: str | None, forward: bool
) -> Any:
    x = _promoted(name, x, to_complex=True)
    d = _one_dim(x, dim)
    size = _check_points(2 * (x._array.shape[d] - 1) if n is None else n)
    if n is not None:
        x = _resized(x, (d,), (n // 2 + 1,))
    if forward:
        x = x.conj()
    attrs = {"dim": (d,), "normalization": _normalization(norm, forward), "last_dim_size": size}
    return apply(_C2R, (x,), attrs)


@taking_other_names
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
        *, out: Any = None) -> Any:  # fmt: skip
    """The discrete Fourier transform along `dim`, of `n` numbers (cut, or padded with zeros).

    Args:
        input: a tensor of real or complex numbers.
        n: how many numbers to transform; all by default.
        dim: the dimension.
        norm: "backward" (no scale, the default), "ortho" (over the root of n), "forward" (over n).
        out: a complex tensor for the result.

    Raises:
        RuntimeError: there is nothing to transform, or no such `norm` or type.
    """
    return _written(_complex_to_complex("fft", input, n, dim, norm, True), out, "fft")


@taking_other_names
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
         *, out: Any = None) -> Any:  # fmt: skip
    """The inverse of `fft` with the same `norm`."""
    return _written(_complex_to_complex("ifft", input, n, dim, norm, False), out, "ifft")


@taking_other_names
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
         *, out: Any = None) -> Any:  # fmt: skip
    """The first ``n // 2 + 1`` numbers of the transform of real numbers: the others mirror them."""
    return _written(_real_to_complex("rfft", input, n, dim, norm, True), out, "rfft")


@taking_other_names
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
          *, out: Any = None) -> Any:  # fmt: skip
    """The inverse of `rfft`, to `n` real numbers; twice as many as `input` has, less two."""
    result = _complex_to_real("irfft", input, n, dim, norm, False)
    return _written(result, out, "irfft", to_complex=False)


@taking_other_names
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
         *, out: Any = None) -> Any:  # fmt: skip
    """The transform, real, of `n` numbers of which `input` has the half; the rest mirrors it."""
    result = _complex_to_real("hfft", input, n, dim, norm, True)
    return _written(result, out, "hfft", to_complex=False)


@taking_other_names
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
          *, out: Any = None) -> Any:  # fmt: skip
    """The inverse of `hfft`: of real numbers, the half of a result that mirrors itself."""
    result = _real_to_complex("ihfft", input, n, dim, norm, False)
    return _written(result.conj(), out, "ihfft")


# -- several dimensions


def _many_complex(name: str, x: Any, s: Any, dim: Any, norm: str | None, forward: bool) -> Any:
    x = _promoted(name, x, to_complex=True)
    dims, sizes = _dims_and_sizes(x, s, dim)
    x = _resized(x, dims, sizes)
    attrs = {"dim": dims, "normalization": _normalization(norm, forward), "forward": forward}
    return apply(_C2C, (x,), attrs)


def _half_sizes(x: Tensor, s: Any, dim: Any, name: str) -> tuple[tuple[int, ...], list[int], int]:
    """For a transform from a half: the dimensions, what `x` is to have, what the last gives."""
    shape = _as_ints(s)
    dims, sizes = _dims_and_sizes(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    given = shape is not None and shape[-1] != -1
    last = sizes[-1] if given else 2 * (x._array.shape[dims[-1]] - 1)
    _check_points(last)
    return dims, [*sizes[:-1], last // 2 + 1], last


@taking_other_names
def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None,
         *, out: Any = None) -> Any:  # fmt: skip
    """The discrete Fourier transform over several dimensions.

    Args:
        input: a tensor of real or complex numbers.
        s: how many numbers to transform along each dimension; -1 for all.
        dim: the dimensions; by default the last ``len(s)``, or all.
        norm: as of `fft`, of the product of the sizes.
        out: a complex tensor for the result.

    Raises:
        RuntimeError: as `fft`; or `s` and `dim` do not go together.
    """
    return _written(_many_complex("fftn", input, s, dim, norm, True), out, "fftn")


@taking_other_names
def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None,
          *, out: Any = None) -> Any:  # fmt: skip
    """The inverse of `fftn` with the same `norm`."""
    return _written(_many_complex("ifftn", input, s, dim, norm, False), out, "ifftn")


@taking_other_names
def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None,
          *, out: Any = None) -> Any:  # fmt: skip
    """`fftn` of real numbers, without the mirrored half along the last dimension."""
    _refuse_complex("rfftn expects a real-valued input tensor", input)
    x = _promoted("rfftn", input)
    dims, sizes = _dims_and_sizes(x, s, dim)
    if not dims:
        raise RuntimeError("rfftn must transform at least one axis")
    x = _resized(x, dims, sizes)
    attrs = {"dim": dims, "normalization": _normalization(norm, True), "onesided": True}
    return _written(apply(_R2C, (x,), attrs), out, "rfftn")


@taking_other_names
def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None,
           *, out: Any = None) -> Any:  # fmt: skip
    """The inverse of `rfftn`, to real numbers."""
    x = _promoted("irfftn", input, to_complex=True)
    dims, sizes, last = _half_sizes(x, s, dim, "irfftn")
    x = _resized(x, dims, sizes)
    attrs = {"dim": dims, "normalization": _normalization(norm, False), "last_dim_size": last}
    return _written(apply(_C2R, (x,), attrs), out, "irfftn", to_complex=False)


@taking_other_names
def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None,
          *, out: Any = None) -> Any:  # fmt: skip
    """The transform, real, of numbers of which `input` has the half along the last dimension."""
    x = _promoted("hfftn", input, to_complex=True)
    dims, sizes, last = _half_sizes(x, s, dim, "hfftn")
    x = _resized(x, dims, sizes)
    scale = _normalization(norm, True)
    if len(dims) > 1:
        x = apply(_C2C, (x,), {"dim": dims[:-1], "normalization": scale, "forward": True})
    attrs = {"dim": dims[-1:], "normalization": scale, "last_dim_size": last}
    return _written(apply(_C2R, (x.conj(),), attrs), out, "hfftn", to_complex=False)


@taking_other_names
def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None,
           *, out: Any = None) -> Any:  # fmt: skip
    """The inverse of `hfftn`: of real numbers, the half of a result that mirrors itself."""
    if isinstance(input, Tensor) and input._array.dtype.kind == "c":
        found = dtypes.scalar_name(input._array.dtype)
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {found}")
    x = _promoted("ihfftn", input)
    dims, sizes = _dims_and_sizes(x, s, dim)
    if not dims:
        raise RuntimeError("ihfftn must transform at least one axis")
    x = _resized(x, dims, sizes)
    scale = _normalization(norm, False)
    half = apply(_R2C, (x,), {"dim": dims[-1:], "normalization": scale, "onesided": True})
    if len(dims) == 1:
        return _written(half.conj(), out, "ihfftn")
    attrs = {"dim": dims[:-1], "normalization": scale, "forward": False}
    return _written(apply(_C2C, (half.conj_physical(),), attrs), out, "ihfftn")


def _over_two(many: Any, name: str) -> Any:
    @taking_other_names
    def function(
        input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None,
        *, out: Any = None,
    ) -> Any:  # fmt: skip
        return many(input, s, dim, norm, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{many.__name__}` over the last two dimensions, or those in `dim`."
    return function


fft2, ifft2 = _over_two(fftn, "fft2"), _over_two(ifftn, "ifft2")
rfft2, irfft2 = _over_two(rfftn, "rfft2"), _over_two(irfftn, "irfft2")
hfft2, ihfft2 = _over_two(hfftn, "hfft2"), _over_two(ihfftn, "ihfft2")


# -- frequencies


def _frequencies(name: str, counts: Any, n: int, d: float, options: dict[str, Any]) -> Tensor:
    out, dtype = options.pop("out", None), options.pop("dtype", None)
    device, leaf = options.pop("device", None), options.pop("requires_grad", False)
    for ignored in ("layout", "pin_memory"):
        options.pop(ignored, None)
    for unknown in options:
        raise TypeError(f"fft_{name}() got an unexpected keyword argument '{unknown}'")
    kind = dtype or (dtypes.get_default_dtype() if out is None else out.dtype)
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    step = np.divide(1, n * d)
    made = make((counts * step).astype(kind.numpy), None, device, leaf)
    return made if out is None else write_out(out, made)


def fftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequency of each number of a transform of `n`, sampled every `d`: then the negative.

    Takes ``out=``, ``dtype=``, ``device=`` and ``requires_grad=``.
    """
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    counts = np.arange(n)
    counts[(n + 1) // 2 :] -= n
    return _frequencies("fftfreq", counts, n, d, options)


def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequencies of the numbers that `rfft` gives; options as of `fftfreq`."""
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, options)


def _rolled(input: Tensor, dim: Any, name: str, extra: int) -> Any:
    refuse_non_tensors(f"fft_{name}", input=input)
    shape = input._array.shape
    dims = tuple(range(len(shape))) if dim is None else _as_ints(dim)
    assert dims is not None
    shifts = tuple((shape[d] + extra) // 2 for d in dims)
    return apply(_ROLL, (input,), {"shifts": shifts, "dims": dims})


@taking_other_names
def fftshift(input: Tensor, dim: Any = None) -> Any:
    """Frequency zero in the middle: what `fftfreq` lists, in order of size, along `dim` (all)."""
    return _rolled(input, dim, "fftshift", 0)


@taking_other_names
def ifftshift(input: Tensor, dim: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return _rolled(input, dim, "ifftshift", 1)
