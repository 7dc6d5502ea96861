"""What a workload makes: a step to time, and what is known about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class Step:
    """A step to time.

    Attributes:
        run: takes the step and returns its loss as a float, so that engines can be compared.
        given: the tensors that the step starts from, in the order that `workloads.functional`
            takes them: engines with other random numbers begin with these values.
        forward: computes the loss and nothing else; None where saved bytes mean little.
        model: whose parameters do not count as saved, if there is one.
    """

    run: Callable[[], float]
    given: Sequence[Any]
    forward: Callable[[], Any] | None = None
    model: Any = None

    def __call__(self) -> float:
        return self.run()


def eager(function: Any) -> Any:
    """The function as it is: what an engine without a compiler makes of it."""
    return function
