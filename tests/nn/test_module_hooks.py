"""Hooks of modules: when they are called, with what, and what they change.  Oracle: PyTorch."""

import copy

import pytest

import clew
from clew import nn as clew_nn
from twins import assert_same


def affine(m):
    m.manual_seed(0)
    return m.nn.Linear(2, 2), m.ones(1, 2, requires_grad=True)


def test_order_of_all_kinds():
    def run(m):
        outer = m.nn.Sequential(m.nn.Linear(2, 2), m.nn.Tanh())
        calls = []

        def note(name):
            def hook(module, *rest):
                calls.append((name, type(module).__name__, len(rest)))

            return hook

        for part in (outer, outer[0], outer[1]):
            part.register_forward_pre_hook(note("pre 1"))
            part.register_forward_pre_hook(note("pre 2"), prepend=True)
            part.register_forward_pre_hook(note("pre kwargs"), with_kwargs=True)
            part.register_forward_hook(note("post 1"))
            part.register_forward_hook(note("post 2"), prepend=True)
            part.register_forward_hook(note("post kwargs"), with_kwargs=True)
            part.register_full_backward_pre_hook(note("back pre"))
            part.register_full_backward_pre_hook(note("back pre first"), prepend=True)
            part.register_full_backward_hook(note("back"))
            part.register_full_backward_hook(note("back first"), prepend=True)
        outer(m.ones(1, 2, requires_grad=True)).sum().backward()
        return [list(c) for c in calls]

    assert_same(run)


@pytest.mark.parametrize("kind", ["tuple", "value", "kwargs", "wrong"])
def test_what_a_forward_pre_hook_returns(kind):
    def run(m):
        class Sum(m.nn.Module):
            def forward(self, x, *, times=1):
                return x * times

        module = Sum()
        if kind == "tuple":
            module.register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
        elif kind == "value":
            module.register_forward_pre_hook(lambda mod, args: args[0] + 2)
        elif kind == "kwargs":
            module.register_forward_pre_hook(
                lambda mod, args, kwargs: (args, {"times": kwargs["times"] + 5}), with_kwargs=True
            )
        else:
            module.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
        return module(m.ones(2), times=3)

    assert_same(run)


def test_what_a_forward_hook_returns():
    def run(m):
        module, x = affine(m)
        module.register_forward_hook(lambda mod, args, out: out * 2)
        module.register_forward_hook(lambda mod, args, kwargs, out: out + 1, with_kwargs=True)
        return module(x)

    assert_same(run)


def test_always_called():
    def run(m):
        class Broken(m.nn.Module):
            def forward(self, x):
                raise KeyError("inside")

        module, calls = Broken(), []
        module.register_forward_hook(lambda mod, args, out: calls.append("never"))
        module.register_forward_hook(
            lambda mod, args, out: calls.append(str(out)), always_call=True
        )
        handle = m.nn.modules.module.register_module_forward_hook(
            lambda mod, args, out: calls.append("global"), always_call=True
        )
        try:
            module(m.ones(1))
        except KeyError as error:
            calls.append(repr(error))
        finally:
            handle.remove()
        return calls

    assert_same(run)


def test_an_always_called_hook_that_fails_too_warns():
    class Broken(clew_nn.Module):
        def forward(self, x):
            raise KeyError("inside")

    def fail(module, args, out):
        raise ValueError("too")

    module = Broken()
    module.register_forward_hook(fail, always_call=True)
    with pytest.warns(UserWarning, match="silenced as another error"), pytest.raises(KeyError):
        module(1)


@pytest.mark.parametrize("returned", ["None", "tuple(g * 3 for g in grad_input)", "(None, 1)"])
def test_full_backward_hook(returned):
    def run(m):
        module, x = affine(m)
        seen = []

        def hook(mod, grad_input, grad_output):
            seen.append([grad_input, grad_output])
            return eval(returned, {"grad_input": grad_input, "m": m})

        module.register_full_backward_hook(hook)
        module(x).sum().backward()
        return seen, x.grad, module.weight.grad

    assert_same(run)


def test_full_backward_pre_hook_changes_what_comes_in():
    def run(m):
        module, x = affine(m)
        module.register_full_backward_pre_hook(lambda mod, grads: (grads[0] * 5,))
        module(x).sum().backward()
        return x.grad, module.weight.grad

    assert_same(run)


def test_full_backward_pre_hook_of_wrong_length():
    def run(m):
        module, x = affine(m)
        module.register_full_backward_pre_hook(lambda mod, grads: ())
        module(x).sum().backward()

    assert_same(run)


def test_inputs_and_outputs_of_mixed_kinds():
    def run(m):
        class Mixed(m.nn.Module):
            def forward(self, x, number, y):
                return x * number, "text", y + 1

        seen = []
        module = Mixed()
        module.register_full_backward_hook(lambda mod, gi, go: seen.append([gi, go]))
        x, y = m.ones(2, requires_grad=True), m.ones(2)
        a, _, b = module(x, 3.0, y)
        (a.sum() + b.sum()).backward()
        return seen, x.grad, b.requires_grad

    assert_same(run)


