"""What random programs found in roots, layouts and refusals: the same as torch."""

from __future__ import annotations

import warnings
from itertools import permutations
from typing import Any

import pytest

from twins import assert_same


def outcome(call: Any) -> Any:
    """What a call returns, or the text of its error."""
    try:
        return call()
    except Exception as error:
        return str(error).split("\n")[0]


def with_data_replaced(t: Any, before: tuple[int, ...], after: tuple[int, ...]) -> Any:
    """The gradient of a leaf whose data was replaced after it was used, and by ``grad``."""
    x = t.ones(before, requires_grad=True)
    y = x * 1
    x.data = t.ones(after)
    x.backward(t.ones(after))
    return x.grad, t.autograd.grad(x, x, t.ones(after)), y.shape


SHAPES = [
    ((2,), (1, 2)), ((2,), (3, 2)), ((2,), (3, 1)), ((2,), (1,)), ((1,), (3, 2)),
    ((2, 1), (0, 2, 3)), ((), (2,)), ((2, 2), ()), ((2, 2), (2,)),
]  # fmt: skip


@pytest.mark.parametrize("before, after", SHAPES)
def test_gradient_of_a_root_is_summed_to_its_first_shape(before: Any, after: Any) -> None:
    assert_same(lambda t: with_data_replaced(t, before, after))


def lying(x: Any, axes: Any) -> Any:
    """`x` with its dimensions in memory in this order."""
    return x.permute(*axes).contiguous().permute(*[axes.index(i) for i in range(x.dim())])


@pytest.mark.parametrize(
    "kinds", [("float32", "complex64"), ("int64", "float32"), ("float32",) * 2]
)
@pytest.mark.parametrize("name", ["mul", "add", "div", "eq"])
def test_layout_of_operands_of_two_types(kinds: Any, name: str) -> None:
    """One that is copied to the other's type has an opinion on its expanded dimensions."""

    def program(t: Any) -> Any:
        one, other = (
            [
                *(
                    lying(t.ones(2, 3, 2, dtype=getattr(t, kind)), p)
                    for p in permutations(range(3))
                ),
                t.ones(1, 1, 1, dtype=getattr(t, kind)).expand(2, 3, 2),
                lying(t.ones(2, 3, 2, dtype=getattr(t, kind)), (2, 1, 0))[:1].expand(2, 3, 2),
            ]
            for kind in kinds
        )
        return [getattr(t, name)(x, y).stride() for x in one for y in other]

    assert_same(program)


GRADIENTS = {
    "abs": lambda t, x: x.abs(),
    "abs of complex": lambda t, x: t.complex(x, x * 2).abs(),
    "maximum": lambda t, x: t.maximum(x, x.detach() + 1),
    "minimum": lambda t, x: t.minimum(x.exp(), x),
    "logsigmoid": lambda t, x: t.nn.functional.logsigmoid(x),
    "of two uses": lambda t, x: x + x.exp(),
    "addcmul": lambda t, x: t.addcmul(x, x, x),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_layout_of_gradients(name: str) -> None:
    def program(t: Any) -> Any:
        found = []
        for axes in permutations(range(3)):
            x = lying(t.arange(12.0).reshape(2, 3, 2) - 5, axes).requires_grad_()
            y = GRADIENTS[name](t, x)
            for create in (False, True):
                (grad,) = t.autograd.grad(y.sum(), x, create_graph=create, retain_graph=True)
                found += [y.stride(), grad.stride(), grad]
        return found

    assert_same(program)


def detached_and_then_written(t: Any) -> Any:
    x = t.ones(2, requires_grad=True)
    y = x.exp()
    z = y * y
    y.detach_()
    y.add_(1)
    return outcome(lambda: z.sum().backward())


def flag_of_a_view_that_is_out_of_date(t: Any) -> Any:
    found = []
    for flag in (True, False):
        base = t.zeros(2, 2)
        view = base[0]
        base.copy_(t.ones(2, 2, requires_grad=True))
        view.requires_grad = flag
        found.append((view.requires_grad, view.is_leaf))
    return found, outcome(lambda: setattr(view, "requires_grad", True))


def warnings_of(t: Any, call: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        t.set_warn_always(True)
        try:
            call()
        finally:
            t.set_warn_always(False)
    return [str(w.message).split(".")[0] for w in caught]


def layout_of_gradients_without_elements(t: Any) -> Any:
    x = t.zeros(0, 3, requires_grad=True)
    x.repeat(2, 1).sum().backward()
    return warnings_of(t, lambda: x.expand(2, 0, 3).sum().backward())


def running_extremum_of_nothing(t: Any) -> Any:
    return [getattr(t, name)(t.zeros(shape), 5)
            for name in ("cummax", "cummin") for shape in ((0,), (2, 0, 3))]  # fmt: skip


def deviation_of_nothing(t: Any) -> Any:
    x = t.zeros(0, 3)
    return [warnings_of(t, lambda d=d, name=name: getattr(x, name)(d))
            for name in ("std", "var") for d in (0, 1)]  # fmt: skip


def extrema_along_nothing(t: Any) -> Any:
    return outcome(lambda: t.zeros(3, 0).aminmax(dim=-1))


PROGRAMS = [
    detached_and_then_written, flag_of_a_view_that_is_out_of_date, running_extremum_of_nothing,
    layout_of_gradients_without_elements, deviation_of_nothing, extrema_along_nothing,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_same_as_torch(program: Any) -> None:
    assert_same(program)
