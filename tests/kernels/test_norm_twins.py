"""The compiled twins of layer, RMS and group norm agree with NumPy."""

import numpy as np
import pytest

from clew.kernels import norm as kernels

SPECIAL = [np.inf, -np.inf, np.nan, 1e-40, -1e-45, 0.0]


def arrays(shape, weights, dtype):
    """Input, gradient, weight, bias."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=s).astype(dtype) for s in (shape, shape, weights, weights)]


def layer(given, shape, need=(True, True, True)):
    x, grad, weight, bias = given
    out, mean, rstd = kernels.layer_norm(x, shape, weight, bias, 1e-5)
    return [
        out, mean, rstd, *kernels.layer_norm_backward(grad, x, shape, mean, rstd, weight, need)
    ]  # fmt: skip


def rms(given, shape, need=(True, True, True)):
    x, grad, weight, _ = given
    out, rstd = kernels.rms_norm(x, shape, weight, None)
    return [out, rstd, *kernels.rms_norm_backward(grad, x, shape, rstd, weight, need[:2])]


def group(given, groups, need=(True, True, True)):
    x, grad, weight, bias = given
    out, mean, rstd = kernels.group_norm(x, groups, weight, bias, 1e-5)
    return [
        out, mean, rstd, *kernels.group_norm_backward(grad, x, groups, mean, rstd, weight, need)
    ]  # fmt: skip


def assert_twins_agree(monkeypatch, function, *arguments, **options):
    results = []
    for small in (0, 1 << 60):
        monkeypatch.setattr(kernels, "SMALL", small)
        with np.errstate(all="ignore"):
            results.append(function(*arguments, **options))
    for ours, theirs in zip(*results):
        if theirs is None:
            assert ours is None
            continue
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        eps = 100 * float(np.finfo(theirs.dtype).eps)
        size = float(np.abs(theirs[np.isfinite(theirs)]).max(initial=1))
        np.testing.assert_allclose(ours, theirs, rtol=eps, atol=eps * size)


CASES = [
    (layer, (6, 10), (10,), (10,)), (layer, (2, 3, 4, 5), (4, 5), (4, 5)),
    (layer, (3, 9000), (9000,), (9000,)), (layer, (1, 1), (1,), (1,)),
    (layer, (1200, 7), (7,), (7,)),
    (rms, (6, 10), (10,), (10,)), (rms, (2, 3, 4, 5), (4, 5), (4, 5)),
    (rms, (3, 9000), (9000,), (9000,)), (rms, (1200, 7), (7,), (7,)),
    (group, (3, 6, 5, 5), (6,), 2), (group, (3, 6, 50), (6,), 6), (group, (1, 4, 9, 1), (4,), 1),
    (group, (2, 6), (6,), 3), (group, (2, 4, 80, 80), (4,), 2),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("function", "shape", "weights", "argument"), CASES)
class TestTwins:
    def test_values(self, function, shape, weights, argument, dtype, monkeypatch):
        assert_twins_agree(monkeypatch, function, arrays(shape, weights, dtype), argument)

    def test_without_weights(self, function, shape, weights, argument, dtype, monkeypatch):
        given = [*arrays(shape, weights, dtype)[:2], None, None]
        assert_twins_agree(monkeypatch, function, given, argument)

    @pytest.mark.parametrize("need", [(True, False, False), (False, True, False), (False,) * 3])
    def test_what_is_needed(self, function, shape, weights, argument, need, dtype, monkeypatch):
        given = arrays(shape, weights, dtype)
        assert_twins_agree(monkeypatch, function, given, argument, need=need)

    def test_in_pieces(self, function, shape, weights, argument, dtype, monkeypatch):
        monkeypatch.setattr(kernels, "GRAIN", 20)
        assert_twins_agree(monkeypatch, function, arrays(shape, weights, dtype), argument)

    def test_special_numbers(self, function, shape, weights, argument, dtype, monkeypatch):
        for number in SPECIAL:
            given = arrays(shape, weights, dtype)
            given[0].flat[-1] = given[1].flat[0] = number
            assert_twins_agree(monkeypatch, function, given, argument)


@pytest.mark.parametrize(
    ("function", "weights", "argument"), [(layer, (6,), (6,)), (group, (6,), 3)]
)
def test_gaps_and_read_only(function, weights, argument, monkeypatch):
    x, grad, weight, bias = arrays((8, 12, 6), weights, "float32")
    weight = np.repeat(weight, 2)[::2]
    for array in (x, grad, weight):
        array.flags.writeable = False
    given = [x[::2, ::2], grad[::2, ::2], weight, bias]
    assert_twins_agree(monkeypatch, function, given, argument)


def test_other_types_have_no_twins(monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 0)
    given = [a.astype(np.longdouble) for a in arrays((4, 6), (6,), "float64")]
    assert layer(given, (6,))[0].dtype == np.longdouble
    half = [a.astype(np.float16) for a in given]
    assert [a.dtype for a in layer(half, (6,))] == [np.float16] * 6
