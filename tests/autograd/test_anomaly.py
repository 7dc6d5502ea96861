"""Anomaly mode: the warning's traceback of the forward, the check for nan, threads."""

import re
import threading
import warnings

import pytest

from twins import assert_same


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


def failing(t):
    class Failing(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("backward")

    return Failing


def told(t, program):
    """The error's text and the first line of each warning, with the forward lines they name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            program()
            error = None
        except Exception as raised:
            error = str(raised).split("\n")[0]
    seen = []
    for warning in caught:
        text = str(warning.message)
        lines = re.findall(r"^    (.*#: .*)$", text, re.MULTILINE)
        seen.append((text.split("Traceback of forward call")[0].split("\n")[0].split(" (Trig")[0],
                     lines))  # fmt: skip
    return error, seen


def test_traceback_of_the_forward_call():
    def run(t):
        def inner(x):
            return failing(t).apply(x)  #: inner

        def program():
            with t.autograd.detect_anomaly(check_nan=False):
                y = inner(leaf(t, 1) * 2)  #: outer
                y.sum().backward()

        return told(t, program)[1][-1]

    assert_same(run)


def test_forward_outside_of_the_mode_has_no_traceback():
    def run(t):
        y = failing(t).apply(leaf(t, 1) * 2)  #: not named

        def program():
            with t.autograd.set_detect_anomaly(True):
                y.sum().backward()

        return told(t, program)

    assert_same(run)


def test_nested_backward_names_the_node_that_made_it():
    """Nodes made in a backward under create_graph have a parent, which is named too."""

    def run(t):
        class Twice(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return failing(t).apply(grad * x * 2)  #: in backward

        def program():
            with t.autograd.detect_anomaly(check_nan=False):
                x = leaf(t, 1, 2)
                y = Twice.apply(x)  #: forward
                (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
                g.sum().backward()

        error, seen = told(t, program)
        return error, [lines for _, lines in seen if lines]

    assert_same(run)


@pytest.mark.parametrize("check_nan", [True, False])
def test_check_for_nan(check_nan):
    def run(t):
        x = leaf(t, 0, 4)

        def program():
            with t.autograd.set_detect_anomaly(True, check_nan=check_nan):
                (x.sqrt() * 0).sum().backward()

        error, seen = told(t, program)
        return error, [text for text, _ in seen], x.grad is None or x.grad.isnan().tolist()

    assert_same(run)


def test_nan_in_what_is_not_asked_for():
    def run(t):
        x, w = leaf(t, 0), leaf(t, 1)

        def program():
            with t.autograd.set_detect_anomaly(True):
                y = (x.sqrt() * 0) * w
                return t.autograd.grad(y.sum(), w)

        return told(t, program)

    assert_same(run)


def test_nan_of_a_given_gradient():
    def run(t):
        x = leaf(t, 1, 2)

        def program():
            with t.autograd.set_detect_anomaly(True):
                (x * 2).backward(t.tensor([1.0, float("nan")]))

        return told(t, program)[0], x.grad is None

    assert_same(run)


def test_nan_under_create_graph_and_in_complex():
    def run(t):
        x = leaf(t, 0)
        z = t.tensor([0j], requires_grad=True)

        def real():
            with t.autograd.set_detect_anomaly(True):
                t.autograd.grad((x.sqrt() * 0).sum(), x, create_graph=True)

        def imaginary():
            with t.autograd.set_detect_anomaly(True):
                t.autograd.grad((z.sqrt() * 0).abs().sum(), z)

        return told(t, real)[0], told(t, imaginary)[0]

    assert_same(run)


def test_modes_nest_and_are_restored():
    def run(t):
        log = []

        def note():
            log.append((t.is_anomaly_enabled(), t.is_anomaly_check_nan_enabled()))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            note()
            with t.autograd.detect_anomaly():
                note()
                with t.autograd.set_detect_anomaly(True, check_nan=False):
                    note()
                    with t.autograd.set_detect_anomaly(False):
                        note()
                    note()
                note()
            note()
            try:
                with t.autograd.detect_anomaly(check_nan=False):
                    raise KeyError
            except KeyError:
                note()
            t.autograd.set_detect_anomaly(True)
            note()
            t.autograd.set_detect_anomaly(False)
            note()
        return log

    assert_same(run)


def test_mode_holds_in_all_threads():
    def run(t):
        log = []

        def work():
            log.append((t.is_anomaly_enabled(), t.is_anomaly_check_nan_enabled()))
            x = leaf(t, 0)
            try:
                (x.sqrt() * 0).sum().backward()
                log.append("passes")
            except RuntimeError as error:
                log.append(str(error).split("\n")[0])

        for enabled in (True, False):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with t.autograd.set_detect_anomaly(enabled):
                    thread = threading.Thread(target=work)
                    thread.start()
                    thread.join()
        return log

    assert_same(run)


def test_no_traceback_is_kept_without_the_mode():
    def run(t):
        x = leaf(t, 1)
        plain = x * 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with t.autograd.set_detect_anomaly(True):
                noted = x * 2
        return sorted(plain.grad_fn.metadata), sorted(noted.grad_fn.metadata)

    assert_same(run)
