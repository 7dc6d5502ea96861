"""``out=``: where the result goes, what is refused, and functions that want tensors."""

from __future__ import annotations

import pytest

from twins import assert_same

WRITES = """
e.sum(x, 0, out=e.empty(()))
e.mean(x, 0, out=e.empty(()).double())
e.max(x, 0, out=(e.empty(()), e.empty((), dtype=e.int64)))
e.where(x > 1, x, -x, out=e.empty(4))
e.softmax(x, 0, out=e.empty(4))
e.pow(x, 2, out=x)
e.add(x, 1, out=x)
e.isin(x, x[:2], out=e.empty(4, dtype=e.bool))
e.msort(x, out=e.empty(4))
e.linalg.inv(m, out=e.empty(2, 2))
e.linalg.solve(m, m, out=e.empty(2, 2))
e.linalg.det(m, out=e.empty(()))
e.linalg.eigh(m, out=(e.empty(2), e.empty(2, 2)))[0]
e.linalg.norm(m, out=e.empty(()))
e.linalg.slogdet(m, out=(e.empty(()), e.empty(())))
e.cat([x, x], out=e.empty(8).double())
e.gather(x, 0, e.tensor([3, 0]), out=e.empty(2))
"""

REFUSED = """
e.cat([x[:2], x[2:]], out=x)
e.stack([x[:2], x[2:]], out=x.view(2, 2))
e.gather(x, 0, e.tensor([1, 0, 1, 2]), out=x)
e.gather(x, 0, e.tensor([0]), out=e.empty(1).double())
e.masked_select(x, x > 1, out=x)
e.masked_select(x, x > 1, out=e.empty(2).double())
e.take(x, e.tensor([1, 2]), out=x)
e.take(x, e.tensor([1]), out=e.empty(1).double())
e.kthvalue(x, 1, out=(x[0], e.tensor(1)))
e.index_select(x, 0, e.tensor([1]), out=x)
e.index_select(x, 0, e.tensor([1]), out=e.empty(1).double())
e.topk(x, 2, out=(x[:2], e.arange(2)))
e.add(x[:-1], 1, out=x[1:])
e.mul(x[:-1], x[:-1], out=x[1:])
e.exp(x[:-1], out=x[1:])
e.aminmax(x, out=(e.empty(()).double(), e.empty(())))
e.sort(x, out=(e.empty(4).double(), e.arange(4)))
e.mm(m, m, out=e.empty(2, 2).double())
e.complex(x, x, out=x)
e.polar(x, x, out=e.empty(4, dtype=e.complex128))
e.multinomial(x, 1, out=e.empty(1))
e.nonzero(x, out=e.empty(1))
e.arange(0, float("inf"))
e.arange(float("-inf"), 1)
e.arange(float("nan"), 1)
e.eye(-1)
e.eye(3, -2)
e.linspace(e.ones(2), e.ones(2), 3)
e.linspace(e.ones(2), 1, 3)
e.logspace(0, e.ones(1), 3)
e.movedim(x.view(2, 2, 1), (0, 1), (1,))
e.movedim(x.view(2, 2, 1), (0, 1, -3), (0, 1, 2))
e.movedim(x.view(2, 2, 1), (0, 1), (1, 1))
e.amax(e.ones(0, 2))
e.amin(e.ones(0, 2), dim=())
e.amax(e.ones(0, 2), dim=0)
"""

WRONG_TYPES = """
e.eq(1, x)
e.lt(1, x)
e.fmod(1, x)
e.logical_and(x, 1)
e.logical_or(1, x)
e.isclose(x, 1)
e.isclose(1, x)
e.clamp_max(1, 2)
e.clamp_min(1, x)
e.max(1, 2)
e.min(1, x)
e.pow(1, 2)
e.xlogy(1, 2)
e.remainder(1, 2)
e.linspace(0, 1, 2.5)
e.logspace(0, 1, 2.5)
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


def names(e):
    return {"e": e, "x": e.tensor([3.0, 1.0, 4.0, 2.0]), "m": e.tensor([[2.0, 1.0], [1.0, 3.0]])}


@pytest.mark.parametrize("expression", lines(WRITES))
def test_written(expression):
    assert_same(lambda e: eval(expression, names(e)))


@pytest.mark.parametrize("expression", lines(REFUSED))
def test_refused_before_anything_is_written(expression):
    def run(e):
        known = names(e)
        before = known["x"].clone()
        with pytest.raises((RuntimeError, IndexError)) as caught:
            eval(expression, known)
        assert e.equal(known["x"], before)
        kind = "IndexError" if isinstance(caught.value, IndexError) else "RuntimeError"
        return kind, str(caught.value)

    assert_same(run)


@pytest.mark.parametrize("expression", lines(WRONG_TYPES))
def test_wants_a_tensor(expression):
    def run(e):
        with pytest.raises(TypeError) as caught:
            eval(expression, names(e))
        return str(caught.value).partition("(")[0]

    assert_same(run)
