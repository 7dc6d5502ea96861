"""Batch normalisation, which keeps running averages of mean and variance.

May import the core of clew, `clew.nn.functional`, `clew.nn.init`, `clew.nn.parameter`, `module`.
"""

from __future__ import annotations

import sys
from typing import Any

import clew
from clew.nn import functional as F
from clew.nn import init
from clew.nn.modules.module import Module
from clew.nn.parameter import Parameter
from clew.tensor import Tensor

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


class _NormBase(Module):
    """Parameters and running averages of a norm over channels.

    Args:
        num_features: the number of channels (dimension 1).
        eps: added to the variance.
        momentum: the weight of a new batch in the running averages; None averages all alike.
        affine: whether to scale and shift.
        track_running_stats: whether to keep running averages.
        device: the CPU.
        dtype: of parameters and averages.
        bias: whether to shift.
    """

    # Version 2 added num_batches_tracked to the state.
    _version = 2
    __constants__ = ("track_running_stats", "momentum", "eps", "num_features", "affine")

    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = clew.empty(num_features, device=device, dtype=dtype)
            self.register_parameter(name, Parameter(made) if wanted else None)
        if track_running_stats:
            options = {"device": device, "dtype": dtype}
            self.register_buffer("running_mean", clew.zeros(num_features, **options))
            self.register_buffer("running_var", clew.ones(num_features, **options))
            self.register_buffer("num_batches_tracked", clew.zeros((), dtype=clew.long))
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the running averages: mean 0, variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget the running averages, scale by one and shift by zero."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        """Refuse an input of another number of dimensions."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any
    ) -> None:
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            state_dict[key] = clew.zeros((), dtype=clew.long) if count is None else count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class _BatchNorm(_NormBase):
    """Batch normalisation; in training mode by the batch's own mean and variance."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        uses_averages = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if uses_averages else None,
            self.running_var if uses_averages else None,
            self.weight,
            self.bias,
            by_batch,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.ndim}D input)")


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 4:
            raise ValueError(f"expected 4D input (got {input.ndim}D input)")


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 5:
            raise ValueError(f"expected 5D input (got {input.ndim}D input)")


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of (N, C, *); on GPUs in PyTorch, over the batches of all processes.

    Here it is batch normalisation within one process, as in PyTorch without a process group.

    Args:
        num_features, eps, momentum, affine, track_running_stats: as in `BatchNorm1d`.
        process_group: kept, and without effect.
        device, dtype, bias: as in `BatchNorm1d`.

    Raises:
        ValueError: the input has fewer than two dimensions, or no channels.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, process_group: Any = None,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")
        if _several_processes():
            raise ValueError("SyncBatchNorm expected input tensor to be on GPU or XPU")

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """The module with its batch norms, at any depth, replaced by ones of this class."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = SyncBatchNorm(
                module.num_features, module.eps, module.momentum, module.affine,
                module.track_running_stats, process_group, bias=module.bias is not None,
            )  # fmt: skip
            if module.affine:
                converted.weight = module.weight
                converted.bias = module.bias
            converted.running_mean = module.running_mean
            converted.running_var = module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


def _several_processes() -> bool:
    """Whether this is one of several processes; asked without importing what would tell."""
    distributed = sys.modules.get("clew.distributed")
    return bool(
        distributed is not None
        and distributed.is_initialized()
        and distributed.get_world_size() > 1
    )
