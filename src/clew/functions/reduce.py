"""Reductions whose name covers several ops."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from clew.dispatch import apply
from clew.functions.shape import sizes
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor

_RESULTS: dict[str, Any] = {}


def named_result(name: str, *fields: str) -> Any:
    """PyTorch's ``torch.return_types.<name>``: a tuple with field names, printed like there."""
    if name not in _RESULTS:
        base = namedtuple(name, fields)  # type: ignore[misc]
        _RESULTS[name] = type(
            name, (base,), {"__module__": "torch.return_types", "__repr__": _shown, "__slots__": ()}
        )
    return _RESULTS[name]


def _shown(result: Any) -> str:
    parts = ",\n".join(f"{name}={value!r}" for name, value in zip(result._fields, result))
    return f"torch.return_types.{type(result).__name__}(\n{parts})"


def _sum_like(name: str) -> Any:
    whole, over_dims = REGISTRY[f"{name}_all"], REGISTRY[name]

    def function(
        self: Tensor, dim: Any = ..., keepdim: bool = False, *, dtype: Any = None, **names: Any
    ) -> Any:
        # PyTorch has another node for all elements (dim not given) than for dim=None.
        dim = names.pop("axis", dim)
        keepdim = names.pop("keepdims", keepdim)
        if names:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(names))}'")
        if dim is ... and not keepdim:
            return apply(whole, (self,), {"dtype": dtype})
        dim = None if dim is ... else dim
        return apply(over_dims, (self,), {"dim": dim, "keepdim": keepdim, "dtype": dtype})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The {name} of all elements, or over `dim`."
    return composite(out=True)(function)


sum = _sum_like("sum")
mean = _sum_like("mean")


@composite(function=False)
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum until the shape is `size`, which must broadcast to that of the tensor.

    Raises:
        RuntimeError: it does not.
    """
    wanted, shape = sizes(size), self._array.shape
    extra = len(shape) - len(wanted)
    if extra < 0 or any(n not in (1, m) for n, m in zip(wanted, shape[extra:])):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(shape)}}}.")
    dims = [d for d in range(len(shape)) if d < extra or (wanted[d - extra] == 1 != shape[d])]
    result = sum(self, dims, keepdim=True) if dims else self
    return result.view(wanted) if extra else result


@composite(out=True)
def prod(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The product of all elements, or along `dim`."""
    if dim is None:
        return apply(REGISTRY["prod_all"], (self,), {"dtype": dtype})
    attrs = {"dim": dim, "keepdim": keepdim, "dtype": dtype}
    return apply(REGISTRY["prod"], (self,), attrs)


def _extremum(name: str, elementwise: str) -> Any:
    whole, along = REGISTRY[f"{name}_all"], REGISTRY[f"{name}_dim"]

    def function(self: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        if not isinstance(self, Tensor):
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got "
                f"({type(self).__name__}, {type(dim).__name__}), but expected one of:\n"
                " * (Tensor input)\n * (Tensor input, Tensor other)\n"
                " * (Tensor input, int dim, bool keepdim = False)"
            )
        if isinstance(dim, Tensor) or other is not None:
            return apply(REGISTRY[elementwise], (self, dim if other is None else other))
        if dim is None:
            return apply(whole, (self,))
        values, indices = apply(along, (self,), {"dim": dim, "keepdim": keepdim})
        return named_result(name, "values", "indices")(values, indices)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {name} of all elements; along `dim`, (values, indices); of two tensors, elementwise."
    )
    return composite(out=True)(function)


max = _extremum("max", "maximum")
min = _extremum("min", "minimum")
