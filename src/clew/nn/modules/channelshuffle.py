"""Mixing groups of channels.  May import the core of clew, `clew.nn.functional` and `module`."""

from __future__ import annotations

from clew.nn import functional as F
from clew.nn.modules.module import Module
from clew.tensor import Tensor

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Takes channels from each of the groups in turn.  Source: Zhang et al. 2018."""

    __constants__ = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
