"""Callbacks for the end of a backward pass (`queue_callback`), also in nested passes."""

from twins import assert_same


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


def queue(t, callback):
    t.autograd.Variable._execution_engine.queue_callback(callback)


def test_runs_after_all_gradients():
    def run(t):
        x, y, log = leaf(t, 1, 2), leaf(t, 3, 4), []

        def late():
            log.append(("late", x.grad.tolist(), y.grad.tolist()))

        z = x * y
        z.register_hook(lambda grad: (log.append("hook"), queue(t, late))[0])
        z.sum().backward()
        log.append("after")
        return log

    assert_same(run)


def test_in_the_order_of_queueing_and_as_often():
    def run(t):
        x, log = leaf(t, 1, 2), []
        first, second = (lambda: log.append(1)), (lambda: log.append(2))
        h = x * 2
        h.register_hook(lambda grad: queue(t, second))
        y = h.exp()
        y.register_hook(lambda grad: [queue(t, f) for f in (first, first)] and None)
        y.sum().backward()
        return log

    assert_same(run)


def test_callback_queues_another():
    def run(t):
        x, log = leaf(t, 1), []

        def again():
            log.append(len(log))
            if len(log) < 4:
                queue(t, again)

        x.register_hook(lambda grad: queue(t, again))
        (x * 2).sum().backward()
        return log

    assert_same(run)


def test_nested_pass_runs_its_own_callbacks_first():
    def run(t):
        x, log = leaf(t, 1, 2), []

        def outer(grad):
            queue(t, lambda: log.append("outer"))
            inner = leaf(t, 3)
            inner.register_hook(
                lambda g: queue(t, lambda: log.append(("inner", inner.grad is None)))
            )
            with t.enable_grad():
                (inner * inner).sum().backward()
            log.append("inner pass over")

        (x * 3).register_hook(outer)
        h = x * 3
        h.register_hook(outer)
        h.sum().backward()
        return log

    assert_same(run)


def test_backward_in_a_callback():
    def run(t):
        x, other, log = leaf(t, 1, 2), leaf(t, 5), []

        def late():
            with t.enable_grad():
                (other * other).sum().backward()
            log.append(other.grad.tolist())

        x.register_hook(lambda grad: queue(t, late))
        x.exp().sum().backward()
        return log, x.grad

    assert_same(run)


def test_callback_queued_in_a_function_and_under_grad():
    def run(t):
        log = []

        class Noting(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                queue(t, lambda: log.append(t.is_grad_enabled()))
                return grad * 2

        x = leaf(t, 1, 2)
        t.autograd.grad(Noting.apply(x).sum(), x)
        t.autograd.grad(Noting.apply(x).sum(), x, create_graph=True)
        with t.no_grad():
            y = leaf(t, 1)
        Noting.apply(y).sum().backward()
        return log

    assert_same(run)


def test_error_of_a_callback_is_raised_and_the_rest_left_out():
    def run(t):
        x, log = leaf(t, 1, 2), []

        def fail():
            raise KeyError("late")

        x.register_hook(lambda g: [queue(t, f) for f in (fail, lambda: log.append(1))] and None)
        try:
            (x * 2).sum().backward()
        except KeyError as error:
            log.append(str(error))
        (leaf(t, 1) * 2).sum().backward()
        return log, x.grad

    assert_same(run)


def test_failed_pass_runs_no_callbacks():
    def run(t):
        x, log = leaf(t, 1, 2), []
        h = x * 2

        def fail(grad):
            raise KeyError("now")

        h.register_hook(fail)
        y = h.exp()
        y.register_hook(lambda grad: queue(t, lambda: log.append("late")))
        try:
            y.sum().backward()
        except KeyError:
            log.append("failed")
        (leaf(t, 1) * 2).sum().backward()
        return log, x.grad is None

    assert_same(run)


def test_retain_graph_queues_again():
    def run(t):
        x, log = leaf(t, 1, 2), []
        y = (x * x).sum()
        x.register_hook(lambda grad: queue(t, lambda: log.append(x.grad.tolist())))
        y.backward(retain_graph=True)
        y.backward()
        return log

    assert_same(run)
