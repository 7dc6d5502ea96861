"""Hooks of modules: registering them, for one module or for all, and calling them.

May import the core of clew and the other parts of this package.

Note [Order of a call]
    Forward pre-hooks, global ones first; the tie for full backward hooks on the inputs; forward;
    forward hooks, global ones first; the tie for backward hooks on the outputs.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from clew.autograd.handles import Hooks, RemovableHandle, add_hook
from clew.nn.base.backward_hook import BackwardHook
from clew.nn.base.state import _WrappedHook
from clew.observers import calls, observers
from clew.tensor import Tensor

_global_buffer_registration_hooks: Hooks = OrderedDict()
_global_module_registration_hooks: Hooks = OrderedDict()
_global_parameter_registration_hooks: Hooks = OrderedDict()
_global_backward_pre_hooks: Hooks = OrderedDict()
_global_backward_hooks: Hooks = OrderedDict()
_global_forward_pre_hooks: Hooks = OrderedDict()
_global_forward_hooks: Hooks = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_is_full_backward_hook: bool | None = None


# -- for all modules


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when any module gets a buffer; it may return another."""
    return add_hook(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when any module gets a submodule."""
    return add_hook(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, param)`` when any module gets a parameter."""
    return add_hook(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before any module's forward."""
    return add_hook(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after any module's forward.

    Args:
        hook: the hook; what it returns, if not None, replaces the output.
        with_kwargs: call ``hook(module, args, kwargs, output)``.
        always_call: call it also when forward raises.
    """
    handle = RemovableHandle(_global_forward_hooks, extra_dict=_global_forward_hooks_always_called)
    _global_forward_hooks[handle.id] = hook
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The old form of `register_module_full_backward_hook`: sees only the last node."""
    return _add_global_backward_hook(hook, full=False)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the gradients of any module are computed."""
    return add_hook(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` when any module's gradients are computed."""
    return _add_global_backward_hook(hook, full=True)


def _add_global_backward_hook(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full
    return add_hook(_global_backward_hooks, hook)


def registered(hooks: Hooks, module: Any, name: str, value: Any) -> Any:
    """`value`, or what the registration hooks make of it."""
    for hook in hooks.values():
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


# -- for one module


class ModuleHooks:
    """A module's own hooks, and its call."""

    _backward_pre_hooks: Hooks
    _backward_hooks: Hooks
    _is_full_backward_hook: bool | None
    _forward_hooks: Hooks
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: Hooks
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]

    forward: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and the hooks around it; see Note [Order of a call]."""
        hooked = self._is_hooked()
        if observers:
            return self._observed_call(args, kwargs, hooked)
        if hooked:
            return _Call(self, args, kwargs).run()
        return self.forward(*args, **kwargs)

    def _is_hooked(self) -> bool:
        """Whether a call runs hooks, which see what goes in and out."""
        return bool(
            self._forward_hooks or self._forward_pre_hooks
            or self._backward_hooks or self._backward_pre_hooks
            or _global_forward_hooks or _global_forward_pre_hooks
            or _global_backward_hooks or _global_backward_pre_hooks
        )  # fmt: skip

    def _observed_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], hooked: bool) -> Any:
        if observers.before_module:
            for before_module in observers.before_module:
                before_module(self)
        modules = calls.modules
        try:
            modules.append(self)
            if hooked:
                return _Call(self, args, kwargs).run()
            return self.forward(*args, **kwargs)
        finally:
            modules.pop()
            if observers.after_module:
                for after_module in observers.after_module:
                    after_module(self)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; what it returns replaces the arguments.

        Args:
            hook: the hook.
            prepend: call it before the hooks that are there.
            with_kwargs: call ``hook(module, args, kwargs)``, which may return a pair of both.
        """
        handle = RemovableHandle(
            self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs
        )
        self._forward_pre_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; what it returns replaces the output.

        Args:
            hook: the hook.
            prepend: call it before the hooks that are there.
            with_kwargs: call ``hook(module, args, kwargs, output)``.
            always_call: call it also when forward raises.
        """
        handle = RemovableHandle(
            self._forward_hooks,
            extra_dict=[self._forward_hooks_with_kwargs, self._forward_hooks_always_called],
        )
        self._forward_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's gradients are computed.

        What it returns replaces the gradients of the outputs.
        """
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the module's gradients are computed.

        What it returns replaces the gradients of the inputs.

        Raises:
            RuntimeError: the module has hooks of `register_backward_hook`.
        """
        self._set_kind_of_backward_hooks(full=True)
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The old form of `register_full_backward_hook`: sees only the module's last node.

        Raises:
            RuntimeError: the module has hooks of `register_full_backward_hook`.
        """
        self._set_kind_of_backward_hooks(full=False)
        return add_hook(self._backward_hooks, hook)

    def _set_kind_of_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = full


class _Call:
    """One call of a module that has hooks."""

    def __init__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.called: set[int] = set()

    def run(self) -> Any:
        """The module's output after all hooks."""
        try:
            return self._run()
        except Exception:
            self._call_remaining()
            raise

    def _run(self) -> Any:
        module = self.module
        before = [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
        full = self._backward_hooks(full=True)
        self._before_forward()
        tie = None
        if full or before:
            tie = BackwardHook(module, full, before)
            self.args = tie.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        for key, hook in (*_global_forward_hooks.items(), *module._forward_hooks.items()):
            if self._is_always_called(key):
                self.called.add(key)
            self._after_forward(key, hook)
        if tie is not None:
            if not isinstance(self.result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple "
                    f"of Tensors but received {type(self.result)}",
                    stacklevel=2,
                )
            self.result = tie.setup_output_hook(self.result)
        self._tie_old_hooks(self._backward_hooks(full=False))
        return self.result

    def _backward_hooks(self, full: bool) -> list[Callable[..., Any]]:
        """The hooks of one kind, global ones first."""
        found: list[Callable[..., Any]] = []
        if _global_is_full_backward_hook is full:
            found += _global_backward_hooks.values()
        if self.module._is_full_backward_hook is full:
            found += self.module._backward_hooks.values()
        return found

    def _before_forward(self) -> None:
        module = self.module
        for key, hook in (*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
            if key in module._forward_pre_hooks_with_kwargs:
                replaced = hook(module, self.args, self.kwargs)
                if replaced is None:
                    continue
                if not isinstance(replaced, tuple) or len(replaced) != 2:
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {replaced}."
                    )
                self.args, self.kwargs = replaced
            else:
                replaced = hook(module, self.args)
                if replaced is not None:
                    self.args = replaced if isinstance(replaced, tuple) else (replaced,)

    def _is_always_called(self, key: int) -> bool:
        own = self.module._forward_hooks_always_called
        return key in own or key in _global_forward_hooks_always_called

    def _after_forward(self, key: int, hook: Callable[..., Any]) -> None:
        own = self.module._forward_hooks_with_kwargs
        if key in own or key in _global_forward_hooks_with_kwargs:
            replaced = hook(self.module, self.args, self.kwargs, self.result)
        else:
            replaced = hook(self.module, self.args, self.result)
        if replaced is not None:
            self.result = replaced

    def _call_remaining(self) -> None:
        """After an error: the hooks that are always called and have not been."""
        tables = (("global module", _global_forward_hooks), ("module", self.module._forward_hooks))
        for whose, hooks in tables:
            for key, hook in hooks.items():
                if key in self.called or not self._is_always_called(key):
                    continue
                try:
                    self._after_forward(key, hook)
                except Exception as error:
                    warnings.warn(
                        f"{whose} forward hook with ``always_call=True`` raised an exception that "
                        f"was silenced as another error was raised in forward: {error}",
                        stacklevel=2,
                    )

    def _tie_old_hooks(self, hooks: list[Callable[..., Any]]) -> None:
        """Put hooks of the old kind on the node of the first tensor in the result."""
        if not hooks:
            return
        found = self.result
        while not isinstance(found, Tensor):
            if isinstance(found, dict):
                found = next(value for value in found.values() if isinstance(value, Tensor))
            else:
                found = found[0]
        node = found.grad_fn
        if node is None:
            return
        for hook in hooks:
            node.register_hook(_WrappedHook(hook, self.module))
        _warn_of_old_hooks(self.args, self.result, node)


def _warn_of_old_hooks(inputs: Any, result: Any, node: Any) -> None:
    """Say what a hook of the old kind does not see."""
    outputs = (result,) if isinstance(result, Tensor) else result
    what = None
    if not (isinstance(outputs, tuple) and all(isinstance(o, Tensor) for o in outputs)):
        what = (
            "on a Module that does not return a single Tensor or a tuple of Tensors", "grad_output"
        )  # fmt: skip
    elif not (isinstance(inputs, tuple) and all(isinstance(i, Tensor) for i in inputs)):
        what = (
            "on a Module that does not take as input a single Tensor or a tuple of Tensors",
            "grad_input",
        )
    if what is not None:
        warnings.warn(
            f"Using non-full backward hooks {what[0]} is deprecated and will be removed in future "
            f"versions. This hook will be missing some of the {what[1]}. Please use "
            "register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=5,
        )
        return
    made_by = {o.grad_fn for o in outputs if o.grad_fn is not None}
    came_from = {i.grad_fn for i in inputs if i.grad_fn is not None}
    if not made_by or (len(made_by) == 1 and node not in made_by):
        warnings.warn(
            "Using a non-full backward hook when outputs are nested in python data structure is "
            "deprecated and will be removed in future versions. This hook will be missing some "
            "grad_output.",
            FutureWarning,
            stacklevel=5,
        )
        return
    if len(made_by) > 1:
        what = ("when outputs are generated by different autograd Nodes", "grad_output")
    elif came_from != {edge[0] for edge in node.next_functions}:
        what = ("when the forward contains multiple autograd Nodes", "grad_input")
    if what is not None:
        warnings.warn(
            f"Using a non-full backward hook {what[0]} is deprecated and will be removed in future "
            f"versions. This hook will be missing some {what[1]}. Please use "
            "register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=5,
        )
