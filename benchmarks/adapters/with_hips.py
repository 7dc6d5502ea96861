"""HIPS autograd: NumPy with gradients."""

import importlib
from typing import Any

from adapters.functional import Array, Functional

HIPS = "autograd"
"""Imported by name, since the tests have a folder called so, which a type checker would read."""

CANNOT = dict.fromkeys(
    ("DCGAN step", "CNN step", "small CNN step"), "its convolution is not made for batches"
)


def load(threads: int) -> Functional:
    autograd: Any = importlib.import_module(HIPS)
    erf = importlib.import_module(f"{HIPS}.scipy.special").erf

    class Hips(Functional):
        def value_and_grad(self, function: Any) -> Any:
            return autograd.value_and_grad(function)

        def vjp(self, function: Any, p: list[Array]) -> Any:
            back, value = autograd.make_vjp(function)(p)
            return value, back

        def gelu(self, x: Array) -> Array:
            return 0.5 * x * (1 + erf(x / 2**0.5))

    return Hips(autograd.numpy, CANNOT)
