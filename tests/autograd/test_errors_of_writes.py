"""Errors of in-place writes, inference tensors, flags and copies: as torch's, and they teach."""

import copy

import pytest

from teaching import check_teaches


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


# -- in-place writes


def leaf_written(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    x.add_(1)  #: written


def parameter_updated(t):
    p = t.ones(2, requires_grad=True)  #: tensor
    p -= 0.1  #: written


def view_of_a_leaf_written(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    x[0] = 5.0  #: written


def reshaped_leaf_written(t):
    x = t.ones(2, requires_grad=True)  #: tensor
    x.view(2, 1).mul_(2)  #: written


def one_of_several_views_written(t):
    x = leaf(t, 1, 2)
    a, _ = (x * 1).unbind()  #: view
    a.add_(1)  #: written


def split_written(t):
    x = leaf(t, 1, 2)
    a, _ = (x * 1).split(1)  #: view
    a.add_(1)  #: written


def base_of_several_views_written(t):
    x = leaf(t, 1, 2)
    b = x * 1
    a, _ = b.unbind()  #: view
    b.add_(1)  #: written
    return a.grad_fn


def view_without_recording_written(t):
    b = leaf(t, 1, 2) * 1
    with t.no_grad():  #: made
        v = b[0:1]
    v.mul_(2)  #: written


def base_of_a_view_without_recording_written(t):
    b = leaf(t, 1, 2) * 1
    with t.no_grad():  #: made
        v = b[0:1]
    b.mul_(2)  #: written
    v.sum().backward()


def view_in_inference_mode_written(t):
    b = leaf(t, 1, 2) * 1
    with t.inference_mode():  #: made
        v = b[0:1]
    v.mul_(2)  #: written


def base_of_a_view_in_inference_mode_written(t):
    b = leaf(t, 1, 2) * 1
    with t.inference_mode():  #: made
        v = b[0:1]
    b.mul_(2)  #: written
    return v.grad_fn


def expanded_written(t):
    x = leaf(t, 1)
    y = (x * 1).expand(3)  #: tensor
    y.mul_(2)  #: written


def expanded_constant_written(t):
    y = t.ones(3, 1).expand(3, 4)
    y += 1  #: written


# -- inference tensors


def inference_tensor_saved(t):
    x = leaf(t, 1, 2)
    with t.inference_mode():  #: made
        c = t.ones(2)
    return x * c  #: used


def inference_tensor_written(t):
    with t.inference_mode():  #: made
        c = t.ones(2) + 1
    c.add_(1)  #: used


def inference_tensor_to_require_grad(t):
    with t.inference_mode():  #: made
        c = t.ones(2)
    c.requires_grad_()  #: used


def version_of_an_inference_tensor(t):
    with t.inference_mode():  #: made
        c = t.ones(2)
    return c._version  #: used


# -- flags, copies, inputs


def frozen_too_late(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: tensor
    y.requires_grad_(False)  #: asked


def flag_set_on_a_result(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: tensor
    y.requires_grad = False  #: asked


def integers_to_require_grad(t):
    t.ones(2, dtype=t.int64).requires_grad_()  #: asked


def gradient_of_a_constant_retained(t):
    t.ones(2).retain_grad()  #: asked


def hook_on_a_constant(t):
    t.ones(2).register_hook(lambda grad: grad)  #: asked


def late_hook_on_a_result(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: tensor
    y.register_post_accumulate_grad_hook(lambda p: None)  #: asked


def copied_with_its_history(t):
    x = leaf(t, 1, 2)
    y = x * 2  #: tensor
    copy.deepcopy(y)  #: copied


def copied_within_a_module(t):
    module = t.nn.Linear(2, 2)
    module.state = leaf(t, 1, 2) * 2  #: tensor
    copy.deepcopy(module)  #: copied


def unused_input(t):
    x, z = leaf(t, 1, 2), t.ones(1, requires_grad=True)  #: input
    t.autograd.grad((x * x).sum(), [x, z])  #: asked


def input_without_grad(t):
    x, z = leaf(t, 1, 2), t.ones(2)
    t.autograd.grad((x * z).sum(), [x, z])  #: asked


def backward_into_a_constant(t):
    x, z = leaf(t, 1, 2), t.ones(2)
    (x * z).sum().backward(inputs=[z])  #: asked


PROGRAMS = [
    leaf_written, parameter_updated, view_of_a_leaf_written, reshaped_leaf_written,
    one_of_several_views_written, split_written, base_of_several_views_written,
    view_without_recording_written, base_of_a_view_without_recording_written,
    view_in_inference_mode_written, base_of_a_view_in_inference_mode_written, expanded_written,
    expanded_constant_written, inference_tensor_saved, inference_tensor_written,
    inference_tensor_to_require_grad, version_of_an_inference_tensor, frozen_too_late,
    flag_set_on_a_result, integers_to_require_grad, gradient_of_a_constant_retained,
    hook_on_a_constant, late_hook_on_a_result, copied_with_its_history, copied_within_a_module,
    unused_input, input_without_grad, backward_into_a_constant,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_teaches(program):
    check_teaches(program)
