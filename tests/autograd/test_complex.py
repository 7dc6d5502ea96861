"""Complex numbers in the graph: parts as views, writes through them, gradients.  Oracle: torch."""

import warnings

import pytest

import clew
from twins import assert_same


def leaf(e):
    return e.tensor([[1 + 2j, 3 - 1j], [-0.5j, 2 + 0.25j]], requires_grad=True)


@pytest.mark.parametrize("part", ["real", "imag"])
def test_parts_are_views(part):
    def run(e):
        z = leaf(e)
        x = z.clone()
        p = getattr(x, part)
        found = [p, p.grad_fn, p._base is x, tuple(p.stride())]
        (p * p).sum().backward()
        return [found, z.grad]

    assert_same(run)


@pytest.mark.parametrize("part", ["real", "imag"])
def test_writing_a_part_writes_the_whole(part):
    def run(e):
        z = leaf(e)
        x = z.clone()
        weight = e.tensor([[2.0, 3.0], [4.0, 5.0]], requires_grad=True)
        getattr(x, part).mul_(weight)
        y = (x * x.conj()).real.sum()
        y.backward()
        return [x, x._version, type(x.grad_fn).__name__, z.grad, weight.grad]

    assert_same(run)


def test_part_after_a_write_to_the_whole():
    def run(e):
        z = leaf(e)
        x = z.clone()
        p = x.imag
        x.mul_(2j)
        (p * p * p).sum().backward()
        return [p, z.grad]

    assert_same(run)


def test_pairs_of_numbers_seen_as_complex_ones():
    def run(e):
        a = e.arange(8.0).view(2, 2, 2).requires_grad_()
        x = a.clone()
        z = e.view_as_complex(x)
        z[1].mul_(1 + 2j)
        e.view_as_real(z)[0].mul_(3)
        (x * x).sum().backward()
        return [x, a.grad]

    assert_same(run)


@pytest.mark.parametrize("part", ["real", "imag"])
@pytest.mark.parametrize("value", [5, 0.5, "tensor"])
def test_assigning_a_part(part, value):
    def run(e):
        z = leaf(e)
        x = z.clone()
        new = e.tensor([1.0, -1.0], requires_grad=True) if value == "tensor" else value
        setattr(x, part, new)
        (x * x.conj()).real.sum().backward()
        return [x, z.grad, new.grad if value == "tensor" else None]

    assert_same(run)


def test_real_tensors_have_no_imaginary_part():
    def run(e):
        x = e.ones(2)
        return [x.real is x, e.real(x) is x, x.conj() is x, e.isreal(x)]

    assert_same(run)
    assert_same(lambda e: e.ones(2).imag)
    assert_same(lambda e: hasattr(e.ones(2), "imag"))


@pytest.mark.parametrize(
    "function",
    [
        lambda e, z: z.angle(),
        lambda e, z: z.abs(),
        lambda e, z: e.view_as_real(z),
        lambda e, z: e.complex(z.real, z.imag * 2),
        lambda e, z: e.polar(z.abs(), z.angle()),
        lambda e, z: z.conj() * z,
        lambda e, z: e.conj_physical(z) * 2j,
        lambda e, z: e.sgn(z),
        lambda e, z: z.exp().sin(),
        lambda e, z: z.to(e.float32),
        lambda e, z: z.real.to(e.complex128),
    ],
)
def test_gradients(function):
    """The gradient points where a real loss grows; second order as well."""

    def run(e):
        z = leaf(e)
        out = function(e, z)
        loss = (out * out.conj()).real.sum() if out.is_complex() else (out * out).sum()
        (first,) = e.autograd.grad(loss, z, create_graph=True)
        second = None
        if first.requires_grad:
            second = e.autograd.grad(first.abs().sum(), z, allow_unused=True)[0]
        return [out.detach(), first.detach(), second]

    assert_same(run)


def test_a_cast_to_real_warns_once(monkeypatch):
    monkeypatch.setattr(clew.config.switches, "warn_always", True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = clew.tensor([1 + 2j]).float()
    assert found.tolist() == [1.0]
    assert [str(w.message) for w in caught] == [
        "Casting complex values to real discards the imaginary part"
    ]
    assert clew.tensor([1j, 0j]).bool().tolist() == [True, False]
