"""`vmap`: dimensions, structures, writes, refusals, randomness, like torch."""

import pytest

import clew
from twins import assert_same


def matrix(t):
    return t.tensor([[0.5, -1.0, 2.0], [3.0, 0.25, -0.5]], dtype=t.float64)


CALLS = {
    "in_dims": lambda t: t.vmap(t.dot, in_dims=(0, 1))(matrix(t), matrix(t).t()),
    "negative": lambda t: t.vmap(lambda x: x.sum(), in_dims=-1)(matrix(t)),
    "None": lambda t: t.vmap(lambda x, y: x * y, in_dims=(0, None))(matrix(t), t.arange(3)),
    "out_dims": lambda t: t.vmap(lambda x: (x, x * 2), out_dims=(1, -1))(matrix(t)),
    "nested dims": lambda t: t.vmap(lambda d, y: d["a"] + d["b"][0] + y,
                                    in_dims=({"a": 0, "b": [None]}, 1))(
        {"a": matrix(t), "b": [t.arange(3)]}, matrix(t).t()),
    "containers out": lambda t: t.vmap(lambda x: {"a": x, "b": [x.sum()]})(matrix(t)),
    "the same for all": lambda t: t.vmap(lambda x: (x, t.ones(2)))(matrix(t)),
    "None out": lambda t: t.vmap(lambda x: (x, 3), out_dims=(0, None))(matrix(t)),
    "chunks": lambda t: t.vmap(lambda x: x.sin(), chunk_size=2)(matrix(t).t()),
    "chunks of a dimension": lambda t: t.vmap(lambda x: x.sin(), in_dims=1, out_dims=1,
                                              chunk_size=2)(matrix(t)),
    "keywords": lambda t: t.vmap(lambda x, y=None: x * y)(matrix(t), y=2),
    "twice": lambda t: t.vmap(t.vmap(lambda x, y: x * y, (0, None)), (None, 0))(
        matrix(t)[0], matrix(t)[:, 0]),
    "closure": lambda t: t.vmap(lambda x: t.vmap(lambda y: x * y)(matrix(t)))(matrix(t)),
    "no examples": lambda t: t.vmap(lambda x: x.sin().sum())(t.zeros(0, 3)),
    "promotion": lambda t: t.vmap(lambda x, y: x * y, (0, None))(
        t.ones(2, dtype=t.float64), t.ones(3)),
    "promotion by category": lambda t: t.vmap(lambda x, y: x * y, (0, None))(
        t.ones(2), t.arange(3)),
    "numbers": lambda t: t.vmap(lambda x: 1 - 2 * x / 3 + x**2)(matrix(t)),
    "shape": lambda t: t.vmap(lambda x: x.view(3, 1).expand(3, 2).transpose(0, 1))(matrix(t)),
    "loop": lambda t: t.vmap(lambda x: t.stack([a * i for i, a in enumerate(x)]))(matrix(t)),
    "len": lambda t: t.vmap(lambda x: x * len(x) + x.ndim + x.numel())(matrix(t)),
    "index": lambda t: t.vmap(lambda x, i: x[i])(matrix(t), t.tensor([2, 0])),
    "index of dims": lambda t: t.vmap(lambda x, i: x[:, i])(
        t.arange(12.0).view(2, 2, 3), t.tensor([[2, 0], [1, 1]])),
    "shared by indices": lambda t: t.vmap(lambda i: matrix(t)[i])(t.tensor([[1, 0], [0, 0]])),
    "mask for all": lambda t: t.vmap(lambda x: x[t.tensor([True, False, True])])(matrix(t)),
    "take_along_dim": lambda t: t.vmap(lambda x, i: t.take_along_dim(x, i, 0))(
        matrix(t), t.tensor([[0, -1], [2, 2]])),
    "searched": lambda t: t.vmap(t.searchsorted)(matrix(t).sort()[0], matrix(t)),
    "sorted": lambda t: t.vmap(lambda x: x.sort(descending=True))(matrix(t)),
    "write": lambda t: t.vmap(lambda x: x.mul_(x).add_(1))(matrix(t)),
    "write to a view": lambda t: t.vmap(lambda x: (x[1:].mul_(2), x)[1])(matrix(t)),
    "setitem": lambda t: t.vmap(setitem)(matrix(t), t.tensor([2, 0])),
    "write to new": lambda t: t.vmap(lambda x: t.zeros_like(x).copy_(x))(matrix(t)),
    "write to new_zeros": lambda t: t.vmap(lambda x: x.new_zeros(2).fill_(x[0]))(matrix(t)),
    "where": lambda t: t.vmap(lambda x: t.where(x > 0, x, -x))(matrix(t)),
    "einsum": lambda t: t.vmap(lambda x: t.einsum("i,j->ij", x, x))(matrix(t)),
    "einsum of shared": lambda t: t.vmap(
        lambda x: t.einsum("ij,j->i", matrix(t), x))(matrix(t)),
    "norm": lambda t: t.vmap(lambda x: t.linalg.norm(x))(matrix(t)),
    "solve": lambda t: t.vmap(t.linalg.solve)(
        t.eye(3).repeat(2, 1, 1) * 2, t.arange(6.0).view(2, 3)),
    "quantile": lambda t: t.vmap(lambda x: t.quantile(x, 0.3))(matrix(t)),
    "gradient outside": lambda t: t.autograd.grad(
        t.vmap(lambda x: (x * x).sum())(leaf(t)).sum(), [leaf(t)], allow_unused=True),
    "repr": lambda t: shown(t),
}  # fmt: skip


