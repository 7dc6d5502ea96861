"""Distances between rows.  May import the core of clew, `clew.nn.functional` and `module`."""

from __future__ import annotations

from clew.nn import functional as F
from clew.nn.modules.module import Module
from clew.tensor import Tensor

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The norm of order `p` of ``x1 - x2 + eps``, over the last dimension."""

    __constants__ = ("norm", "eps", "keepdim")

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between two vectors along `dim`; norms are at least `eps`."""

    __constants__ = ("dim", "eps")

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
