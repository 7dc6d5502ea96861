"""Functions of two numbers whose name covers several ops, and differences and sums of samples."""

from __future__ import annotations

from typing import Any

from clew import dtypes
from clew.dispatch import apply, apply_inplace
from clew.functions.arithmetic import pow, pow_
from clew.functions.linalg import refuse_non_tensors, refuse_numbers
from clew.functions.reduce import named_result
from clew.op import REGISTRY
from clew.ops.rules import wrap_dim
from clew.publish import composite
from clew.tensor import Tensor

# -- two numbers


@composite(out=True)
def xlogy(self: Any, other: Any) -> Any:
    """``self * log(other)``, 0 where `self` is 0 and `other` is not nan; either may be a number."""
    if not isinstance(self, Tensor):
        refuse_numbers("xlogy", self, other)
        return apply(REGISTRY["xlogy_of_number"], (self, other))
    name = "xlogy" if isinstance(other, Tensor) else "xlogy_with_number"
    return apply(REGISTRY[name], (self, other))


@composite(out=True)
def copysign(self: Tensor, other: Any) -> Any:
    """The magnitude of `self` with the sign of `other`, a tensor or a number."""
    refuse_non_tensors("copysign", input=self)
    name = "copysign" if isinstance(other, Tensor) else "copysign_number"
    return apply(REGISTRY[name], (self, other))


@composite(function=False)
def copysign_(self: Tensor, other: Any) -> Tensor:
    """`copysign`, in place."""
    name = "copysign" if isinstance(other, Tensor) else "copysign_number"
    return apply_inplace(REGISTRY[name], self, (other,))


@composite(out=True)
def float_power(self: Any, exponent: Any) -> Any:
    """``self ** exponent`` in double precision; either may be a number."""
    numbers = [x for x in (self, exponent) if not isinstance(x, Tensor)]
    tensors = [x for x in (self, exponent) if isinstance(x, Tensor)]
    is_complex = any(x._array.dtype.kind == "c" for x in tensors) or any(
        isinstance(x, complex) for x in numbers
    )
    wide = dtypes.complex128 if is_complex else dtypes.float64
    base, power = (x.to(wide) if isinstance(x, Tensor) else x for x in (self, exponent))
    return pow(base, power)


@composite(function=False)
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """`float_power`, in place.

    Raises:
        RuntimeError: the tensor is not of double precision.
    """
    others = [x for x in (self, exponent) if isinstance(x, Tensor)]
    is_complex = isinstance(exponent, complex) or any(x._array.dtype.kind == "c" for x in others)
    wide = dtypes.complex128 if is_complex else dtypes.float64
    if self.dtype is not wide:
        names = dtypes.SCALAR_NAMES
        raise RuntimeError(
            f"the base given to float_power_ has dtype {names[self.dtype.name]} but the "
            f"operation's result requires dtype {names[wide.name]}"
        )
    return pow_(self, exponent.to(wide) if isinstance(exponent, Tensor) else exponent)


@composite(function=False)
def ldexp_(self: Tensor, other: Tensor) -> Tensor:
    """``self * 2 ** other``, in place."""
    refuse_non_tensors("ldexp_", input=self, other=other)
    return apply_inplace(REGISTRY["mul"], self, (pow(2.0, other),))


@composite(out=True)
def frexp(self: Tensor) -> Any:
    """Mantissas in [1/2, 1) and integer exponents: ``self = mantissa * 2 ** exponent``."""
    return named_result("frexp", "mantissa", "exponent")(*apply(REGISTRY["frexp"], (self,)))


@composite()
def positive(self: Tensor) -> Tensor:
    """This tensor.

    Raises:
        RuntimeError: it is of bools.
    """
    if self._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


composite(function=False, name="__pos__")(positive)


# -- differences and sums of samples


