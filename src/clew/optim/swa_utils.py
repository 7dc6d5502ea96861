"""Averages of a model's parameters over training, and the schedule that goes with them.

Sources: Izmailov et al., "Averaging weights leads to wider optima and better generalization",
2018; Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import clew
from clew.autograd.modes import no_grad
from clew.nn import Module
from clew.nn.modules.batchnorm import _BatchNorm
from clew.optim.lr_scheduler import LRScheduler
from clew.optim.lr_scheduler.base import one_for_each
from clew.optim.optimizer import Optimizer

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """A function for `AveragedModel` that gives an exponential average.

    Raises:
        ValueError: `decay` lies outside [0, 1].
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """A function for `AveragedModel` that gives the mean."""

    @no_grad()
    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """As `get_ema_avg_fn`, for lists of parameters, which are brought up to date in place."""
    return _of_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[..., Any]:
    """As `get_swa_avg_fn`, for lists of parameters, which are brought up to date in place."""
    return _of_lists(get_swa_avg_fn())


def _of_lists(average: Callable[..., Any]) -> Callable[..., Any]:
    @no_grad()
    def update(averaged_params: Any, current_params: Any, num_averaged: Any) -> None:
        for averaged, current in zip(averaged_params, current_params):
            averaged.copy_(average(averaged, current, num_averaged))

    return update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages.

    Args:
        model: the model that is trained.
        device: where the averages are: the CPU.
        avg_fn: ``avg_fn(averaged, current, num_averaged)`` gives the new average; by default that
            of `get_swa_avg_fn`.
        multi_avg_fn: the same for lists, in place.
        use_buffers: average buffers too, instead of copying them.

    Raises:
        AssertionError: both functions are given.
    """

    def __init__(
        self,
        model: Any,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., Any] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", clew.zeros((), dtype=clew.long))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Any) -> None:
        """Take the model's present parameters into the averages."""
        pairs = list(zip(self._averaged(self.module), self._averaged(model)))
        averaged = [own.detach() for own, _ in pairs]
        current = [other.detach() for _, other in pairs]
        if self.n_averaged == 0:
            for own, other in zip(averaged, current):
                own.copy_(other)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(averaged, current, self.n_averaged)
        else:
            _of_lists(self.avg_fn or get_swa_avg_fn())(averaged, current, self.n_averaged)
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers()):
                own.detach().copy_(other.detach())
        self.n_averaged += 1

    def _averaged(self, model: Any) -> Iterable[Any]:
        """What is averaged of a model."""
        if self.use_buffers:
            return itertools.chain(model.parameters(), model.buffers())
        return model.parameters()


@no_grad()
def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Compute the running statistics of a model's batch normalisations anew.

    Args:
        loader: gives inputs, or sequences whose first element is the input.
        model: the averaged model, whose statistics belong to other parameters.
        device: where inputs go first: the CPU.
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # a plain mean over the batches
    for batch in loader:
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(inputs if device is None else inputs.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present learning rates to `swa_lr` in `anneal_epochs` epochs, and on from there.

    Raises:
        ValueError: an option is unknown or out of range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(one_for_each("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How far the learning rate has come when a part `t` of the epochs has passed."""
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        self._warn_if_asked_directly()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        epochs = max(1, self.anneal_epochs)
        before = self.anneal_func(max(0, min(1, (step - 1) / epochs)))
        now = self.anneal_func(max(0, min(1, step / epochs)))
        return [
            group["swa_lr"] * now + _start(group["lr"], group["swa_lr"], before) * (1 - now)
            for group in self.optimizer.param_groups
        ]


def _start(lr: Any, swa_lr: Any, part: float) -> Any:
    """The learning rate from which `part` of the way leads to `lr`."""
    return swa_lr if part == 1 else (lr - part * swa_lr) / (1 - part)
