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


@samples("lstm_layer_backward")
def lstm_layer_backward(v: Values) -> Samples:
    weight, cell = v.real(8, 2), v.real(3, 2)
    for reverse in (False, True):
        yield call(f"reverse {reverse}", v.real(3, 3, 2), weight, cell, v.real(3, 3, 2),
                   v.real(3, 3, 8), v.real(3, 3, 2), v.real(3, 3, 8), reverse=reverse)  # fmt: skip
    yield call("only the output", v.real(2, 3, 2), weight, cell, v.real(2, 3, 2), v.real(2, 3, 8),
               None, None)  # fmt: skip
    yield call("one step", v.real(1, 3, 2), weight, cell, v.real(1, 3, 2), v.real(1, 3, 8),
               None, None)  # fmt: skip


@samples("gru_layer")
def gru_layer(v: Values) -> Samples:
    weight, hidden = v.real(6, 2), v.real(3, 2)
    for reverse in (False, True):
        yield call(f"reverse {reverse}", v.real(3, 3, 6), weight, hidden, v.real(6),
                   reverse=reverse)  # fmt: skip
    yield call("no bias", v.real(1, 3, 6), weight, hidden, None)
    yield call("empty batch", v.real(2, 0, 6), weight, hidden[:0], None)


@samples("rnn_layer")
def rnn_layer(v: Values) -> Samples:
    weight, hidden = v.real(2, 2), v.real(3, 2)
    for reverse in (False, True):
        for relu in (False, True):
            yield call(f"reverse {reverse}, relu {relu}", v.real(3, 3, 2), weight, hidden,
                       v.real(2), reverse=reverse, relu=relu)  # fmt: skip
    yield call("no bias", v.real(1, 3, 2), weight, hidden, None)
    yield call("empty batch", v.real(2, 0, 2), weight, hidden[:0], None)
