"""`vmap`: a function of one example, run on many at once."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from clew.dispatch import TENSORS
from clew.func.batching.level import VmapLevel
from clew.tensor import Tensor
from clew.utils._pytree import (
    TreeSpec,
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_map_,
    tree_unflatten,
)

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function that applies `func` to each example along a dimension of its arguments.

    `func` is called once.  Inside, its arguments have the shape of one example, and each operation
    is done for all examples at once (see ``batching/``); one that clew has no way to do so is run
    example by example, with a warning.

    Args:
        func: takes and returns tensors, or nested containers of them.
        in_dims: which dimension of each argument counts the examples: an int for all, or a tuple
            with an entry, perhaps nested, for each; None for an argument that all share.
        out_dims: where that dimension is to be in each result; None for one that does not have it.
        randomness: what random operations do: "error"; "different", draw for each example; "same",
            draw once for all.
        chunk_size: take so many examples at a time, to save memory.

    Raises:
        ValueError: dimensions do not fit the arguments or results, or sizes differ.
        RuntimeError: `randomness` is none of the three; or what `func` does cannot be batched:
            reading values, writing into a tensor that all examples share.

    >>> from clew.func import vmap
    >>> vmap(torch.dot)(torch.ones(2, 3), torch.arange(6.0).view(2, 3))
    tensor([ 3., 12.])
    """
    check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return map_examples(func, in_dims, out_dims, randomness, chunk_size, args, kwargs)

    return wrapped


def check_randomness(randomness: str) -> None:
    """Refuse what is no way to draw.

    Raises:
        RuntimeError: it is none of `RANDOMNESS`.
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )


def name_of(func: Any) -> str:
    """What messages call a function."""
    name = getattr(func, "__name__", None)
    if name is not None:
        return str(name)
    if isinstance(func, functools.partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return repr(func)


def map_examples(
    func: Any, in_dims: Any, out_dims: Any, randomness: str, chunk_size: int | None,
    args: tuple[Any, ...], kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    """One call of the function that `vmap` makes."""
    _check_out_dims(out_dims, func)
    dims, leaves, spec = _taken(in_dims, args, func)
    size = _batch_size(dims, leaves)
    if chunk_size is None:
        return _flat(func, size, dims, leaves, spec, out_dims, randomness, kwargs)
    parts = []
    for chunk in _chunks(leaves, dims, size, chunk_size):
        count = _batch_size(dims, chunk)
        parts.append(_flat(func, count, dims, chunk, spec, out_dims, randomness, kwargs))
    return _joined(parts, out_dims)


def _flat(
    func: Any, size: int, dims: list[Any], leaves: list[Any], spec: TreeSpec, out_dims: Any,
    randomness: str, kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    with VmapLevel(size, randomness) as level:
        batched = [x if d is None else level.wrap(x, d) for x, d in zip(leaves, dims)]
        outputs = func(*tree_unflatten(batched, spec), **kwargs)
        below = level.lowered()
        with below:
            return unwrap_outputs(outputs, out_dims, level, func)


# -- arguments


def _taken(in_dims: Any, args: tuple[Any, ...], func: Any) -> tuple[list[Any], list[Any], TreeSpec]:
    """The batch dimension of each leaf of the arguments, the leaves, and their structure."""
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be "
            "int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
            "you are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible "
            f"with the structure of `inputs`. in_dims has structure {tree_flatten(in_dims)[1]} but "
            f"inputs has structure {spec}."
        )
    where = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): "
    checked = [_checked_dim(x, d, where) for x, d in zip(leaves, dims)]
    return checked, leaves, spec


def _checked_dim(x: Any, dim: Any, where: str) -> int | None:
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{where}Got in_dim={dim} for an input but in_dim must be either an integer dimension "
            "or None."
        )
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{where}Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot "
            "vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    ndim = x._array.ndim
    if not -ndim <= dim < ndim:
        raise ValueError(
            f"{where}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
            f"{ndim} so expected in_dim to satisfy -{ndim} <= in_dim < {ndim}."
        )
    return dim % ndim


def _batch_size(dims: list[Any], leaves: Iterable[Any]) -> int:
    sizes = [x._array.shape[d] for d, x in zip(dims, leaves) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return int(sizes[0])


# -- results


def _check_out_dims(out_dims: Any, func: Any) -> None:
    def check(dim: Any) -> None:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None "
                "or a python collection of ints representing where in the outputs the vmapped "
                "dimension should appear."
            )

    tree_map_(check, out_dims)


def unwrap_outputs(outputs: Any, out_dims: Any, level: VmapLevel, func: Any) -> Any:
    """What `func` returned, with all examples.

    Raises:
        ValueError: `out_dims` does not fit, or something is no tensor.
    """
    leaves, spec = tree_flatten(outputs)

    def refuse() -> NoReturn:
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not "
            f"compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )

    dims: Any
    if isinstance(outputs, Tensor):
        single = isinstance(out_dims, tuple) and len(out_dims) == 1
        if not (single or out_dims is None or isinstance(out_dims, int)):
            refuse()
        dims = list(out_dims) if single else [out_dims]
    else:
        dims = _broadcast_to_and_flatten(out_dims, spec)
        if dims is None:
            refuse()
    name = name_of(func)
    return tree_unflatten([_unwrapped(name, x, level, d) for x, d in zip(leaves, dims)], spec)


def _unwrapped(name: str, x: Any, level: VmapLevel, dim: int | None) -> Any:
    if dim is None:
        if level.holds(x):
            if x._array.bdim is None:
                return x._array.value
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return x
    if not isinstance(x, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you "
            "mean to set out_dims= to None for output?"
        )
    return level.unwrap(x, dim)


# -- some examples at a time


def _chunks(leaves: list[Any], dims: list[Any], size: int, chunk_size: int) -> Iterable[list[Any]]:
    ends = tuple(itertools.accumulate(chunk_sizes(size, chunk_size)))
    start = 0
    for end in ends:
        yield [
            x if d is None else x.narrow(d, start, end - start) for x, d in zip(leaves, dims)
        ]  # fmt: skip
        start = end


def chunk_sizes(total: int, chunk_size: int) -> list[int]:
    """How many of `total` are taken each time."""
    whole, rest = divmod(total, chunk_size)
    return [chunk_size] * whole + ([rest] if rest else [])


def _joined(parts: list[Any], out_dims: Any) -> Any:
    flat = [tree_flatten(part) for part in parts]
    spec = flat[0][1]
    dims = _broadcast_to_and_flatten(out_dims, spec)
    assert dims is not None  # each part has been checked
    columns = zip(*(leaves for leaves, _ in flat))
    joined = [
        column[0] if d is None else TENSORS.cat(column, dim=d) for column, d in zip(columns, dims)
    ]
    return tree_unflatten(joined, spec)
