"""The workloads: each takes an engine's module (torch, or clew) and returns a step to time.

A step returns its loss as a float, so that the engines can be compared.  Steps of models have
attributes ``model`` and ``forward``, from which the bytes saved for backward are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workloads import learning, models, operations

Step = Callable[[], float]

WORKLOADS: dict[str, tuple[Callable[[Any], Step], int]] = {
    "three ops and backward": (operations.three_ops, 200),
    "chain of 200 ops": (operations.chain, 10),
    "chain of 100,000 nodes": (operations.deep, 1),
    "MLP step": (models.mlp, 30),
    "large MLP step": (models.large_mlp, 3),
    "GAN step": (learning.gan, 15),
    "DCGAN step": (learning.dcgan, 1),
    "small CNN step": (models.small_cnn, 2),
    "CNN step": (models.cnn, 1),
    "PPO update": (learning.ppo, 1),
    "classifier on a frozen backbone": (learning.finetune, 3),
    "transformer step": (models.transformer, 1),
    "LSTM step": (models.lstm, 1),
    "elementwise chain on 4 M floats": (operations.elementwise, 1),
    "accumulation over 8 micro-batches": (learning.accumulate, 2),
    "Hessian-vector product": (learning.hessian_vector, 10),
}
"""Name to (maker, steps in one timed round)."""
