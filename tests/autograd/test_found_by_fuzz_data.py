"""More programs on which clew and torch once differed: replaced data, saved values, refusals."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from twins import assert_same

SHAPES = [(), (1,), (2,), (3,), (4,), (1, 3), (2, 3), (3, 2), (2, 2), (2, 3, 2), (0,)]


def _data(t: Any, shape: tuple[int, ...], layout: str) -> Any:
    if layout == "columns":
        return t.zeros(shape[::-1]).t()
    return t.zeros(*shape[:-1], 2 * shape[-1])[..., ::2] if layout == "gaps" else t.zeros(shape)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("layout", ["rows", "columns", "gaps"])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradient_of_a_leaf_whose_data_has_another_shape(
    shape: tuple[int, ...], layout: str, create_graph: bool
) -> None:
    """It is taken over if its strides are the leaf's, or else copied into the leaf's new shape."""

    def program(t: Any) -> Any:
        found: list[Any] = []
        for new in SHAPES:
            if layout != "rows" and (len(new) != 2 or 1 in new):
                continue
            a = t.zeros(shape, requires_grad=True)
            doubled = a * 2
            a.data = _data(t, new, layout)
            try:
                doubled.backward(t.ones_like(doubled), create_graph=create_graph)
            except RuntimeError as error:
                found.append(str(error).split(". ")[0].split("\n")[0])
            else:
                assert a.grad is not None
                found.append((tuple(a.grad.shape), a.grad.detach()))
        return found

    assert_same(program)


def test_layout_contract_is_of_elements_and_all_dimensions() -> None:
    def program(t: Any) -> Any:
        a = t.ones(2, dtype=t.float64, requires_grad=True)
        a.sum().backward()
        a.data = t.zeros(2, 2)
        b = t.ones(2, 1, 3, requires_grad=True)
        b.sum().backward()
        b.data = t.tensor(1.0)
        warned = []
        before = t.is_warn_always_enabled()
        t.set_warn_always(True)
        try:
            for leaf, create_graph in ((a, True), (b, False)):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    leaf.mean().backward(create_graph=create_graph)
                warned.append(sum("layout contract" in str(w.message) for w in caught))
        finally:
            t.set_warn_always(before)
        return warned

    assert assert_same(program) == [0, 1]


def test_gradient_of_a_root_whose_data_was_replaced() -> None:
    def program(t: Any) -> Any:
        a = t.ones(3, requires_grad=True)
        kept = a * 2
        a.data = t.zeros(2, 3)
        a.backward(t.ones(2, 3))
        return a.grad, kept.detach()

    assert_same(program)


def test_leaf_of_set_in_inference_mode_stays_the_same() -> None:
    def program(t: Any) -> Any:
        b = t.zeros(1, requires_grad=True)
        parts = b.split(1, 0)
        with t.inference_mode():
            b.set_(t.ones(2, 3))
        b.sum().backward()
        return b.grad, len(parts)

    assert_same(program)


def test_write_to_a_view_beyond_its_base() -> None:
    def program(t: Any) -> Any:
        a, b = t.eye(2, 3), t.ones((), requires_grad=True)
        c, d = a.tensor_split(2, 1)
        d.mul_(b)
        a.data = b.detach().clone()
        d.set_(d)
        c.sum().backward(inputs=[a])

    assert_same(program)


def test_inputs_retain_before_gradients_are_looked_at() -> None:
    def program(t: Any) -> Any:
        a = t.ones(2, 2, requires_grad=True)
        b = a.unsqueeze(-1)
        with t.inference_mode():
            a.resize_(1, 4, 1)
        try:
            a.backward(a, inputs=[b, a])
        except RuntimeError as error:
            refused = str(error).split(". ")[0]
        base = t.zeros(2)
        view = base.ravel()
        base[None, 0] = t.tensor(1.0, requires_grad=True)
        view.sum().backward(inputs=[view])
        return b.retains_grad, view.retains_grad, refused

    assert assert_same(program)[:2] == [True, True]


def test_parts_of_one_memory_are_compared_in_elements() -> None:
    """As numbers of another type they are the same memory, in the same order."""

    def program(t: Any) -> Any:
        b = t.ones(2)
        b /= b.view(t.complex64)

    assert_same(program)


# -- saved values and graphs of gradients

PIECEWISE = [
    "relu(a)", "leaky_relu(a)", "leaky_relu(a, 0.2)", "hardtanh(a)", "relu6(a)",
    "threshold(a, 1, 0)", "hardshrink(a)", "relu_(a * 1)", "leaky_relu_(a * 1, 0.1)",
]  # fmt: skip


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("call", PIECEWISE)
def test_derivative_of_a_piecewise_function_keeps_its_input(call: str, recorded: bool) -> None:
    def program(t: Any) -> Any:
        a = t.tensor([1.5, -0.5], requires_grad=True)
        result = eval(f"t.nn.functional.{call}", {"t": t, "a": a})
        seed = t.ones(2, requires_grad=recorded)
        (found,) = t.autograd.grad(result, a, seed, create_graph=True)
        return found.detach(), found.grad_fn._saved_self.detach()

    assert_same(program)


def test_product_uses_the_result_that_it_kept() -> None:
    def program(t: Any) -> Any:
        found = []
        for values in ([[2.0, 3.0], [4.0, 5.0]], [[2.0, 0.0], [4.0, 5.0]]):
            for dim in ((), (0,), (1,)):
                a = t.tensor(values, requires_grad=True)
                result = a.prod(*dim)
                result.data.fill_(3)
                result.sum().backward()
                found.append(a.grad)
        return found

    assert_same(program)


def test_mask_of_nanmean_is_of_bools() -> None:
    def program(t: Any) -> Any:
        a = t.tensor([1.0, 2.0], requires_grad=True)
        seed = t.tensor(1.0, requires_grad=True)
        (found,) = t.autograd.grad(a.nanmean(), a, seed, create_graph=True)
        return found.grad_fn._saved_other

    assert_same(program)


def test_sum_with_an_expanded_gradient_lies_as_the_other() -> None:
    def program(t: Any) -> Any:
        given = []
        b = t.ones(2, 3, 2, requires_grad=True)
        b.register_hook(lambda grad: given.append(grad.stride()))
        e = b.swapaxes(0, 2)
        t.autograd.backward([(e * e).sum(), e.sum()])
        return given

    assert_same(program)


# -- which error comes


def test_detached_in_place_is_said_before_modified() -> None:
    def program(t: Any) -> Any:
        c = t.ones(2, requires_grad=True) * 2
        d = c**3
        c.detach_()
        c.mul_(2)
        d.sum().backward()

    assert_same(program)


@pytest.mark.parametrize("call", ["relu_()", "clamp_(0, 1)", "clamp_min_(0)", "clamp_max_(0)"])
@pytest.mark.parametrize("shape", [(2,), (1,)])
def test_complex_clamp_is_refused_first(call: str, shape: tuple[int, ...]) -> None:
    def program(t: Any) -> Any:
        x = t.ones(shape, dtype=t.complex64).expand(2)
        eval(f"x.{call}", {"x": x})

    assert_same(program)


def test_type_is_refused_before_inference() -> None:
    def program(t: Any) -> Any:
        with t.inference_mode():
            c = t.ones(2) > 0
        c.mul_(2)

    assert_same(program)


# -- inference tensors


@pytest.mark.parametrize("position", [0, 1])
def test_kron_keeps_no_inference_tensor(position: int) -> None:
    def program(t: Any) -> Any:
        with t.inference_mode():
            inference = t.ones(2, 2)
        operands = [t.ones(2, 2, requires_grad=True)] * 2
        operands[position] = inference
        return t.kron(*operands)

    assert_same(program)


def test_nothing_is_recorded_of_inference_tensors_alone() -> None:
    def program(t: Any) -> Any:
        with t.inference_mode():
            d = t.ones(2).requires_grad_()
        normal = t.ones(2)
        return d.frac(), d + d, d + normal, d.requires_grad

    assert_same(program)


def test_another_type_in_inference_mode_shares_no_version() -> None:
    def program(t: Any) -> Any:
        b = t.zeros(2)
        with t.inference_mode():
            b.view(t.complex64).mul_(2)
        return b._version

    assert assert_same(program) == 0
