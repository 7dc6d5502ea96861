"""Convolution and transposed convolution against PyTorch."""

import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from clew import threads
from clew.backends import mkldnn
from clew.kernels import depthwise, windows
from clew.kernels.compiled import is_enabled
from clew.kernels.conv import (
    conv_backward_bias,
    conv_backward_input,
    conv_backward_weight,
    conv_forward,
)
from clew.kernels.conv_transpose import (
    conv_transpose_backward_input,
    conv_transpose_backward_weight,
    conv_transpose_forward,
)
from conv_cases import CONVS, TRANSPOSED, randn

torch = pytest.importorskip("torch")


def torch_conv(x, w, bias, stride, padding, dilation, groups, transposed=False, extra=None):
    """PyTorch's output, a random gradient of it, and the gradients of x, w and bias."""
    tensors = [torch.tensor(a, requires_grad=True) for a in (x, w, bias)]
    extra = extra or (0,) * len(stride)
    out = torch.convolution(*tensors, stride, padding, dilation, transposed, extra, groups)
    grad = randn(out.shape, 9, x.dtype)
    out.backward(torch.from_numpy(grad))
    return out.detach().numpy(), grad, *(t.grad.numpy() for t in tensors)


@pytest.mark.parametrize("name", CONVS)
def test_convolution_and_gradients(name):
    x_shape, w_shape, *options = CONVS[name]
    x, w, bias = randn(x_shape, 1), randn(w_shape, 2), randn(w_shape[0], 3)
    out, grad, grad_x, grad_w, grad_bias = torch_conv(x, w, bias, *options)
    np.testing.assert_allclose(conv_forward(x, w, bias, *options), out, rtol=1e-9, atol=1e-11)
    ours = conv_backward_input(grad, w, x.shape, *options)
    np.testing.assert_allclose(ours, grad_x, rtol=1e-9, atol=1e-11)
    ours = conv_backward_weight(grad, x, w.shape, *options)
    np.testing.assert_allclose(ours, grad_w, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(conv_backward_bias(grad), grad_bias, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolution_and_gradients(name):
    x_shape, w_shape, stride, padding, extra, dilation, groups = TRANSPOSED[name]
    options = (stride, padding, dilation, groups)
    x, w, bias = randn(x_shape, 1), randn(w_shape, 2), randn(w_shape[1] * groups, 3)
    out, grad, grad_x, grad_w, _ = torch_conv(x, w, bias, *options, transposed=True, extra=extra)
    ours = conv_transpose_forward(x, w, bias, stride, padding, extra, dilation, groups)
    assert ours.flags.c_contiguous
    np.testing.assert_allclose(ours, out, rtol=1e-9, atol=1e-11)
    ours = conv_transpose_backward_input(grad, w, x.shape, *options)
    np.testing.assert_allclose(ours, grad_x, rtol=1e-9, atol=1e-11)
    ours = conv_transpose_backward_weight(grad, x, w.shape, *options)
    np.testing.assert_allclose(ours, grad_w, rtol=1e-9, atol=1e-11)


@pytest.mark.skipif(not is_enabled(), reason="numba is not there, or switched off")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [name for name in CONVS if "depthwise" in name])
def test_depthwise_twin(name, dtype, monkeypatch):
    x_shape, w_shape, *options = CONVS[name]
    x, w, bias = (randn(s, i, dtype) for i, s in enumerate((x_shape, w_shape, w_shape[0])))
    x.reshape(-1)[5:8] = np.nan, np.inf, 1e-42
    monkeypatch.setattr(mkldnn, "enabled", False)
    results = []
    for small, block in ((1 << 30, 1 << 18), (-1, 1 << 18), (-1, 1)):
        monkeypatch.setattr(depthwise, "SMALL", small)
        monkeypatch.setattr(depthwise, "BLOCK_BYTES", block)
        with np.errstate(invalid="ignore"):
            out = conv_forward(x, w, bias, *options)
            grad = randn(out.shape, 9, dtype)
            results.append((out, conv_backward_input(grad, w, x.shape, *options)))
    for ours in results[1:]:
        for one, other in zip(ours, results[0]):
            eps = float(np.finfo(dtype).eps)
            np.testing.assert_allclose(one, other, rtol=50 * eps, atol=50 * eps)


@pytest.mark.parametrize("positions", [1, 10, 70])
@pytest.mark.parametrize(
    "name",
    ["few channels", "few to few, mirrored", "many channels", "many channels, strided",
     "depthwise", "groups of many, strided", "pointwise", "3d many channels"],
)  # fmt: skip
def test_output_is_cut_into_blocks(name, positions, monkeypatch):
    """Buffers for a row, for some rows and for a sample give the same as one for everything."""
    x_shape, w_shape, *options = CONVS[name]
    x, w = randn(x_shape, 1), randn(w_shape, 2)
    grad = randn(conv_forward(x, w, None, *options).shape, 3)

    def results():
        return [
            conv_forward(x, w, None, *options),
            conv_backward_input(grad, w, x.shape, *options),
            conv_backward_weight(grad, x, w.shape, *options),
        ]

    whole = results()
    monkeypatch.setattr(windows, "BLOCK_BYTES", 1)
    monkeypatch.setattr(windows, "BLOCK_POSITIONS", positions)
    monkeypatch.setattr(depthwise, "BLOCK_BYTES", 8 * positions)
    for cut, full in zip(results(), whole):
        np.testing.assert_allclose(cut, full, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("onednn", [False, True])
@pytest.mark.parametrize(
    ("x_shape", "w_shape", "stride"),
    [((4, 32, 96, 96), (32, 32, 3, 3), 1), ((4, 4, 128, 128), (32, 4, 3, 3), 1),
     ((8, 32, 96, 96), (32, 32, 4, 4), 2), ((40, 512, 8, 8), (512, 512, 1, 1), 1)],
)  # fmt: skip
def test_memory(x_shape, w_shape, stride, onednn, monkeypatch):
    """Besides its result a call takes some blocks, and image and weight twice, but no im2col."""
    monkeypatch.setattr(mkldnn, "enabled", onednn)
    monkeypatch.setattr(threads, "_number", 1)  # each thread has blocks of its own
    x, w = np.ones(x_shape, np.float32), np.ones(w_shape, np.float32)
    padding = (w_shape[2] // 2,) * 2
    options = ((stride, stride), padding, (1, 1), 1)
    grad = conv_forward(x, w, None, *options)
    budget = 2 * (x.nbytes + w.nbytes) + 4 * windows.BLOCK_BYTES
    for function in (
        lambda: conv_forward(x, w, None, *options),
        lambda: conv_backward_input(grad, w, x.shape, *options),
        lambda: conv_backward_weight(grad, x, w.shape, *options),
    ):
        tracemalloc.start()
        result = function()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < result.nbytes + budget


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["few channels", "many channels"])
def test_dtype_is_kept_and_half_is_computed_in_float32(name, dtype):
    x_shape, w_shape, *options = CONVS[name]
    x, w, bias = (
        randn(shape, seed).astype(dtype)
        for seed, shape in enumerate((x_shape, w_shape, w_shape[0]))
    )
    out = conv_forward(x, w, bias, *options)
    grad = randn(out.shape, 9).astype(dtype)
    grad_x = conv_backward_input(grad, w, x.shape, *options)
    grad_w = conv_backward_weight(grad, x, w.shape, *options)
    grad_bias = conv_backward_bias(grad)
    wide = [a.astype(np.float32) for a in (x, w, bias)]
    expected = conv_forward(*wide, *options)
    for ours in (out, grad_x, grad_w, grad_bias):
        assert ours.dtype == dtype
    np.testing.assert_array_equal(out, expected.astype(dtype))


@pytest.mark.parametrize("name", ["few channels", "many channels", "pointwise", "groups of many"])
def test_non_contiguous_arguments(name):
    x_shape, w_shape, *options = CONVS[name]
    x, w = randn(x_shape, 1), randn(w_shape, 2)
    grad = randn(conv_forward(x, w, None, *options).shape, 3)
    x_f, w_f, grad_f = (np.asfortranarray(a) for a in (x, w, grad))
    np.testing.assert_allclose(
        conv_forward(x_f, w_f, None, *options), conv_forward(x, w, None, *options), rtol=1e-12
    )
    np.testing.assert_allclose(
        conv_backward_input(grad_f, w_f, x.shape, *options),
        conv_backward_input(grad, w, x.shape, *options),
        rtol=1e-10,
        atol=1e-12,
    )
    np.testing.assert_allclose(
        conv_backward_weight(grad_f, x_f, w.shape, *options),
        conv_backward_weight(grad, x, w.shape, *options),
        rtol=1e-10,
        atol=1e-12,
    )


def test_integers_stay_integers():
    x = np.arange(2 * 3 * 5 * 5).reshape(2, 3, 5, 5)
    w = np.arange(4 * 3 * 3 * 3).reshape(4, 3, 3, 3)
    out = conv_forward(x, w, None, (1, 1), (0, 0), (1, 1), 1)
    expected = torch.nn.functional.conv2d(torch.from_numpy(x), torch.from_numpy(w)).numpy()
    assert out.dtype == np.int64
    np.testing.assert_array_equal(out, expected)


BAD_CONVS = {
    "channels": ((2, 4, 8, 8), (32, 3, 3, 3), None, (1, 1), (0, 0), (1, 1), 1),
    "groups do not divide": ((2, 4, 8, 8), (3, 2, 3, 3), None, (1, 1), (0, 0), (1, 1), 2),
    "fewer filters than groups": ((2, 4, 8, 8), (1, 2, 3, 3), None, (1, 1), (0, 0), (1, 1), 2),
    "kernel too large": ((2, 4, 2, 8), (4, 4, 3, 3), None, (1, 1), (0, 0), (1, 2), 1),
    "stride": ((2, 4, 8, 8), (4, 4, 3, 3), None, (0, 1), (0, 0), (1, 1), 1),
    "padding": ((2, 4, 8, 8), (4, 4, 3, 3), None, (1, 1), (0, -1), (1, 1), 1),
    "dilation": ((2, 4, 8, 8), (4, 4, 3, 3), None, (1, 1), (0, 0), (0, 1), 1),
    "groups": ((2, 4, 8, 8), (4, 4, 3, 3), None, (1, 1), (0, 0), (1, 1), 0),
    "bias": ((2, 4, 8, 8), (4, 4, 3, 3), (5,), (1, 1), (0, 0), (1, 1), 1),
    "no pixels": ((2, 4, 0, 8), (4, 4, 3, 3), None, (1, 1), (2, 2), (1, 1), 1),
    "dimensions": ((2, 4, 8), (4, 4, 3, 3), None, (1, 1), (0, 0), (1, 1), 1),
}


def message(function, *args):
    with pytest.raises(RuntimeError) as caught:
        function(*args)
    return str(caught.value)


@pytest.mark.parametrize("name", BAD_CONVS)
def test_errors_are_pytorchs(name):
    *shapes, stride, padding, dilation, groups = BAD_CONVS[name]
    options = (stride, padding, dilation, groups)
    x, w, bias = (None if shape is None else np.zeros(shape, np.float32) for shape in shapes)
    tensors = [None if a is None else torch.from_numpy(a) for a in (x, w, bias)]
    theirs = message(torch.convolution, *tensors, *options[:3], False, (0, 0), groups)
    assert message(conv_forward, x, w, bias, *options) == theirs


def test_a_kernel_must_have_a_size():
    x, w, options = np.zeros((2, 4, 8, 8)), np.zeros((4, 4, 0, 3)), ((1, 1), (0, 0), (1, 1))
    tensors = torch.from_numpy(x), torch.from_numpy(w), None
    theirs = message(torch.convolution, *tensors, *options, False, (0, 0), 1)
    assert message(conv_forward, x, w, None, *options, 1) == theirs


BAD_TRANSPOSED = {
    "channels": ((2, 4, 8, 8), (5, 4, 3, 3), None, (1, 1), (0, 0), (0, 0), (1, 1), 1),
    "output padding": ((2, 4, 8, 8), (4, 5, 3, 3), None, (1, 1), (0, 0), (1, 1), (1, 1), 1),
    "negative": ((2, 4, 8, 8), (4, 5, 3, 3), None, (1, 1), (0, 0), (-1, 0), (1, 1), 1),
    "no pixels": ((2, 4, 0, 8), (4, 5, 3, 3), None, (1, 1), (0, 0), (0, 0), (1, 1), 1),
    "bias": ((2, 4, 8, 8), (4, 5, 3, 3), (4,), (1, 1), (0, 0), (0, 0), (1, 1), 1),
}


@pytest.mark.parametrize("name", BAD_TRANSPOSED)
def test_errors_of_transposed_are_pytorchs(name):
    x_shape, w_shape, bias_shape, stride, padding, extra, dilation, groups = BAD_TRANSPOSED[name]
    x, w = np.zeros(x_shape), np.zeros(w_shape)
    bias = np.zeros(bias_shape) if bias_shape else None
    theirs = message(
        torch.nn.functional.conv_transpose2d,
        *(torch.from_numpy(a) if a is not None else None for a in (x, w, bias)),
        stride,
        padding,
        extra,
        groups,
        dilation,
    )
    ours = message(conv_transpose_forward, x, w, bias, stride, padding, extra, dilation, groups)
    assert ours.split(", but got output_padding")[0] == theirs.split(", but got output_padding")[0]


def test_transposed_output_must_not_vanish():
    x, w = np.zeros((2, 4, 1, 1)), np.zeros((4, 5, 1, 1))
    with pytest.raises(RuntimeError, match="Output size is too small"):
        conv_transpose_forward(x, w, None, (1, 1), (1, 1), (0, 0), (1, 1), 1)
