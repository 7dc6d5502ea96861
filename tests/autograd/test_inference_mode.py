"""Inference tensors: what makes one, what they may be used for, what becomes of their views."""

import pytest

from twins import assert_same


def state_of(e, x):
    return [
        x.requires_grad, x.is_leaf, e.is_inference(x), x._is_view(), x._base is not None, x.grad_fn
    ]  # fmt: skip


MAKERS = {
    "leaf": lambda e: e.ones(2, 3),
    "leaf that requires grad": lambda e: e.ones(2, 3, requires_grad=True),
}
VIEWS = {
    "view": lambda x: x.view(-1),
    "view of a view": lambda x: x.view(-1)[1:],
    "unbind": lambda x: x.unbind()[0],
    "transpose": lambda x: x.t(),
    "detach": lambda x: x.detach(),
}
view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
make = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@view
@make
@pytest.mark.parametrize("inside", [True, False])
def test_views_of_inference_tensors(make, view, inside):
    def run(e):
        with e.inference_mode():
            x = make(e)
        with e.inference_mode(inside):
            return state_of(e, view(x))

    assert_same(run)


@view
@make
def test_views_of_normal_tensors(make, view):
    def run(e):
        x = make(e)
        with e.inference_mode():
            v = view(x)
            return [state_of(e, v), v._version, state_of(e, x * 2)]

    assert_same(run)


@pytest.mark.parametrize("size", [(2,), (2, 3), (7,)])
@make
def test_resize(make, size):
    def run(e):
        with e.inference_mode():
            x = make(e)
            x.resize_(*size)
            normal = e.ones(2, 3, requires_grad=True)
        found = [tuple(x.shape), state_of(e, x)]
        with e.inference_mode():
            normal.resize_(*size)
        return [*found, tuple(normal.shape), normal._version]

    assert_same(run)


def test_resize_outside_is_refused():
    def run(e):
        with e.inference_mode():
            x = e.ones(4)
        x.resize_(2)

    assert "Inplace update to inference tensor" in assert_same(run)[1]


@pytest.mark.parametrize("grad", [True, False])
def test_mixed_with_normal_tensors(grad):
    def run(e):
        with e.inference_mode():
            x = e.ones(2)
        y = e.ones(2, requires_grad=grad)
        return [state_of(e, y + x), state_of(e, y.view_as(x)), state_of(e, x.view_as(y))]

    assert_same(run)


def test_not_a_tensor():
    assert_same(lambda e: e.is_inference(3))
