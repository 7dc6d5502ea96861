"""``clew.fft``: values, types, memory order, graphs and gradients as torch's."""

import pytest

import clew
import clew.fft
from functions.expressions import assert_as_torch

ONE_DIM = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = [name + dims for name in ONE_DIM for dims in ("n", "2")]
ARGUMENTS = ["x(4, 5)", "c(4, 5)", "n(4, 5)"]
COMPLEX_OR_NOT = [
    f"t.fft.{name}({argument}{more})"
    for name in ONE_DIM
    for argument in ARGUMENTS
    for more in ("", ", 3", ", 8, 0, 'ortho'", ", norm='forward'")
] + [
    f"t.fft.{name}({argument}{more})"
    for name in SEVERAL
    for argument in ARGUMENTS
    for more in ("", ", (3, 8)", ", norm='ortho'", ", norm='forward'")
]

CALLS = """
t.fft.fft(x(2, 3, 4), dim=1)
t.fft.fft(c(2, 3, 4).permute(2, 0, 1), dim=1)
t.fft.rfft(x(2, 3, 4).mT, dim=0)
t.fft.fftn(x(2, 3, 4), dim=(0, 2))
t.fft.fftn(c(2, 3, 4), dim=())
t.fft.fftn(c(2, 3, 4).mT, s=(-1, 2))
t.fft.rfftn(x(2, 3, 4), dim=(1, 0))
t.fft.rfftn(x(2, 3, 4).permute(2, 1, 0))
t.fft.irfftn(c(2, 3, 4), dim=(0, 2, 1))
t.fft.hfftn(c(2, 3, 4), s=(3, 3, 5))
t.fft.ihfftn(x(2, 3, 4))
t.fft.fftn(x(3, 4), s=2)
t.fft.fftn(x(3, 4), dim=0)
t.fft.fft(x(3), axis=0)
t.fft.fft(t.tensor([True, False]))
t.fft.fft(t.ones(3))
t.fft.irfft(t.ones(3, dtype=t.complex64))
t.fft.rfft(x(1))
t.fft.fft(x(3).half())
t.fft.fft(x(3).bfloat16())
t.fft.fft(x())
t.fft.fft(x(3), n=0)
t.fft.fft(x(3), norm="no")
t.fft.fft(x(3), dim=1)
t.fft.fft(t.ones(0))
t.fft.rfft(c(3))
t.fft.ihfft(c(3))
t.fft.irfft(c(1))
t.fft.rfftn(c(3, 3))
t.fft.ihfft2(c(3, 3))
t.fft.rfftn(x(3, 3), dim=())
t.fft.irfftn(x(3, 3), dim=())
t.fft.hfftn(x(3, 3), dim=())
t.fft.ihfftn(x(3, 3), dim=())
t.fft.fftn(x(3, 3), dim=(0, 0))
t.fft.fftn(x(3, 3), s=(1, 2, 3))
t.fft.fftn(x(3, 3), s=(1, 2), dim=(0,))
t.fft.fftn(x(3, 3), s=(0, 1))
t.fft.fft2(x(3))
t.fft.fft([1.0])
t.fft.fft(t.ones(3), out=t.zeros(3))
t.fft.fft(t.ones(3), out=t.zeros(0, dtype=t.complex64))
t.fft.fft(t.ones(3).double(), out=t.zeros(3, dtype=t.complex64))
t.fft.irfft(t.ones(3), out=t.zeros(3, dtype=t.complex64))
t.fft.fftfreq(5)
t.fft.fftfreq(4, 0.5)
t.fft.fftfreq(4, d=2, dtype=t.float64, requires_grad=True)
t.fft.fftfreq(0)
t.fft.fftfreq(-1)
t.fft.fftfreq(4, 0.0)
t.fft.fftfreq(4, dtype=t.int64)
t.fft.rfftfreq(5)
t.fft.rfftfreq(6, 2.0)
t.fft.fftshift(x(2, 3, 4))
t.fft.fftshift(n(4), dim=0)
t.fft.ifftshift(x(2, 3), dim=(1,))
t.fft.fftshift(x())
t.fft.fftshift(x(3), dim=-1)
""".strip().splitlines()


@pytest.mark.parametrize("call", COMPLEX_OR_NOT + CALLS)
def test_as_torch(call):
    assert_as_torch(call)


def test_inverse():
    x = clew.randn(3, 5, dtype=clew.complex128)
    for norm in ("backward", "ortho", "forward"):
        back = clew.fft.ifftn(clew.fft.fftn(x, norm=norm), norm=norm)
        clew.testing.assert_close(back, x)
