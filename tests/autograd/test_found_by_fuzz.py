"""Programs on which clew and torch once differed, found by ``tools/fuzz.py``: the same as torch."""

from __future__ import annotations

from typing import Any

import pytest

from twins import assert_same


def leaf(t: Any, *values: float) -> Any:
    return t.tensor([float(v) for v in values], requires_grad=True)


def text_of_error(call: Any) -> Any:
    """What a call returns, or the type and text of its error."""
    try:
        return call()
    except Exception as error:
        return type(error).__mro__[-3].__name__, str(error).split("\n")[0]


def names_along(node: Any) -> list[str]:
    """The names of the nodes from one to a leaf, by first edges."""
    names = []
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names


def extremum_of_a_vector(t: Any) -> Any:
    values, indices = leaf(t, 1, 3, 2).max(-1)
    return values, indices


def written_with_itself(t: Any) -> Any:
    d = (leaf(t, 1, 2) * -2)[0:1]
    before = d.grad_fn
    d /= d
    return [node is before for node, _ in d._base.grad_fn.next_functions[1:]]


def exponent_written_over(t: Any) -> Any:
    d = leaf(t, 1, 2) * 1
    d.pow_(d)
    d.sum().backward()


def unrecorded_view_of_leaf(t: Any) -> Any:
    x = leaf(t, 1, 2)
    with t.no_grad():
        v = x[0:1]
    y = v * v
    return v.requires_grad, y.requires_grad, y.grad_fn


def unrecorded_view_is_no_input(t: Any) -> Any:
    x = leaf(t, 1, 2)
    with t.no_grad():
        v = x[0:1]
    return t.autograd.grad((v * 2 + x).sum(), v)


def write_to_a_leaf_that_is_a_view(t: Any) -> Any:
    v = t.zeros(2, 2)[0].requires_grad_()
    v.add_(1)


def flag_of_a_result(t: Any) -> Any:
    y = leaf(t, 1) * 2
    y.requires_grad = True


def comparison_in_place(t: Any) -> Any:
    x = leaf(t, 1, 2)
    y = x * 2
    y.eq_(4)
    y.sum().backward()
    return y.grad_fn, x.grad


def detached_leaf(t: Any) -> Any:
    x = leaf(t, 1, 2)
    y = x * 2
    x.detach_()
    y.sum().backward()
    return x.grad


def detached_in_inference_mode(t: Any) -> Any:
    y = leaf(t, 1) * 2
    with t.inference_mode():
        y.detach_()
    return y.grad_fn


def equal_values(t: Any) -> Any:
    x, y = leaf(t, 1, 2), leaf(t, 1, 3)
    t.fmax(x, y).sum().backward()
    return x.grad, y.grad


def new_memory(t: Any) -> Any:
    x = leaf(t, 1, 2)
    x.set_(t.ones(3)) if not x.requires_grad else None
    y = x * 1
    y.set_(t.ones(3))
    return y.requires_grad, y.grad_fn, y


def integers_take_no_history(t: Any) -> Any:
    n = t.tensor([1, 2])
    n.copy_(leaf(t, 3, 4))
    return n, n.grad_fn


def checks_in_order(t: Any) -> Any:
    x = t.ones(2)
    return t.autograd.grad(x.sum(), x)


def seed_of_another_type(t: Any) -> Any:
    x = t.tensor(2.0, dtype=t.float64, requires_grad=True)
    x.backward(t.tensor(3.0))
    return x.grad


def input_given_twice(t: Any) -> Any:
    x = leaf(t, 1, 2)
    a, b = t.autograd.grad((x * x).sum(), [x, x])
    return a is b


def copied_gradient(t: Any) -> Any:
    x = leaf(t, 1, 2)
    x.sum().backward()
    return x.grad._version


def hooks_registered_late(t: Any) -> Any:
    seen = []
    y = leaf(t, 1, 2).exp()

    def pack(tensor: Any) -> Any:
        seen.append(tensor.requires_grad)
        return tensor

    y.grad_fn._raw_saved_result.register_hooks(pack, lambda tensor: tensor)
    return seen


