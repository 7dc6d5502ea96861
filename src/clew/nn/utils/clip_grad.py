"""Limiting gradients before an optimizer's step.  May import the core of clew.

`foreach` is PyTorch's choice between two implementations; here there is one.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

import clew
from clew.autograd.modes import no_grad, state
from clew.autograd.transforms import running
from clew.kernels import optim as kernels
from clew.observers import observers
from clew.site import here
from clew.tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]


def _listed(tensors: Tensor | Iterable[Tensor]) -> list[Any]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: list[Any]) -> list[Any]:
    return [p.grad for p in parameters if p.grad is not None]


@no_grad()
def _get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """The norm of all elements of several tensors together.

    Args:
        tensors: a tensor or several.
        norm_type: the order of the norm, perhaps infinity.
        error_if_nonfinite: raise if the norm is infinite or no number.
        foreach: without effect.

    Raises:
        RuntimeError: see `error_if_nonfinite`.
    """
    listed = _listed(tensors)
    norm_type = float(norm_type)
    if not listed:
        return clew.zeros(())
    norms = [clew.linalg.vector_norm(t, norm_type) for t in listed]
    total = clew.linalg.vector_norm(clew.stack(norms), norm_type)
    if error_if_nonfinite and not clew.isfinite(total):
        raise RuntimeError(_not_finite(norm_type))
    return total


def _not_finite(norm_type: float) -> str:
    return (
        f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
        "so it cannot be clipped. To disable this error and scale the gradients by the "
        "non-finite norm anyway, set `error_if_nonfinite=False`"
    )


def _clip_at_once(grads: list[Any], max_norm: float, error_if_nonfinite: bool) -> Any:
    """`clip_grad_norm_` by the 2-norm without ops, for plain gradients; None for others.

    That is where nobody watches ops, and the gradients are real tensors of one type, no views, and
    not recorded.  A model has dozens of small ones, for each of which an op costs more than the
    arithmetic.
    """
    if running or observers or state.now.inference or not all(map(_is_plain, grads)):
        return None
    arrays = [grad._array for grad in grads]
    if not arrays or any(array.dtype != arrays[0].dtype for array in arrays):
        return None
    with np.errstate(all="ignore"):
        total = kernels.total_norm(arrays)
        if error_if_nonfinite and not np.isfinite(total).all():
            raise RuntimeError(_not_finite(2.0))
        factor = np.minimum(max_norm / (total + 1e-6), 1)[0]
        site = here()
        for grad, array in zip(grads, arrays):
            np.multiply(array, factor, out=array)
            grad._counter.bump("mul_", site)
    return Tensor._from_array(total.reshape(()))


def _is_plain(grad: Any) -> bool:
    return (
        type(grad) is Tensor
        and grad._meta is None
        and not grad._requires_grad
        and grad._array.__class__ is np.ndarray
        and grad._array.dtype.char in "fd"
        and grad._array.flags.carray
    )


@no_grad()
def _clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Any,
    foreach: bool | None = None,
) -> None:
    """Scale the gradients by ``max_norm / total_norm`` where that is below one.

    Args:
        parameters: whose gradients.
        max_norm: the largest norm that they may have.
        total_norm: the norm that they have.
        foreach: without effect.
    """
    # Scaled even where the factor is one, so that nothing depends on a value.
    factor = clew.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    for grad in _gradients(_listed(parameters)):
        grad.mul_(factor)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale the gradients, in place, so that their common norm is at most `max_norm`.

    Args:
        parameters: whose gradients.
        max_norm: the largest norm that they may have.
        norm_type: the order of the norm, perhaps infinity.
        error_if_nonfinite: raise if the norm is infinite or no number.
        foreach: without effect.

    Returns:
        The norm from before, a 0-d tensor.

    Raises:
        RuntimeError: see `error_if_nonfinite`.
    """
    listed = _listed(parameters)
    if not listed and isinstance(parameters, types.GeneratorType):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
        )
    grads = _gradients(listed)
    if float(norm_type) == 2:
        total = _clip_at_once(grads, float(max_norm), error_if_nonfinite)
        if total is not None:
            return total
    total = _get_total_norm(grads, norm_type, error_if_nonfinite)
    _clip_grads_with_norm_(listed, max_norm, total)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Any:
    """The old name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


@no_grad()
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clip each element of the gradients, in place, to [-clip_value, clip_value].

    Args:
        parameters: whose gradients.
        clip_value: the largest size of an element.
        foreach: without effect.
    """
    bound = float(clip_value)
    for grad in _gradients(_listed(parameters)):
        grad.clamp_(min=-bound, max=bound)
