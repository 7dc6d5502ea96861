"""Padding with an image's own elements against `np.pad`, and its gradient as the adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clew.kernels.pad import pad_by_index, pad_by_index_backward

NUMPY_MODES: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
AMOUNTS = [((2, 1),), ((0, 3), (1, 0)), ((1, 1), (2, 2), (0, 1))]


@pytest.mark.parametrize("mode", NUMPY_MODES)
@pytest.mark.parametrize("amounts", AMOUNTS)
def test_as_numpy_pads(mode: str, amounts: tuple[tuple[int, int], ...]) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5, 6)[: 2 + len(amounts)])
    expected = np.pad(x, ((0, 0), (0, 0), *amounts), NUMPY_MODES[mode])
    np.testing.assert_array_equal(pad_by_index(x, amounts, mode), expected)


@pytest.mark.parametrize("mode", NUMPY_MODES)
def test_negative_amounts_crop(mode: str) -> None:
    x = np.arange(6.0)[None, None]
    cropped = x[..., 2:]
    padded = pad_by_index(x, ((-2, 1),), mode)
    if mode == "circular":
        np.testing.assert_array_equal(padded, np.pad(cropped, ((0, 0), (0, 0), (0, 1)), "wrap"))
    else:
        whole = pad_by_index(x, ((0, 1),), mode)
        np.testing.assert_array_equal(padded, whole[..., 2:])


@pytest.mark.parametrize("mode", NUMPY_MODES)
@pytest.mark.parametrize("amounts", [*AMOUNTS, ((-1, 2),), ((1, -2), (-1, -1))])
def test_gradient_is_the_adjoint(mode: str, amounts: tuple[tuple[int, int], ...]) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 4, 5, 6)[: 2 + len(amounts)])
    padded = pad_by_index(x, amounts, mode)
    grad = rng.normal(size=padded.shape)
    back = pad_by_index_backward(grad, x.shape, amounts, mode)
    assert back.shape == x.shape and back.flags.c_contiguous
    np.testing.assert_allclose((padded * grad).sum(), (x * back).sum(), rtol=1e-12)
