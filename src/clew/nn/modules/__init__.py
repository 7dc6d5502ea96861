"""Layers, losses and containers: PyTorch's ``torch.nn.modules``."""

from clew.nn.modules.container import (
    Container,
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from clew.nn.modules.linear import Bilinear, Identity, Linear
from clew.nn.modules.module import Module

__all__ = [
    "Bilinear",
    "Container",
    "Identity",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]
