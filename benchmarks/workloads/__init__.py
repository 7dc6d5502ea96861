"""The workloads: each makes a step on torch or clew, its functions compiled by what it is given.

`workloads.functional` has the same workloads for engines that do not have PyTorch's names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workloads import learning, models, operations
from workloads.step import Step

WORKLOADS: dict[str, tuple[Callable[..., Step], int]] = {
    "three ops and backward": (operations.three_ops, 200),
    "chain of 200 ops": (operations.chain, 10),
    "chain of 100,000 nodes": (operations.deep, 1),
    "MLP step": (models.mlp, 30),
    "large MLP step": (models.large_mlp, 3),
    "GAN step": (learning.gan, 15),
    "DCGAN step": (learning.dcgan, 1),
    "CNN step": (models.cnn, 1),
    "small CNN step": (models.small_cnn, 2),
    "PPO update": (learning.ppo, 1),
    "classifier on a frozen backbone": (learning.finetune, 3),
    "transformer step": (models.transformer, 1),
    "LSTM step": (models.lstm, 1),
    "elementwise chain on 4 M floats": (operations.elementwise, 1),
    "accumulation over 8 micro-batches": (learning.accumulate, 2),
    "Hessian-vector product": (learning.hessian_vector, 10),
}
"""Name to (maker, steps in one timed round)."""

EXTRA = frozenset({"small CNN step"})
"""Workloads that the mean leaves out, so that convolutional classifiers do not count twice."""


def make(name: str, engine: Any, compiled: Callable[[Any], Any] | None = None) -> Step:
    """The step of a workload on `engine`, its functions compiled if a compiler is given."""
    maker, _ = WORKLOADS[name]
    return maker(engine) if compiled is None else maker(engine, compiled)