def packed_by_name(t: Any) -> Any:
    seen = []
    x, index = leaf(t, 1, 2), t.tensor([0])

    def pack(tensor: Any) -> Any:
        seen.append(str(tensor.dtype))
        return tensor

    with t.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        x.gather(0, index)
    return seen


def hook_of_the_only_root(t: Any) -> Any:
    seen: list[Any] = []
    x = leaf(t, 1, 2)
    t.autograd.graph.register_multi_grad_hook((x,), seen.append)
    x.backward(t.ones(2))
    return len(seen)


def out_is_resized(t: Any) -> Any:
    out = t.zeros(4)
    view = out[0:2]
    t.neg(t.ones(2), out=out)
    return out, view, out._version


def out_under_no_grad(t: Any) -> Any:
    x = leaf(t, 1, 2)
    with t.no_grad():
        t.exp(x, out=x)
    return x


def out_overlaps(t: Any) -> Any:
    x = t.ones(4)
    t.add(x[0:3], 1, out=x[1:4])


def part_of_itself_added(t: Any) -> Any:
    x = t.ones(4)
    x += x[0:1].expand(1)


def read_as_another_type(t: Any) -> Any:
    x = t.ones(4)
    v = x.view(t.complex64)
    v.mul_(2)
    return x, x._version, v._version, v._base


def diagonal(t: Any) -> Any:
    x = t.zeros(7, 2).fill_diagonal_(3, wrap=True)
    return x, x._version


def expanded_likes(t: Any) -> Any:
    x = t.eye(3).diagonal().expand(2, 3)
    return [y.stride() for y in (t.ones_like(x), x.to(t.float64), x.bool(), x.clone())]


def flattened(t: Any) -> Any:
    return t.zeros(1).expand(3).ravel().stride()


def no_derivative(t: Any) -> Any:
    x, c, i = leaf(t, 1, 2), t.ones(2), t.tensor([0, 1])
    y = c.clone()
    y[0:1].floor_divide_(x[0:1])
    return [r.grad_fn for r in (
        t.floor_divide(x, c), t.floor_divide(c, x), t.heaviside(c, x), (x * 1).heaviside_(c),
        c.clone().floor_divide_(x), y, t.scatter(c, 0, i, x, reduce="add"),
    )]  # fmt: skip


def saved_without_an_edge(t: Any) -> Any:
    x = leaf(t, 1, 2)
    with t.no_grad():
        v = x[0:1]
    kept = [v.angle().grad_fn._saved_self, (v**2).grad_fn._saved_self]
    kept += [v.amin(0).grad_fn._saved_result, (v * v).grad_fn._saved_self]
    (v**2).sum().backward() if (v**2).grad_fn.next_functions[0][0] else None
    ((v**2) * x).sum().backward()
    return kept, x.grad


def bools_are_not_subtracted(t: Any) -> Any:
    x, b = t.ones(2), t.tensor([True, False])
    calls = [
        lambda: x - b, lambda: b - x, lambda: b - b, lambda: 1 - b, lambda: x - True,
        lambda: t.sub(x, b, alpha=2), lambda: t.rsub(x, b), lambda: t.rsub(b, b),
        lambda: x.clone().sub_(b), lambda: t.ones(0).sub_(t.ones(0, dtype=t.bool)),
        lambda: x - t.ones(3, dtype=t.bool),
    ]  # fmt: skip
    return [text_of_error(call) for call in calls]


def dimensions_that_are_not_there(t: Any) -> Any:
    x, one = t.ones(()), t.ones(2)
    linear = t.nn.functional.linear
    calls = [
        lambda: x.roll(1, 0), lambda: x.roll(1, -1), lambda: x.roll((1, 2), (-1, 3)),
        lambda: t.zeros(0, 3).roll(1, -4).shape, lambda: one.roll(1, 4),
        lambda: linear(x, one), lambda: linear(one, x), lambda: linear(x, t.ones(1, 2, 2)),
    ]  # fmt: skip
    return [text_of_error(call) for call in calls]


