"""Random tensors, generators and their states."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from clew import dtypes, rng
from clew.autograd.transforms import innermost, running
from clew.autograd.transforms import sample as sample_in_levels
from clew.device import require_cpu
from clew.dispatch import apply, apply_inplace
from clew.functions.create import make
from clew.observers import observers
from clew.op import REGISTRY
from clew.outputs import write_out
from clew.publish import composite
from clew.tensor import Tensor

# -- the generator


def _get_state(self: rng.Generator) -> Tensor:
    """The state, a uint8 tensor of the bytes that PyTorch's generator has."""
    return Tensor._from_array(self.state_array())


def _set_state(self: rng.Generator, new_state: Tensor) -> None:
    """Continue from a state that `get_state` gave, here or in PyTorch.

    Raises:
        TypeError: it is no uint8 tensor.
        RuntimeError: it is no state.
    """
    if not isinstance(new_state, Tensor):
        raise TypeError(
            f"expected a torch.ByteTensor, but got {type(new_state).__name__}: RNG state must be "
            "a torch.ByteTensor"
        )
    self.load_state_array(new_state._array)


# The class is of a layer that knows no tensors.
rng.Generator.get_state = _get_state  # type: ignore[attr-defined]
rng.Generator.set_state = _set_state  # type: ignore[attr-defined]


@composite(method=False)
def manual_seed(seed: Any) -> rng.Generator:
    """Restart the default generator from `seed`, and return it."""
    return rng.manual_seed(seed)


@composite(method=False)
def seed() -> int:
    """Restart the default generator from a seed that nobody knows, and return that seed."""
    return rng.seed()


@composite(method=False)
def initial_seed() -> int:
    """The seed that the default generator was last started from."""
    return rng.initial_seed()


@composite(method=False)
def get_rng_state() -> Tensor:
    """The state of the default generator, a uint8 tensor."""
    return _get_state(rng.default_generator)


@composite(method=False)
def set_rng_state(new_state: Tensor) -> None:
    """Make the default generator continue from `new_state`."""
    _set_state(rng.default_generator, new_state)


# -- new tensors

Sampler = Callable[[np.ndarray], np.ndarray]


def _shape(name: str, size: tuple[Any, ...]) -> tuple[int, ...]:
    """The size of a new tensor, from ``f(2, 3)`` or ``f((2, 3))``.

    Raises:
        TypeError: it is not made of integers.
        RuntimeError: a number is negative.
    """
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    for i, n in enumerate(size):
        if not hasattr(n, "__index__"):
            raise TypeError(
                f"{name}(): argument 'size' (position {i + 1}) must be tuple of ints, not "
                f"{type(n).__name__}"
            )
    shape = tuple(n.__index__() for n in size)
    negative = [n for n in shape if n < 0]
    if negative:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {negative[0]}: {list(shape)}"
        )
    return shape


def _new(
    shape: tuple[int, ...], sample: Sampler, dtype: Any, device: Any, requires_grad: bool, out: Any
) -> Tensor:
    """A tensor of samples, or `out` filled with them."""
    require_cpu(device)
    if out is None:

        def draw(size: tuple[int, ...]) -> Tensor:
            return make(sample(np.empty(size, dtype.numpy)), None, None, requires_grad)

        made: Tensor = sample_in_levels(draw, shape) if running else draw(shape)
        return made
    if dtype is not out.dtype:
        raise RuntimeError(
            f"dtype {dtypes.scalar_name(dtype.numpy)} does not match dtype of out parameter "
            f"({dtypes.scalar_name(out._array.dtype)})"
        )
    filled = Tensor._from_array(sample(np.empty(shape, dtype.numpy)))
    return write_out(out, filled)


