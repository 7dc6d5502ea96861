"""Normal numbers by twins are those of NumPy's formulas, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from clew.rng import box_muller


def blocks(monkeypatch: pytest.MonkeyPatch, compiled: bool, *args: object) -> np.ndarray:
    """`blocks32` with or without its twins."""
    for limit in ("MANY", "MANY_TO_LOAD"):
        monkeypatch.setattr(box_muller, limit, 0 if compiled else 1 << 60)
    return box_muller.blocks32(*args)  # type: ignore[arg-type]


@pytest.mark.parametrize(("mean", "std"), [(0, 1), (0.3, 2.7), (-1e3, 1e-3), (1, 0), (0, 1e38)])
def test_twins_give_the_same_bits(monkeypatch: pytest.MonkeyPatch, mean: float, std: float) -> None:
    steps = np.random.default_rng(0).integers(0, 1 << 24, 1 << 17)
    steps[:64], steps[64:128], steps[128:192] = 0, (1 << 24) - 1, np.arange(64)
    steps[192:256] = np.arange(64) << 18  # near the ends of octants
    uniforms = steps.astype(np.float32) * np.float32(2.0**-24)
    with np.errstate(all="ignore"):
        found = blocks(monkeypatch, True, uniforms, mean, std)
        known = blocks(monkeypatch, False, uniforms, mean, std)
    np.testing.assert_array_equal(found.view(np.uint32), known.view(np.uint32))


def test_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert blocks(monkeypatch, True, np.empty(0, np.float32), 0.0, 1.0).shape == (0,)
