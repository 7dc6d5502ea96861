"""Calling a module with other parameters than its own.

May import the core of clew and `clew.nn.modules`.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = ["functional_call"]


def _owner(module: Any, path: str) -> tuple[Any, str]:
    """The module that holds what a dotted path names, and the last name."""
    prefix, _, name = path.rpartition(".")
    return module.get_submodule(prefix), name


def _swap(module: Any, path: str, value: Any) -> Any:
    """Put a tensor (or None) where a parameter or buffer is; what was there."""
    owner, name = _owner(module, path)
    for table in (owner._parameters, owner._buffers):
        if name in table:
            before = table[name]
            table[name] = value
            return before
    raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")


def _names(module: Any) -> dict[str, Any]:
    """All parameters and buffers, under all of their names."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _with_tied(module: Any, tensors: dict[str, Any]) -> dict[str, Any]:
    """The tensors, also under the other names of what they replace.

    Raises:
        ValueError: two names of one tensor are given different tensors.
    """
    groups: dict[int, list[str]] = {}
    for name, tensor in _names(module).items():
        groups.setdefault(id(tensor), []).append(name)
    complete = dict(tensors)
    for names in groups.values():
        given = [tensors[name] for name in names if name in tensors]
        if len({id(tensor) for tensor in given}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. "
                "Consider using tie_weights=False"
            )
        if given:
            complete.update(dict.fromkeys(names, given[0]))
    return complete


def _check_names(module: Any, tensors: dict[str, Any]) -> None:
    known = _names(module)
    unexpected = [repr(name) for name in tensors if name not in known]
    missing = [repr(name) for name in known if name not in tensors]
    messages = []
    if unexpected:
        messages.append(f"Unexpected key(s): {', '.join(unexpected)}.")
    if missing:
        messages.append(f"Missing key(s): {', '.join(missing)}.")
    if messages:
        lines = "\n\t".join(messages)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{lines}")


@contextlib.contextmanager
def _reparametrize_module(
    module: Any, parameters_and_buffers: dict[str, Any], tie_weights: bool = False,
    strict: bool = False,
) -> Iterator[None]:  # fmt: skip
    """Inside the ``with`` the module has other tensors; its own come back afterwards.

    What a call has assigned to a buffer that was replaced is then found in the dictionary.
    """
    tensors = parameters_and_buffers
    if tie_weights:
        tensors = _with_tied(module, tensors)
    if strict:
        _check_names(module, tensors)
    own: dict[str, Any] = {}
    try:
        for path, tensor in tensors.items():
            own[path] = _swap(module, path, tensor)
        yield
    finally:
        for path, tensor in own.items():
            after = _swap(module, path, tensor)
            if path in parameters_and_buffers:
                parameters_and_buffers[path] = after


def call_with(
    module: Any, parameters_and_buffers: dict[str, Any], args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call a module with other parameters and buffers, by dotted name.

    Args:
        module: the module, which is as before afterwards.
        parameters_and_buffers: the tensors; the module's own are used for those left out.
        args: a tuple of arguments, or one argument.
        kwargs: keyword arguments.
        tie_weights: what the module has under several names is replaced under all of them.
        strict: all names must be given, and no others.

    Raises:
        AttributeError: the module has nothing of a name.
        RuntimeError: names are missing or too many (with `strict`).
        ValueError: tied names are given different tensors.
    """
    args = () if args is None else args
    args = args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(*args: Any, **kwargs: Any) -> Any:
    """The old name of ``torch.func.functional_call``; see `call_with`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be "
        "removed in a future version of PyTorch. Please use `torch.func.functional_call` instead "
        "which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return call_with(*args, **kwargs)
