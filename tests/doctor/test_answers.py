"""`clew.why`, `clew.who_holds` and `clew.explain`, on tensors of both engines."""

from collections import deque

import pytest

import clew
from clew.inspect.doctor import Doctor
from engines import ENGINES

engines = pytest.mark.parametrize("torch", ENGINES.values(), ids=ENGINES)


def line_of(text):
    """The number of the line of this file that holds a text."""
    with open(__file__) as file:
        return next(n for n, line in enumerate(file, 1) if text in line)


# -- why


@engines
def test_why_a_result_requires_grad(torch):
    x = torch.ones(2, requires_grad=True)
    w = torch.nn.Parameter(torch.ones(2))
    y = (x * w).exp()
    answer = clew.why(y)
    assert answer.requires_grad
    assert answer.cut is None
    assert ["ExpBackward0", "MulBackward0"] in answer.paths
    assert len(answer.paths) == 2
    assert "leaf x" in str(answer)
    assert "leaf w" in str(answer)


def test_why_names_lines_on_clew():
    x = clew.ones(2, requires_grad=True)
    y = (x * 3).exp()  # why line
    assert {at.line for _, at in clew.why(y).lines} == {line_of("# why line")}


@engines
def test_why_names_lines_of_a_watched_program(torch):
    x = torch.ones(2, requires_grad=True)
    with Doctor(show=False):
        y = (x * 4).exp()  # watched line
        z = y.detach() + 1  # cut line
        assert line_of("# watched line") in {at.line for _, at in clew.why(y).lines}
        answer = clew.why(z)
    assert answer.cut == "detach()"
    assert [at.line for _, at in answer.lines] == [line_of("# cut line")]


def test_why_names_lines_in_anomaly_mode():
    torch = ENGINES["torch"]
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = x * 5  # anomalous line
    assert [at.line for _, at in clew.why(y).lines] == [line_of("# anomalous line")]


@engines
def test_why_a_leaf_requires_grad(torch):
    assert "a leaf" in str(clew.why(torch.ones(2, requires_grad=True)))
    assert "a parameter" in str(clew.why(torch.nn.Parameter(torch.ones(2))))


@engines
def test_why_integers_have_no_gradient(torch):
    answer = clew.why(torch.ones(2).long())
    assert not answer.requires_grad
    assert "int64 have no gradient" in str(answer)


@pytest.mark.parametrize("kind", ["detach()", ".data", "no_grad"])
def test_why_not_on_clew(kind):
    x = clew.ones(2, requires_grad=True)
    if kind == "no_grad":
        with clew.no_grad():
            y = x * 2
    else:
        y = x.detach() if kind == "detach()" else x.data
    answer = clew.why(y * 3)
    assert answer.cut == kind
    assert len(answer.lines) == 1


def test_why_not_on_torch_says_how_to_know():
    torch = ENGINES["torch"]
    assert "clew.doctor()" in str(clew.why(torch.ones(2, requires_grad=True).detach()))


@engines
def test_why_of_many_leaves_lists_some(torch):
    total = sum(torch.ones(1, requires_grad=True) for _ in range(9))
    answer = clew.why(total)
    assert len(answer.paths) == 5
    assert "and 4 more" in str(answer)


@engines
def test_why_of_a_long_chain(torch):
    y = torch.ones(1, requires_grad=True)
    for _ in range(3000):
        y = y * 1.0
    assert len(clew.why(y).paths[0]) == 3000


def test_why_takes_tensors_only():
    with pytest.raises(TypeError, match="takes a tensor, got int"):
        clew.why(3)


# -- who holds


class Trainer:
    pass


