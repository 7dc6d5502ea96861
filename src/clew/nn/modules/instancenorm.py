"""Instance normalisation: each channel of each example by itself.

May import the core of clew, `clew.nn.functional` and `batchnorm`.
"""

from __future__ import annotations

import warnings
from typing import Any

from clew.nn import functional as F
from clew.nn.modules.batchnorm import _NormBase
from clew.tensor import Tensor

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase):
    """Mean 0 and variance 1 over the space of each channel of each example.

    Args:
        num_features: the number of channels.
        eps: added to the variance.
        momentum: the weight of a new batch in the running averages.
        affine: whether to scale and shift.
        track_running_stats: whether to keep running averages, and use them in evaluation mode.
        device: the CPU.
        dtype: of parameters and averages.
        bias: whether to shift.

    Raises:
        ValueError: the input has another number of dimensions or (if affine) channels.
    """

    _inner_ndim: int

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Tensor) -> None:
        low = self._inner_ndim + 1
        if input.ndim not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.ndim}D input)")

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        dim = input.ndim - self._inner_ndim - 1
        if input.shape[dim] != self.num_features:
            self._complain_of_features(dim, input.shape[dim])
        if dim == 0:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)

    def _complain_of_features(self, dim: int, size: int) -> None:
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features "
                f"({self.num_features}), but got: {size}."
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning "
            "by not passing in num_features, which is not used because affine=False",
            stacklevel=3,
        )

    def _apply_instance_norm(self, input: Any) -> Any:
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0, self.eps,
        )  # fmt: skip

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            keys = [prefix + name for name in ("running_mean", "running_var")]
            found = [key for key in keys if key in state_dict]
            if found:
                error_msgs.append(self._unexpected_averages(found))
            for key in found:
                state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _unexpected_averages(self, keys: list[str]) -> str:
        name = self._get_name()
        listed = " and ".join(f'"{key}"' for key in keys)
        return (
            f"Unexpected running stats buffer(s) {listed} for {name} with "
            "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may "
            f"be expected because {name} does not track running stats by default since 0.4.0. "
            "Please remove these keys from state_dict. If the running stats are actually needed, "
            f"instead set track_running_stats=True in {name} to enable them. See the "
            f"documentation of {name} for details."
        )


class InstanceNorm1d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    _inner_ndim = 1


class InstanceNorm2d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    _inner_ndim = 2


class InstanceNorm3d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    _inner_ndim = 3
