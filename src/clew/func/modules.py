"""Modules as functions of their parameters: `functional_call`, and ensembles of modules."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from clew.dispatch import TENSORS
from clew.func.batching.batch import Batch
from clew.nn.utils.stateless import call_with


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call a module with other parameters and buffers than its own.

    Args:
        module: the module; afterwards it is as before.
        parameter_and_buffer_dicts: tensors by dotted name, in a dict or a sequence of dicts; the
            module's own are used for names left out.
        args: a tuple of arguments, or one argument.
        kwargs: keyword arguments.
        tie_weights: what the module has under several names is replaced under all of them.
        strict: all names must be given, and no others.

    Raises:
        ValueError: no dicts, or a name stands in several of them.
        RuntimeError: names are missing or too many (with `strict`).

    >>> from clew.func import functional_call
    >>> tensors = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    >>> functional_call(torch.nn.Linear(2, 1), tensors, torch.tensor([1.0, 2.0]))
    tensor([3.])
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, dict):
        tensors = given
    elif isinstance(given, Sequence):
        tensors = _merged(given)
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(given)}"
        )
    return call_with(module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict)


def _merged(dicts: Sequence[Any]) -> dict[str, Any]:
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    repeated = [name for name, n in Counter(name for d in dicts for name in d).items() if n > 1]
    if repeated:
        raise ValueError(
            f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
            "ambiguous"
        )
    return {name: value for d in dicts for name, value in d.items()}


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and buffers of several modules of one kind, stacked by name.

    Args:
        models: modules of one class, all in training or all in evaluation mode.

    Returns:
        ``(parameters, buffers)``, dicts of new leaves of which dimension 0 counts the modules.

    Raises:
        RuntimeError: there is none, or they differ in class, mode or what requires grad.

    >>> from clew.func import stack_module_state
    >>> models = [torch.nn.Linear(2, 1) for _ in range(3)]
    >>> stack_module_state(models)[0]["weight"].shape
    torch.Size([3, 1, 2])
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return _stacked(parameters), _stacked(buffers)


def _stacked(tables: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: _leaf([table[name] for table in tables], name) for name in tables[0]}


def _leaf(tensors: list[Any], name: str) -> Any:
    flags = {x.requires_grad for x in tensors}
    if len(flags) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    stacked = TENSORS.stack(tensors)
    return stacked.detach().requires_grad_() if flags == {True} else stacked


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Make all batch norms in a module keep no running statistics, in place; the module.

    `vmap` over examples cannot write them: they are shared.
    """
    from clew.nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function that gives what `func` gives.

    In PyTorch it runs `func` without writes in place (and, with "mutations_and_views", without
    views), for a program that records which operations are run.  What it computes and what it
    writes to its arguments is the same; clew has no such recorder, so nothing is left to do.

    Raises:
        RuntimeError: `remove` is neither "mutations" nor "mutations_and_views".
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
            "Valid options are:\n     remove='mutations': all inplace and out= operators will be "
            "removed from the program, and replaced with their out-of-place equivalents.\n     "
            "remove='mutations_and_views': In addition to the above, all aliasing operators {view} "
            "will be replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """The tensor with all examples behind one that `vmap` has made; any other as it is.

    Args:
        tensor: a tensor, inside a transform.
        recurse: through all transforms, or only the innermost.
    """
    array = tensor._array
    while array.__class__ is Batch:
        tensor = array.value
        array = tensor._array
        if not recurse:
            break
    return tensor
