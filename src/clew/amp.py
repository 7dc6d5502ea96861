"""``clew.amp``: automatic mixed precision.  Layer 5: imports the core.

Without an accelerator most of it turns itself off, as PyTorch's does.  `GradScaler` works on the
CPU; `autocast` on the CPU is not there, and says so.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from clew.device import device as device_of
from clew.tensor import Tensor

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


class autocast:
    """A scope (or decorator) of lower precision; on an accelerator that is missing, of none.

    Raises:
        NotImplementedError: it is asked for on the CPU.
        ValueError, RuntimeError: `device_type` is no device.
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_of(device_type).type
        self.fast_dtype = dtype
        if enabled and self.device == "cpu":
            raise NotImplementedError(
                "clew has no autocast on the CPU: convert the model and its inputs "
                "(model.bfloat16()), or pass enabled=False"
            )
        if enabled:
            warnings.warn(
                f"{self.device.upper()} is not available or torch_xla is imported. Disabling "
                "autocast.",
                UserWarning,
                stacklevel=2,
            )
        self._enabled = False

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exception: Any) -> None:
        """Nothing was changed."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapped


def is_autocast_available(device_type: str) -> bool:
    """False: see `autocast`."""
    device_of(device_type)
    return False


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Any:
    """Decorate a Function's forward, as programs for autocast do; without it nothing changes."""
    return fwd if fwd is not None else lambda function: function


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorate a Function's backward; see `custom_fwd`."""
    return bwd if bwd is not None else lambda function: function


class GradScaler:
    """Scales losses up so that small gradients survive, and skips steps that overflowed.

    Args:
        device: where the tensors are; on "cuda", which is missing, the scaler turns itself off.
        init_scale: the first scale.
        growth_factor: times this after `growth_interval` good steps in a row.
        backoff_factor: times this after a bad one.
        growth_interval: see `growth_factor`.
        enabled: if False, everything passes unscaled.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device_of(device).type
        if enabled and self._device != "cpu":
            warnings.warn(
                f"torch.{self._device}.amp.GradScaler is enabled, but {self._device.upper()} is "
                "not available.  Disabling.",
                UserWarning,
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        if not enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._good_steps = 0
        self._clear()

    def _clear(self) -> None:
        """Forget the optimizers of this iteration: which are unscaled, and which overflowed."""
        self._overflowed: dict[int, bool | None] = {}  # None: it has no gradients
        self._stepped: dict[int, bool] = defaultdict(bool)

    def scale(self, outputs: Any) -> Any:
        """A loss, or a sequence of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(output) for output in outputs)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients by the scale, in place.

        Raises:
            RuntimeError: again, or after the optimizer's step.
        """
        if not self._enabled:
            return
        key = id(optimizer)
        if self._stepped[key]:
            raise RuntimeError("unscale_() is being called after step().")
        if key in self._overflowed:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        found = None
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    array = parameter.grad._array
                    array *= 1.0 / self._scale
                    found = bool(found) or not bool(np.isfinite(array).all())
        self._overflowed[key] = found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step, unless a gradient is infinite or NaN; unscales first if need be.

        Raises:
            RuntimeError: a closure is given, or the optimizer was stepped already.
            AssertionError: no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        key = id(optimizer)
        if self._stepped[key]:
            raise RuntimeError("step() has already been called since the last update().")
        if key not in self._overflowed:
            self.unscale_(optimizer)
        if self._overflowed[key] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        self._stepped[key] = True
        return None if self._overflowed[key] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Set the scale of the next iteration."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif all(found is None for found in self._overflowed.values()):
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._overflowed.values()):
            self._scale *= self._backoff_factor
            self._good_steps = 0
        else:
            self._good_steps += 1
            if self._good_steps == self._growth_interval:
                if math.isfinite(self._scale * self._growth_factor):
                    self._scale *= self._growth_factor
                self._good_steps = 0
        self._clear()

    def get_scale(self) -> float:
        """The scale; 1 if the scaler is off."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """See the constructor."""
        return self._growth_factor

    def get_backoff_factor(self) -> float:
        """See the constructor."""
        return self._backoff_factor

    def get_growth_interval(self) -> int:
        """See the constructor."""
        return self._growth_interval

    def is_enabled(self) -> bool:
        """Whether the scaler is on."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale and what changes it; empty if the scaler is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._good_steps,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave.

        Raises:
            RuntimeError: it is empty, of a scaler that was off.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._good_steps = state_dict["_growth_tracker"]
