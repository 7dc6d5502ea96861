"""Layer 1: the arithmetic behind the operations, ndarray in and ndarray out.

A module here imports NumPy and other kernel modules, nothing else. Kernels know no tensors, no
graph and no options with defaults that the layers above decide: sizes come as one int per
dimension. Half precision (float16, bfloat16) is computed in float32 and rounded once at the end.

Note [Late kernels]
    Most programs need few kernels. So what belongs to one family of ops (convolutions, norms, ...)
    is imported when it is first called: a declaration says ``kernels.conv.conv_forward(...)``, and
    not ``from clew.kernels.conv import conv_forward``. That is half of these modules.
"""

import importlib
import importlib.util
from typing import Any


def __getattr__(name: str) -> Any:
    """A module of this package, which is imported when it is first asked for."""
    module = f"{__name__}.{name}"
    if name.startswith("_") or importlib.util.find_spec(module) is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return importlib.import_module(module)
