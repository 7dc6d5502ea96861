"""What random programs found in layouts of gradients and in refusals: the same as torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import pytest

from twins import assert_same

# -- layouts of gradients

ONE: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda t, x: x.exp(),
    "relu": lambda t, x: x.relu(),
    "leaky_relu": lambda t, x: t.nn.functional.leaky_relu(x),
    "erf": lambda t, x: x.erf(),
    "logit": lambda t, x: x.sigmoid().logit(),
    "angle": lambda t, x: x.angle(),
    "square": lambda t, x: x**2,
    "power of zero": lambda t, x: x**0,
    "flip": lambda t, x: x.flip(0),
    "take": lambda t, x: x.take(t.tensor([0, -1])),
    "masked_select": lambda t, x: x.masked_select(x > 0),
    "pad": lambda t, x: t.nn.functional.pad(x, (1, 0)),
    "clone of expanded": lambda t, x: x.expand(2, *x.shape).clone(),
    "mean": lambda t, x: x.mean(1),
    "nansum": lambda t, x: x.nansum(1),
    "std": lambda t, x: x.std(0),
    "var": lambda t, x: x.var(-1),
    "logsumexp": lambda t, x: x.logsumexp(1),
    "renorm": lambda t, x: x.renorm(2, 1, 1.0),
    "norm": lambda t, x: x.norm(),
    **{f"norm {p}": partial(lambda p, t, x: x.norm(p, 1), p) for p in (0.5, 1, 1.5, 2, 3)},
    "norm inf": lambda t, x: x.norm(float("inf"), 1),
}
FIRST_ONLY: dict[str, Callable[[Any, Any], Any]] = {  # of other nodes under create_graph
    "prod": lambda t, x: x.prod(),
    "prod along": lambda t, x: x.prod(1),
}
TWO: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mul": lambda t, x, y: x * y,
    "div": lambda t, x, y: x / y,
    "pow": lambda t, x, y: x.abs() ** y,
    "hypot": lambda t, x, y: t.hypot(x, y),
    "xlogy": lambda t, x, y: t.xlogy(x, y.abs()),
    "copysign": lambda t, x, y: t.copysign(x, y),
    "lerp": lambda t, x, y: t.lerp(x, y, y.exp()),
    "addcdiv": lambda t, x, y: t.addcdiv(x, x, y),
}


def lying(t: Any, x: Any) -> list[Any]:
    """`x` in all orders of its dimensions in memory, expanded, and with gaps."""
    found = [
        x.permute(p).contiguous().permute([p.index(i) for i in range(3)])
        for p in permutations(range(3))
    ]
    return [*found, x[:1].expand(2, 3, 2), t.stack([x, x], -1)[..., 0]]


def values(t: Any) -> Any:
    x = t.tensor([[[1, -2], [0.5, 3], [-1, 2.5]], [[0.3, -0.7], [1.1, -1.4], [2.2, 0.9]]])
    return x.double()


def strides(x: Any) -> Any:
    return tuple(s for s, n in zip(x.stride(), x.shape) if n > 1)


def weights_of(t: Any, y: Any) -> list[Any]:
    """Gradients to start from: one number, in order, and in the opposite order."""
    back = tuple(range(y.dim() - 1, -1, -1))
    return [
        t.ones((), dtype=y.dtype).expand(y.shape),
        t.ones(tuple(y.shape), dtype=y.dtype),
        t.ones(tuple(y.shape)[::-1], dtype=y.dtype).permute(back),
    ]


def layouts(t: Any, y: Any, xs: list[Any], create: bool) -> list[Any]:
    return [
        [strides(y), *[(strides(g), g) for g in
                       t.autograd.grad(y, xs, w, retain_graph=True, create_graph=create)]]
        for w in weights_of(t, y)
    ]  # fmt: skip


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("name", [*ONE, *FIRST_ONLY])
def test_layout_of_gradients(name: str, create: bool) -> None:
    if create and name in ("logit", *FIRST_ONLY):
        pytest.skip("of other operations than PyTorch's")

    def program(t: Any) -> Any:
        function = {**ONE, **FIRST_ONLY}[name]
        xs = [x.detach().requires_grad_() for x in lying(t, values(t))]
        return [layouts(t, function(t, x), [x], create) for x in xs]

    assert_same(program)


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("name", TWO)
def test_layout_of_gradients_of_two(name: str, create: bool) -> None:
    def program(t: Any) -> Any:
        found = []
        for i, x in enumerate(lying(t, values(t))):
            for j, y in enumerate(lying(t, values(t).flip(0) + 0.25)):
                if (i + j) % 3 == 0:
                    xs = [x.detach().requires_grad_(), y.detach().requires_grad_()]
                    found.append(layouts(t, TWO[name](t, *xs), xs, create))
        return found

    assert_same(program)


def layout_of_integers_as_floats(t: Any) -> Any:
    return [t.ones(1, 2, dtype=t.int64).expand(3, 2).sin().stride() for _ in range(1)]


# -- refusals


def said(call: Callable[[], Any]) -> Any:
    """What a call returns or how it refuses, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call()
        except Exception as error:
            found = str(error).split("\n")[0].split(". ")[0]
    return found, [str(w.message).split(". ")[0] for w in caught]


