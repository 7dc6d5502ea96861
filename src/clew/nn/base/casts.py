"""Moving a module to another type (or device: there is only the CPU).

May import the core of clew and `tree`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import clew
from clew import dtypes
from clew.autograd.modes import no_grad
from clew.device import device as device_of
from clew.nn.base.tree import ModuleTree
from clew.tensor import Tensor


class ModuleCasts(ModuleTree):
    """Changes the tensors of a module and of all modules below it, in place."""

    def _apply(self, fn: Callable[[Any], Tensor], recurse: bool = True) -> Self:
        """Replace the value of every parameter, its gradient, and every buffer by ``fn`` of it.

        Parameters and gradients stay the same objects; buffers become new ones.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            with no_grad():
                parameter.data = fn(parameter)
                if parameter.grad is not None:
                    parameter.grad.data = fn(parameter.grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Change the type of floating and complex parameters and buffers, in place.

        Takes ``to(dtype)``, ``to(device)``, ``to(device, dtype)``, ``to(tensor)`` and
        ``to(memory_format=...)``.

        Raises:
            TypeError: the dtype is an integer one.
            AssertionError, RuntimeError: the device is not the CPU.
        """
        device, dtype, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may "
                "change, and some modules might not work as expected when using complex tensors "
                "as parameters or buffers.",
                stacklevel=2,
            )

        def convert(tensor: Any) -> Any:
            kind = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            options = {}
            if memory_format is not None and tensor.dim() in (4, 5):
                options["memory_format"] = memory_format
            return tensor.to(device=device, dtype=kind, **options)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Give parameters and buffers new, uninitialised memory."""
        return self._apply(lambda t: clew.empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast floating parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Cast floating parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Cast floating parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Cast floating parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """Does nothing: the module is on the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Raises AssertionError (if the module has tensors): clew runs on the CPU."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device: Any = None) -> Self:
        """Raises AssertionError (if the module has tensors): clew runs on the CPU."""
        return self._apply(lambda t: t.xpu(device))

    def share_memory(self) -> Self:
        """Move the tensors to memory that other processes can see."""
        return self._apply(lambda t: t.share_memory_())


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
    """Device, dtype and memory format from the arguments of ``Module.to``.

    Raises:
        TypeError: no overload takes such arguments.
    """
    found = {name: kwargs.pop(name, None) for name in ("device", "dtype", "memory_format")}
    kwargs.pop("non_blocking", None)
    tensor = kwargs.pop("tensor", None)
    wrong = bool(kwargs)
    for argument in args:
        if isinstance(argument, dtypes.dtype):
            found["dtype"] = argument
        elif isinstance(argument, Tensor):
            tensor = argument
        elif isinstance(argument, (str, int, device_of)) and not isinstance(argument, bool):
            found["device"] = device_of(argument)
        elif argument is not None and not isinstance(argument, bool):
            wrong = True
    if wrong:
        names = ", ".join(type(a).__name__ for a in (*args, *kwargs.values()))
        raise TypeError(f"to() received an invalid combination of arguments - got ({names})")
    if tensor is not None:
        found["device"], found["dtype"] = tensor.device, tensor.dtype
    return found["device"], found["dtype"], found["memory_format"]
