"""Samples of the ops of recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ops.samples import Sample, Values, call, samples

Samples = Iterator[Sample]


def _sequences(v: Values, gates: int, states: int, **attrs: Any) -> Samples:
    """A layer of these many gates and states of two numbers, over inputs of three."""
    weights = v.real(2 * gates, 3), v.real(2 * gates, 2)
    biases = v.real(2 * gates), v.real(2 * gates)
    state = [v.real(3, 2) for _ in range(states)]
    for reverse in (False, True):
        attrs["reverse"] = reverse
        yield call(f"{attrs}", v.real(3, 3, 3), *weights, *biases, *state, **attrs)
        yield call(f"packed, {attrs}", v.real(7, 3), *weights, *biases, *state,
                   sizes=(3, 2, 1, 1), **attrs)  # fmt: skip
    yield call(f"no biases, {attrs}", v.real(1, 3, 3), *weights, None, None, *state, **attrs)
    none = [x[:0] for x in state]
    yield call(f"empty batch, {attrs}", v.real(2, 0, 3), *weights, *biases, *none, **attrs)


@samples("lstm_layer")
def lstm_layer(v: Values) -> Samples:
    yield from _sequences(v, 4, 2)


@samples("gru_layer")
def gru_layer(v: Values) -> Samples:
    yield from _sequences(v, 3, 1)


@samples("rnn_layer")
def rnn_layer(v: Values) -> Samples:
    for relu in (False, True):
        yield from _sequences(v, 1, 1, relu=relu)
