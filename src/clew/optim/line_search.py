"""A line search for the strong Wolfe conditions.

Source: Nocedal and Wright, "Numerical optimization", 2006, algorithms 3.5 and 3.6, with the cubic
interpolation of equation 3.59 and the safeguards of Schmidt's minFunc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9


class Point(NamedTuple):
    """A place on the line: how far, the loss, the gradient, and the loss's slope there."""

    length: Any
    loss: float
    grad: np.ndarray
    slope: Any


class _Bracket(NamedTuple):
    """Two points around a minimum, or one that will do."""

    points: list[Point]
    done: bool


def strong_wolfe(
    at: Callable[[Any], Point],
    start: Point,
    length: Any,
    *,
    largest: Any,
    tolerance_change: float,
    most: int,
) -> tuple[Point, int]:
    """A point that is low and flat enough, and the number of evaluations.

    Args:
        at: evaluates the line.
        start: its beginning.
        length: the first guess.
        largest: the largest element of the direction.
        tolerance_change: no parameter is worth moving by less.
        most: how many guesses to make after the first.
    """
    search = _Search(at, start, most)
    points, done = search.bracket(length)
    low = 0 if points[0].loss <= points[-1].loss else 1
    if not done and search.tries < most:
        low = search.zoom(points, low, tolerance_change / largest if largest else np.inf)
    return points[low], search.evaluations


class _Search:
    def __init__(self, at: Callable[[Any], Point], start: Point, most: int) -> None:
        self.at = at
        self.start = start
        self.most = most
        self.tries = 0
        self.evaluations = 0

    def _evaluate(self, length: Any) -> Point:
        self.evaluations += 1
        return self.at(length)

    def _is_high(self, point: Point) -> bool:
        """Whether the loss has not fallen enough for the way gone."""
        start = self.start
        fall = SUFFICIENT_DECREASE * point.length * start.slope
        return bool(point.loss > start.loss + fall)

    def _is_flat(self, point: Point) -> bool:
        return bool(abs(point.slope) <= -CURVATURE * self.start.slope)

    def bracket(self, length: Any) -> _Bracket:
        """Go forward until a minimum lies behind."""
        before, now = self.start, self._evaluate(length)
        while self.tries < self.most:
            if self._is_high(now) or (self.tries > 1 and now.loss >= before.loss):
                return _Bracket([before, now], done=False)
            if self._is_flat(now):
                return _Bracket([now], done=True)
            if now.slope >= 0:
                return _Bracket([before, now], done=False)
            nearest = now.length + 0.01 * (now.length - before.length)
            length = _minimum_of_cubic(before, now, (nearest, now.length * 10))
            before, now = now, self._evaluate(length)
            self.tries += 1
        return _Bracket([self.start, now], done=False)

    def zoom(self, points: list[Point], low: int, shortest: Any) -> int:
        """Narrow the bracket, in place; which of its points is the lower."""
        slow = False  # the last guess was near an end already
        while self.tries < self.most:
            ends = points[0].length, points[1].length
            if abs(ends[1] - ends[0]) < shortest:
                break
            guess = _minimum_of_cubic(points[0], points[1])
            guess, slow = _kept_inside(guess, ends, slow)
            new = self._evaluate(guess)
            self.tries += 1
            high = 1 - low
            if self._is_high(new) or new.loss >= points[low].loss:
                points[high] = new
                low = 0 if points[0].loss <= points[1].loss else 1
                continue
            done = self._is_flat(new)
            if not done and new.slope * (points[high].length - points[low].length) >= 0:
                points[high] = points[low]
            points[low] = new
            if done:
                break
        return low


def _kept_inside(guess: Any, ends: tuple[Any, Any], slow: bool) -> tuple[Any, bool]:
    """A guess that is near an end twice, or not inside at all, is moved away from it."""
    lower, upper = min(ends), max(ends)
    margin = 0.1 * (upper - lower)
    if min(upper - guess, guess - lower) >= margin:
        return guess, False
    if slow or guess >= upper or guess <= lower:
        nearer_upper = abs(guess - upper) < abs(guess - lower)
        return (upper - margin if nearer_upper else lower + margin), False
    return guess, True


def _minimum_of_cubic(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic with the losses and slopes of two points is least, inside the bounds."""
    lower, upper = bounds or (min(a.length, b.length), max(a.length, b.length))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (lower + upper) / 2.0
    d2 = np.sqrt(square)
    if a.length > b.length:
        a, b = b, a
    step = (b.length - a.length) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(b.length - step, lower), upper)
