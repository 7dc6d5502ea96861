"""PyTorch's ``torch.utils.tensorboard``: a `SummaryWriter`, if tensorboardX is installed.

tensorboardX writes the files without PyTorch; clew hands its tensors over as arrays.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from clew.tensor import Tensor

try:
    _writer: Any = importlib.import_module("tensorboardX")
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "No module named 'tensorboardX': clew.utils.tensorboard writes its files with it; pip "
        "install tensorboardX",
        name="tensorboardX",
    ) from error

__all__ = ["SummaryWriter"]


def _as_arrays(value: Any) -> Any:
    """Tensors as arrays, inside lists and mappings too."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    if isinstance(value, Mapping):
        return {key: _as_arrays(v) for key, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_as_arrays, value))
    return value


class SummaryWriter(_writer.SummaryWriter):
    """Writes scalars, histograms, images and text for TensorBoard; takes clew's tensors.

    `add_graph` is refused: `clew.graph` and `clew.make_dot` show graphs.
    """

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith("add_") or name == "add_graph":
            return found

        def add(*args: Any, **kwargs: Any) -> Any:
            return found(*_as_arrays(args), **_as_arrays(kwargs))

        return add

    def add_graph(self, model: Any, *args: Any, **kwargs: Any) -> None:
        """Raises NotImplementedError."""
        raise NotImplementedError(
            "clew writes no graphs for TensorBoard: clew.make_dot(loss) draws one"
        )