@composite(out=True)
def diff(
    self: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Any:
    """The differences of neighbours along `dim`, `n` times over.

    Args:
        self: at least one dimension.
        n: how often.
        dim: the dimension.
        prepend: what to put before, of the same shape except in `dim`.
        append: what to put behind.

    Raises:
        RuntimeError: there is no dimension, `n` is negative, or the shapes do not agree.
    """
    if self._array.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = wrap_dim(dim, self._array.ndim)
    if n == 0:
        return self.clone()
    for other in (prepend, append):
        if other is not None:
            _check_ends(self, other, dim)
    if prepend is not None or append is not None:
        parts = [x for x in (prepend, self, append) if x is not None]
        self = apply(REGISTRY["cat"], parts, {"dim": dim})
    minus = "logical_xor" if self._array.dtype.kind == "b" else "sub"
    for _ in range(min(n, self._array.shape[dim])):
        size = self._array.shape[dim]
        later, earlier = self.narrow(dim, 1, size - 1), self.narrow(dim, 0, size - 1)
        self = apply(REGISTRY[minus], (later, earlier), REGISTRY[minus].default_attrs)
    return self if n else self.clone()


def _check_ends(self: Tensor, other: Tensor, dim: int) -> None:
    if other._array.ndim != self._array.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for d, (n, m) in enumerate(zip(self._array.shape, other._array.shape)):
        if n != m and d != dim:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input "
                f"except along the differencing dimension; input.size({d}) = {n}, but got "
                f"tensor.size({d}) = {m}"
            )


def _widths(name: str, y: Any, x: Any, dim: int) -> Any:
    """The distances of neighbouring `x`, in a shape that broadcasts with those of `y`.

    Raises:
        RuntimeError: there is not one `x` for each sample.
    """
    if x._array.dtype.kind == "b":
        raise RuntimeError(f"{name}: received a bool input for `x`, but bool is not supported")
    ndim = y._array.ndim
    if x._array.ndim == 1:
        x = x.view((-1,) + (1,) * (ndim - dim - 1))
    padded = x.view((1,) * (ndim - x._array.ndim) + x._array.shape) if x._array.ndim < ndim else x
    if padded._array.shape[dim] != y._array.shape[dim]:
        raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
    return diff(padded, dim=dim)


def _samples(name: str, y: Any, dim: int) -> int:
    if y._array.dtype.kind == "b":
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    return wrap_dim(dim, y._array.ndim)


def _pair_sums(y: Any, dim: int) -> Any:
    n = y._array.shape[dim]
    return y.narrow(dim, 0, n - 1) + y.narrow(dim, 1, n - 1)


def trapezoid(y: Any, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral along `dim` by the trapezoidal rule.

    Args:
        y: the samples.
        x: where they were taken; evenly, `dx` apart, without.
        dx: the distance of samples, 1 by default.
        dim: the dimension.

    Raises:
        RuntimeError: there is not one `x` for each sample.
    """
    if y._array.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = _samples("trapezoid", y, dim)
    if y._array.shape[dim] == 0:
        return y.detach().sum(dim)
    if x is None:
        ends = y.select(dim, 0) + y.select(dim, -1)
        return (y.sum(dim) - ends * 0.5) * (1.0 if dx is None else dx)
    return (_pair_sums(y, dim) * _widths("trapezoid", y, x, dim)).sum(dim) / 2.0


composite(method=False)(trapezoid)
composite(method=False, name="trapz")(trapezoid)


@composite(method=False)
def cumulative_trapezoid(y: Any, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Any:
    """`trapezoid` up to each sample but the first.

    Raises:
        RuntimeError: there is not one `x` for each sample.
    """
    name = "cumulative_trapezoid"
    if y._array.ndim == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    dim = _samples(name, y, dim)
    if y._array.shape[dim] == 0:
        return y.clone()
    if x is None:
        return (_pair_sums(y, dim) * ((1.0 if dx is None else dx) / 2.0)).cumsum(dim)
    return (_pair_sums(y, dim) * _widths(name, y, x, dim)).cumsum(dim) / 2.0
