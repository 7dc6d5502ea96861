"""clew: automatic differentiation with PyTorch's semantics and a graph you can look at.

``import clew as torch`` gives PyTorch's names; ``clew run script.py`` runs a PyTorch script.
Submodules (``clew.nn``, ``clew.optim``, ...) are imported when they are first used.
"""

from __future__ import annotations

import gc
import importlib
from typing import TYPE_CHECKING, Any

# Importing makes a hundred thousand objects that stay: a garbage collector that looks through them
# again and again takes a tenth of the time.  It is turned on again below.
_collects = gc.isenabled()
gc.disable()

from clew import ahead as _ahead

__path__[:0] = _ahead.path_of("clew")

from clew import ops as _ops  # fills the registry, before anything dispatches
from clew import autograd as autograd
from clew import dtypes as _dtypes
from clew import functions as _functions
from clew import methods as _methods
from clew import publish as _publish
from clew.autograd.anomaly import (
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
)
from clew.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from clew.config import is_warn_always_enabled, set_warn_always
from clew.device import device
from clew.dtypes import (
    bfloat16,
    can_cast,
    channels_last,
    complex64,
    complex128,
    contiguous_format,
    dtype,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    layout,
    memory_format,
    preserve_format,
    promote_types,
    set_default_dtype,
    sparse_coo,
    strided,
    uint8,
    uint16,
    uint32,
    uint64,
)
from clew.limits import finfo, iinfo
from clew.printing import set_printoptions
from clew.rng import Generator, default_generator
from clew.tensor import Size, Tensor
from clew.threads import (
    get_num_interop_threads,
    get_num_threads,
    set_num_interop_threads,
    set_num_threads,
)

__version__ = "0.1.0"

globals().update(_publish.install())
globals().update(_dtypes.ALIASES)

if not gc.get_freeze_count():  # what was made is put among the old objects, and not looked through
    gc.freeze()
    gc.unfreeze()
if _collects:
    gc.enable()

if TYPE_CHECKING:
    tensor: Any  # the function, which stands before the submodule of that name

from math import e, inf, nan, pi

newaxis = None

_LAZY = {
    "Graph": "inspect",
    "graph": "inspect",
    "make_dot": "inspect",
    "doctor": "inspect.doctor",
    "explain": "inspect.doctor",
    "why": "inspect.why",
    "who_holds": "inspect.why",
    "enable_torch": "torch_alias",
    "disable_torch": "torch_alias",
    "save": "serialization",
    "load": "serialization",
    **dict.fromkeys(
        (
            "binary_cross_entropy_with_logits",
            "cosine_embedding_loss",
            "ctc_loss",
            "hinge_embedding_loss",
            "kl_div",
            "margin_ranking_loss",
            "poisson_nll_loss",
            "triplet_margin_loss",
        ),
        "nn.functional.native",
    ),
    "vmap": "func",
    "GradScaler": "amp",
    "autocast": "amp",
}
"""Names that a submodule has; it is imported when one is first used."""


def __getattr__(name: str) -> Any:
    """Import submodules, and what stands in them, when they are first used."""
    if name in _LAZY:
        return getattr(importlib.import_module(f"clew.{_LAZY[name]}"), name)
    if not name.startswith("_") or name in ("_C", "_vmap_internals"):
        try:
            return importlib.import_module(f"clew.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"clew.{name}":
                raise
    raise AttributeError(
        f"module 'clew' has no attribute '{name}': clew does not have it (yet); "
        "docs/compatibility.md lists what it has"
    )
