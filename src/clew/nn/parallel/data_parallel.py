"""The wrapper that spreads a batch over devices, of which clew has none to spread it over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from clew.nn.modules.module import Module


class DataParallel(Module):
    """Calls `module`, under PyTorch's names in the state dict (``module.weight``).

    PyTorch copies the module to each accelerator, splits the inputs along `dim` and gathers the
    outputs; on a machine without one it calls the module itself, ignores `device_ids`,
    `output_device` and `dim`, and copies nothing.  So does this.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> NoReturn:
    """Raises RuntimeError, as PyTorch does without an accelerator."""
    raise RuntimeError("device type could not be determined")
