"""``torch._vmap_internals``: the older `vmap`, which programs reach under this name.

May import `clew.func`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from clew.func.mapping import map_examples

__all__ = ["_vmap", "vmap"]


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """`clew.func.vmap` without randomness.

    Args:
        func: takes and returns tensors.
        in_dims: which dimension of each argument counts the examples.
        out_dims: where that dimension is to be in each result.
        allow_none_pass_through: `func` may return None in the place of a tensor.
    """

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        if not allow_none_pass_through:
            return map_examples(func, in_dims, out_dims, "refused", None, args, {})
        absent: list[int] = []

        def present(*examples: Any) -> Any:
            outputs = func(*examples)
            parts = outputs if isinstance(outputs, tuple) else (outputs,)
            absent.extend(i for i, part in enumerate(parts) if part is None)
            return tuple(part for part in parts if part is not None)

        found = list(map_examples(present, in_dims, out_dims, "refused", None, args, {}))
        for i in absent:
            found.insert(i, None)
        return tuple(found)

    return wrapped


vmap = _vmap
