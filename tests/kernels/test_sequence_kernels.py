"""CTC against the sum over all paths, bags against loops."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest

from clew.kernels import bags, ctc

RNG = np.random.default_rng(0)


def _log_probs(steps: int, batch: int, classes: int) -> np.ndarray:
    logits = RNG.normal(size=(steps, batch, classes))
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def _spelled(path: Any, blank: int) -> list[int]:
    return [symbol for symbol, _ in groupby(path) if symbol != blank]


@pytest.mark.parametrize("target", [[], [1], [1, 2], [1, 1], [2, 1, 2]])
@pytest.mark.parametrize("blank", [0, 3])
def test_ctc_sums_over_all_paths(target: list[int], blank: int) -> None:
    log_probs = _log_probs(5, 1, 4)
    paths = [p for p in product(range(4), repeat=5) if _spelled(p, blank) == target]
    total = sum(np.exp(sum(log_probs[t, 0, c] for t, c in enumerate(p))) for p in paths)
    nll, _ = ctc.ctc_loss(
        log_probs, np.array([target], np.int64).reshape(1, -1), np.array([5]),
        np.array([len(target)]), blank,
    )  # fmt: skip
    np.testing.assert_allclose(nll, [-np.log(total)], rtol=1e-12)


def test_ctc_gradient_is_that_of_the_logits() -> None:
    """Finite differences through a log-softmax; padding and what is behind a sample count 0."""
    logits = RNG.normal(size=(6, 2, 4))
    targets = np.array([[1, 1, 3], [2, 0, 0]])
    lengths, target_lengths = np.array([6, 4]), np.array([3, 1])

    def loss(z: np.ndarray) -> Any:
        log_probs = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
        return log_probs, ctc.ctc_loss(log_probs, targets, lengths, target_lengths, 0)

    log_probs, (nll, alpha) = loss(logits)
    weights = np.array([0.7, -1.3])
    grad = ctc.ctc_loss_backward(
        weights, log_probs, targets, lengths, target_lengths, nll, alpha, 0, False
    )
    direction, step = RNG.normal(size=logits.shape), 1e-6
    ahead, behind = (loss(logits + s * step * direction)[1][0] for s in (1, -1))
    slope = (weights * (ahead - behind)).sum() / (2 * step)
    np.testing.assert_allclose((grad * direction).sum(), slope, rtol=1e-7)
    assert (grad[4:, 1] == 0).all()


def test_ctc_of_more_labels_than_steps() -> None:
    args = (_log_probs(2, 1, 4), np.array([[1, 1]]), np.array([2]), np.array([2]))
    nll, alpha = ctc.ctc_loss(*args, 0)
    assert nll[0] == np.inf
    with np.errstate(invalid="ignore"):
        grad = ctc.ctc_loss_backward(np.ones(1), *args, nll, alpha, 0, True)
    assert (grad == 0).all()


INDICES, OFFSETS = np.array([1, 3, 3, 2, 1, 4]), np.array([0, 3, 3])


@pytest.mark.parametrize("padding_idx", [-1, 3])
@pytest.mark.parametrize("mean", [False, True])
def test_bag_sums(mean: bool, padding_idx: int) -> None:
    table, weights = RNG.normal(size=(5, 4)), RNG.normal(size=6)
    numbers = bags.bag_numbers(OFFSETS, 6)
    np.testing.assert_array_equal(numbers, [0, 0, 0, 2, 2, 2])
    kept = np.not_equal(INDICES, padding_idx)
    sizes = np.array([(kept & (numbers == b)).sum() for b in range(3)])
    given = None if mean else weights
    expected = np.zeros((3, 4))
    for b, i, w, k in zip(numbers, INDICES, weights, kept):
        expected[b] += k * table[i] * (1 if mean else w)
    if mean:
        expected /= np.maximum(sizes, 1)[:, None]
    found = bags.bag_sums(table, INDICES, numbers, sizes, given, padding_idx, mean)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_bag_maxima() -> None:
    table = RNG.normal(size=(5, 4))
    numbers = bags.bag_numbers(OFFSETS, 6)
    found, place = bags.bag_maxima(table, INDICES, numbers, 3, padding_idx=4)
    np.testing.assert_array_equal(found[0], table[[1, 3]].max(axis=0))
    np.testing.assert_array_equal(found[1], 0)
    np.testing.assert_array_equal(found[2], table[[2, 1]].max(axis=0))
    np.testing.assert_array_equal(np.take_along_axis(table, place, 0)[[0, 2]], found[[0, 2]])
