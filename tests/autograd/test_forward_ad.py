"""Forward mode as PyTorch has it: levels, dual tensors, views and writes, gradients, Functions."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import clew
import clew.autograd.forward_ad as fw
from clew.autograd import grad, gradcheck, gradgradcheck


def dual(values, tangent):
    return fw.make_dual(
        clew.tensor(values, dtype=clew.float64), clew.tensor(tangent, dtype=clew.float64)
    )


def tangent_of(x):
    found = fw.unpack_dual(x).tangent
    return None if found is None else found.tolist()


@pytest.fixture
def level():
    with fw.dual_level() as number:
        yield number


# -- levels


def test_there_is_one_level():
    with fw.dual_level() as number:
        assert number == 0
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            fw.enter_dual_level()
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fw.exit_dual_level()
    with pytest.raises(RuntimeError, match="not the last one that was created"):
        fw.exit_dual_level(level=2)


def test_the_level_ends_with_an_error():
    with pytest.raises(ZeroDivisionError), fw.dual_level():
        raise ZeroDivisionError
    assert fw._current_level == -1


def test_tangents_end_with_their_level():
    with fw.dual_level():
        x = dual([1.0], [2.0])
        y = x * 3
        assert tangent_of(y) == [6.0]
    assert fw.unpack_dual(y) == (y, None)
    with fw.dual_level():
        assert tangent_of(x) is None
        assert tangent_of(y) is None


def test_nothing_is_kept_alive():
    with fw.dual_level():
        x = clew.ones(3, requires_grad=True)
        y = fw.make_dual(x, clew.ones(3)).exp()
        memory = weakref.ref(fw.unpack_dual(y).tangent)
    del y
    gc.collect()
    assert memory() is None


def test_as_a_decorator():
    @fw.dual_level()
    def slope(at):
        return tangent_of(dual([at], [1.0]) ** 2)

    assert slope(3.0) == slope(3.0) == [6.0]


def test_turned_off(level):
    x = dual([1.0], [2.0])
    with fw._set_fwd_grad_enabled(False):
        y = x * 3
        assert tangent_of(x) is None
    assert tangent_of(x) == [2.0]
    assert tangent_of(y) is None


# -- dual tensors


def test_make_dual_refuses(level):
    x, t = clew.ones(2), clew.ones(2)
    with pytest.raises(RuntimeError, match=r"Tensor is of size \[2\] while .* of size \[3\]"):
        fw.make_dual(x, clew.ones(3))
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
        fw.make_dual(clew.arange(2), t)
    with pytest.raises(ValueError, match="Expected tangent to be floating point or complex"):
        fw.make_dual(x, clew.arange(2))
    with pytest.raises(RuntimeError, match="already has a forward gradient at the same level 0"):
        fw.make_dual(fw.make_dual(x, t), t)
    with pytest.raises(RuntimeError, match="itself has a forward gradient at the same level0"):
        fw.make_dual(x, fw.make_dual(t, t))


def test_the_tangent_is_used_as_it_is(level):
    x, t = clew.ones(2, 3), clew.ones(2, 3)
    assert fw.unpack_dual(fw.make_dual(x, t)).tangent is t
    other = fw.unpack_dual(fw.make_dual(x.mT, t.reshape(3, 2))).tangent
    assert other.stride() == (1, 3)


def test_unpacked_and_dual_share_memory_and_version(level):
    x = clew.ones(2)
    y = fw.make_dual(x, clew.ones(2))
    x.add_(1)
    assert y._version == x._version == fw.unpack_dual(y).primal._version == 1
    assert fw.unpack_dual(y).primal.tolist() == [2.0, 2.0]
    assert tangent_of(x) is None


def test_no_grad_detach_and_what_has_no_derivative(level):
    x = dual([1.0, -2.0], [3.0, 4.0])
    with clew.no_grad():
        assert tangent_of(x * 2) == [6.0, 8.0]
    assert tangent_of(x.detach()) is None
    assert tangent_of(x.data) is None
    assert tangent_of(x.clone().detach_()) is None
    assert tangent_of(x > 0) is None
    assert tangent_of(x.long()) is None
    assert tangent_of(x.floor()) == [0.0, 0.0]
    assert "tangent=" in str(x)


def test_out_is_refused(level):
    x, plain = clew.ones(2), clew.ones(2)
    d = fw.make_dual(x, clew.ones(2))
    for call in (lambda: clew.add(plain, plain, out=d), lambda: clew.add(d, plain, out=plain)):
        with pytest.raises(NotImplementedError, match="add_out that does not support it because"):
            call()


# -- views and writes


def test_a_write_to_a_view_reaches_the_base_and_the_other_way_round(level):
    x = dual([1.0, 2.0], [1.0, 1.0])
    view = x[:1]
    view *= 2
    assert tangent_of(x) == [2.0, 1.0]
    x *= 10
    assert tangent_of(view) == [20.0]


def test_a_base_gets_a_tangent_by_a_view(level):
    base = clew.zeros(3, dtype=clew.float64)
    early = base[1:]
    base[0] = dual([5.0], [7.0])[0]
    assert tangent_of(base) == [7.0, 0.0, 0.0]
    assert tangent_of(early) == [0.0, 0.0]
    early.add_(dual([1.0, 1.0], [2.0, 3.0]))
    assert tangent_of(base) == [7.0, 2.0, 3.0]


def test_a_write_takes_the_values_from_before(level):
    x = dual([2.0, 3.0], [1.0, 1.0])
    y = x.clone()
    y.mul_(y).exp_()
    expected = np.exp([4.0, 9.0]) * [4.0, 6.0]
    np.testing.assert_allclose(tangent_of(y), expected)
    assert tangent_of(y.zero_()) == [0.0, 0.0]


def test_views_in_place(level):
    x = dual([[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]).clone()
    assert tangent_of(x.t_()) == [[4.0], [5.0], [6.0]]
    assert tangent_of(x.squeeze_()) == [4.0, 5.0, 6.0]
    assert tangent_of(x.unsqueeze_(0) * 2) == [[8.0, 10.0, 12.0]]


def test_complex_views(level):
    z = clew.tensor([1 + 2j, 3 - 1j], dtype=clew.complex128)
    x = fw.make_dual(z, clew.tensor([1j, 2 + 0j], dtype=clew.complex128))
    parts = clew.view_as_real(x)
    assert tangent_of(parts) == [[0.0, 1.0], [2.0, 0.0]]
    parts.mul_(2)
    assert tangent_of(x) == [2j, 4 + 0j]


# -- with gradients


def test_reverse_over_forward_and_forward_over_reverse(level):
    x = clew.tensor([1.0, 2.0], dtype=clew.float64, requires_grad=True)
    t = clew.tensor([3.0, -1.0], dtype=clew.float64, requires_grad=True)
    d = fw.make_dual(x, t)
    slope = fw.unpack_dual((d**3).sum()).tangent
    gx, gt = grad(slope, (x, t))
    np.testing.assert_allclose(gx.detach(), [18.0, -12.0])
    np.testing.assert_allclose(gt.detach(), [3.0, 12.0])
    (g,) = grad((d**3).sum(), d)
    np.testing.assert_allclose(tangent_of(g), [18.0, -12.0])


def test_backward_accumulates_in_place_while_a_level_runs(level):
    x = clew.ones(2, requires_grad=True)
    d = fw.make_dual(x, clew.ones(2))
    (d * d).sum().backward()
    first = x.grad
    (d * d).sum().backward()
    assert x.grad is first
    assert x.grad.tolist() == [4.0, 4.0]
    assert not x.grad.requires_grad


def test_gradcheck_of_both_modes():
    x = clew.rand(3, dtype=clew.float64, requires_grad=True)
    z = clew.randn(2, dtype=clew.complex128, requires_grad=True)
    for fast in (False, True):
        assert gradcheck(lambda x: x.sin() * x.sum(), x, check_forward_ad=True, fast_mode=fast)
        assert gradcheck(lambda z: z.abs() * z, z, check_forward_ad=True, fast_mode=fast)
    assert gradgradcheck(lambda x: x.exp() * x.sum(), x, check_fwd_over_rev=True)
    with pytest.raises(AssertionError, match="Expected at least one of check_forward_ad or"):
        gradcheck(lambda x: x, x, check_backward_ad=False)


# -- Functions


class Scale(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_forward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def jvp(ctx, x_t, factor_t):
        assert factor_t is None
        assert len(ctx.saved_tensors) == 1
        return x_t * ctx.factor


def test_a_function_with_jvp(level):
    assert tangent_of(Scale.apply(dual([1.0, 2.0], [1.0, 3.0]), 5)) == [5.0, 15.0]


def returning(jvp):
    class Wrong(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    Wrong.jvp = staticmethod(jvp)
    return Wrong.apply


@pytest.mark.parametrize(
    "jvp, message",
    [
        (lambda ctx, t: (t, t), r"invalid number of forward gradients \(expected 1 but got 2\)"),
        (lambda ctx, t: 5, r"expected Variable or None \(got int\) for grad output 0"),
        (lambda ctx, t: None, "returned no gradient at position 0"),
        (lambda ctx, t: t[:1], "has a different size than that of the original Tensor"),
    ],
)
def test_what_jvp_returns_is_checked(level, jvp, message):
    with pytest.raises(RuntimeError, match=message):
        returning(jvp)(dual([1.0, 2.0], [1.0, 3.0]))


def test_a_function_without_jvp(level):
    class Reverse(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        Reverse.apply(dual([1.0], [1.0]))
    assert Reverse.apply(clew.ones(1)).tolist() == [2.0]