@engines
def test_who_holds_a_tensor_in_containers(torch):
    def held(make):
        tensor = torch.ones(2, requires_grad=True) * 2
        box = make(tensor)
        # Only the container may hold it.
        reference = [tensor]
        del tensor
        answer = clew.who_holds(reference.pop())
        assert box is not None
        return str(answer)

    assert "-> [1]" in held(lambda t: [0, t])
    assert "-> ['loss'] -> [0]" in held(lambda t: {"loss": [t]})
    assert "-> [0]" in held(lambda t: deque([t]))
    assert "a closure" in held(lambda t: lambda: t)

    trainer = Trainer()
    trainer.log = {"losses": (torch.ones(1, requires_grad=True) * 3,)}
    chain = clew.who_holds(trainer.log["losses"][0])
    assert str(chain).startswith("trainer (Trainer in test_answers.py:")
    assert str(chain).endswith("-> .log -> ['losses'] -> [0]")
    assert chain.variable == "trainer"
    assert chain.line == line_of("trainer = Trainer()")


@engines
def test_who_holds_a_buffer_of_a_module(torch):
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(3))
    chain = clew.who_holds(model[0].running_mean)
    assert str(chain).endswith("-> .0 -> .running_mean")


@engines
def test_who_holds_a_node(torch):
    history = [(torch.ones(2, requires_grad=True) * 2).exp()]
    chain = clew.who_holds(history[0].grad_fn.next_functions[0][0])
    assert chain.variable == "history"
    assert "[0] -> ExpBackward0 -> MulBackward0" in str(chain)


# -- explain


def error_of(function):
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("no error")


@engines
def test_explain_a_second_backward(torch):
    y = (torch.ones(2, requires_grad=True) ** 2).sum()
    y.backward()
    finding = clew.explain(error_of(lambda: y.backward()))  # again
    assert finding.rule == "R06"
    assert finding.line == line_of("# again")
    assert "second time" in finding.message


@engines
def test_explain_a_write_in_place(torch):
    h = torch.ones(2, requires_grad=True) * 2
    y = h.exp()
    y.add_(1)  # the write
    finding = clew.explain(error_of(lambda: y.sum().backward()))
    assert finding.rule == "R10"
    assert "output 0 of Exp" in finding.message or f"{line_of('# the write')}" in finding.message


@engines
def test_explain_a_step_between(torch):
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    with pytest.raises(RuntimeError) as info, Doctor(show=False) as d:
        loss = (w * w).sum()
        loss.backward(retain_graph=True)
        optimizer.step()
        loss.backward()
    assert clew.explain(info.value).rule in ("R10", "R12")
    assert [f.rule for f in d.findings if f.severity == "error"] == ["R12"]


@engines
@pytest.mark.parametrize("view", [False, True])
def test_explain_a_write_to_a_leaf(torch, view):
    leaf = torch.ones(3, requires_grad=True)
    first = leaf[0:1]
    target = first if view else leaf

    def write():
        target.add_(1)

    finding = clew.explain(error_of(write))
    assert finding.rule == "R11"
    assert "no_grad" in finding.cure


@engines
def test_explain_no_path(torch):
    finding = clew.explain(error_of(lambda: torch.ones(2).sum().backward()))
    assert finding.rule == "R14"


@engines
def test_explain_a_non_leaf_parameter(torch):
    p = torch.ones(3, requires_grad=True) * 0.1
    finding = clew.explain(error_of(lambda: torch.optim.SGD([p], lr=0.1)))
    assert finding.rule == "R18"
    assert "made by Mul" in finding.message


@engines
def test_explain_other_errors(torch):
    x = torch.ones(3, requires_grad=True)
    finding = clew.explain(error_of(lambda: (x * 2).backward()))
    assert finding.rule == ""
    assert "Reduce the loss" in finding.cure
    finding = clew.explain(
        error_of(lambda: torch.autograd.grad((x * 2).sum(), torch.ones(1, requires_grad=True)))
    )
    assert "allow_unused=True" in finding.cure
    finding = clew.explain(error_of(lambda: torch.ones(2) @ torch.ones(3)))
    assert "no exception of autograd" in finding.cure


def test_explain_an_exception_without_traceback():
    assert clew.explain(RuntimeError("a leaf Variable that requires grad ...")).rule == "R11"
    assert clew.explain(KeyError("x")).place is None