def said_by(t: Any, *calls: Callable[[], Any]) -> list[Any]:
    before = t.is_warn_always_enabled()
    t.set_warn_always(True)
    try:
        return [said(call) for call in calls]
    finally:
        t.set_warn_always(before)


def put_where_memory_is_shared(t: Any) -> Any:
    first, wide, numbers = t.tensor([0]), t.ones(2, 3).expand(2, 2, 3), t.tensor([0, 1])
    masked = t.ones(1).expand(3)
    return said_by(
        t,
        lambda: wide.index_put_((first,), wide),
        lambda: masked.index_put_((t.tensor([7]),), t.tensor(1.0)),
        lambda: masked.__setitem__(masked > 0, 1),
        lambda: numbers.index_put_((numbers,), t.tensor([5, 6])),
    )


def complex_number_at_a_mask(t: Any) -> Any:
    x = t.ones(3)
    return said_by(t, lambda: x.__setitem__(x > 0, t.tensor(2j)))


def write_complex_to_expanded(t: Any) -> Any:
    z, x = t.tensor(2j), t.ones(1).expand(3)
    return said_by(t, lambda: x.copy_(z), lambda: x.fill_(z), lambda: x[:2].fill_(z))


NAMES = ["neg_", "relu_", "exp_", "abs_", "nan_to_num_", "square_", "round_"]


def types_are_looked_at_before_memory(t: Any) -> Any:
    found = []
    for kind in ("bool", "int64", "float32"):
        x = t.ones(1, dtype=getattr(t, kind)).expand(2, 2)
        writes = [getattr(x, name) for name in NAMES]
        found += said_by(t, *[partial(_listed, write) for write in writes])
        for operand in (1, x, t.ones(3) > 0):
            found += said_by(t, partial(x.sub_, operand), partial(x.add_, operand))
    return found


def _listed(write: Callable[[], Any]) -> Any:
    return write().tolist()


def operands_of_one_memory_by_data(t: Any) -> Any:
    x = t.arange(5.0)
    alias = x.data
    number = x[0].data
    alias.mul_(x)
    return said_by(t, lambda: number.pow_(x), lambda: alias[1:].mul_(x[:-1])), x


def power_of_bool_has_no_derivative(t: Any) -> Any:
    x, flags = t.tensor([1.0, 2.0], requires_grad=True), t.tensor([True, False])
    return said_by(t, lambda: (x**flags).sum().backward(),
                   lambda: (x * 2).pow_(flags).sum().backward(create_graph=True))  # fmt: skip


def sizes_are_looked_at_before_types(t: Any) -> Any:
    a, b = t.ones(1, 3, dtype=t.bfloat16), t.ones(1, 3) > 1
    return said_by(t, lambda: a @ b, lambda: b @ b, lambda: b @ t.ones(3, 1).bool(),
                   lambda: a @ t.ones(3, 1))  # fmt: skip


def index_along_nothing(t: Any) -> Any:
    x = t.zeros(2, 0, 0)
    return said_by(t, lambda: x[..., [-2, -1]], lambda: x[[0]].shape, lambda: x[:, []].shape)


def median_of_bools(t: Any) -> Any:
    x = t.ones(2) > 0
    return said_by(t, lambda: x.median(), lambda: x.median(0))


def set_to_more_than_the_base_holds(t: Any) -> Any:
    x = (t.ones(3, requires_grad=True) * 3)[None]
    x.set_(t.ones(2, 3))
    return said_by(t, lambda: x.mean().backward())


