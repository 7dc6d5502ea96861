"""oneDNN's convolutions agree with NumPy's, and nothing goes wrong without them."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import clew
from clew.backends import mkldnn
from clew.kernels import onednn, windows
from clew.kernels.conv import conv_backward_input, conv_backward_weight, conv_forward
from clew.kernels.conv_transpose import conv_transpose_forward
from conv_cases import CONVS, TRANSPOSED, randn

needs_onednn = pytest.mark.skipif(not onednn.is_available(), reason="oneDNN is not installed")
LARGE = ((7, 16, 20, 18), (24, 16, 3, 3), (1, 1), (1, 1), (1, 1), 1)


def results(x_shape, w_shape, *options):
    x, w, bias = (
        randn(shape, seed, np.float32) for seed, shape in enumerate((x_shape, w_shape, w_shape[0]))
    )
    out = conv_forward(x, w, bias, *options)
    grad = randn(out.shape, 9, np.float32)
    return [
        out,
        conv_forward(x, w, None, *options),
        conv_backward_input(grad, w, x.shape, *options),
        conv_backward_weight(grad, x, w.shape, *options),
    ]


def assert_close(ours, expected):
    for one, other in zip(ours, expected, strict=True):
        scale = np.abs(other).max(initial=1)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=4e-6 * scale)


@needs_onednn
@pytest.mark.parametrize("name", CONVS)
def test_agrees_with_numpy(name):
    with mkldnn.flags(enabled=True):
        ours = results(*CONVS[name])
    with mkldnn.flags(enabled=False):
        expected = results(*CONVS[name])
    assert_close(ours, expected)


@needs_onednn
@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_agrees_with_numpy(name):
    x_shape, w_shape, stride, padding, extra, dilation, groups = TRANSPOSED[name]
    x, w = randn(x_shape, 1, np.float32), randn(w_shape, 2, np.float32)
    bias = randn(w_shape[1] * groups, 3, np.float32)
    with mkldnn.flags(enabled=True):
        ours = conv_transpose_forward(x, w, bias, stride, padding, extra, dilation, groups)
    with mkldnn.flags(enabled=False):
        expected = conv_transpose_forward(x, w, bias, stride, padding, extra, dilation, groups)
    assert_close([ours], [expected])


@needs_onednn
def test_is_used_for_float32_and_switched_off():
    with mkldnn.flags(enabled=True):
        engine = onednn.convolutions()
        before = engine._primitive.cache_info()
        assert mkldnn.enabled
        results(*LARGE)
    between = engine._primitive.cache_info()
    with mkldnn.flags(enabled=False):
        assert not mkldnn.enabled
        results(*LARGE)
    after = engine._primitive.cache_info()
    assert between.hits + between.misses == before.hits + before.misses + 4
    assert after == between


@needs_onednn
@pytest.mark.parametrize("threads", [1, 2])
def test_pieces_and_threads_change_no_digit(threads, monkeypatch):
    monkeypatch.setattr(mkldnn, "enabled", True)
    expected = results(*LARGE)
    monkeypatch.setattr("clew.kernels.conv.PIECE", 1)
    monkeypatch.setattr("clew.kernels.conv.PIECES", 100)
    monkeypatch.setattr(windows, "BLOCK_POSITIONS", 1)
    monkeypatch.setattr("clew.kernels.conv.BLOCK_POSITIONS", 1)
    before = clew.get_num_threads()
    clew.set_num_threads(threads)
    try:
        ours = results(*LARGE)
    finally:
        clew.set_num_threads(before)
    for one, other in zip(ours[:3], expected[:3]):
        np.testing.assert_array_equal(one, other)
    assert_close(ours[3:], expected[3:])


@needs_onednn
def test_python_threads_each_have_primitives(monkeypatch):
    monkeypatch.setattr(mkldnn, "enabled", True)
    expected, found = results(*LARGE), []

    def run():
        found.extend([results(*LARGE) for _ in range(5)])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    for ours in found:
        for one, other in zip(ours, expected):
            np.testing.assert_array_equal(one, other)


@needs_onednn
def test_nan_and_infinity_stay_where_they_are():
    x = randn((2, 8, 9, 9), 1, np.float32)
    x[0, 3, 4, 4], x[1, 2, 0, 0] = np.nan, np.inf
    w = randn((8, 8, 3, 3), 2, np.float32)
    options = ((1, 1), (1, 1), (1, 1), 1)
    with mkldnn.flags(enabled=True):
        ours = conv_forward(x, w, None, *options)
    with mkldnn.flags(enabled=False):
        expected = conv_forward(x, w, None, *options)
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(ours), np.isinf(expected))


BROKEN = """
import pathlib, warnings
import numpy as np
from clew.kernels import onednn
from clew.kernels.conv import conv_forward

onednn._find = lambda: pathlib.Path("{path}")
x, w = np.ones((1, 8, 5, 5), np.float32), np.ones((8, 8, 3, 3), np.float32)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        out = conv_forward(x, w, None, (1, 1), (0, 0), (1, 1), 1)
assert (out == 72).all()
print(*(str(w.message) for w in caught), sep="\\n")
"""


@pytest.mark.parametrize("path", ["/nowhere/libdnnl.so.3", "libm.so.6"])
def test_a_library_that_cannot_be_loaded_is_told_once(path):
    done = subprocess.run(
        [sys.executable, "-c", BROKEN.format(path=path)], capture_output=True, text=True,
        check=True, env={**os.environ, "CLEW_ONEDNN": "1"},
    )  # fmt: skip
    told = done.stdout.strip().splitlines()
    assert len(told) == 1 and told[0].startswith("oneDNN is installed but cannot be loaded")


def test_flags():
    before = mkldnn.enabled
    with mkldnn.flags(enabled=not before, deterministic=True):
        assert mkldnn.enabled is not before and mkldnn.deterministic
    assert mkldnn.enabled is before and not mkldnn.deterministic
