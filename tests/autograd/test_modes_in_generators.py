"""Grad modes around generators and coroutines: each runs in its mode, its caller in his."""

import asyncio

import pytest

from twins import assert_same

MODES = ["no_grad", "enable_grad", "inference_mode", "set_grad_enabled"]


def decorated(t, mode, function):
    if mode == "set_grad_enabled":
        return t.set_grad_enabled(False)(function)
    return getattr(t, mode)()(function)


def modes(t):
    return t.is_grad_enabled(), t.is_inference_mode_enabled()


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_yield_send_throw_close(mode, outer):
    def run(t):
        log = []

        def numbers(start):
            try:
                got = yield start, modes(t)
                log.append(("sent", got, modes(t)))
                try:
                    yield modes(t)
                except KeyError as error:
                    log.append(("thrown", str(error), modes(t)))
                    yield "caught", modes(t)
                yield "never"
            finally:
                log.append(("closed", modes(t)))

        with t.set_grad_enabled(outer):
            made = decorated(t, mode, numbers)(7)
            log.append(modes(t))
            log.append(next(made))
            log.append(modes(t))
            log.append(made.send(3))
            log.append(modes(t))
            log.append(made.throw(KeyError("k")))
            log.append(modes(t))
            made.close()
            log.append(modes(t))
        return log

    assert_same(run)


@pytest.mark.parametrize("mode", MODES)
def test_return_value_and_exhaustion(mode):
    def run(t):
        def two():
            yield modes(t)
            yield modes(t)
            return "done", modes(t)

        def delegating():
            result = yield from decorated(t, mode, two)()
            yield result, modes(t)

        made = decorated(t, mode, two)()
        seen = [next(made), next(made)]
        try:
            next(made)
        except StopIteration as end:
            seen.append(end.value)
        return seen, list(delegating()), modes(t)

    assert_same(run)


@pytest.mark.parametrize("mode", MODES)
def test_errors_leave_the_mode_of_the_caller(mode):
    def run(t):
        def failing():
            yield modes(t)
            raise KeyError("inside")

        made, log = decorated(t, mode, failing)(), []
        next(made)
        for action in (lambda: next(made), lambda: next(made)):
            try:
                action()
            except (KeyError, StopIteration) as error:
                log.append((type(error).__name__, modes(t)))
        started = decorated(t, mode, failing)()
        try:
            started.throw(ValueError("before the start"))
        except ValueError as error:
            log.append((str(error), modes(t)))
        started = decorated(t, mode, failing)()
        started.close()
        return log, list(started), modes(t)

    assert_same(run)


def test_close_that_is_ignored():
    def run(t):
        @t.no_grad()
        def stubborn():
            while True:
                try:
                    yield
                except GeneratorExit:
                    yield "still here"

        made = stubborn()
        next(made)
        try:
            made.close()
        except RuntimeError as error:
            return str(error), modes(t)
        return None

    assert_same(run)


def test_plain_generator_under_a_with_block_leaks_its_mode():
    """A with block inside an undecorated generator holds while the generator waits."""

    def run(t):
        def numbers():
            with t.no_grad():
                yield modes(t)
            yield modes(t)

        made, log = numbers(), []
        for _ in range(2):
            log += [next(made), modes(t)]
        t.set_grad_enabled(True)
        return log

    assert_same(run)


def test_interleaved_generators():
    def run(t):
        def numbers():
            for _ in range(3):
                yield modes(t)

        first, second = t.no_grad()(numbers)(), t.enable_grad()(numbers)()
        with t.no_grad():
            third = numbers()
            return [(a, b, c, modes(t)) for a, b, c in zip(first, second, third)], modes(t)

    assert_same(run)


@pytest.mark.parametrize("mode", MODES)
def test_generator_that_changes_its_mode(mode):
    def run(t):
        def numbers():
            t.set_grad_enabled(True)
            yield modes(t)
            yield modes(t)

        with t.no_grad():
            made = decorated(t, mode, numbers)()
            return [next(made), modes(t), next(made), modes(t)]

    assert_same(run)


@pytest.mark.parametrize("mode", MODES)
def test_coroutines(mode):
    """A decorated coroutine function only makes its coroutine in the mode."""

    def run(t):
        async def work(x):
            before = modes(t)
            await asyncio.sleep(0)
            return before, modes(t), (x * 2).requires_grad

        async def with_block(x):
            with t.no_grad():
                seen = modes(t), (x * 2).requires_grad
            await asyncio.sleep(0)
            return seen, modes(t)

        async def both():
            x = t.ones(2, requires_grad=True)
            return await asyncio.gather(decorated(t, mode, work)(x), with_block(x), work(x))

        return asyncio.run(both()), modes(t)

    assert_same(run)


@pytest.mark.parametrize("mode", MODES)
def test_async_generators(mode):
    def run(t):
        async def numbers():
            for _ in range(2):
                yield modes(t)

        async def collect():
            return [(seen, modes(t)) async for seen in decorated(t, mode, numbers)()]

        return asyncio.run(collect()), modes(t)

    assert_same(run)


@pytest.mark.parametrize("mode", MODES)
def test_decorated_methods_and_names(mode):
    def run(t):
        class Source:
            def values(self, *, scale=1):
                """The values."""
                yield scale, modes(t)

            values = decorated(t, mode, values)

        made = Source.values
        return list(Source().values(scale=3)), made.__name__, made.__doc__, modes(t)

    assert_same(run)


def test_decorated_class_warns():
    def run(t):
        @t.no_grad()
        class Made:
            def __init__(self):
                self.mode = modes(t)

        return Made().mode, modes(t)

    assert_same(run)


def test_decorator_without_parentheses():
    def run(t):
        @t.no_grad
        def first():
            return modes(t)

        @t.no_grad
        def numbers():
            yield modes(t)

        @t.inference_mode
        def third():
            return modes(t)

        return first(), list(numbers()), third(), modes(t)

    assert_same(run)


def test_recursive_and_reused_decorator():
    def run(t):
        mode = t.no_grad()

        @mode
        def down(n):
            return [modes(t)] + (down(n - 1) if n else [])

        @mode
        def numbers(n):
            yield modes(t)
            if n:
                with t.enable_grad():
                    yield from numbers(n - 1)
                    yield modes(t)

        return down(3), list(numbers(2)), modes(t)

    assert_same(run)
