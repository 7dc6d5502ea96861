"""Sample calls of ops, for the tests that are generated from the declarations.

An elementwise op gets its samples from the `domain` that it declares (Note [Domains] in
``clew/op.py``); what attributes it is to be called with, where they have no defaults, is said with
`variants`.  Any other op has a function that yields them, in one of the modules ``samples_*.py``::

    @samples("gather")
    def gather(v):
        yield call("usual", v.real(3, 4), v.integers(3, 2, 4), dim=0)
        yield call("empty", v.real(3, 4), v.integers(3, 0, 4), dim=0)

`v` draws the same numbers in each run.  Attributes that are not given have their defaults.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from clew.dtypes import dtype
from clew.op import REGISTRY, Op
from clew.rng import Generator

SEED = 7


@dataclass(frozen=True)
class Sample:
    """One call of an op: small, and in float64 where it is floating.

    Attributes:
        name: what is special about it, for test names.
        inputs: arrays, numbers and None, tensors of a variadic input one by one.
        attrs: all attributes.
        laid_out: it is about how the inputs lie in memory: the attributes say so, the op refuses
            other memory, or the result depends on it.
        convention: why its gradient is not the derivative, if it is not.
        once: why its gradient has no gradient, if it has none.
        refuses: what its backward says, if it has none.
    """

    name: str
    inputs: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    laid_out: bool = False
    convention: str = ""
    once: str = ""
    refuses: str = ""

    def fresh_attrs(self) -> dict[str, Any]:
        """The attributes, generators of random numbers at their start."""
        return {
            k: Generator().manual_seed(SEED) if isinstance(a, Generator) else a
            for k, a in self.attrs.items()
        }


def call(
    name: str,
    *inputs: Any,
    laid_out: Any = False,
    convention: Any = "",
    once: Any = "",
    refuses: Any = "",
    **attrs: Any,
) -> Sample:
    """A sample, written like a call."""
    return Sample(name, inputs, attrs, laid_out, convention, once, refuses)


class Values:
    """Arrays of random numbers, the same ones for the same name."""

    def __init__(self, name: str) -> None:
        self._rng = np.random.default_rng(zlib.crc32(name.encode()))

    def real(self, *shape: int) -> np.ndarray:
        """Any numbers, of size one or so."""
        return self._rng.uniform(-2, 2, shape)

    def complex(self, *shape: int) -> np.ndarray:
        """Of absolute values in [0.5, 2], at any angle that is not near that of -1."""
        angles = self._rng.uniform(-0.9 * np.pi, 0.9 * np.pi, shape)
        return np.asarray(self.positive(*shape) * np.exp(1j * angles))

    def positive(self, *shape: int) -> np.ndarray:
        """In [0.5, 2]."""
        return self._rng.uniform(0.5, 2, shape)

    def nonzero(self, *shape: int) -> np.ndarray:
        """In [0.5, 2], with either sign."""
        return np.asarray(self.positive(*shape) * self._rng.choice([-1.0, 1.0], shape))

    def unit(self, *shape: int) -> np.ndarray:
        """In [-0.9, 0.9]."""
        return self._rng.uniform(-0.9, 0.9, shape)

    def probabilities(self, *shape: int) -> np.ndarray:
        """In [0.1, 0.9]."""
        return self._rng.uniform(0.1, 0.9, shape)

    def above_one(self, *shape: int) -> np.ndarray:
        """In [1.2, 3]."""
        return self._rng.uniform(1.2, 3, shape)

    def off_integers(self, *shape: int) -> np.ndarray:
        """In [-3, 3], at least 0.1 away from integers."""
        return np.asarray(self._rng.integers(-3, 3, shape) + self._rng.uniform(0.1, 0.9, shape))

    def off_kinks(self, *shape: int, start: float = 0.25) -> np.ndarray:
        """Multiples of 1/2 plus `start`, up to a tenth: away from multiples of 1/2."""
        places = self._rng.integers(-8, 8, shape) / 2 + start
        return np.asarray(places + self._rng.uniform(-0.1, 0.1, shape))

    def distinct(self, *shape: int) -> np.ndarray:
        """Any numbers, no two of them near each other (or near zero)."""
        count = int(np.prod(shape))
        places = self._rng.permutation(count).reshape(shape) - (count - 1) // 2
        return np.asarray(places / 4 + 0.1 + self._rng.uniform(-0.05, 0.05, shape))

    def integers(self, below: int, *shape: int) -> np.ndarray:
        """Integers from 0."""
        return np.asarray(self._rng.integers(0, below, shape))

    def mask(self, *shape: int) -> np.ndarray:
        """Bools."""
        return np.asarray(self._rng.random(shape) < 0.5)


DOMAINS: dict[str, Callable[[Values, int, tuple[int, ...]], np.ndarray]] = {
    "real": lambda v, position, shape: v.real(*shape),
    "positive": lambda v, position, shape: v.positive(*shape),
    "nonzero": lambda v, position, shape: v.nonzero(*shape),
    "unit": lambda v, position, shape: v.unit(*shape),
    "above_one": lambda v, position, shape: v.above_one(*shape),
    "off_integers": lambda v, position, shape: v.off_integers(*shape),
    "off_kinks": lambda v, position, shape: v.off_kinks(*shape),
    # Operands next to each other are kept apart.
    "off_ties": lambda v, position, shape: v.off_kinks(*shape, start=0.25 * (position % 2)),
    "integers": lambda v, position, shape: v.integers(6, *shape),
}
"""The values of an operand of an elementwise op: from its domain, position and shape."""

SampleFunction = Callable[[Values], Iterator[Sample]]

_functions: dict[str, SampleFunction] = {}
_complex: set[str] = set()
_variants: dict[str, tuple[dict[str, Any], ...]] = {}


def samples(*names: str) -> Callable[[SampleFunction], SampleFunction]:
    """Decorate the function that yields the samples of the named ops."""

    def register(function: SampleFunction) -> SampleFunction:
        for name in names:
            _claim(name)
            _functions[name] = function
        return function

    return register


def variants(name: str, *attrs: dict[str, Any]) -> None:
    """Say with which attributes the elementwise op `name` is to be called."""
    _claim(name)
    _variants[name] = attrs


def also_complex(*names: str) -> None:
    """Say that these ops take complex numbers too: they get their first sample with such."""
    _complex.update(names)


def _turned(sample: Sample, v: Values) -> Sample:
    """The sample with complex numbers of the same absolute values, at moderate angles."""
    inputs = [
        x * np.exp(1j * v.unit(*x.shape))
        if isinstance(x, np.ndarray) and x.dtype.kind == "f"
        else x
        for x in sample.inputs
    ]
    return replace(sample, name="complex", inputs=tuple(inputs))


def _claim(name: str) -> None:
    if name in _functions or name in _variants:
        raise ValueError(f"op {name} has samples already")


def samples_of(op: Op) -> list[Sample]:
    """All samples of an op; none if nobody has written any."""
    values = Values(op.name)
    name = op.derived_from or op.name
    if name in _functions:
        with np.errstate(all="ignore"):  # some run a forward, which dispatch would silence
            found = list(_functions[name](values))
    elif op.domain in DOMAINS and (op.name in _variants or not _required(op)):
        found = list(_elementwise(op, values, _variants.get(op.name, ({},))))
    else:
        return []
    if op.name in _complex:
        found.append(_turned(found[0], values))
    return [replace(s, attrs={**op.default_attrs, **s.attrs}) for s in found]


def case_id(op: Op, sample: Sample) -> str:
    """What tests call an op's sample."""
    return f"{op.name}-{sample.name.replace(' ', '_')}"