def write_of_what_has_lost_its_history(t: Any) -> Any:
    class Row(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[0]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    leaf = t.arange(5.0, requires_grad=True)
    row = Row.apply(leaf)
    leaf.detach().mul_(2)
    flags, numbers = leaf > 1.5, t.arange(5)
    return said_by(
        t, lambda: flags[:1].fill_(row), lambda: numbers[:1].fill_(row),
        lambda: flags.__setitem__(slice(0, 1), row), lambda: flags.copy_(row).tolist(),
        lambda: numbers.eq_(row).tolist(), lambda: flags.logical_and_(row).tolist(),
    )  # fmt: skip


def name_of_what_made_a_modified_result(t: Any) -> Any:
    def broken(again: bool, retain: bool) -> Any:
        y = t.tensor([1.5, 0.5, 0.0], requires_grad=True) * 1
        view = y[None]
        t.nn.functional.elu_(view)
        view[::2] = -1
        if again:
            view.mul_(1)
        y.mean().backward(retain_graph=retain)

    return said_by(t, lambda: broken(False, False), lambda: broken(False, True),
                   lambda: broken(True, False), lambda: broken(True, True))  # fmt: skip


def base_that_begins_after_its_view(t: Any) -> Any:
    base = t.stack([t.ones(1, 3, requires_grad=True)] * 2, 1)
    view = base.tensor_split(2, 1)[0]
    plain = base[:, :1]
    base.as_strided_((2,), (1,), 1)
    plain.mul_(2)
    return said_by(t, lambda: base.sum().backward(), lambda: view.mul_(1))


# -- what is given and kept


def gradients_that_are_one_tensor(t: Any) -> Any:
    found = []
    for shape, make in (((), "cumsum"), ((1, 3), "cumprod"), ((1, 3), "cumsum"), ((1,), "cumprod")):
        x = t.zeros(shape, requires_grad=True) * 1
        y = getattr(x, make)(0)
        first, second = t.autograd.grad((y * y).sum(), [x, y])
        found.append(first is second)
    return found


def gradient_of_a_product_of_one_zero(t: Any) -> Any:
    found = []
    for create in (False, True):
        x = t.tensor([[[2.0, 0.0]], [[1.0, 3.0]]], requires_grad=True)
        x.prod(1).sum().backward(create_graph=create)
        assert x.grad is not None
        found.append((x.grad, x.grad.requires_grad))
    return found


def parts_of_complex_gradients_share_memory(t: Any) -> Any:
    x = t.tensor([1.5, 0.5], requires_grad=True)
    z = t.view_as_complex(x)
    of_x, of_z = t.autograd.grad(z.abs().sum(), [x, z])
    return of_x.data_ptr() == of_z.data_ptr()


def saved_input_that_was_detached(t: Any) -> Any:
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * x * 2

    leaf = t.arange(3.0, requires_grad=True)
    y = leaf * 1
    z = Square.apply(y)
    y.detach_()
    z.sum().backward()
    return leaf.grad


def leaf_that_a_function_has_written(t: Any) -> Any:
    class Write(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad

    leaf, other = t.tensor(0.5, requires_grad=True), t.tensor(1.5, requires_grad=True)
    quotient = t.ones(2) / leaf
    leaf.detach_()
    Write.apply(leaf, other)
    node = quotient.grad_fn.next_functions[1][0]
    return node.variable is leaf


def gradient_of_another_type(t: Any) -> Any:
    leaf = t.ones(2, requires_grad=True)
    y = leaf * 1
    leaf.data = t.ones(2, dtype=t.complex128)
    y.sum().backward(create_graph=True)
    assert leaf.grad is not None
    return leaf.grad.detach()


def gradient_of_a_leaf_of_another_shape_by_now(t: Any) -> Any:
    leaf = t.ones(2, 1, 3, requires_grad=True)
    y = leaf + leaf
    with t.no_grad():
        leaf.unsqueeze_(2)
    return said_by(t, lambda: y.sum().backward())


def gradient_of_a_view_without_elements(t: Any) -> Any:
    x = t.zeros(0, 3, requires_grad=True)
    y = x.expand(2, 0, 3)
    with t.no_grad():
        y[:1].fill_(3)
    (y.sin() * y).sum().backward(create_graph=True)
    assert x.grad is not None
    return x.grad.requires_grad


def graph_of_the_gradient_of_a_deviation(t: Any) -> Any:
    found = []
    for name in ("std", "var"):
        for keepdim in (False, True):
            x = t.tensor([1.0, 1.0, -1.0], requires_grad=True)
            y = getattr(x, name)(-1, keepdim=keepdim)
            (grad,) = t.autograd.grad(y.sum(), [x], create_graph=True)
            product = grad.grad_fn
            found.append((product, product._saved_self.shape,
                          [n for n, _ in product.next_functions]))  # fmt: skip
    return found


def root_of_minus_infinity(t: Any) -> Any:
    x = t.tensor([[-float("inf"), 4.0], [-1.0, 0.0]])
    return [
        ("inf" in str(root[0, 0].item()), root[0, 1], root[1, 1])
        for root in (x ** t.tensor(0.5), x ** t.tensor([0.5]), x**0.5, x ** t.full((2, 2), 0.5))
    ]


def base_that_is_restrided_between(t: Any) -> Any:
    base = t.stack([t.ones(3, 2, requires_grad=True)] * 2, 0)
    view = base.movedim(-1, 0)
    base.as_strided_((2,), (1,), 0)
    view.mul_(1.5)
    return said_by(t, lambda: base.sum().backward())


PROGRAMS = [
    put_where_memory_is_shared, complex_number_at_a_mask, write_complex_to_expanded,
    types_are_looked_at_before_memory, operands_of_one_memory_by_data, median_of_bools,
    power_of_bool_has_no_derivative, sizes_are_looked_at_before_types, index_along_nothing,
    set_to_more_than_the_base_holds, write_of_what_has_lost_its_history,
    name_of_what_made_a_modified_result, base_that_begins_after_its_view,
    graph_of_the_gradient_of_a_deviation, base_that_is_restrided_between,
    root_of_minus_infinity,
    gradients_that_are_one_tensor, gradient_of_a_product_of_one_zero, gradient_of_another_type,
    parts_of_complex_gradients_share_memory, saved_input_that_was_detached,
    leaf_that_a_function_has_written, gradient_of_a_view_without_elements,
    layout_of_integers_as_floats, gradient_of_a_leaf_of_another_shape_by_now,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_same_as_torch(program: Any) -> None:
    assert_same(program)
