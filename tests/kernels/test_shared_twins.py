"""Twins of norms, softmax, losses and updates give the same bits on one thread and on several."""

import numpy as np
import pytest

import clew
from clew.kernels import batch_norm, loss, norm, optim, softmax
from clew.kernels.compiled import twins

RNG = np.random.default_rng(0)
IMAGES, OTHER = (RNG.normal(size=(40, 8, 60, 20)).astype(np.float32) for _ in range(2))
ROWS, VECTORS = IMAGES.reshape(-1, 300), RNG.normal(size=(4, 300)).astype(np.float32)


def of_batch_norm():
    given = VECTORS[:2, :8]
    out, mean, invstd = batch_norm.batch_norm(IMAGES, *given, None, None, True, 0.1, 1e-5)
    return [out, mean, invstd, *batch_norm.batch_norm_backward(
        OTHER, IMAGES, given[0], None, None, mean, invstd, True, 1e-5)]  # fmt: skip


def of_layer_norm():
    out, mean, rstd = norm.layer_norm(ROWS, (300,), *VECTORS[:2], 1e-5)
    grads = norm.layer_norm_backward(
        OTHER.reshape(ROWS.shape), ROWS, (300,), mean, rstd, VECTORS[0]
    )
    return [out, mean, rstd, *grads]


def of_softmax():
    result = softmax.softmax(ROWS, 1)
    return [
        result, softmax.log_softmax(IMAGES, 1), softmax.logsumexp(ROWS, (1,), False),
        softmax.softmax_backward(OTHER.reshape(ROWS.shape), result, 1),
    ]  # fmt: skip


def of_losses():
    return [
        np.array(loss.total_of_pairs(name, IMAGES, OTHER, 1.0)) for name in ("squared", "logit")
    ]


def of_adam():
    arrays = [np.abs(IMAGES).reshape(-1) for _ in range(3)]
    optim.adam(
        arrays[0], OTHER.reshape(-1), *arrays[1:], None, step=2.0, lr=0.1, beta1=0.9, beta2=0.99,
        eps=1e-8, fast=twins("optim", IMAGES.dtype),
    )  # fmt: skip
    return arrays


@pytest.mark.parametrize("compute", [of_batch_norm, of_layer_norm, of_softmax, of_losses, of_adam])
def test_bits_do_not_depend_on_threads(compute):
    before, results = clew.get_num_threads(), []
    try:
        for number in (1, 2, 3):
            clew.set_num_threads(number)
            results.append(compute())
    finally:
        clew.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert a.tobytes() == b.tobytes()
