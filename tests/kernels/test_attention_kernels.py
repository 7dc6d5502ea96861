"""Attention in blocks against attention written out, and its gradients against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clew import threads
from clew.kernels import attention as kernels

backward: Any = kernels.attention_backward  # without None, where all gradients are asked for


def _written_out(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    logits = np.einsum("nhle,nhse->nhls", q, k) * scale + mask
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.einsum("nhls,nhse->nhle", weights / weights.sum(axis=-1, keepdims=True), v)


def _inputs(heads: int = 4, shared: int = 4) -> Any:
    rng = np.random.default_rng(0)
    return (
        rng.normal(size=(2, heads, 3, 5)), rng.normal(size=(2, shared, 6, 5)),
        rng.normal(size=(2, shared, 6, 5)),
    )  # fmt: skip


@pytest.mark.parametrize("shared", [4, 2, 1])
@pytest.mark.parametrize("mask_shape", [(3, 6), (2, 1, 3, 6), (2, 4, 3, 6), (1, 1, 1, 6)])
def test_forward(shared: int, mask_shape: Any) -> None:
    q, k, v = _inputs(shared=shared)
    mask = np.random.default_rng(1).normal(size=mask_shape)
    out, _ = kernels.attention(q, k, v, mask, False, 0.3)
    np.testing.assert_allclose(out, _written_out(q, k, v, mask, 0.3), rtol=1e-12)


def test_causal_is_a_mask() -> None:
    q, k, v = _inputs()
    mask = np.where(np.tri(3, 6, dtype=bool), 0, -np.inf)
    out, logs = kernels.attention(q, k, v, None, True, 0.3)
    np.testing.assert_allclose(out, _written_out(q, k, v, mask, 0.3), rtol=1e-12)
    masked, masked_logs = kernels.attention(q, k, v, mask, False, 0.3)
    np.testing.assert_array_equal(out, masked)
    np.testing.assert_array_equal(logs, masked_logs)


def test_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = _inputs(shared=2)
    grad = np.ones_like(q)
    whole = kernels.attention(q, k, v, None, True, 0.3)
    gradients = backward(grad, q, k, v, None, *whole, True, 0.3)
    monkeypatch.setattr(kernels, "TILE_BYTES", 1)
    monkeypatch.setattr(kernels, "_ROWS", 1)
    parts = kernels.attention(q, k, v, None, True, 0.3)
    for a, b in zip(whole, parts):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    again = backward(grad, q, k, v, None, *parts, True, 0.3)
    for a, b in zip(gradients, again):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = _inputs(shared=2)
    monkeypatch.setattr(kernels, "_GRAIN", 1)
    monkeypatch.setattr(kernels, "TILE_BYTES", 1)
    before, results = threads.get_num_threads(), []
    try:
        for number in (1, 3):
            threads.set_num_threads(number)
            out, logs = kernels.attention(q, k, v, None, True, 0.3)
            results.append((out, logs, *backward(out, q, k, v, None, out, logs, True, 0.3)))
    finally:
        threads.set_num_threads(before)
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


def test_rows_that_attend_to_nothing_are_zero() -> None:
    q, k, v = _inputs()
    mask = np.zeros((3, 6))
    mask[1] = -np.inf
    out, logs = kernels.attention(q, k, v, mask, False, 0.3)
    assert (out[:, :, 1] == 0).all() and (logs[:, :, 1] == np.inf).all()
    for g in backward(out, q, k, v, mask, out, logs, False, 0.3):
        assert np.isfinite(g).all()
    empty, _ = kernels.attention(q, k[:, :, :0], v[:, :, :0], None, False, 0.3)
    assert (empty == 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("shared", [4, 2])
def test_gradients_are_those_of_torch(dtype: Any, shared: int) -> None:
    torch = pytest.importorskip("torch")
    q, k, v = (x.astype(dtype) for x in _inputs(shared=shared))
    grad = np.random.default_rng(2).normal(size=q.shape).astype(dtype)
    leaves = [torch.from_numpy(x.copy()).requires_grad_() for x in (q, k, v)]
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *leaves, is_causal=True, scale=0.3, enable_gqa=True
    )
    expected = torch.autograd.grad(theirs, leaves, torch.from_numpy(grad))
    out, logs = kernels.attention(q, k, v, None, True, 0.3)
    ours = backward(grad, q, k, v, None, out, logs, True, 0.3)
    tolerance = {np.float64: 1e-12, np.float32: 2e-6, np.float16: 4e-3}[dtype]
    for a, b in zip((out, *ours), (theirs, *expected)):
        assert a.dtype == dtype
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=tolerance, atol=tolerance)


def test_only_what_is_needed() -> None:
    q, k, v = _inputs()
    out, logs = kernels.attention(q, k, v, None, False, 0.3)
    all_of_them = backward(out, q, k, v, None, out, logs, False, 0.3)
    for i in range(3):
        need = (i == 0, i == 1, i == 2)
        some = backward(out, q, k, v, None, out, logs, False, 0.3, need)
        assert [g is not None for g in some] == list(need)
        np.testing.assert_array_equal(some[i], all_of_them[i])


def test_results_lie_as_the_inputs_do() -> None:
    """(N, L, H, E) seen as (N, H, L, E) gives a result that is contiguous seen the same way."""
    q = np.zeros((2, 3, 4, 5)).transpose(0, 2, 1, 3)
    out, _ = kernels.attention(q, q, q, None, False, 1.0)
    assert out.transpose(0, 2, 1, 3).flags.c_contiguous