def _required(op: Op) -> list[str]:
    return [name for name in op.attrs if name not in op.default_attrs]


SHAPES = {
    "usual": ((2, 3),) * 3,
    "broadcast": ((2, 3), (3,), (2, 1)),
    "0-d": ((),) * 3,
    "empty": ((0, 3),) * 3,
}


def _elementwise(op: Op, v: Values, choices: tuple[dict[str, Any], ...]) -> Iterator[Sample]:
    """The shapes above with the first choice of attributes, the usual one with the others."""
    draw = DOMAINS[op.domain or ""]
    count = len(op.inputs)
    # A backward is given a gradient of the result's shape, in which nothing is left to broadcast.
    broadcasts = count > 1 and op.inputs[0] != "grad_output"
    for name, shapes in SHAPES.items():
        if name != "broadcast" or broadcasts:
            yield Sample(name, tuple(draw(v, i, shapes[i]) for i in range(count)), choices[0])
    if count == 2 and op.promote and not op.tensors_only:
        yield Sample("number", (draw(v, 0, (2, 3)), draw(v, 1, ()).item()), choices[0])
    for number, attrs in enumerate(choices[1:], 2):
        inputs = tuple(draw(v, i, (2, 3)) for i in range(count))
        yield Sample(f"variant{number}", inputs, attrs)


def in_dtype(sample: Sample, target: dtype) -> Sample:
    """The sample with its floating inputs in another type."""
    cast = [
        x.astype(target.numpy) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
        for x in sample.inputs
    ]
    return replace(sample, inputs=tuple(cast))


def scattered(sample: Sample) -> Sample:
    """The sample with inputs of the same values that are not contiguous."""
    spread = [_scatter(x) if isinstance(x, np.ndarray) else x for x in sample.inputs]
    return replace(sample, inputs=tuple(spread))


def _scatter(x: np.ndarray) -> np.ndarray:
    """Every second element of an array whose dimensions lie in the opposite order."""
    wide = np.zeros((*x.shape[::-1], 2), x.dtype)
    view = wide[..., 0].T
    view[...] = x
    return view


def differentiable(op: Op, sample: Sample) -> list[int]:
    """The positions of the inputs that can require grad and have a rule."""
    last = len(op.inputs) - 1
    names = [op.inputs[min(i, last)] for i in range(len(sample.inputs))]
    return [
        i
        for i, (name, x) in enumerate(zip(names, sample.inputs))
        if name in op.rules and isinstance(x, np.ndarray) and x.dtype.kind in "fcV"
    ]


@cache
def load() -> dict[str, tuple[Op, list[Sample]]]:
    """All ops by name, with their samples."""
    for path in sorted(Path(__file__).parent.glob("samples_*.py")):
        importlib.import_module(f"ops.{path.stem}")
    return {op.name: (op, samples_of(op)) for op in REGISTRY.values()}


def declared_for() -> set[str]:
    """The names that somebody has written samples or variants for."""
    return {*_functions, *_variants}
