"""The old place of `clew.amp`, for CUDA."""

from __future__ import annotations

import warnings
from typing import Any

from clew import amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def _warn_of_the_new_place(name: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cuda', "
        "args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(amp.autocast):
    """``amp.autocast("cuda", ...)``."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        _warn_of_the_new_place("autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """``amp.GradScaler("cuda", ...)``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _warn_of_the_new_place("GradScaler")
        super().__init__("cuda", *args, **kwargs)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """``amp.custom_fwd(device_type="cuda")``."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """``amp.custom_bwd(device_type="cuda")``."""
    return amp.custom_bwd(bwd, device_type="cuda")