def leaf(t):
    return t.ones(2, 2, requires_grad=True)


def setitem(x, i):
    y = x.clone()
    y[i] = 7.0
    y[0] += x[1]
    return y


def shown(t):
    texts = []
    t.vmap(lambda x: (texts.append(repr(x)), x)[1])(matrix(t).float())
    return texts


@pytest.mark.parametrize("name", CALLS)
def test_like_torch(name):
    assert_same(CALLS[name])


ERRORS = {
    "in_dims of a type": lambda t: t.vmap(t.sin, in_dims="0")(matrix(t)),
    "nothing given": lambda t: t.vmap(t.sin)(),
    "structure": lambda t: t.vmap(t.sin, in_dims=(0, 0))(matrix(t)),
    "no tensor": lambda t: t.vmap(lambda x, y: x, in_dims=(0, 0))(matrix(t), 3),
    "too large": lambda t: t.vmap(t.sin, in_dims=2)(matrix(t)),
    "float": lambda t: t.vmap(t.sin, in_dims=(0.5,))(matrix(t)),
    "sizes": lambda t: t.vmap(lambda x, y: x)(matrix(t), t.ones(3)),
    "no examples": lambda t: t.vmap(t.sin, in_dims=(None,))(matrix(t)),
    "out_dims of a type": lambda t: t.vmap(t.sin, out_dims="0")(matrix(t)),
    "out_dims structure": lambda t: t.vmap(t.sin, out_dims=(0, 0))(matrix(t)),
    "None for a batch": lambda t: t.vmap(t.sin, out_dims=None)(matrix(t)),
    "number out": lambda t: t.vmap(lambda x: 3)(matrix(t)),
    "chunk_size": lambda t: t.vmap(t.sin, chunk_size=0)(matrix(t)),
    "randomness": lambda t: t.vmap(t.sin, randomness="none")(matrix(t)),
    "item": lambda t: t.vmap(lambda x: x.sum().item())(matrix(t)),
    "bool": lambda t: t.vmap(lambda x: x if x.sum() > 0 else -x)(matrix(t)),
    "int": lambda t: t.vmap(lambda x: x * int(x.sum()))(matrix(t)),
    "numpy": lambda t: t.vmap(lambda x: x.numpy())(matrix(t)),
    "tolist": lambda t: t.vmap(lambda x: x.tolist())(matrix(t)),
    "data": lambda t: t.vmap(lambda x: x.data)(matrix(t)),
    "equal": lambda t: t.vmap(lambda x: t.equal(x, x))(matrix(t)),
    "allclose": lambda t: t.vmap(lambda x: t.allclose(x, x))(matrix(t)),
    "nonzero": lambda t: t.vmap(lambda x: x.nonzero())(matrix(t)),
    "unique": lambda t: t.vmap(lambda x: x.unique())(matrix(t)),
    "mask": lambda t: t.vmap(lambda x: x[x > 0])(matrix(t)),
    "mask written": lambda t: t.vmap(lambda x: x.__setitem__(x > 0, 1.0))(matrix(t)),
    "masked_select": lambda t: t.vmap(lambda x: x.masked_select(x > 0))(matrix(t)),
    "write to shared": lambda t: t.vmap(lambda x: t.zeros(3).add_(x))(matrix(t)),
    "copy to shared": lambda t: t.vmap(lambda x: t.zeros(3).copy_(x))(matrix(t)),
    "fill shared": lambda t: t.vmap(lambda x: t.zeros(3).fill_(x[0]))(matrix(t)),
    "requires_grad_": lambda t: t.vmap(lambda x: x.clone().requires_grad_())(matrix(t)),
    "backward": lambda t: t.vmap(lambda x: x.sum().backward())(matrix(t)),
    "random": lambda t: t.vmap(lambda x: x + t.rand(3))(matrix(t)),
    "rand_like": lambda t: t.vmap(t.rand_like)(matrix(t)),
    "dropout": lambda t: t.vmap(lambda x: t.dropout(x, 0.5, True))(matrix(t)),
    "normal_": lambda t: t.vmap(lambda x: x.normal_())(matrix(t)),
    "multinomial": lambda t: t.vmap(lambda x: x.abs().multinomial(1))(matrix(t)),
    "same of a batch": lambda t: t.vmap(lambda x: x.sigmoid().bernoulli(),
                                        randomness="same")(matrix(t)),
    "different in place": lambda t: t.vmap(lambda x: x + t.zeros(3).normal_(),
                                           randomness="different")(matrix(t)),
    "rrelu": lambda t: t.vmap(lambda x: t.rrelu(x, training=True),
                              randomness="different")(matrix(t)),
    "batch norm": lambda t: t.vmap(lambda x: t.nn.functional.batch_norm(
        x, t.zeros(3), t.ones(3), training=True))(t.ones(2, 4, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_like_torch(name):
    found = assert_same(ERRORS[name])
    assert isinstance(found, tuple) and found[0] in ("RuntimeError", "ValueError")


RANDOM = {
    "rand": lambda t: t.rand(3),
    "randn": lambda t: t.randn(2, 3),
    "randint": lambda t: t.randint(10, (3,)),
    "randperm": lambda t: t.randperm(5),
    "normal": lambda t: t.normal(0.0, 1.0, (3,)),
}


@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_those_of_torch(name, randomness):
    def run(t):
        t.manual_seed(5)
        return t.vmap(lambda x: x + RANDOM[name](t), randomness=randomness)(t.zeros(4, 1))

    assert_same(run)


OF_EXAMPLES = {
    "dropout": lambda t, x: t.dropout(x, 0.5, True),
    "alpha_dropout": lambda t, x: t.alpha_dropout(x, 0.5, True),
    "feature_dropout": lambda t, x: t.feature_dropout(x, 0.5, True),
    "rand_like": lambda t, x: t.rand_like(x),
    "normal_": lambda t, x: x.clone().normal_(),
    "uniform_": lambda t, x: x.clone().uniform_(-1, 1),
    "exponential_": lambda t, x: x.clone().exponential_(),
    "bernoulli_": lambda t, x: x.clone().bernoulli_(0.3),
}


@pytest.mark.parametrize("name", OF_EXAMPLES)
def test_draws_for_each_example_or_one_for_all(name):
    x = clew.ones(3, 8, 8)
    for randomness in ("same", "different"):
        clew.manual_seed(3)
        found = clew.vmap(lambda x: OF_EXAMPLES[name](clew, x), randomness=randomness)(x)
        assert found.shape == x.shape
        alike = bool((found[0] == found[1]).all())
        assert alike == (randomness == "same")


def test_bernoulli_and_multinomial_of_each_example():
    p = clew.tensor([[0.0, 1.0], [1.0, 0.0]])
    drawn = clew.vmap(lambda p: p.bernoulli(), randomness="different")(p)
    assert drawn.tolist() == p.tolist()
    chosen = clew.vmap(lambda p: p.multinomial(1), randomness="different")(p)
    assert chosen.tolist() == [[1], [0]]


def test_an_op_without_a_rule_warns_and_is_right():
    x = clew.tensor([[1.0, 2.0, 2.0], [0.0, 5.0, 9.0]])
    with pytest.warns(UserWarning, match="batching rule for aten::histc"):
        found = clew.vmap(lambda x: clew.histc(x, bins=3, min=0, max=9))(x)
    assert found.tolist() == clew.stack([clew.histc(r, 3, 0, 9) for r in x]).tolist()


def test_levels_end_with_their_calls():
    from clew.autograd.transforms import running, stack

    with pytest.raises(ZeroDivisionError):
        clew.vmap(lambda x: x / (1 // 0))(clew.ones(2))
    assert not running and not stack.levels


def test_another_thread_is_not_inside():
    from concurrent.futures import ThreadPoolExecutor

    def inside(x):
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: (clew.ones(2) * 2).tolist()).result() == [2, 2]
        return x * 2

    assert clew.vmap(inside)(clew.ones(3)).tolist() == [2, 2, 2]


def test_writes_reach_the_argument():
    x = clew.ones(2, 3)
    clew.vmap(lambda x: x[1:].mul_(5))(x)
    assert x.tolist() == [[1, 5, 5], [1, 5, 5]]


def test_views_in_place_of_each_example():
    def f(t):
        return t.vmap(lambda x: x.clone().unsqueeze_(0).transpose_(0, 1).t_())(matrix(t))

    assert_same(f)


def test_the_older_vmap():
    def run(t):
        old = t._vmap_internals._vmap
        found = old(lambda x: (x * 2, None), allow_none_pass_through=True)(matrix(t))
        return (
            found[0],
            found[1] is None,
            old(lambda x, y: x @ y, (0, None))(matrix(t), matrix(t)[0]),
        )

    assert_same(run)
    with pytest.raises(RuntimeError, match="We do not yet support calling random operations"):
        clew._vmap_internals._vmap(lambda x: clew.rand_like(x))(matrix(clew))
