"""Samples of the ops of recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator

from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]


@samples("lstm_layer")
def lstm_layer(v: Values) -> Samples:
    weight, hidden, cell = v.real(8, 2), v.real(3, 2), v.real(3, 2)
    for reverse in (False, True):
        yield call(f"reverse {reverse}", v.real(2, 3, 8), weight, hidden, cell, v.real(8),
                   reverse=reverse)  # fmt: skip
    yield call("no bias", v.real(1, 3, 8), weight, hidden, cell, None)
    yield call("empty batch", v.real(2, 0, 8), weight, hidden[:0], cell[:0], None)


@samples("lstm_step_backward")
def lstm_step_backward(v: Values) -> Samples:
    gates, states = v.real(3, 8), (v.real(3, 2), v.real(3, 2))
    yield call("usual", v.real(3, 2), gates, *states, v.real(3, 2), v.real(3, 8))
    yield call("only the hidden state", v.real(3, 2), gates, *states, None, None)