def _floating(name: str, fill: Callable[..., np.ndarray], what: str) -> Any:
    def function(
        *size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False, pin_memory: bool = False, **names: Any,
    ) -> Tensor:  # fmt: skip
        if "size" in names:
            size = (names.pop("size"),)
        if names or not size:
            got = ", ".join([type(s).__name__ for s in size] + [f"{n}=..." for n in names])
            raise TypeError(f"{name}() received an invalid combination of arguments - got ({got})")
        kind = dtype or (dtypes.get_default_dtype() if out is None else out.dtype)
        shape = _shape(name, size)
        return _new(shape, lambda x: fill(x, generator=generator), kind, device, requires_grad, out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"A tensor of {what}, of the default type unless `dtype` is given."
    return composite(method=False)(function)


rand = _floating("rand", rng.uniform_, "uniform numbers in [0, 1)")
randn = _floating("randn", rng.normal_, "normal numbers of mean 0 and variance 1")


def _bounds(
    name: str, args: tuple[Any, ...], low: Any, high: Any, size: Any
) -> tuple[int, int, Any]:
    """``(high, size)`` or ``(low, high, size)`` as low, high, size."""
    given = [a for a in args if not isinstance(a, (tuple, list))]
    if len(given) == 2:
        low, high = given
    elif len(given) == 1 and high is None:
        high = given[0]
    elif len(given) == 1:
        low = given[0]
    if len(args) > len(given):
        size = args[-1]
    for word, bound in (("low", low), ("high", high)):
        if not hasattr(bound, "__index__"):
            raise TypeError(f"{name}(): argument '{word}' must be int, not {type(bound).__name__}")
        if not -(2**63) <= bound < 2**63:
            raise ValueError("Overflow when unpacking long long")
    return int(low), int(high), size


@composite(method=False)
def randint(
    *args: Any, low: int = 0, high: int | None = None, size: Any = None, generator: Any = None,
    out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Integers in ``[low, high)``: ``randint(high, size)`` or ``randint(low, high, size)``.

    Raises:
        RuntimeError: `low` is not less than `high`, or the type cannot hold them.
    """
    low, last, size = _bounds("randint", args, low, high, size)
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"randint(): argument 'size' must be tuple of ints, not {type(size).__name__}"
        )
    kind = dtype or (dtypes.int64 if out is None else out.dtype)
    shape = _shape("randint", (size,))
    return _new(
        shape, lambda x: rng.random_(x, low, last, generator), kind, device, requires_grad, out
    )


@composite(method=False)
def randperm(
    n: int, *, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The integers from 0 to ``n - 1`` in random order.

    Raises:
        RuntimeError: `n` is negative, or the type cannot hold it.
    """
    kind = dtype or (dtypes.int64 if out is None else out.dtype)
    require_cpu(device)

    def draw(size: tuple[int, ...]) -> Tensor:
        if len(size) == 1:
            return make(rng.randperm(size[0], kind.numpy, generator), None, None, requires_grad)
        rows = [rng.randperm(size[-1], kind.numpy, generator) for _ in range(prod(size[:-1]))]
        return make(np.stack(rows).reshape(size), None, None, requires_grad)

    made: Tensor = sample_in_levels(draw, (int(n),)) if running else draw((int(n),))
    return made if out is None else write_out(out, made)


def _like(
    self: Tensor, sample: Sampler, dtype: Any, device: Any, requires_grad: bool, memory_format: Any
) -> Tensor:
    require_cpu(device)
    kind = dtype.numpy if dtype else self._array.dtype
    if running:
        made: Tensor = sample_in_levels(
            lambda size: make(sample(np.empty(size, kind)), None, None, requires_grad),
            self._array.shape,
        )
        return made
    if memory_format is dtypes.contiguous_format:
        array = np.empty(self._array.shape, kind)
    else:
        array = rng.dense_like(self._array, kind)
    return make(sample(array), None, None, requires_grad)


@composite(method=False)
def rand_like(
    self: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1) of the shape and type of a tensor."""
    return _like(
        self, lambda x: rng.uniform_(x, generator=generator), dtype, device, requires_grad,
        memory_format,
    )  # fmt: skip


@composite(method=False)
def randn_like(
    self: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Normal numbers of mean 0 and variance 1 of the shape and type of a tensor."""
    return _like(
        self, lambda x: rng.normal_(x, generator=generator), dtype, device, requires_grad,
        memory_format,
    )  # fmt: skip


@composite(method=False)
def randint_like(
    self: Tensor, *args: Any, low: int = 0, high: int | None = None, generator: Any = None,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Integers in ``[low, high)`` of the shape and type of a tensor."""
    low, last, _ = _bounds("randint_like", args, low, high, None)
    return _like(
        self, lambda x: rng.random_(x, low, last, generator), dtype, device, requires_grad,
        memory_format,
    )  # fmt: skip


# -- samples with parameters


@composite(method=False)
def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Any = None,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers: of a mean and deviation for each (tensors), or of a `size` (two numbers).

    Raises:
        RuntimeError: a deviation is negative.
        TypeError: two numbers without a size.
    """
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        try:
            made = apply(REGISTRY["normal_each"], (mean, std), {"generator": generator})
        except ValueError:
            raise RuntimeError(_mismatch(mean._array.shape, std._array.shape)) from None
        return made if out is None else write_out(out, made)
    if size is None:
        raise TypeError(
            "normal() received an invalid combination of arguments - got "
            f"({type(mean).__name__}, {type(std).__name__}): two numbers need a size"
        )
    kind = dtype or (dtypes.get_default_dtype() if out is None else out.dtype)
    return _new(
        _shape("normal", (size,)), lambda x: rng.normal_(x, float(mean), float(std), generator),
        kind, device, requires_grad, out,
    )  # fmt: skip


def _mismatch(first: tuple[int, ...], second: tuple[int, ...]) -> str:
    """PyTorch's words for two shapes that do not broadcast."""
    ndim = max(len(first), len(second))
    for dim in range(1, min(len(first), len(second)) + 1):
        a, b = first[-dim], second[-dim]
        if a != b and 1 not in (a, b):
            break
    return (
        f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton "
        f"dimension {ndim - dim}"
    )


@composite(out=True)
def bernoulli(self: Tensor, p: float | None = None, *, generator: Any = None) -> Tensor:
    """Ones, each with the probability in its place (or all with `p`), else zeros."""
    if p is None:
        return apply(REGISTRY["bernoulli"], (self,), {"generator": generator})
    attrs = {"p": p, "generator": generator}
    return apply(REGISTRY["bernoulli_number"], (self,), attrs)


@composite(function=False)
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Fill with ones of probability `p` (a number, or a tensor that broadcasts), else zeros."""
    if not isinstance(p, Tensor):
        return apply_inplace(REGISTRY["bernoulli_fill"], self, (), {"p": p, "generator": generator})
    if p._array.shape != self._array.shape:
        p = p.expand(self._array.shape)
    return apply_inplace(REGISTRY["bernoulli_each"], self, (p,), {"generator": generator})


@composite(out=True)
def multinomial(
    self: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Indices drawn with probabilities proportional to the rows of `self`, int64.

    Raises:
        RuntimeError: weights that are negative, not finite or all zero, or more samples than
            categories without replacement.
    """
    if running and (level := innermost()) is not None:
        found: Tensor = level.multinomial(
            self, lambda x: multinomial(x, num_samples, replacement, generator=generator)
        )
        return found
    array = rng.multinomial(self._array, int(num_samples), replacement, generator)
    drawn = Tensor._from_array(np.asarray(array, order="C"))
    for on_cut in observers.on_cut:
        on_cut("multinomial", self, drawn)
    return drawn


@composite(function=False)
def uniform_(self: Tensor, *bounds: Any, generator: Any = None, **names: Any) -> Tensor:
    """Fill with uniform numbers in ``[from, to)``, by default [0, 1).

    Raises:
        RuntimeError: bounds out of order, or out of the range of the type.
    """
    low, high = _from_to("uniform_", bounds, names, (0.0, 1.0))
    attrs = {"low": low, "high": high, "generator": generator}
    return apply_inplace(REGISTRY["uniform"], self, (), attrs)


@composite(function=False)
def random_(self: Tensor, *bounds: Any, generator: Any = None, **names: Any) -> Tensor:
    """Fill with integers: ``random_(from, to)``, ``random_(to)``, or all that the type holds.

    Raises:
        RuntimeError: bounds out of order, or out of the range of the type.
    """
    if len(bounds) == 1:
        bounds = (0, *bounds)
    low, high = _from_to("random_", bounds, names, (None, None))
    attrs = {"low": low, "high": high, "generator": generator}
    return apply_inplace(REGISTRY["random"], self, (), attrs)


def _from_to(
    name: str, bounds: tuple[Any, ...], names: dict[str, Any], default: tuple[Any, Any]
) -> tuple[Any, Any]:
    """The bounds, whose names ``from`` and ``to`` Python's parameters cannot have."""
    given = dict(zip(("from", "to"), bounds))
    if len(bounds) > 2 or not names.keys() <= {"from", "to"} - given.keys():
        raise TypeError(f"{name}() received an invalid combination of arguments")
    given.update(names)
    return given.get("from", default[0]), given.get("to", default[1])
