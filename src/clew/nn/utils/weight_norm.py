"""Weights as direction and length (Salimans and Kingma 2016), by a hook before each forward.

May import the core of clew, `clew.nn.modules` and `clew.nn.parameter`.  The newer form is
`clew.nn.utils.parametrizations.weight_norm`.
"""

from __future__ import annotations

import warnings
from typing import Any

import clew
from clew.nn.parameter import Parameter, is_lazy

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_except_dim(v: Any, dim: int) -> Any:
    """The norm of each slice along `dim`, in the shape of `v` with ones elsewhere; -1: of all."""
    if dim == -1:
        return clew.linalg.vector_norm(v)
    others = tuple(d for d in range(v.ndim) if d != dim)
    return clew.linalg.vector_norm(v, dim=others, keepdim=True)


def normalised(v: Any, g: Any, dim: int) -> Any:
    """`v` with each slice along `dim` of length `g`."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The hook that computes ``weight`` from ``weight_g`` and ``weight_v``."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """The weight."""
        g = getattr(module, self.name + "_g")
        v = getattr(module, self.name + "_v")
        return normalised(v, g, self.dim)

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Put the hook on a module; see `weight_norm`."""
        warnings.warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of "
            "`torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=3,
        )
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two weight_norm hooks on the same parameter {name}"
                )
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure "
                "to run the dummy forward before applying weight normalization"
            )
        del module._parameters[name]
        length = norm_except_dim(weight, made.dim)
        module.register_parameter(name + "_g", Parameter(length.data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Any) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Compute a weight from its lengths along `dim` and its directions, before each forward.

    Args:
        module: the module, which is changed in place and returned.
        name: of the weight.
        dim: each slice along it has a length; None: the weight has one length.

    Raises:
        RuntimeError: the weight is normalised already.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`; the weight keeps its value.

    Raises:
        ValueError: there is nothing to undo.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
