"""Random tensors, in-place samples, dropout and generators against PyTorch, number for number."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import clew
from twins import assert_same, outcome

DRAWS = """
torch.rand(3, 4)
torch.rand((2, 3), dtype=torch.float64)
torch.rand(size=(5,))
torch.rand([])
torch.rand(0, 3)
torch.rand(torch.tensor(2), 2)
torch.rand(7, dtype=torch.float16)
torch.rand(7, dtype=torch.bfloat16)
torch.rand(2, requires_grad=True)
torch.rand(2, 3, out=torch.empty(0))
torch.rand(3, generator=g)
torch.randn(3)
torch.randn(4, 5)
torch.randn(33, dtype=torch.float64)
torch.randn(2, 2, generator=g)
torch.randint(3, (4,))
torch.randint(-2, 5, (2, 3))
torch.randint(low=1, high=5, size=(2,))
torch.randint(high=5, size=(2,))
torch.randint(5, (2,), dtype=torch.float32)
torch.randint(5, size=(2,), generator=g)
torch.randint(2**40, (3,))
torch.randperm(9)
torch.randperm(4, dtype=torch.int32, generator=g)
torch.rand_like(x)
torch.rand_like(x.t())
torch.rand_like(x, dtype=torch.float64)
torch.randn_like(x)
torch.randint_like(x, 3)
torch.randint_like(x, 1, 3)
torch.randint_like(x, low=1, high=3)
torch.normal(x, q)
torch.normal(x, 2.0)
torch.normal(0.0, q)
torch.normal(x)
torch.normal(1.0, 2.0, (3,))
torch.normal(mean=0.0, std=1.0, size=(4, 5), generator=g)
torch.bernoulli(q)
torch.bernoulli(q, 0.3)
torch.bernoulli(q, generator=g)
q.bernoulli()
torch.multinomial(q, 2)
torch.multinomial(q[0], 8, replacement=True)
q.multinomial(1, generator=g)
torch.poisson(q * 20)
y.normal_()
y.normal_(1, 2, generator=g)
y.normal_(mean=1, std=torch.tensor(2.0))
y.uniform_()
y.uniform_(-1, 1)
y.uniform_(0.0, to=2.0, generator=g)
y.uniform_(**{"from": 1.0, "to": 2.0})
y.random_()
y.random_(3)
y.random_(1, 3)
y.random_(to=3)
y.random_(**{"from": 1, "to": 3})
y.bernoulli_()
y.bernoulli_(0.3)
y.bernoulli_(p=0.3, generator=g)
y.bernoulli_(q)
y.bernoulli_(q[0])
y.exponential_()
y.exponential_(2.0)
y.geometric_(0.3)
y.cauchy_()
y.cauchy_(1, sigma=2)
y.log_normal_()
y.log_normal_(0.0, 0.5, generator=g)
y.t().normal_()
y[1:, ::2].uniform_()
y.long().random_(100)
torch.dropout(x, 0.3, True)
torch.dropout(x, 0.0, True)
torch.dropout(x, 1.0, True)
torch.dropout(x, 0.3, False)
torch.dropout(x / 0, 0.5, True)
torch.dropout(x.t(), 0.1, True)
torch.dropout(x.half(), 0.1, True)
torch.dropout(x.bfloat16(), 0.7, True)
torch.dropout(x.double(), 0.1, True)
torch.dropout_(y, 0.3, True)
torch.feature_dropout(x.unsqueeze(-1), 0.5, True)
torch.feature_dropout_(y, 0.5, True)
torch.alpha_dropout(x, 0.3, True)
torch.alpha_dropout(x, 1.0, True)
torch.alpha_dropout_(y, 0.3, True)
torch.feature_alpha_dropout(x.unsqueeze(-1), 0.2, True)
""".strip().split("\n")


def names(engine: Any) -> dict[str, Any]:
    """What the expressions speak of; the default generator and `g` are seeded."""
    engine.manual_seed(7)
    x = engine.randn(4, 5).requires_grad_()
    q = engine.rand(4, 5).requires_grad_()
    return {"torch": engine, "x": x, "q": q, "y": x * 1, "g": engine.Generator().manual_seed(3)}


@pytest.mark.parametrize("expression", DRAWS)
def test_the_numbers_are_pytorchs(expression: str) -> None:
    def run(engine: Any) -> Any:
        known = names(engine)
        result = eval(expression, known)
        assert not isinstance(result, tuple)
        gradients = None
        not_differentiable = expression == "torch.bernoulli(q, 0.3)"
        if result.requires_grad and result.grad_fn is not None and not not_differentiable:
            leaves = [known["x"], known["q"]]
            gradients = engine.autograd.grad(result.sum(), leaves, allow_unused=True)
        # One more draw of each shows that the streams are in step.
        after = [engine.rand(1), engine.rand(1, generator=known["g"])]
        strides = result.stride() if result.numel() else None
        return [result, known["y"], known["y"]._version, strides, gradients, after]

    assert isinstance(assert_same(run, rtol=0, atol=0), list)


REFUSED = """
torch.rand(-1)
torch.rand(2, 3, dtype=torch.long)
torch.rand(2.5)
torch.rand(2, 3, out=torch.empty(0), dtype=torch.float64)
torch.randint(1, 5, (2,), requires_grad=True)
torch.randint(5, 1, (2,))
torch.randint(0, 2**70, (1,))
torch.randperm(-1)
torch.randperm(3, requires_grad=True)
torch.set_rng_state(torch.zeros(5, dtype=torch.uint8))
torch.set_rng_state(torch.zeros(5))
g.set_state(torch.zeros(3))
torch.manual_seed("a")
torch.normal(torch.zeros(2), torch.zeros(3))
torch.normal(0.0, -1.0, (2,))
torch.normal(x, -q.abs())
torch.bernoulli(torch.tensor([1]))
torch.bernoulli(q, 1.5)
torch.multinomial(q[0], 9)
torch.multinomial(q.long(), 2)
torch.poisson(-q)
torch.zeros(3).expand(3, 3).uniform_()
y.random_(5, 2)
y.random_(0)
y.exponential_(-1)
y.geometric_(2.0)
y.cauchy_(0, -1)
y.log_normal_(0, -1)
y.normal_(0, -1)
y.uniform_(2, 1)
y.long().normal_()
y.long().exponential_()
y.bernoulli_(torch.ones(3))
x.normal_()
x[0].uniform_()
torch.dropout(x, 1.5, True)
torch.dropout(x.detach().long(), 0.5, True)
torch.feature_dropout(x[0], 0.5, True)
torch.bernoulli(q, 0.3).sum().backward()
""".strip().split("\n")


@pytest.mark.parametrize("expression", REFUSED)
def test_refused(expression: str) -> None:
    kind, message = assert_same(lambda engine: eval(expression, names(engine)))
    assert kind.endswith("Error"), message


@pytest.mark.parametrize("expression", ["torch.rand(2, generator=3)", "torch.rand()",
                                        "torch.randint(5)", "torch.randint(1.5, (2,))",
                                        "torch.normal(1.0, 2.0)", "y.random_(from_=1)",
                                        "torch.rand(2, names=('a',))"])  # fmt: skip
def test_calls_that_make_no_sense(expression: str) -> None:
    torch = pytest.importorskip("torch")
    for engine in (clew, torch):
        kind, _ = outcome(lambda engine: eval(expression, names(engine)), engine)
        assert kind == "TypeError"


def test_states_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    clew.manual_seed(11)
    torch.manual_seed(11)
    clew.randn(3)
    torch.randn(3)
    assert clew.get_rng_state().tolist() == torch.get_rng_state().tolist()
    clew.set_rng_state(clew.tensor(torch.get_rng_state().tolist(), dtype=clew.uint8))
    assert clew.randn(5).tolist() == torch.randn(5).tolist()


def test_a_state_brings_the_numbers_back() -> None:
    generator: Any = clew.Generator()
    generator.manual_seed(4)
    state = generator.get_state()
    first = clew.randn(5, generator=generator)
    generator.set_state(state)
    assert clew.randn(5, generator=generator).tolist() == first.tolist()
    assert pickle.loads(pickle.dumps(generator)).initial_seed() == 4


def test_seeds() -> None:
    assert clew.manual_seed(5) is clew.default_generator
    assert clew.initial_seed() == 5
    assert clew.seed() == clew.initial_seed()
    assert clew.random.default_generator is clew.default_generator


def test_a_fork_leaves_no_trace() -> None:
    clew.manual_seed(0)
    expected = clew.rand(3).tolist()
    clew.manual_seed(0)
    with clew.random.fork_rng():
        clew.random.manual_seed(9)
        clew.rand(3)
    assert clew.rand(3).tolist() == expected
    with pytest.raises(ZeroDivisionError), clew.random.fork_rng():
        clew.rand(1)
        1 / 0  # noqa: B018
    with clew.random.fork_rng(enabled=False):
        clew.rand(1)


def test_dropout_keeps_one_byte_for_each_element() -> None:
    x = clew.ones(1000, requires_grad=True)
    node = clew.dropout(x, 0.5, True).grad_fn
    assert node.name() == "MulBackward0"
    assert node._saved_mask.dtype is clew.bool
    assert [n is None for n, _ in node.next_functions] == [False, True]


def test_dropout_has_a_second_derivative() -> None:
    def run(engine: Any) -> Any:
        engine.manual_seed(1)
        x = engine.randn(10).requires_grad_()
        (first,) = engine.autograd.grad((engine.dropout(x, 0.4, True) ** 3).sum(), x,
                                        create_graph=True)  # fmt: skip
        return engine.autograd.grad(first.sum(), x)

    assert_same(run)
