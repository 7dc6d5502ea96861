"""More programs on which clew and torch once differed: the engine, inference tensors, layouts."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from twins import assert_same

MIXED = [
    "a.T + b", "b + a.T", "a.T + v", "v + a.T", "a.T * b", "a.T / 2", "2 - a.T", "a.T.mul(b)",
    "torch.where(a.T > 0, b, a.T)", "torch.where(m, a.T, b)", "torch.lerp(a.T, b, 0.5)",
    "torch.addcmul(b, a.T, a.T)", "torch.maximum(a.T, b)", "(a.T > b).logical_and(m)",
    "a.T.clone()", "a.T.exp()", "(a.T + b).relu()", "a.T.double()", "torch.clamp(a.T, b, b)",
    "b.T + a", "c.permute(2, 0, 1) + c.permute(2, 0, 1)", "c.permute(2, 0, 1) + d",
    "d + c.permute(2, 0, 1)", "c.transpose(0, 1) + c[0]", "c[:, ::2].transpose(0, 2) * 2",
    "b.expand(2, 3, 2) + d", "torch.hypot(a.T, b)", "2 ** a.T", "a.T ** b",
    "a.T.expand(2, 3, 2).exp()", "torch.addcdiv(b, a.T, b)",
]  # fmt: skip


@pytest.mark.parametrize("call", MIXED)
def test_layout_of_mixed_operands(call: str) -> None:
    """Strides follow the first operand that has an opinion on the order of two dimensions."""

    def program(t: Any) -> Any:
        a, b = t.ones(2, 3) * 2, t.arange(1.0, 7.0).view(3, 2)
        c, d = t.ones(3, 2, 2) / 2, t.ones(2, 3, 2)
        names = {"a": a, "b": b, "c": c, "d": d, "v": t.ones(2), "m": b > 2, "torch": t}
        result = eval(call, names)
        return result, result.stride()

    assert_same(program)


POWERS = ["z ** 0", "z ** 0.5", "z ** 1", "z ** 2", "z ** 3", "z ** -0.5", "z ** 1j", "z ** 1.5",
          "z.pow(torch.tensor(2.0))", "z.rsqrt()[1:]", "z.sqrt()", "2 ** z"]  # fmt: skip


@pytest.mark.parametrize("call", POWERS)
def test_powers_of_complex_numbers(call: str) -> None:
    assert_same(lambda t: eval(call, {"z": t.tensor([0j, 1 + 2j, -1.5 - 0.5j]), "torch": t}))


def leaf(t: Any) -> Any:
    return t.tensor([1.0, 2.0, 3.0], requires_grad=True)


def text_of_error(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error).__mro__[-3].__name__, str(error).split("\n")[0]


def seed_shares_its_version(t: Any) -> Any:
    x, seed = leaf(t), t.ones(3)
    (got,) = t.autograd.grad(x.view(3) * 1, x, seed)
    seed.add_(1)
    return got._version, seed._version


def post_hooks_see_fitted_gradients(t: Any) -> Any:
    x, seen = leaf(t), []
    y = x + t.ones(2, 3)
    y.grad_fn.register_hook(
        lambda inputs, outputs: seen.append([i is None or tuple(i.shape) for i in inputs])
    )
    y.sum().backward()
    return seen


def gradient_of_a_mean_is_written_to(t: Any) -> Any:
    x = leaf(t)
    x.register_hook(lambda grad: grad.mul_(2))
    return t.autograd.grad(x.mean(), x)[0].stride()


def retained_gradient_is_contiguous(t: Any) -> Any:
    y = leaf(t) * 2
    y.retain_grad()
    y.sum().backward()
    return y.grad.stride(), y.grad._version


def retains_grad_after_detach(t: Any) -> Any:
    y = leaf(t) * 2
    y.retain_grad()
    y.detach_()
    return y.retains_grad, y.is_leaf, y.requires_grad


def freed_write_to_a_view(t: Any) -> Any:
    y = leaf(t) * 1
    y[:1].mul_(2)
    y.sum().backward()
    return text_of_error(lambda: y.sum().backward())


def data_of_another_shape(t: Any) -> Any:
    x = leaf(t)
    y = x * 2
    x.data = t.ones(2)
    return text_of_error(lambda: y.sum().backward())


def post_accumulate_hook_without_gradient(t: Any) -> Any:
    class Nothing(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return None

    x, calls = leaf(t), []
    x.register_post_accumulate_grad_hook(lambda p: calls.append(p.grad is None))
    Nothing.apply(x).sum().backward()
    return calls


def inference_tensor_detached_outside(t: Any) -> Any:
    with t.inference_mode():
        x = t.ones(3)
    y = x.detach()
    y.add_(1)
    return (
        y.is_inference(),
        y._version,
        text_of_error(lambda: x.add_(1)),
        text_of_error(lambda: x._version),
    )


def inference_tensor_is_not_saved(t: Any) -> Any:
    with t.inference_mode():
        x = t.ones(3)
    return text_of_error(lambda: leaf(t) * x), (leaf(t) + x).requires_grad


def gradients_in_inference_mode(t: Any) -> Any:
    x = leaf(t)
    y = (x * x).sum()
    with t.inference_mode():
        (g,) = t.autograd.grad(y, x, create_graph=True)
    return g.requires_grad, g.is_inference()


def gradient_of_overlapping_elements(t: Any) -> Any:
    x = leaf(t)
    x.expand(2, 3).as_strided((2, 2), (1, 1)).sum().backward()
    return x.grad


def layout_of_a_gradient_is_warned_of(t: Any) -> Any:
    x = t.ones(2, 3, requires_grad=True)
    x.grad = t.ones(3, 2).T
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        (x * 2).sum().backward()
    return x.grad.stride(), x.grad


def expanded_gradient_is_refused(t: Any) -> Any:
    x = leaf(t)
    x.grad = t.ones(1).expand(3)
    return text_of_error(lambda: (x * 2).sum().backward())


def without_derivative(t: Any) -> Any:
    x = leaf(t)
    y = t.nextafter(x, x)
    return text_of_error(lambda: (y.sum() * 0 + x.sum()).backward())


def numbers_outside_where_there_is_nothing(t: Any) -> Any:
    x = t.zeros(2, 1, 0)
    x[0, [5]] = 1
    outside = text_of_error(lambda: t.zeros(0, 3)[[0]])
    return x[[1, -1], [7, -7]], t.zeros(0, 3)[:, [5]], outside


def first_reason_of_refusal(t: Any) -> Any:
    e, places = t.zeros(1).expand(2, 1), t.zeros(2, 1, dtype=t.int64)
    calls = [
        lambda: e.scatter_add_(0, places, e),
        lambda: e.index_add_(0, places[:, 0], e),
        lambda: t.view_as_complex(t.eye(2, 3)[:, 1:]),
        lambda: t.view_as_complex(t.eye(2, 3).unbind(1)[1]),
        lambda: t.view_as_complex(t.arange(3.0)[1:]),
        lambda: t.view_as_complex(t.arange(2.0).unfold(0, 2, 1)).tolist(),
        lambda: t.ones(2, 1, dtype=t.int32).var(1),
    ]
    return [text_of_error(call) for call in calls]


def sorted_places(t: Any) -> Any:
    return t.argsort(leaf(t), descending=True), t.ones(2, 2).argsort(0)


PROGRAMS = [
    value for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__
    and not name.startswith("test") and value not in (leaf, text_of_error)
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_same_as_torch(program: Any) -> None:
    assert_same(program)
