"""Optimizers, with PyTorch's names, options and state.  Layer 5."""

from clew.optim.adam import Adam, AdamW
from clew.optim.optimizer import Optimizer
from clew.optim.rmsprop import RMSprop
from clew.optim.sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "RMSprop", "SGD"]
