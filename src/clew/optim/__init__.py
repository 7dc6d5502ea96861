"""Optimizers, with PyTorch's names, options and state.  Layer 5."""

from __future__ import annotations

import importlib
from typing import Any

from clew.optim import lr_scheduler as lr_scheduler
from clew.optim import optimizer as optimizer
from clew.optim.adadelta import Adadelta
from clew.optim.adafactor import Adafactor
from clew.optim.adagrad import Adagrad
from clew.optim.adam import Adam, AdamW
from clew.optim.adamax import Adamax
from clew.optim.asgd import ASGD
from clew.optim.lbfgs import LBFGS
from clew.optim.muon import Muon
from clew.optim.nadam import NAdam
from clew.optim.optimizer import Optimizer
from clew.optim.radam import RAdam
from clew.optim.rmsprop import RMSprop
from clew.optim.rprop import Rprop
from clew.optim.sgd import SGD
from clew.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
]


def __getattr__(name: str) -> Any:
    """Import `swa_utils`, which needs modules, when it is first used."""
    if name == "swa_utils":
        return importlib.import_module("clew.optim.swa_utils")
    raise AttributeError(f"module 'clew.optim' has no attribute '{name}': clew lacks it (yet)")
