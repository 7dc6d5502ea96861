"""Neural networks: PyTorch's ``torch.nn``.  Layer 5: imported when first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from clew.nn import functional as functional
from clew.nn import init as init
from clew.nn import modules as modules
from clew.nn import parameter as parameter
from clew.nn import utils as utils
from clew.nn.modules import *  # noqa: F403
from clew.nn.parameter import (
    Buffer as Buffer,
)
from clew.nn.parameter import (
    Parameter as Parameter,
)
from clew.nn.parameter import (
    UninitializedBuffer as UninitializedBuffer,
)
from clew.nn.parameter import (
    UninitializedParameter as UninitializedParameter,
)

if TYPE_CHECKING:
    from clew.nn.parallel import DataParallel as DataParallel


def __getattr__(name: str) -> Any:
    if name in ("DataParallel", "parallel"):  # few programs need them
        parallel = importlib.import_module("clew.nn.parallel")
        return parallel if name == "parallel" else parallel.DataParallel
    raise AttributeError(
        f"module 'clew.nn' has no attribute '{name}': clew does not have it (yet); "
        "docs/compatibility.md lists what it has"
    )
