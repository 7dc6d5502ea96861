"""Powers where number, real and complex meet."""

from __future__ import annotations

import numpy as np
import pytest

import clew

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("base", [-1, 0, 2.5, -2.5, 1j])
def test_the_gradient_of_a_complex_exponent(base: complex) -> None:
    """A negative base has no real logarithm, but a complex one."""
    gradients = []
    for t in (clew, torch):
        exponent = t.tensor([0.3 + 0.2j, -0.5 + 1j, 0j, 1j], dtype=t.complex128, requires_grad=True)
        (gradient,) = t.autograd.grad(t.pow(base, exponent).real.sum(), exponent)
        gradients.append(gradient.numpy())
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-12, atol=1e-15)
