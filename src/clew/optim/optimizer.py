"""The base of all optimizers: parameter groups, state, hooks.  Layer 5: imports the core only."""

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from clew.autograd.handles import Hooks, RemovableHandle, add_hook
from clew.autograd.modes import enable_grad, no_grad
from clew.kernels import optim as kernels
from clew.kernels.compiled import Twins
from clew.observers import observers
from clew.quiet import quietly
from clew.site import Site, here
from clew.tensor import Tensor


class _Required:
    """Marks a default that every parameter group must give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

Parameters = Iterator[tuple[Tensor, np.ndarray, Any]]
"""Parameters with the memory of their gradients, which is not written to, and their state."""

_global_pre_hooks: Hooks = OrderedDict()
_global_post_hooks: Hooks = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer."""
    return add_hook(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return add_hook(_global_post_hooks, hook)


class Optimizer:
    """Updates parameters from their gradients.

    A subclass writes `update` for one parameter; the rest is here.

    Args:
        params: the parameters: tensors, (name, tensor) pairs, or dicts with options of their own
            under their names and the tensors under "params".
        defaults: the options of groups that do not set them.

    Attributes:
        param_groups: a list of dicts: options, and the tensors under "params".
        state: what is kept for each parameter between steps.

    Raises:
        TypeError: `params` is a tensor, or holds something else.
        ValueError: no parameter, one in two groups, or one that is not a leaf.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self._prepare()
        self.defaults = defaults
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {params.type()}"
            )
        self.state: Any = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def _prepare(self) -> None:
        self._step_pre_hooks: Hooks = OrderedDict()
        self._step_post_hooks: Hooks = OrderedDict()
        self._state_dict_pre_hooks: Hooks = OrderedDict()
        self._state_dict_post_hooks: Hooks = OrderedDict()
        self._load_pre_hooks: Hooks = OrderedDict()
        self._load_post_hooks: Hooks = OrderedDict()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Run the hooks around a subclass's own `step` too."""
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    # -- stepping

    def update(self, parameter: Tensor, grad: np.ndarray, state: Any, group: Any) -> None:
        """Update one parameter in place; `grad` is a raw array that must not be written to."""
        raise NotImplementedError

    def update_group(self, group: dict[str, Any], parameters: Parameters) -> None:
        """Update each of the parameters; what all of them share can be worked out once here."""
        for parameter, grad, state in parameters:
            self.update(parameter, grad, state, group)

    def keeps_state(self, group: dict[str, Any]) -> bool:
        """Whether parameters of this group need any state."""
        return True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: computes the loss again, with gradients; its result is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        quietly(self._update_all, (), {})
        return loss

    def _update_all(self) -> None:
        site = here()
        for group in self.param_groups:
            self._check_group(group)
            self.update_group(group, self._to_update(group, site))

    def _to_update(self, group: dict[str, Any], site: Site | None) -> Parameters:
        """The parameters of a group that have a gradient; each is counted as written to after."""
        name = f"optimizer step of {type(self).__name__}"
        keeps_state, states = self.keeps_state(group), self.state
        maximize = group.get("maximize")
        for parameter in group["params"]:
            grad = parameter._grad
            if grad is None:
                continue
            array = values(grad)
            yield (
                parameter, -array if maximize else array, states[parameter] if keeps_state else None
            )  # fmt: skip
            parameter._counter.bump(name, site)

    def _check_group(self, group: dict[str, Any]) -> None:
        if group.get("differentiable"):
            raise RuntimeError(
                f"clew's {type(self).__name__} has no differentiable=True: write the update with "
                "tensor operations to differentiate through it"
            )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters: to None, or to zero in place."""
        for group in self.param_groups:
            for parameter in group["params"]:
                grad = parameter._grad
                if grad is None:
                    continue
                if set_to_none:
                    parameter._grad = None
                else:
                    grad.detach_() if grad.grad_fn is not None else grad.requires_grad_(False)
                    grad.zero_()

    # -- groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own.

        Raises:
            TypeError: no dict, or a parameter that is no tensor, or an unordered set.
            ValueError: a parameter that is not a leaf or is in a group already, or a required
                option is missing.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        named = [isinstance(p, tuple) for p in params]
        if any(named):
            if not all(named):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are "
                    "missing"
                )
            param_group["param_names"] = [name for name, _ in params]
            params = [tensor for _, tensor in params]
        param_group["params"] = params
        for parameter in params:
            self._check_parameter(parameter)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        if len({id(p) for p in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=3,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        has_names = "param_names" in param_group
        if self.param_groups and has_names != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with names' if has_names else 'without names'} to the optimizer"
            )
        self.param_groups.append(param_group)

    def _check_parameter(self, parameter: Any) -> None:
        if not isinstance(parameter, Tensor):
            raise TypeError(
                f"optimizer can only optimize Tensors, but one of the params is "
                f"{_type_name(parameter)}"
            )
        if not self.defaults.get("differentiable") and not (
            parameter.is_leaf or parameter.retains_grad
        ):
            raise ValueError("can't optimize a non-leaf Tensor")

    # -- state

    def state_dict(self) -> dict[str, Any]:
        """The state and the groups, with parameters replaced by their position."""
        for hook in self._state_dict_pre_hooks.values():
            hook(self)
        positions: dict[int, int] = {}
        for parameter in chain.from_iterable(g["params"] for g in self.param_groups):
            positions.setdefault(id(parameter), len(positions))
        groups = [
            {
                **{k: v for k, v in group.items() if k != "params"},
                "params": [positions[id(p)] for p in group["params"]],
            }
            for group in self.param_groups
        ]
        state = {
            (positions[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._state_dict_post_hooks.values():
            replaced = hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state that `state_dict` gave.

        Raises:
            ValueError: the number of groups or the sizes of groups differ.
        """
        state_dict = dict(state_dict)
        for hook in self._load_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        saved_groups = copy.deepcopy(state_dict["param_groups"])
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        sizes = zip(self.param_groups, saved_groups)
        if any(len(own["params"]) != len(saved["params"]) for own, saved in sizes):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        by_position = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved_groups),
                chain.from_iterable(g["params"] for g in self.param_groups),
            )
        )
        state: Any = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_position:
                parameter = by_position[key]
                state[parameter] = _cast_state(parameter, value)
            else:
                state[key] = value
        groups = []
        for own, saved in zip(self.param_groups, saved_groups):
            saved["params"] = own["params"]
            if "param_names" in own and "param_names" not in saved:
                saved["param_names"] = own["param_names"]
            groups.append(saved)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._load_post_hooks.values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults, "state": self.state, "param_groups": self.param_groups,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_step_pre_hooks" not in self.__dict__:
            self._prepare()
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)

    # -- hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ones."""
        return add_hook(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return add_hook(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` before `state_dict`."""
        return add_hook(self._state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after `state_dict`; it may return another."""
        return add_hook(self._state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another."""
        return add_hook(self._load_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return add_hook(self._load_post_hooks, hook, prepend=prepend)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` between the hooks, without recording."""
    if getattr(step, "hooked", None):
        return step

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        for hook in chain(_global_pre_hooks.values(), self._step_pre_hooks.values()):
            result = hook(self, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got "
                        f"{result}."
                    )
                args, kwargs = result
        for before_optimizer_step in observers.before_optimizer_step:
            before_optimizer_step(self)
        with no_grad():
            result = step(self, *args, **kwargs)
        for hook in chain(self._step_post_hooks.values(), _global_post_hooks.values()):
            hook(self, args, kwargs)
        for on_optimizer_step in observers.on_optimizer_step:
            on_optimizer_step(self)
        return result

    hooked.hooked = True  # type: ignore[attr-defined]
    return hooked


Optimizer.step = _with_hooks(Optimizer.step)  # type: ignore[method-assign]


def _cast_state(parameter: Tensor, value: Any, key: str | None = None) -> Any:
    """A copy of loaded state in the type of its parameter (a step count stays as it is)."""
    if isinstance(value, Tensor):
        array = value._array
        if key == "step" or parameter._array.dtype.kind not in "fV":
            return Tensor._from_array(array.copy())
        return Tensor._from_array(array.astype(parameter._array.dtype))
    if isinstance(value, dict):
        return {k: _cast_state(parameter, v, key=k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_cast_state(parameter, v) for v in value)  # type: ignore[call-arg]
    return value


def _type_name(value: Any) -> str:
    return "torch." + type(value).__name__ if isinstance(value, Tensor) else type(value).__name__


def values(tensor: Tensor) -> np.ndarray:
    """The memory of a tensor as kernels take it.

    It has a dimension, so that NumPy gives arrays; complex numbers are pairs of real ones.
    """
    array = tensor._array
    if array.dtype.kind == "c":
        return array[..., np.newaxis].view(array.real.dtype)
    return array if array.ndim else array.reshape(1)


def twins_of(group: dict[str, Any]) -> Twins | None:
    """The compiled twins for the parameters of a group, or None."""
    return kernels.compiled([parameter._array for parameter in group["params"]])


def check_range(name: str, value: Any, valid: bool) -> None:
    """Refuse an option out of range.

    Raises:
        ValueError: it is not `valid`.
    """
    if not valid:
        raise ValueError(f"Invalid {name}: {value}")


def check_learning_rate(lr: Any) -> None:
    """Refuse a learning rate that is negative, or a tensor of several elements.

    Raises:
        ValueError: it is.
    """
    if isinstance(lr, Tensor) and lr._array.size != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_range("learning rate", lr, number(lr) >= 0)


def check_betas(betas: tuple[Any, Any]) -> None:
    """Refuse decay rates outside [0, 1).

    Raises:
        ValueError: one is.
    """
    for i, beta in enumerate(betas):
        check_range(f"beta parameter at index {i}", beta, 0 <= number(beta) < 1)


def number(value: Any) -> Any:
    """An option as a Python number (a learning rate may be a tensor)."""
    return value.item() if isinstance(value, Tensor) else value


def count_step(state: dict[str, Any]) -> float:
    """Count one more step of a parameter; the count is a 0-d float32 tensor, as in PyTorch."""
    count = state["step"]._array
    count.fill(count.item() + 1)  # a sum of 0-d arrays takes six times as long
    return count.item()


def zeros_for(parameter: Tensor) -> Tensor:
    """State of a parameter's shape and type."""
    return Tensor._from_array(np.zeros_like(parameter._array))


def zero_count() -> Tensor:
    """A step count."""
    return Tensor._from_array(np.zeros((), np.float32))
