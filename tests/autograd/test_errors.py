"""Errors of backward: as torch's, and they teach."""

import io
import pickle

import pytest

import clew
from clew import errors
from clew.multiprocessing.reductions import reduce_tensor
from teaching import check_as_torch, check_facts, check_teaches, warning_of


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


# -- no gradient path


def detached(t):
    x = leaf(t, 1, 2)
    target = x.detach() * 3  #: why
    loss = (target**2).sum()
    loss.backward()  #: backward


def detached_in_place(t):
    x = leaf(t, 1, 2)
    y = x * 2
    y.detach_()  #: why
    (y + 1).sum().backward()  #: backward


def through_data(t):
    x = leaf(t, 1, 2)
    y = x.data + 1  #: why
    y.sum().backward()  #: backward


def computed_without_recording(t):
    x = leaf(t, 1, 2)
    with t.no_grad():  #: why
        y = x * x
    (y * 2).sum().backward()  #: backward


def computed_in_inference_mode(t):
    x = leaf(t, 1, 2)
    with t.inference_mode():  #: why
        y = (x * x).sum()
    y.backward()  #: backward


def recording_turned_off(t):
    x = leaf(t, 1, 2)
    t.set_grad_enabled(False)  #: why
    try:
        y = x.max(0).values
    finally:
        t.set_grad_enabled(True)
    t.autograd.grad(y, x)  #: backward


def not_differentiable(t):
    x = leaf(t, 1, 2)
    hits = x.argmax() == 1  #: why
    hits.float().mean().backward()  #: backward


def index_of_the_maximum(t):
    x = leaf(t, 1, 2)
    _, where = x.max(0)  #: why
    where.float().backward()  #: backward


def by_way_of_a_number(t):
    x = leaf(t, 1, 2)
    y = t.tensor(x.sum().item())
    t.autograd.backward([x.sum(), y])  #: backward


# -- what backward starts from


