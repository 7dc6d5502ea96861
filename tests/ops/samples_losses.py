"""Samples of the losses that ask for a margin, and of CTC."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clew.op import REGISTRY
from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]


@samples("multi_margin_loss")
def multi_margin_loss(v: Values) -> Samples:
    target = np.array([0, 2, 1, 0])
    for reduction in ("none", "mean", "sum"):
        attrs = {"margin": 0.7, "reduction": reduction}
        yield call(reduction, v.distinct(4, 3), target, v.positive(3), p=1, **attrs)
        yield call(f"squared {reduction}", v.distinct(4, 3), target, None, p=2, **attrs)
    attrs = {"margin": 0.7, "reduction": "none"}
    yield call("one", v.distinct(3), np.array(1), None, p=1, **attrs)
    yield call("empty", v.real(0, 3), v.integers(3, 0), None, p=1, margin=1.0, reduction="sum")


@samples("multilabel_margin_loss")
def multilabel_margin_loss(v: Values) -> Samples:
    target = np.array([[2, 0, -1, 1], [3, -1, 0, 0], [-1, 0, 1, 2], [1, 1, 0, -1]])
    for reduction in ("none", "mean", "sum"):
        yield call(reduction, v.distinct(4, 4), target, reduction=reduction)
    yield call("one", v.distinct(4), target[0], reduction="none")
    yield call("empty", v.real(0, 4), v.integers(4, 0, 4), reduction="sum")


@samples("label_counts")
def label_counts(v: Values) -> Samples:
    yield call("usual", np.array([[2, 0, -1, 1], [3, 3, 0, 0]]), classes=4)
    yield call("empty", v.integers(4, 0, 4), classes=4)


_CTC = {"blank": 0, "zero_infinity": False}


def _log_probs(v: Values, *shape: int) -> np.ndarray:
    logits = v.real(*shape)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


@samples("ctc_loss")
def ctc_loss(v: Values) -> Samples:
    # Repeated labels, no label, a sample shorter than the others; more labels than steps.
    targets = np.array([[1, 1, 2], [3, 0, 0], [0, 0, 0], [2, 3, 1]])
    lengths: dict[str, tuple[int, ...]] = {
        "input_lengths": (6, 4, 6, 5), "target_lengths": (3, 1, 0, 2)
    }  # fmt: skip
    why = "its gradient is that of the logits of a log-softmax"
    yield call("usual", _log_probs(v, 6, 4, 4), targets, convention=why, **lengths, **_CTC)
    flat = np.array([1, 1, 2, 3, 2, 3])
    yield call("flat", _log_probs(v, 6, 4, 4), flat, convention=why, **lengths, **_CTC)
    yield call(
        "zero infinity", _log_probs(v, 2, 1, 4), np.array([[1, 1, 2]]), input_lengths=(2,),
        target_lengths=(3,), blank=0, zero_infinity=True, convention=why,
    )  # fmt: skip
    yield call("blank last", _log_probs(v, 5, 1, 4), np.array([[1, 2]]), input_lengths=(5,),
               target_lengths=(2,), blank=3, zero_infinity=False, convention=why)  # fmt: skip


@samples("ctc_loss_backward")
def ctc_loss_backward(v: Values) -> Samples:
    log_probs, targets = _log_probs(v, 5, 2, 4), np.array([[1, 2], [3, 3]])
    lengths = {"input_lengths": (5, 4), "target_lengths": (2, 2)}
    results = REGISTRY["ctc_loss"].forward(log_probs, targets, **lengths, **_CTC)
    yield call(
        "usual", v.real(2), log_probs, targets, *results, refuses="is not implemented",
        **lengths, **_CTC,
    )  # fmt: skip
