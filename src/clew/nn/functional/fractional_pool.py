"""Fractional max pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.functions.calls import Tensor, call
from clew.functions.pool import Sizes, sizes
from clew.functions.random import rand


def _pool(
    n: int, input: Tensor, kernel_size: Sizes, output_size: Any, output_ratio: Any, draws: Any
) -> Any:
    name = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, Sequence) else (output_ratio,) * n
        if len(ratios) != n:
            raise ValueError(
                f"{name} requires output_ratio to either be a single Int or tuple of Ints."
            )
        output_size = [int(s * r) for s, r in zip(input.shape[input.ndim - n :], ratios)]
    if draws is None:
        batch = 1 if input.dim() == n + 1 else input.size(0)
        draws = rand(batch, input.size(-n - 1), n, dtype=input.dtype)
    return call(
        name, input, draws,
        kernel_size=sizes(kernel_size, name, "kernel_size", n),
        output_size=sizes(output_size, name, "output_size", n),
    )  # fmt: skip


def _declare(n: int) -> Any:
    def with_indices(
        input: Tensor,
        kernel_size: Sizes,
        output_size: Sizes = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        return _pool(n, input, kernel_size, output_size, output_ratio, _random_samples)

    def fractional_max_pool(
        input: Tensor,
        kernel_size: Sizes,
        output_size: Sizes = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        result = _pool(n, input, kernel_size, output_size, output_ratio, _random_samples)
        return result if return_indices else result[0]

    name = f"fractional_max_pool{n}d"
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    with_indices.__doc__ = f"`{name}` with ``return_indices=True``."
    fractional_max_pool.__name__ = fractional_max_pool.__qualname__ = name
    fractional_max_pool.__doc__ = f"""The maxima of windows at random steps (Graham, 2014).

    Args:
        input: ``(N, C, *size)`` or ``(C, *size)``, {n} spatial dimensions.
        kernel_size: of the windows, an int or one for each dimension.
        output_size, output_ratio: the result's size, or its ratio to the input's; one of the two.
        return_indices: also return where the maxima stand, counted within the plane.

    Raises:
        ValueError: the size of the result is not said.
        RuntimeError: shapes or types do not fit.
    """
    return fractional_max_pool, with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _declare(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _declare(3)
