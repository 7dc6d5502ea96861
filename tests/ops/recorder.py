"""The third reading of a rule: on symbols, which record every operation as an equation.

A rule may use operators and ``F.<op>``, look at shapes, types and attributes, and nothing else
(Note [Rules] in ``clew/op.py``).  A symbol carries a value, because shapes follow from values here
and not from a rule of their own, but keeps it out of the rule's reach: whatever would look at it
raises `RuleError`, which names the rule.  What is recorded prints as equations and can be replayed
on other arrays of the same shapes.

    >>> print(record(REGISTRY["mul"].rules["self"], [x], [y], {}))
    mul.grad[self](grad, other)
        t0 = mul(grad, other)
        return t0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from clew.namespace import Namespace
from clew.op import REGISTRY, Op, Rule
from clew.quiet import quietly


class RuleError(Exception):
    """A rule did what Note [Rules] forbids."""


class Symbol:
    """A value that a rule computes with, but cannot see."""

    __slots__ = ("_trace", "_value", "name")

    def __init__(self, trace: Trace, name: str, value: np.ndarray) -> None:
        self._trace = trace
        self._value = value
        self.name = name

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return self._value.shape

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return self._value.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._value.ndim

    def __repr__(self) -> str:
        return self.name

    __hash__ = None  # type: ignore[assignment]


def _operator(op_name: str, *, reflected: bool = False) -> Callable[..., Any]:
    def operator(self: Symbol, *others: Any) -> Any:
        operands = (*others, self) if reflected else (self, *others)
        return self._trace.apply(REGISTRY[op_name], operands, REGISTRY[op_name].default_attrs)

    return operator


def _forbidden(what: str) -> Callable[..., Any]:
    def refuse(self: Symbol, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuleError(what)

    return refuse


for _name, _op in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div")):
    setattr(Symbol, f"__{_name}__", _operator(_op))
    setattr(Symbol, f"__r{_name}__", _operator(_op, reflected=True))
    setattr(Symbol, f"__i{_name}__", _forbidden("writes to a value in place"))
for _name in ("neg", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Symbol, f"__{_name}__", _operator(_name))
for _name in ("bool", "int", "float", "complex", "index"):
    setattr(Symbol, f"__{_name}__", _forbidden(f"looks at a value: {_name}()"))
for _name in ("len", "iter", "getitem", "contains", "reversed"):
    setattr(Symbol, f"__{_name}__", _forbidden(f"takes a value apart: __{_name}__"))
for _name in ("array", "array_ufunc", "array_function"):
    setattr(Symbol, f"__{_name}__", _forbidden("gives a value to NumPy"))
for _name in ("setitem", "delitem"):
    setattr(Symbol, f"__{_name}__", _forbidden("writes to a value"))


@dataclass(frozen=True)
class Equation:
    """One operation: names of symbols, or numbers and None, in; names (None for none) out."""

    op: Op
    inputs: tuple[Any, ...]
    attrs: dict[str, Any]
    outputs: tuple[str | None, ...]

    def __str__(self) -> str:
        arguments = [x.name if isinstance(x, _Name) else repr(x) for x in self.inputs]
        arguments += [
            f"{name}={value!r}"
            for name, value in self.attrs.items()
            if name not in self.op.default_attrs or value != self.op.default_attrs[name]
        ]
        return f"{', '.join(map(str, self.outputs))} = {self.op.name}({', '.join(arguments)})"


@dataclass(frozen=True)
class _Name:
    """An input of an equation that is a symbol."""

    name: str


@dataclass
class Trace:
    """What a rule did.

    Attributes:
        title: the rule's name.
        arguments: the names of the values it was given.
        equations: what it computed.
        results: the names of what it returned, None for None.
    """

    title: str
    arguments: list[str] = field(default_factory=list)
    equations: list[Equation] = field(default_factory=list)
    results: list[str | None] = field(default_factory=list)
    _count: int = 0

    @property
    def namespace(self) -> Namespace:
        """Every op as a function of symbols: the ``F`` of a rule."""
        return Namespace(self._function)

    def argument(self, name: str, value: Any) -> Any:
        """The symbol of an array, a tuple of them for several; anything else as it is."""
        if isinstance(value, tuple) and any(isinstance(v, np.ndarray) for v in value):
            return tuple(self.argument(f"{name}{i}", v) for i, v in enumerate(value))
        if not isinstance(value, np.ndarray):
            return value
        self.arguments.append(name)
        return Symbol(self, name, value)

    def apply(self, op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """Record an operation; a symbol, or a tuple of them."""
        for name, attr in attrs.items():
            _check_attribute(op, name, attr)
        values = [_value_of(op, x) for x in inputs]
        if op.promotion is not None:
            values = op.promotion(values)
        found = quietly(op.forward, values, attrs)
        results = found if isinstance(found, tuple) else (found,)
        symbols = [None if r is None else self._result(r) for r in results]
        names = tuple([None if x is None else x.name for x in symbols])
        kept = tuple([_Name(x.name) if isinstance(x, Symbol) else x for x in inputs])
        self.equations.append(Equation(op, kept, attrs, names))
        return tuple(symbols) if isinstance(found, tuple) else symbols[0]

    def replay(self, values: dict[str, np.ndarray]) -> list[Any]:
        """The results for other values of the arguments."""
        known = dict(values)
        for equation in self.equations:
            op = equation.op
            inputs = [known[x.name] if isinstance(x, _Name) else x for x in equation.inputs]
            if op.promotion is not None:
                inputs = op.promotion(inputs)
            found = quietly(op.forward, inputs, equation.attrs)
            results = found if isinstance(found, tuple) else (found,)
            for name, result in zip(equation.outputs, results, strict=True):
                if name is not None:
                    known[name] = np.asarray(result)
        return [None if name is None else known[name] for name in self.results]

    def _function(self, op: Op) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.apply(op, *op.bind(args, kwargs))

    def _result(self, value: Any) -> Symbol:
        self._count += 1
        return Symbol(self, f"t{self._count - 1}", np.asarray(value))

    def __str__(self) -> str:
        lines = [f"{self.title}({', '.join(self.arguments)})"]
        lines += [f"    {equation}" for equation in self.equations]
        return "\n".join([*lines, f"    return {', '.join(map(str, self.results))}"])


def _value_of(op: Op, x: Any) -> Any:
    if isinstance(x, Symbol):
        return x._value
    if x is None or isinstance(x, (bool, int, float, complex)):
        return x
    raise RuleError(f"gives op {op.name} a value of its own: {type(x).__name__}")


def _check_attribute(op: Op, name: str, attr: Any) -> None:
    if isinstance(attr, (tuple, list)):
        for part in attr:
            _check_attribute(op, name, part)
    elif isinstance(attr, (Symbol, np.ndarray, np.generic)):
        raise RuleError(f"gives op {op.name} a value as its attribute {name!r}")


def record(
    rule: Rule,
    grads: Sequence[np.ndarray | None],
    saved: Sequence[Any],
    attrs: dict[str, Any],
    need: Sequence[bool] | None = None,
) -> Trace:
    """Run a rule on symbols.

    Args:
        rule: the rule.
        grads: the gradients of the outputs.
        saved: the values of ``rule.names``.
        attrs: those of ``rule.attrs``.
        need: for a joint rule, which gradients are asked for.

    Raises:
        RuleError: the rule does what it must not do, or fails.
    """
    title = rule.function.__name__
    trace = Trace(title)
    if rule.all_grads:
        incoming: Any = [trace.argument(f"grad{i}", g) for i, g in enumerate(grads)]
    else:
        incoming = trace.argument("grad", grads[0])
    arguments = [trace.argument(name, value) for name, value in zip(rule.names, saved)]
    named = {**attrs, "need": list(need)} if need is not None else attrs
    try:
        found = rule.function(trace.namespace, incoming, *arguments, **named)
        for result in found if rule.joint else (found,):
            if not (result is None or isinstance(result, Symbol)):
                raise RuleError(f"returns a {type(result).__name__}")
            trace.results.append(None if result is None else result.name)
    except Exception as error:
        raise RuleError(f"{title}: {error}") from error
    return trace