def fill_of_nothing(t: Any) -> Any:
    i, nothing = t.tensor([0, 5]), t.tensor([], dtype=t.int64)
    calls = [
        lambda: t.zeros(0).index_fill(0, i, 1.0),
        lambda: t.zeros(0).index_fill(0, nothing, 1.0).shape,
        lambda: t.zeros(0, 3).index_fill(1, i, 1.0).shape,
        lambda: t.zeros(0, 3).index_fill(0, i, t.tensor(1.0)),
        lambda: t.zeros(2, 0).index_fill(1, i, 1.0),
        lambda: t.ones(4)[0:0].index_fill_(0, t.tensor([0]), 1.0),
    ]
    return [text_of_error(call) for call in calls]


def parameter_of_inference(t: Any) -> Any:
    with t.inference_mode():
        x, n = t.ones(2), t.tensor([1])
    with t.inference_mode():
        inside = t.nn.Parameter(x).requires_grad
    calls = [lambda: t.nn.Parameter(x), lambda: t.nn.Parameter(n), lambda: t.nn.Parameter(x, False)]
    return inside, [text_of_error(call) for call in calls]


def another_size_and_type_from_a_hook(t: Any) -> Any:
    x = leaf(t, 1, 2)
    x.register_hook(lambda grad: t.ones(3, 3, dtype=t.float64))
    x.sum().backward()


def views_of_another_kind(t: Any) -> Any:
    x = t.ones(2, 3, dtype=t.complex64, requires_grad=True)
    y = x * 1
    v = t.view_as_real(y[1])
    w = v[1:]
    u = w[0]
    u.mul_(3)
    real = (x * 1).real
    real.neg_()
    (u * u).sum().backward()
    chains = [names_along(z.grad_fn) for z in (u, w, v, y, real)]
    return chains, t.view_as_real(x.grad)


def reals_as_complex(t: Any) -> Any:
    x = leaf(t, 1, 2) * 1
    z = t.view_as_complex(x)
    z -= 3
    return names_along(z.grad_fn), names_along(x.grad_fn)


def angle_at_the_origin(t: Any) -> Any:
    x, y = leaf(t, 0, -0.0, 1e-30, 2), leaf(t, 0, 0, 1e-30, 3)
    first = t.autograd.grad(t.atan2(x, y).sum(), [x, y], create_graph=True)
    second = t.autograd.grad(first[0][3], [x, y])
    return first, [g[3] for g in second]


def values_that_are_not_saved(t: Any) -> Any:
    x = leaf(t, 1, 2)
    nodes = [(x * 1).copy_(x).grad_fn, t.floor_divide(x, x).grad_fn, (x * 2).grad_fn]
    return [text_of_error(lambda node=node: node._raw_saved_nothing) for node in nodes]


PROGRAMS = [
    value for value in list(globals().values())
    if callable(value) and getattr(value, "__module__", "") == __name__
    and value not in (leaf, text_of_error, names_along)
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_same_as_torch(program: Any) -> None:
    assert_same(program)


NODES = {
    "fill_(3)": "FillBackward2",
    "fill_(y[0])": "FillBackward3",
    "rsub(y)": "RsubBackward0",
    "rsub(1)": "RsubBackward1",
    "fmod(2)": "FmodBackward0",
    "fmod(y)": "FmodBackward1",
    "remainder(y)": "RemainderBackward1",
    "lerp(y, 0.5)": "LerpBackward0",
    "lerp(y, y)": "LerpBackward1",
    "round(decimals=1)": "RoundBackward1",
    "xlogy_(1)": "XlogyBackward2",
}


@pytest.mark.parametrize("call", NODES)
def test_numbers_of_nodes(call: str) -> None:
    def program(t: Any) -> Any:
        y = leaf(t, 1, 2) * 1
        prefix = "torch.rsub(y, " if call.startswith("rsub") else "y."
        text = prefix + (call.removeprefix("rsub(") if prefix != "y." else call)
        return eval(text, {"torch": t, "y": y}).grad_fn

    assert assert_same(program)[1] == NODES[call]
