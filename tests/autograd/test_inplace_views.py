"""`t_`, `unsqueeze_` and their like: another look at the same memory.  Oracle: torch."""

import pytest

from twins import assert_same

CHANGES = {
    "t_": lambda v: v.t_(),
    "transpose_": lambda v: v.transpose_(0, 1),
    "swapdims_": lambda v: v.swapdims_(0, 1),
    "swapaxes_": lambda v: v.swapaxes_(-1, 0),
    "unsqueeze_": lambda v: v.unsqueeze_(0),
    "squeeze_": lambda v: v.squeeze_(),
    "squeeze_dim": lambda v: v.squeeze_(0),
    "as_strided_": lambda v: v.as_strided_((2, 2), (1, 1)),
}
change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


def weighted(e, x):
    return (x * e.arange(1.0, x.numel() + 1).view(x.shape)).sum()


def state_of(x):
    return [
        tuple(x.shape), tuple(x.stride()), x._version, x._is_view(), x.is_leaf, x.requires_grad,
        x.grad_fn,
    ]  # fmt: skip


@change
def test_of_a_tensor_of_its_own(change):
    def run(e):
        a = e.arange(6.0).reshape(2, 3).requires_grad_()
        x = a.clone()
        same = change(x) is x
        found = state_of(x)
        weighted(e, x).backward()
        return [same, found, a.grad]

    assert_same(run)


@change
def test_of_a_view_leaves_its_base_alone(change):
    def run(e):
        a = e.arange(6.0).reshape(2, 3).requires_grad_()
        x = a.clone()
        v = x.view(2, 3)
        change(v)
        found = [state_of(x), state_of(v), v._base is x]
        weighted(e, v).backward(retain_graph=True)
        of_view, a.grad = a.grad, None
        weighted(e, x).backward()
        return [found, of_view, a.grad]

    assert_same(run)


@change
def test_of_a_view_that_is_written_to_then(change):
    def run(e):
        a = e.arange(6.0).reshape(2, 3).requires_grad_()
        x = a.clone()
        v = x.view(2, 3)
        change(v)
        v.mul_(2)
        weighted(e, x).backward()
        return [state_of(x), state_of(v), a.grad]

    assert_same(run)


@change
def test_of_a_leaf(change):
    assert_same(lambda e: change(e.ones(2, 3, requires_grad=True)))

    def unrecorded(e):
        b = e.ones(2, 3, requires_grad=True)
        with e.no_grad():
            change(b)
        found = state_of(b)
        weighted(e, b).backward()
        return [found, b.grad]

    assert_same(unrecorded)


@change
def test_what_was_saved_is_no_longer_there(change):
    def run(e):
        x = e.ones(2, 3, requires_grad=True).clone()
        y = x * x
        change(x)
        y.sum().backward()

    kind, text = assert_same(lambda e: _short(run, e))
    assert kind == "RuntimeError" and "modified by an inplace operation" in text


def _short(run, e):
    try:
        run(e)
    except RuntimeError as error:
        return ["RuntimeError", str(error).split(", which is")[0]]


@change
def test_retained_gradient_follows(change):
    def run(e):
        x = e.ones(2, 3, requires_grad=True).clone()
        x.retain_grad()
        change(x)
        weighted(e, x).backward()
        return x.grad

    assert_same(run)


@change
@pytest.mark.parametrize("where", ["unbind", "no_grad", "inference"])
def test_of_a_view_that_takes_no_write(change, where):
    def run(e):
        x = e.ones(1, 2, 3, requires_grad=True).clone()
        if where == "unbind":
            v = x.unbind()[0]
        elif where == "no_grad":
            with e.no_grad():
                v = x[0]
        else:
            with e.inference_mode():
                v = x[0]
        change(v)

    assert_same(run)
