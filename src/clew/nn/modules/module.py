"""`Module`: what every layer, loss and network derives from.

May import the core of clew, `clew.nn.parameter` and `clew.nn.base`, where most of it stands.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NoReturn

from clew.nn.base import hooks
from clew.nn.base.casts import ModuleCasts
from clew.nn.base.hooks import (
    ModuleHooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from clew.nn.base.naming import indent, typename
from clew.nn.base.state import ModuleState
from clew.nn.parameter import Buffer, Parameter
from clew.tensor import Tensor

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_HOOK_TABLES = (
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


def _forward_unimplemented(self: Any, *input: Any) -> NoReturn:
    """What a class overrides with its computation."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module(ModuleCasts, ModuleState, ModuleHooks):
    """A part of a network: parameters, buffers, modules below it, and a `forward`.

    Derive from it, call ``super().__init__()`` first, assign parameters and modules as attributes,
    and write `forward`.  Calling the module calls `forward` and the hooks.

    Attributes:
        training: whether the module is in training mode (see `train`).
        call_super_init: a class sets it to pass arguments on to the next class's ``__init__``.
    """

    call_super_init: bool = False
    forward: Callable[..., Any] = _forward_unimplemented

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but "
                    f"{len(args) + 1} were given"
                )
        # Not by assignment, which would look each name up in tables that are not there yet.
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_backward_pre_hooks"] = OrderedDict()
        own["_backward_hooks"] = OrderedDict()
        own["_is_full_backward_hook"] = None
        for table in _HOOK_TABLES:
            own[table] = OrderedDict()
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # -- registering

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: a tensor that belongs to the module's state and is not trained.

        Args:
            name: the attribute under which it is found.
            tensor: the buffer, or None for one that is not there yet.
            persistent: whether `state_dict` includes it.

        Raises:
            KeyError: the name is empty, has a dot, or is taken.
            TypeError: the name is no string, or the buffer no tensor.
            AttributeError: ``Module.__init__`` has not been called.
        """
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or "
                "None required)"
            )
        self._buffers[name] = hooks.registered(
            hooks._global_buffer_registration_hooks, self, name, tensor
        )
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None for one that is switched off.

        Raises:
            KeyError: the name is empty, has a dot, or is taken.
            TypeError: the name is no string, or `param` no Parameter.
            ValueError: `param` is not a leaf of the graph.
            AttributeError: ``Module.__init__`` has not been called.
        """
        self._check_name("parameter", name, "_parameters")
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                "the value in the forward() method."
            )
        self._parameters[name] = hooks.registered(
            hooks._global_parameter_registration_hooks, self, name, param
        )

    def _check_name(self, kind: str, name: Any, table: str) -> None:
        """Refuse a name under which no buffer or parameter can be registered."""
        if table not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[table]:
            raise KeyError(f"attribute '{name}' already exists")

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module below this one, or None for one that is switched off.

        Raises:
            KeyError: the name is empty, has a dot, or is taken.
            TypeError: the name is no string, or `module` no Module.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = hooks.registered(
            hooks._global_module_registration_hooks, self, name, module
        )

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of `add_module`."""
        self.add_module(name, module)

    # -- attributes

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_modules" in own:  # else ``Module.__init__`` has not been called
            if name in own["_parameters"]:
                return own["_parameters"][name]
            if name in own["_buffers"]:
                return own["_buffers"][name]
            if name in own["_modules"]:
                return own["_modules"][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        """Parameters, modules and buffers go to their tables, everything else to the object."""
        own = self.__dict__
        parameters, modules = own.get("_parameters"), own.get("_modules")
        buffers = own.get("_buffers")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, own, buffers, modules)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, own, parameters, buffers)
            self._set_module(name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            self._set_module(name, value)
        elif (buffers is not None and name in buffers) or (
            isinstance(value, Tensor) and isinstance(value, Buffer)
        ):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, *tables: Any) -> None:
        """The name is about to mean something else."""
        for table in tables:
            table.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _set_module(self, name: str, value: Module | None) -> None:
        self._modules[name] = hooks.registered(
            hooks._global_module_registration_hooks, self, name, value
        )

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, "
                "torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        self.register_buffer(name, value, persistent)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [
            *dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers
        ]  # fmt: skip
        return sorted(name for name in names if not name[0].isdigit())

    # -- showing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What the module's representation says about itself; a class overrides it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        own = extra.split("\n") if extra else []
        below = [f"({name}): {indent(repr(m), 2)}" for name, m in self._modules.items()]
        if len(own) == 1 and not below:
            return f"{self._get_name()}({own[0]})"
        if not own and not below:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join([*own, *below]) + "\n)"

    def _replicate_for_data_parallel(self) -> Any:
        """A shallow copy without parameters, to be given those of a replica.

        `zero_grad` warns on it: what it holds are no leaves.
        """
        replica = object.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = self._buffers.copy()
        replica._modules = self._modules.copy()
        replica._is_replica = True
        return replica

    # -- what clew does otherwise

    def compile(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises NotImplementedError: there is no compiled call of a module."""
        raise NotImplementedError(
            "Module.compile(): clew cannot compile a module's call; call the module as it is"
        )
