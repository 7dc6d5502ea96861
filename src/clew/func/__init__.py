"""``torch.func``: transforms of functions, which take a function and return another.

`grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian` and `linearize` differentiate; `vmap` makes of
a function of one example one of many.  They nest in any order.  May import the core of clew and
`clew.nn`.
"""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "vmap": "mapping",
    "grad": "reverse",
    "grad_and_value": "reverse",
    "vjp": "reverse",
    "jacrev": "reverse",
    "hessian": "forward",
    "jvp": "forward",
    "jacfwd": "forward",
    "linearize": "forward",
    "functional_call": "modules",
    "stack_module_state": "modules",
    "replace_all_batch_norm_modules_": "modules",
    "functionalize": "modules",
    "debug_unwrap": "modules",
}
"""Which module has what; it is imported when it is first used."""

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    """A transform, from the module that has it."""
    if name in _WHERE:
        found = getattr(importlib.import_module(f"clew.func.{_WHERE[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'clew.func' has no attribute '{name}': clew does not have it")
