"""Programs on which clew and torch once differed, found by ``tools/fuzz.py``: the same as torch."""

from __future__ import annotations

from typing import Any

import pytest

from twins import assert_same


def leaf(t: Any, *values: float) -> Any:
    return t.tensor([float(v) for v in values], requires_grad=True)


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


PROGRAMS = [
    value for value in list(globals().values())
    if callable(value) and getattr(value, "__module__", "") == __name__ and value is not leaf
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
