"""Backward passes in several threads, inside each other, and broken off."""

import threading

import pytest

import clew


def in_threads(count, work):
    """Run `work(i)` in threads that start together; raise what one of them raises."""
    barrier, errors = threading.Barrier(count), []

    def run(i):
        try:
            barrier.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_eight_threads_share_leaves_from_the_first_graph_on():
    """Every round the leaf has no node yet, so that all threads ask for one at once."""
    for _ in range(30):
        leaves = [clew.zeros(200, requires_grad=True) for _ in range(3)]

        def work(i, leaves=leaves):
            sum((leaf * (i + 1)).sum() for leaf in leaves).backward()

        in_threads(8, work)
        for leaf in leaves:
            assert leaf.grad.tolist() == [36.0] * 200


def test_one_graph_backward_in_eight_threads():
    x = clew.ones(50, requires_grad=True)
    y = (x * x).sum()
    in_threads(8, lambda i: y.backward(retain_graph=True))
    assert x.grad.tolist() == [16.0] * 50


def test_hooks_of_shared_leaves_run_in_each_pass():
    x, calls = clew.ones(3, requires_grad=True), []
    x.register_hook(lambda grad: calls.append(threading.get_ident()))
    x.register_post_accumulate_grad_hook(lambda p: calls.append(threading.get_ident()))
    in_threads(8, lambda i: (x * i).sum().backward())
    assert len(calls) == 16


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_that_are_recorded_are_not_lost_either():
    """Under create_graph accumulation is out of place, and the sum has a history."""
    for _ in range(10):
        leaves = [clew.full((20,), 2.0, requires_grad=True) for _ in range(3)]

        def work(i, leaves=leaves):
            sum((leaf * leaf * (i + 1)).sum() for leaf in leaves).backward(create_graph=True)

        in_threads(8, work)
        for leaf in leaves:
            assert leaf.grad.tolist() == [144.0] * 20
            (second,) = clew.autograd.grad(leaf.grad.sum(), leaf)
            assert second.tolist() == [72.0] * 20
            leaf.grad = None


def test_one_graph_differentiated_in_eight_threads():
    """With hooks, retained gradients, a Function, and gradients returned instead of accumulated."""
    x, w = clew.full((50,), 2.0, requires_grad=True), clew.ones(50, requires_grad=True)
    h = (x * w).exp().log()  # x * w
    h.register_hook(lambda grad: grad * 2)
    h.retain_grad()
    y = Squared.apply(h).sum()
    y.grad_fn.register_prehook(lambda grads: None)
    found = [None] * 8

    def work(i):
        if i % 2:
            y.backward(retain_graph=True)
        else:
            found[i] = clew.autograd.grad(y, (x, w), create_graph=i % 4 == 0, retain_graph=True)

    in_threads(8, work)
    expected = clew.full((50,), 8.0)
    for grads in found[::2]:
        clew.testing.assert_close(grads[0].detach(), expected)
        clew.testing.assert_close(grads[1].detach(), 2 * expected)
    clew.testing.assert_close(x.grad, 4 * expected)
    clew.testing.assert_close(w.grad, 8 * expected)


def test_in_place_accumulation_and_reading_at_once():
    """What another thread does with a leaf meanwhile does not cost gradients."""
    x = clew.ones(1000, requires_grad=True)
    x.grad = clew.zeros(1000)
    done = threading.Event()

    def work(i):
        if i:
            for _ in range(40):
                (x * 1).sum().backward()
        else:
            for _ in range(200):
                x.grad.sum().item()
                (x * 2).sum()
            done.set()

    in_threads(8, work)
    assert done.is_set()
    assert x.grad.tolist() == [7 * 40.0] * 1000


class Squared(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Deep(clew.autograd.Function):
    """Calls backward inside its backward, as many times inside each other as its input says."""

    modes = None

    @staticmethod
    def forward(ctx, x):
        with clew.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    @staticmethod
    def backward(ctx, grad):
        Deep.modes.append((clew.is_grad_enabled(), clew._C._current_autograd_node() is ctx))
        if ctx.x >= 0:
            with clew.enable_grad():
                Deep.apply(ctx.x).sum().backward()
        return grad


def test_deep_reentrance_goes_on_in_other_threads():
    Deep.modes = []
    x = clew.tensor(1000.0, requires_grad=True)
    Deep.apply(x).backward()
    assert x.grad == 1
    assert Deep.modes == [(False, True)] * 1001


def test_the_error_of_a_deep_backward_comes_through():
    def refuse(grad):
        raise ValueError("deep down")

    class Failing(Deep):
        @staticmethod
        def backward(ctx, grad):
            with clew.enable_grad():
                if ctx.x > 0:
                    Failing.apply(ctx.x).sum().backward()
                else:
                    y = ctx.x * 2
                    y.register_hook(refuse)
                    y.backward()
            return grad

    x = clew.tensor(200.0, requires_grad=True)
    with pytest.raises(ValueError, match="deep down") as caught:
        Failing.apply(x).backward()
    assert "MulBackward0" in caught.value.__notes__[0]
    (x * 2).backward()
    assert x.grad == 2


def test_without_multithreading_the_stack_is_the_limit():
    x = clew.tensor(1000.0, requires_grad=True)
    with clew.autograd.set_multithreading_enabled(False), pytest.raises(RecursionError):
        Deep.apply(x).backward()


@pytest.mark.parametrize("where", ["hook", "function", "accumulate"])
def test_an_interrupted_backward_leaves_everything_usable(where):
    x = clew.tensor([1.0, 2.0], requires_grad=True)
    armed = [True]

    def interrupt(*_):
        if armed[0]:
            raise KeyboardInterrupt

    class Passing(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            if where == "function":
                interrupt()
            return grad

    y = x * x
    if where == "hook":
        y.register_hook(interrupt)
    if where == "accumulate":
        x.register_post_accumulate_grad_hook(interrupt)
    z = Passing.apply(y).sum()
    with clew.no_grad(), pytest.raises(KeyboardInterrupt):
        z.backward(retain_graph=True)
    assert clew.is_grad_enabled()
    assert clew._C._current_autograd_node() is None
    armed[0], x.grad = False, None
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    with clew.no_grad():
        x.add_(1)