def not_a_scalar(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: tensor
    y.backward()  #: backward


def complex_scalar(t):
    x = t.tensor(1 + 2j, requires_grad=True)
    y = x * 2  #: tensor
    y.backward()  #: backward


def gradient_of_another_shape(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: output
    y.backward(t.ones(3))  #: given


def gradient_of_another_type(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: output
    y.backward(t.ones(2, dtype=t.complex64))  #: given


def gradient_at_an_edge_of_another_shape(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: output
    t.autograd.backward(t.autograd.graph.get_gradient_edge(y), t.ones(3))  #: given


def assigned_shape(t):
    x = leaf(t, 1, 2)
    x.grad = t.ones(3)  #: given


def assigned_type(t):
    x = leaf(t, 1, 2)
    x.grad = t.ones(2, dtype=t.float64)  #: given


# -- a second backward


def second_backward(t):
    x = leaf(t, 1, 2)
    loss = (x * x).sum()  #: node
    loss.backward()  #: freed
    loss.backward()  #: again


def retained_too_late(t):
    x = leaf(t, 1, 2)
    loss = x.exp().sum()  #: node
    loss.backward()  #: freed
    loss.backward(retain_graph=True)  #: again


def shared_prefix(t):
    x = leaf(t, 1, 2)
    h = x.tanh()  #: node
    h.sum().backward()  #: freed
    t.autograd.grad((h + 1).sum(), x)  #: again


def state_carried_over(t):
    w = leaf(t, 1)
    h = t.ones(1)
    for _ in range(2):
        h = h * w  #: node
        h.sum().backward()  #: freed, again


def saved_value_read_after_backward(t):
    x = leaf(t, 1, 2)
    y = x * x  #: node
    y.sum().backward()  #: freed
    return y.grad_fn._saved_self  #: again


# -- saved tensors that were modified


def result_modified(t):
    x = leaf(t, 1, 2)
    y = x.exp()  #: tensor, saved by
    y.add_(1)  #: changed
    y.sum().backward()


def input_modified(t):
    x = leaf(t, 1, 2)
    h = x * 2  #: tensor
    y = h**2  #: saved by
    h.add_(1)  #: changed
    y.sum().backward()


def leaf_modified_before_backward(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    y = x**2  #: saved by
    with t.no_grad():
        x.add_(1)  #: changed
    y.sum().backward()


def constant_modified(t):
    x, c = leaf(t, 1, 2), t.ones(2)
    y = x * c  #: saved by
    c.mul_(2)  #: changed
    y.sum().backward()


def modified_through_detach(t):
    x = leaf(t, 1, 2)
    h = x * 2  #: tensor
    y = h**2  #: saved by
    h.detach().zero_()  #: changed
    y.sum().backward()


def modified_through_a_view(t):
    x = leaf(t, 1, 2)
    h = x * 2  #: tensor
    y = h**2  #: saved by
    h.view(2, 1).mul_(2)  #: changed
    y.sum().backward()


def modified_by_an_index(t):
    x = leaf(t, 1, 2)
    h = x * 2  #: tensor
    y = h**2  #: saved by
    h[0] = 5.0  #: changed
    y.sum().backward()


def modified_as_out(t):
    x, c = leaf(t, 1, 2), t.ones(2)
    y = x * c  #: saved by
    t.add(c, 1, out=c)  #: changed
    y.sum().backward()


def modified_and_read(t):
    x = leaf(t, 1, 2)
    y = x.exp()  #: tensor, saved by
    saver = y.grad_fn
    y.add_(1)  #: changed
    return saver._saved_result


def optimizer_stepped_between(t):
    t.manual_seed(0)
    generator = t.nn.Linear(2, 3)
    discriminator = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.ReLU(), t.nn.Linear(4, 1))
    optimizer = t.optim.SGD(discriminator.parameters(), lr=0.1)
    fake = generator(t.ones(5, 2))
    g_loss = discriminator(fake).mean()  #: tensor, saved by
    discriminator(fake.detach()).mean().backward()
    optimizer.step()  #: changed
    g_loss.backward()


PROGRAMS = [
    detached, detached_in_place, through_data, computed_without_recording,
    computed_in_inference_mode, recording_turned_off, not_differentiable, index_of_the_maximum,
    by_way_of_a_number, not_a_scalar, complex_scalar, gradient_of_another_shape,
    gradient_of_another_type, gradient_at_an_edge_of_another_shape, assigned_shape, assigned_type,
    second_backward, retained_too_late, shared_prefix, state_carried_over,
    saved_value_read_after_backward, result_modified, input_modified, leaf_modified_before_backward,
    constant_modified, modified_through_detach, modified_through_a_view, modified_by_an_index,
    modified_as_out, modified_and_read, optimizer_stepped_between,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_teaches(program):
    check_teaches(program)


PLAIN = {
    "zeros or an error": lambda t: t.autograd.grad(
        leaf(t, 1).sum(), leaf(t, 1), materialize_grads=True, allow_unused=False
    ),
    "a number for a gradient": lambda t: (leaf(t, 1, 2) * 2).backward(1.0),
    "numbers for gradients": lambda t: (leaf(t, 1, 2) * 2).backward([1.0, 2.0]),
    "too few gradients": lambda t: t.autograd.backward([leaf(t, 1), leaf(t, 2)], [t.ones(1)]),
    "a number assigned": lambda t: setattr(leaf(t, 1), "grad", 2.0),
    "an optimizer of results": lambda t: t.optim.SGD([leaf(t, 1) * 2], lr=0.1),
    "numpy() of a graph": lambda t: leaf(t, 1).numpy(),
    "a view detached in place": lambda t: (leaf(t, 1, 2) * 1)[:1].detach_(),
    "an edge of a constant": lambda t: t.autograd.graph.get_gradient_edge(t.ones(1)),
    "integers from the start": lambda t: t.tensor([1, 2], requires_grad=True),
}


@pytest.mark.parametrize("case", PLAIN)
def test_as_torch(case):
    check_as_torch(PLAIN[case])


# -- warnings


def gradient_of_a_result(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: tensor
    y.sum().backward()
    return y.grad  #: read


def number_of_a_loss(t):
    loss = leaf(t, 1, 2).sum()  #: tensor
    return float(loss)  #: read


@pytest.mark.parametrize(
    ("program", "anchor"),
    [(gradient_of_a_result, "non-leaf-grad"), (number_of_a_loss, "scalar-of-a-graph")],
)
def test_warning_teaches(program, anchor, monkeypatch):
    torch = pytest.importorskip("torch")
    torch.set_warn_always(True)
    monkeypatch.setattr(clew.config.switches, "warn_always", True)
    try:
        theirs, ours = warning_of(program, torch), warning_of(program, clew)
    finally:
        torch.set_warn_always(False)
    assert ours.startswith(theirs.split(" (Triggered")[0])
    check_facts(program, ours.removeprefix(theirs), anchor)


# -- the classes


def test_pickle_of_a_tensor_with_a_history():
    y = leaf(clew, 1, 2) * 2
    with pytest.raises(errors.NonLeafCopyError, match="Cowardly refusing to serialize"):
        reduce_tensor(y)  # as multiprocessing does
    copied = pickle.loads(pickle.dumps(y))
    assert copied.requires_grad and copied.is_leaf
    clew.save(y, io.BytesIO())  # keeps the values only, as torch.save does


def test_errors_survive_pickle():
    with pytest.raises(errors.NonScalarBackwardError) as caught:
        not_a_scalar(clew)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert type(copied) is errors.NonScalarBackwardError
    assert str(copied) == str(caught.value)
    assert copied.facts == caught.value.facts


def test_provenance_off_leaves_lines_out(monkeypatch):
    monkeypatch.setattr(clew.config.switches, "provenance", False)
    with pytest.raises(errors.SavedTensorModifiedError) as caught:
        result_modified(clew)
    facts = dict(caught.value.facts)
    assert facts["tensor"] == "tensor float32 [2], made by ExpBackward0"
    assert facts["changed"] == "by add_"


def test_cures_fit_the_write():
    facts = dict(errors_of(modified_by_an_index).facts)
    assert facts["cure"].startswith("write to a clone()")
    assert "use add instead of add_" in dict(errors_of(result_modified).facts)["cure"]
    assert (
        "retain_graph=True cannot help" in dict(errors_of(optimizer_stepped_between).facts)["cure"]
    )


def errors_of(program):
    with pytest.raises(errors.AutogradError) as caught:
        program(clew)
    return caught.value


# -- the line of the backward pass that let go


def _by_method(x, loss):
    loss.backward()


def _by_function(x, loss):
    clew.autograd.backward(loss)


def _by_grad(x, loss):
    clew.autograd.grad(loss, x)


def _by_a_node(x, loss):
    clew.autograd.backward(clew.autograd.graph.get_gradient_edge(loss), clew.tensor(1.0))


@pytest.mark.parametrize("call", [_by_method, _by_function, _by_grad, _by_a_node])
def test_the_line_that_freed_the_graph(call):
    x = leaf(clew, 1, 2)
    loss = (x * x).sum()
    call(x, loss)
    with pytest.raises(RuntimeError, match="a second time") as caught:
        loss.backward()
    assert f"in {call.__name__}: " in dict(caught.value.facts)["freed"]
