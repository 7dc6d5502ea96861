"""Views, in-place writes, versions and leaf rules: the same as torch."""

import pytest

from twins import assert_same


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


def write_to_view(t):
    x = leaf(t, 1, 2, 3)
    b = x * 2
    v = b[0:2]
    v.mul_(3)
    b.sum().backward()
    return x.grad, b, v, b.grad_fn, v.grad_fn, v._version, b._version


def write_to_view_of_view(t):
    x = leaf(t, 1, 2, 3, 4)
    b = x * 1
    v = b.view(2, 2)[1]
    v.pow_(2)
    (b * b).sum().backward()
    return x.grad, v, v._base is b


def write_to_base_then_use_view(t):
    x = leaf(t, 1, 2, 3)
    b = x * 2
    v = b[1:]
    b.mul_(5)
    v.sum().backward()
    return x.grad, v, v.grad_fn


def view_of_plain_base_gets_a_gradient(t):
    w = leaf(t, 2)
    z = t.zeros(3)
    z[1:2].add_(w)
    (z * z).sum().backward()
    return w.grad, z.requires_grad, z.grad_fn


def transposed_write(t):
    x = leaf(t, 1, 2, 3, 4)
    b = (x * 1).view(2, 2)
    b.t()[0].mul_(10)
    (b * t.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    return x.grad, b


def twice_differentiated_write(t):
    x = leaf(t, 1, 2, 3)
    b = x * x
    b[0:2].mul_(x[1:3])
    (g,) = t.autograd.grad((b**2).sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x)
    return g, h


def set_item(t):
    x, v = leaf(t, 1, 2, 3), leaf(t, 7)
    b = x * 2
    b[1] = v[0] * 3
    (b * b).sum().backward()
    return x.grad, v.grad, b.grad_fn


def set_item_number(t):
    x = leaf(t, 1, 2, 3)
    b = x * 2
    b[1:] = 0.0
    (b * b).sum().backward()
    return x.grad, b


def leaf_write(t):
    leaf(t, 1, 2).add_(1)


def leaf_view_write(t):
    leaf(t, 1, 2)[0:1].add_(1)


def leaf_set_item(t):
    leaf(t, 1, 2)[0] = 5


def leaf_write_without_grad(t):
    x = leaf(t, 1, 2)
    with t.no_grad():
        x.add_(1)
        x[0] = 7
    return x, x._version, x.is_leaf


def leaf_write_through_detach(t):
    x = leaf(t, 1, 2)
    x.detach().add_(1)
    return x, x._version


def leaf_write_through_data(t):
    x = leaf(t, 1, 2)
    x.data.add_(1)
    return x, x._version


def saved_output_changed(t):
    y = leaf(t, 1, 2).exp()
    z = y.sum()
    y.add_(1)
    z.backward()


def saved_input_changed(t):
    h = leaf(t, 1, 2) * 2
    y = (h**2).sum()
    h.add_(1)
    y.backward()


def saved_through_detach_changed(t):
    x = leaf(t, 1, 2)
    h = x * 2
    y = (h * h).sum()
    h.detach().add_(1)
    y.backward()


def saved_through_data_changed(t):
    x = leaf(t, 1, 2)
    h = x * 2
    y = (h * h).sum()
    h.data.add_(1)
    y.backward()
    return x.grad


def changed_where_nothing_is_saved(t):
    x = leaf(t, 1, 2)
    h = x * 2
    y = (h + 1).sum()
    h.mul_(5)
    y.backward()
    return x.grad


def every_in_place_write_counts(t):
    x = t.ones(3)
    x.add_(1)
    x[0] = 2
    x.view(3).mul_(2)
    x.zero_()
    x.fill_(3)
    x.copy_(t.ones(3))
    return x._version, x.detach()._version, x.data._version


def split_write(t):
    (leaf(t, 1, 2, 3, 4) * 1).split(2)[0].add_(1)


def unbind_write(t):
    (leaf(t, 1, 2) * 1).unbind()[0].add_(1)


def view_made_without_grad(t):
    x = leaf(t, 1, 2) * 1
    with t.no_grad():
        v = x.view(2, 1)
    v.add_(1)


def expanded_write(t):
    t.ones(1).expand(3).add_(1)


def broadcast_write(t):
    t.ones(2).add_(t.ones(3, 2))


def type_write(t):
    t.tensor([1, 2]).add_(1.5)


def detach_in_place(t):
    x = leaf(t, 1, 2)
    y = x * 2
    y.detach_()
    return y.requires_grad, y.is_leaf, y.grad_fn


def detach_view_in_place(t):
    (leaf(t, 1, 2) * 1).view(2, 1).detach_()


def detach_shares_version(t):
    x = t.ones(2)
    d = x.detach()
    d.add_(1)
    return x._version, d._version, x


def requires_grad_of_non_leaf(t):
    (leaf(t, 1) * 2).requires_grad_(False)


def requires_grad_makes_a_leaf(t):
    x = leaf(t, 2)
    z = (x * 3).detach().requires_grad_()
    (z**2).backward()
    return z.grad, x.grad


def partial_gradient(t):
    x = leaf(t, 2)
    y = x * 3
    (y.detach() ** 2 + y).backward()
    return x.grad


def retain_grad_follows_in_place(t):
    x = leaf(t, 1, 2)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    return y.grad, x.grad


def hook_stays_with_the_old_node(t):
    x, seen = leaf(t, 1, 2), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(3)
    (y * y).sum().backward()
    return seen, x.grad


def inference_write(t):
    with t.inference_mode():
        x = t.ones(2)
    x.add_(1)


def inference_saved(t):
    with t.inference_mode():
        x = t.ones(2)
    return x * leaf(t, 1, 2)


def inference_version(t):
    with t.inference_mode():
        x = t.ones(2)
    return x._version


def inference_flags(t):
    x = leaf(t, 1, 2)
    with t.inference_mode():
        y = x * 2
        v = x.view(2, 1)
    return y.requires_grad, y.is_inference(), v.is_inference(), x.is_inference()


def grad_of_wrong_shape(t):
    leaf(t, 1, 2).grad = t.ones(3)


def grad_of_wrong_type(t):
    leaf(t, 1, 2).grad = t.ones(2, dtype=t.float64)


def operator_writes(t):
    x = leaf(t, 1, 2)
    y = x * 1
    y += 1
    y *= x
    y -= 3
    y /= 2
    y.sum().backward()
    return x.grad, y


SCENARIOS = [f for f in list(globals().values()) if callable(f) and f.__module__ == __name__]
SCENARIOS = [f for f in SCENARIOS if f is not leaf]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda f: f.__name__)
def test_scenario(scenario):
    assert_same(scenario)