def test_no_input_requires_grad():
    def run(m):
        module, x = affine(m)
        seen = []
        module.register_full_backward_hook(lambda mod, gi, go: seen.append([gi, go]))
        module(x.detach()).sum().backward()
        return seen

    assert_same(run)
    module, x = affine(clew)
    module.register_full_backward_hook(lambda mod, gi, go: None)
    with pytest.warns(UserWarning, match="Full backward hook is firing"):
        module(x.detach()).sum().backward()


def test_under_no_grad_backward_hooks_do_nothing():
    module, x = affine(clew)
    module.register_full_backward_hook(lambda mod, gi, go: pytest.fail("called"))
    with clew.no_grad():
        assert not module(x).requires_grad


def test_an_output_of_another_kind_warns():
    class Named(clew_nn.Module):
        def forward(self, x):
            return {"x": x}

    module = Named()
    module.register_full_backward_hook(lambda mod, gi, go: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple"):
        module(clew.ones(1, requires_grad=True))


def test_old_backward_hook():
    def run(m):
        module, seen = m.nn.Tanh(), []
        x = m.ones(2, requires_grad=True)
        module.register_backward_hook(lambda mod, gi, go: seen.append([gi, go]))
        module(x * 1).sum().backward()
        return seen

    assert_same(run)


@pytest.mark.parametrize(
    "forward, text",
    [
        (lambda m, x: [x + 1], "does not return a single Tensor"),
        (lambda m, x: (x + 1, x * 2), "generated by different autograd Nodes"),
        (lambda m, x: x.sin().cos(), "contains multiple autograd Nodes"),
    ],
)
def test_an_old_backward_hook_warns_of_what_it_misses(forward, text):
    class Any(clew_nn.Module):
        pass

    Any.forward = forward
    module = Any()
    module.register_backward_hook(lambda mod, gi, go: None)
    with pytest.warns(FutureWarning, match=text):
        module(clew.ones(2, requires_grad=True))


@pytest.mark.parametrize("first", ["register_backward_hook", "register_full_backward_hook"])
def test_old_and_full_hooks_exclude_each_other(first):
    def run(m):
        module, _ = affine(m)
        getattr(module, first)(lambda *a: None)
        module.register_backward_hook(lambda *a: None)
        module.register_full_backward_hook(lambda *a: None)

    assert_same(run)


def test_global_hooks_come_first():
    def run(m):
        module, x = affine(m)
        calls, register = [], m.nn.modules.module
        handles = [
            register.register_module_forward_pre_hook(lambda mod, a: calls.append("g pre")),
            register.register_module_forward_hook(lambda mod, a, o: calls.append("g post")),
            register.register_module_full_backward_hook(lambda mod, a, o: calls.append("g back")),
            register.register_module_full_backward_pre_hook(lambda mod, a: calls.append("g bp")),
        ]
        module.register_forward_pre_hook(lambda mod, a: calls.append("pre"))
        module.register_forward_hook(lambda mod, a, o: calls.append("post"))
        module.register_full_backward_hook(lambda mod, a, o: calls.append("back"))
        module.register_full_backward_pre_hook(lambda mod, a: calls.append("bp"))
        try:
            module(x).sum().backward()
        finally:
            for handle in handles:
                handle.remove()
        module(x)
        return calls

    assert_same(run)


def test_registration_hooks():
    def run(m):
        calls, register = [], m.nn.modules.module
        handles = [
            register.register_module_buffer_registration_hook(
                lambda mod, name, b: calls.append(["buffer", name])
            ),
            register.register_module_module_registration_hook(
                lambda mod, name, c: calls.append(["module", name])
            ),
            register.register_module_parameter_registration_hook(
                lambda mod, name, p: m.nn.Parameter(p * 0 + 7) if name == "bias" else None
            ),
        ]
        try:
            net = m.nn.Sequential(m.nn.Linear(1, 1))
            net.register_buffer("b", m.ones(1))
            net.other = m.nn.ReLU()
        finally:
            for handle in handles:
                handle.remove()
        return calls, type(net[0].bias).__name__, net[0].bias is not None

    assert_same(run)


def test_a_removed_hook_is_not_called():
    module, x = affine(clew)
    handles = [
        module.register_forward_pre_hook(lambda *a: pytest.fail("called"), with_kwargs=True),
        module.register_forward_hook(
            lambda *a: pytest.fail("called"), with_kwargs=True, always_call=True
        ),
        module.register_full_backward_hook(lambda *a: pytest.fail("called")),
    ]
    for handle in handles:
        handle.remove()
    module(x).sum().backward()
    assert not module._forward_hooks_with_kwargs and not module._forward_hooks_always_called


def test_hooks_are_copied_with_the_module():
    module, x = affine(clew)
    calls = []
    module.register_forward_hook(lambda mod, a, o: calls.append(mod))
    made = copy.deepcopy(module)
    made(x)
    assert calls == [made]


def test_hooks_inside_forward_are_the_modules_own():
    module, x = affine(clew)
    module.register_full_backward_hook(lambda mod, gi, go: None)
    y = module(x)
    assert y.grad_fn.name() == "BackwardHookFunctionBackward"
    assert_same(lambda m: affine_hooked_grad(m))


def affine_hooked_grad(m):
    module, x = affine(m)
    module.register_full_backward_hook(lambda mod, gi, go: None)
    y = module(x)
    (g,) = m.autograd.grad(y.pow(2).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x)
    return g, h
