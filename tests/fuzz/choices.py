"""Random choices, made with what a program has so far in view."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol, TypeVar

from engines import torch

T = TypeVar("T")

FLOATS = (torch.float32, torch.float64)
INEXACT = (*FLOATS, torch.float16, torch.bfloat16, torch.complex64, torch.complex128)
COMPLEX = (torch.complex64, torch.complex128)


class NoChoice(Exception):
    """The program has nothing that this kind of line could use."""


class Source(Protocol):
    """Where choices come from."""

    def below(self, n: int) -> int:
        """A number from 0 to `n` - 1."""

    def chance(self, probability: float) -> bool:
        """True with this probability."""

    def order(self, n: int) -> Sequence[int]:
        """The numbers below `n` in some order."""


class Seeded:
    """Choices from a generator of random numbers."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def below(self, n: int) -> int:
        return int(self._random.random() * n)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def order(self, n: int) -> Sequence[int]:
        return self._random.sample(range(n), n)


class Choices:
    """Chooses tensors, shapes and arguments for the next line of a program.

    Args:
        namespace: the program's variables, as torch has them.

    Attributes:
        source: where the choices come from.
        packs: whether hooks of saved tensors were used in the program.
    """

    source: Source

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.packs = False
        self._count = 0
        self._labels = 0

    # -- plain choices

    def pick(self, items: Sequence[T]) -> T:
        if not items:
            raise NoChoice
        return items[self.source.below(len(items))]

    def chance(self, probability: float) -> bool:
        return self.source.chance(probability)

    def integer(self, low: int, high: int) -> int:
        """From `low` up to and including `high`; `low` where that is less."""
        return low + self.source.below(max(high - low + 1, 1))

    def number(self) -> str:
        """A number that most arithmetic keeps exact."""
        return self.pick(("2", "3", "0.5", "-1", "1", "0", "-2.0", "1.5"))

    # -- names

    def fresh(self) -> str:
        """A name that is new: a, b, ... z, a1, b1, ..."""
        letters = string.ascii_lowercase
        turn, letter = divmod(self._count, len(letters))
        self._count += 1
        return letters[letter] + (str(turn) if turn else "")

    def label(self, kind: str) -> str:
        """A new name for something that is no tensor."""
        self._labels += 1
        return f"{kind}{self._labels}"

    def named(self, kind: type) -> list[str]:
        """The variables of a type, oldest first."""
        return [
            k for k, v in self.namespace.items()
            if isinstance(v, kind) and k[0] in string.ascii_lowercase
        ]  # fmt: skip

    def handles(self) -> list[str]:
        """The handles of hooks."""
        return [k for k in self.namespace if k.startswith("handle")]

    # -- tensors

    def tensors(self, where: Callable[[Any], bool] | None = None) -> list[str]:
        """The tensors that the program has, oldest first."""
        found = self.named(torch.Tensor)
        return found if where is None else [k for k in found if where(self.namespace[k])]

    def tensor(self, where: Callable[[Any], bool] | None = None) -> str:
        """One of them, more often a late one."""
        found = self.tensors(where)
        if not found:
            raise NoChoice
        if self.chance(0.6):
            found = found[-4:]
        return self.pick(found)

    def value(self, name: str) -> Any:
        return self.namespace[name]

    def recorded(self) -> str:
        """A tensor that requires grad, nearly always."""
        return self.tensor((lambda t: t.requires_grad) if self.chance(0.95) else None)

    def inexact(self) -> str:
        """A tensor of a floating or complex dtype, nearly always."""
        return self.tensor((lambda t: t.dtype in INEXACT) if self.chance(0.95) else None)

    def partner(self, name: str) -> str:
        """Another operand for an operation with `name`: mostly one that fits, or a number."""
        if self.chance(0.2):
            return self.number()
        shape = self.value(name).shape
        fits = (lambda t: broadcasts(t.shape, shape)) if self.chance(0.97) else lambda t: True
        return self.tensor(lambda t: t.dtype != torch.bool and fits(t))

    def dim(self, name: str, extra: int = 0) -> int:
        """A dimension of the tensor; seldom one that it has not."""
        n = self.value(name).dim() + extra
        if self.chance(0.03) or n == 0:
            return self.integer(-1, n)
        return self.integer(-n, n - 1)


def broadcasts(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether the shapes fit together."""
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(first), reversed(second)))


def without_complex_halves(c: Choices, *names: str) -> None:
    """Refuse operands of which torch makes complex numbers of halves, which clew has not."""
    kinds = {c.value(name).dtype for name in names if name in c.namespace}
    if torch.float16 in kinds and kinds & set(COMPLEX):
        raise NoChoice


def is_distinct(t: Any) -> bool:
    """Whether no element shares its memory with another one, as after ``expand`` or ``unfold``."""
    if not t.dim() or 0 in t.shape:
        return True
    places = {0}
    for n, stride in zip(t.shape, t.stride()):
        places = {p + i * stride for p in places for i in range(n)}
    return len(places) == t.numel()


# -- what a kind of line needs

Maker = Callable[[Choices], str]
Needs = Callable[[Choices], bool]


def is_real(t: Any) -> bool:
    """Whether the dtype is one of the two in which most of torch's functions work."""
    return t.dtype in FLOATS


def is_recorded(t: Any) -> bool:
    return bool(t.requires_grad)


def has_dims(t: Any) -> bool:
    return bool(t.dim() > 0)


def nothing(c: Choices) -> bool:
    """The need of what makes tensors."""
    return True


def some(where: Callable[[Any], bool] | None = None) -> Needs:
    """That the program has a tensor, or one such tensor."""
    return lambda c: bool(c.tensors(where))


some_tensor = some()


class Kind:
    """A kind of line.

    Attributes:
        name: what tables call it.
        area: the group of kinds that it belongs to.
        weight: how often it is taken, relative to others.
        fits: whether the program has what such a line needs; the making may still fail.
        make: makes the text of such a line.
    """

    def __init__(self, area: str, weight: int, fits: Needs, make: Maker) -> None:
        self.name = make.__name__
        self.area, self.weight, self.fits, self.make = area, weight, fits, make


KINDS: list[Kind] = []


def kind(area: str, weight: int = 1, needs: Needs = some_tensor) -> Callable[[Maker], Maker]:
    """Register a function that makes lines."""

    def register(make: Maker) -> Maker:
        KINDS.append(Kind(area, weight, needs, make))
        return make

    return register
