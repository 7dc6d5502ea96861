"""Windows, and short-time Fourier transforms: values, graphs and errors as torch's."""

import pytest

import clew
import clew.signal
from functions.expressions import assert_as_torch

NAMES = ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"]
WINDOWS = [
    f"t.{name}({arguments})"
    for name in NAMES
    for arguments in (
        "6, dtype=t.float64", "5, False, dtype=t.float64", "0", "1", "-1",
        "4, periodic=True, dtype=t.float64",
        "3, dtype=t.float64, requires_grad=True",
    )
]  # fmt: skip

MODULE = [
    f"t.signal.windows.{name}({arguments})"
    for name in (
        "bartlett", "blackman", "cosine", "exponential", "gaussian", "hamming", "hann", "kaiser",
        "nuttall",
    )
    for arguments in ("0", "1", "7, dtype=t.float64", "6, sym=False, dtype=t.float64")
]  # fmt: skip

CALLS = """
t.signal.windows.hann(5, requires_grad=True)
t.signal.windows.kaiser(5, requires_grad=True, dtype=t.float64)
t.signal.windows.gaussian(5, std=-1)
t.signal.windows.gaussian(5, std=2.0, dtype=t.float64)
t.signal.windows.exponential(5, center=1.0)
t.signal.windows.exponential(5, center=1.0, sym=False, dtype=t.float64)
t.signal.windows.exponential(5, tau=-1)
t.signal.windows.kaiser(5, beta=-1)
t.signal.windows.hann(5, dtype=t.half)
t.signal.windows.general_cosine(5, a=[])
t.signal.windows.general_cosine(5, a=3)
t.signal.windows.general_cosine(6, a=[0.3, 0.2], sym=False, dtype=t.float64)
t.signal.windows.general_hamming(6, alpha=0.3, dtype=t.float64)
t.hamming_window(5, True, 0.5, 0.4)
t.hamming_window(5, True, 0.5)
t.kaiser_window(6, False, 5.0, dtype=t.float64)
t.stft(x(20), 8, return_complex=True)
t.stft(x(2, 20), 8, 3, window=x(8), return_complex=True)
t.stft(x(2, 20), 7, 3, 5, window=x(5), return_complex=False)
x(20).stft(8, 2, window=x(8), center=False, normalized=True, return_complex=True)
t.stft(x(20), 8, 2, 6, center=False, return_complex=True)
t.stft(x(20), 8, 2, 6, center=False, align_to_window=True, return_complex=True)
t.stft(x(20), 8, 2, 6, center=False, align_to_window=False, return_complex=True)
t.stft(x(20), 8, pad_mode="constant", return_complex=True)
t.stft(x(20), 8, onesided=False, return_complex=True)
t.stft(c(20), 8)
t.stft(c(20), 8, pad_mode="constant")
t.stft(x(20), 8, window=c(8))
t.stft(x(20), 8)
t.stft(x(20), 8, align_to_window=True)
t.stft(n(20), 8, center=False, return_complex=True)
t.stft(x(1, 1, 20), 8, center=False, return_complex=True)
t.stft(x(20), 0, window=x(8), return_complex=True)
t.stft(x(20), 40, center=False, return_complex=True)
t.stft(x(20), 8, 0, window=x(8), return_complex=True)
t.stft(x(20), 8, 2, 9, window=x(8), return_complex=True)
t.stft(x(20), 8, 2, 6, window=x(8), return_complex=True)
t.stft(c(20), 8, onesided=True, pad_mode="constant")
t.istft(c(5, 4), 8)
t.istft(c(5, 4), 8, window=x(8))
t.istft(c(2, 5, 4), 8, 3, 6, window=x(6))
t.istft(c(2, 5, 4), 8, length=11)
t.istft(c(5, 4), 8, length=30)
c(5, 4).istft(8, normalized=True)
t.istft(c(8, 4), 8, onesided=False)
t.istft(c(8, 4), 8, return_complex=True)
t.istft(c(5, 4), 8, center=False)
t.istft(x(5, 4), 8)
t.istft(c(5, 4), 8, center=False, window=t.hann_window(8, dtype=t.float64))
t.istft(c(6, 4), 8, window=x(8))
t.istft(c(6, 4), 8, onesided=False)
t.istft(c(5, 0), 8)
t.istft(c(5, 4), 8, 9)
t.istft(c(5, 4), 8, 2, 9)
t.istft(c(5, 4), 8, 2, 6, window=x(8))
t.istft(c(5, 4), 8, return_complex=True, onesided=True)
t.istft(c(5, 4), 8, window=c(8))
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", WINDOWS + MODULE + CALLS)
def test_as_torch(call):
    assert_as_torch(call)


def test_there_and_back():
    x = clew.randn(2, 50, dtype=clew.float64)
    window = clew.hann_window(16, dtype=clew.float64)
    spectra = clew.stft(x, 16, window=window, return_complex=True)
    clew.testing.assert_close(clew.istft(spectra, 16, window=window, length=50), x)
