"""A small stand-in for torchvision: made-up images, and the few names that the listed scripts use.

It is built on public names of `torch` only, so it runs on either engine.  The images are drawn
from NumPy's generator with a fixed seed and carry their class, so that a model can learn it.
"""

from torchvision import datasets, models, transforms, utils

__all__ = ["datasets", "models", "transforms", "utils"]
