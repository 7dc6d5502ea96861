"""Who is told of what: `clew.observers`."""

import pytest

import clew
from clew.observers import EVENTS, Observer, Observers, observers


class Counting(Observer):
    """Hears of ops only."""

    def __init__(self):
        self.ops = []

    def on_op(self, op, inputs, outputs, node, attrs):
        self.ops.append(op.name)


@pytest.fixture
def counting():
    observer = Counting()
    observers.append(observer)
    yield observer
    observers.remove(observer)


def test_an_observer_is_asked_only_for_events_that_it_overrides(counting):
    assert [event for event in EVENTS if getattr(observers, event)] == ["on_op"]
    assert observers.on_op == [counting.on_op]
    x = clew.ones(2, requires_grad=True)
    x.exp().sum().backward()
    assert counting.ops[:2] == ["exp", "sum_all"]


def test_a_method_of_the_object_overrides_as_well():
    seen = []
    observer = Observer()
    observer.before_op = lambda op, inputs, attrs: seen.append(op.name)
    observers.append(observer)
    try:
        clew.ones(2).exp()
    finally:
        observers.remove(observer)
    assert seen == ["exp"]


def test_one_that_leaves_while_it_is_told_keeps_none_from_the_others(counting):
    class Leaving(Observer):
        def on_op(self, *args):
            observers.remove(self)

    observers.append(Leaving())
    later = Counting()
    observers.append(later)
    try:
        clew.ones(2).exp()
    finally:
        observers.remove(later)
    assert counting.ops == later.ops == ["exp"]


def test_cleared_nobody_is_told():
    some = Observers()
    some.append(Counting())
    some.append(Counting())
    assert len(some.on_op) == 2
    some.clear()
    assert some == [] and not some.on_op
