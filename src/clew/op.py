"""The `Op` record and its registry: what one declaration of an operation says.

Layer 2: imports nothing of clew above layer 1.  Declarations stand in ``clew/ops``; Tensor
methods, functions, in-place twins, graph nodes, docs and generated tests follow from them.

A declaration is a signature, a forward on NumPy arrays, and a rule per differentiable input::

    mul = op("mul(self, other)", np.multiply, promote="arithmetic", inplace=True,
             self=lambda F, grad, other: grad * other,
             other=lambda F, grad, self: grad * self)

Note [Signatures]
    ``name(inputs; attributes) -> outputs``.  Inputs are tensors (Python numbers and, with a
    default, None are allowed); a last input ``*tensors`` takes any number.  Attributes are plain
    values, passed to the forward and to the rules by keyword; after a bare ``*`` users too must
    give them by keyword; a last attribute ``*dims`` takes ``f(x, 1, 2)`` and ``f(x, (1, 2))``.
    Outputs are named when there is more than one.

Note [Save contract]
    The parameter names of a rule say what the graph keeps: an input's name, an output's name
    (``result`` where there is one), ``<input>_shape``, ``<input>_dtype``, ``<input>_strides`` (in
    elements).  What no rule of an input that requires grad names is not kept.  Some rules name
    what they do not read, because PyTorch keeps it: then the same writes in place are errors.
    Keyword-only parameters are attributes; ``need`` tells a rule of several inputs which
    gradients are asked for.

Note [Rules]
    A rule is called as ``rule(F, grad, *saved, **attributes)`` and returns the gradient or None.
    ``F`` is a namespace with every op as a function: of raw arrays (first order), of Tensors
    (``create_graph``), or of a recorder's symbols.  So a rule uses operators and ``F.<op>`` only,
    branches on shapes and attributes and never on values, and mutates nothing.  It neither undoes
    broadcasting nor casts: the engine does both, in one place.  ``grads`` instead of ``grad``
    asks for the gradients of all outputs, None where there is none.

Note [Domains]
    The generated tests (``tests/ops/``) compare derivatives with finite differences, so they take
    values where an op is smooth.  An elementwise op says which, and needs to say no more:
    "real"; "positive"; "nonzero"; "unit", in (-1, 1); "above_one"; "off_integers"; "off_kinks",
    away from the multiples of 1/2; "off_ties", "off_kinks" where operands differ by such values
    too; "integers", for ops of bits.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from clew.ahead import frames
from clew.packing import Packing
from clew.promotion import RULES, Refusal
from clew.signature import REQUIRED as REQUIRED
from clew.signature import Signature, parse_signature

NO_ATTRS: dict[str, Any] = {}
"""The attributes of a call that has none.  Shared: never written to."""

KEYWORD_ALIASES = {"input": "self", "axis": "dim", "keepdims": "keepdim", "x": "self"}
"""The names that PyTorch takes for parameters besides their own."""


class Rule:
    """The derivative with respect to one input, or to several at once (a joint rule)."""

    __slots__ = ("all_grads", "attrs", "function", "joint", "names", "targets")

    def __init__(
        self, function: Callable[..., Any], targets: tuple[str, ...], op_name: str
    ) -> None:
        # inspect.signature would take a fifth of the time of `import clew`.
        code = function.__code__
        positional = code.co_varnames[: code.co_argcount]
        keyword_only = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
        self.function = function
        self.targets = targets
        self.joint = "need" in keyword_only
        self.all_grads = positional[1] == "grads"
        self.names = tuple(positional[2:])
        self.attrs = tuple(n for n in keyword_only if n != "need")
        function.__name__ = f"{op_name}.grad[{','.join(targets)}]"
        function.__qualname__ = function.__name__


class Overload(NamedTuple):
    """Another node that PyTorch records for some calls of an op; see `of_number` and `given`.

    Attributes:
        node: its name.
        when: ``when(op, inputs, attrs)`` says for which calls.
        without: the input that it has no edge for, or "".
    """

    node: str
    when: Callable[[Op, Sequence[Any], dict[str, Any]], bool]
    without: str = ""


def of_number(name: str, node: str) -> Overload:
    """The overload for calls whose input `name` is a number, and so has no edge."""

    def when(op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> bool:
        return isinstance(inputs[op.inputs.index(name)], (bool, int, float, complex))

    return Overload(node, when, name)


def given(name: str, node: str, value: Callable[[Any], bool] = bool) -> Overload:
    """The overload for calls whose attribute `name` is given (and `value` holds for it)."""
    return Overload(node, lambda op, inputs, attrs: value(attrs[name]))


class Op:
    """One operation: its signature, forward, rules and how it is published.

    Attributes:
        forward: arrays and attributes in, array (or tuple of arrays) out.
        label: the name that users know it by, where that is another.
        mixes: it is elementwise and has several operands, which may lie differently in memory.
        module: the name of the module that declares it.
        aliases: other names for it.
        promote: how the operands' types are brought together, a key of `RULES`, or None.
        view: the result shares the first input's memory.
        tensors_only: no input may be a number.
        number_first: the first of two inputs may be a number, as in ``remainder(2, x)``.
        node_name: the name of its graph nodes, PyTorch's where it has one.
        no_grad_outputs: indices of outputs that never require grad (integer results).
        graded: how many outputs a node of it has, where some never require grad; else None.
        order: the parameters by position, as in ``"self, dim, index"``, if that isn't inputs first.
        publish: any of "function", "method", "special" (a submodule); empty for internal ops.
        inplace: whether it has an in-place twin, ``name_``; or the op that the twin records.
        packings: by name, how less is kept of what a rule names (Note [Packings], ``packing.py``).
        write: what the twin does to the first array, where that is cheaper than `forward` and a
            copy; called like `forward`, it must refuse before it changes.
        large: called instead of `forward` for large arrays, most often a `Shared` (``kernels/``);
            the in-place twin gives it the array to write to as ``out``.
        jvp: how tangents go through it, see Note [Forward rules] in ``autograd/forward_rules.py``.
        derived_from: the name of the op that this one was derived from, if it was.
        overloads: (when, op) pairs, of `Overload`: what a call is recorded as instead.
        in_place: what its in-place twin records, where that is another node (``inplace_node=``) or
            the twin alone is recorded (``inplace_rules=``); else None.
        in_rules: what a call with a number is in a rule, or None; see Note [Numbers in rules].
        without: the input that an overload has no edge for, or "".
        domain: for an elementwise op the values that its generated tests take (Note [Domains]);
            other ops have sample calls in ``tests/ops/``.
    """

    __slots__ = (
        "aliases", "attr_names", "attrs", "default_attrs", "derived_from", "doc", "domain",
        "forward", "graded", "in_place", "in_rules", "inplace", "input_defaults", "inputs", "jvp",
        "keyword_only", "label", "large", "mixes", "module", "most_plain", "name",
        "no_grad_outputs", "node_class", "node_name", "number_first", "order", "outputs",
        "overloads", "packings", "plain_count", "plans", "promote", "promotion", "publish",
        "rules", "tensors_only", "variadic_attr", "variadic_input", "view", "without", "write",
    )  # fmt: skip

    in_place: Op | None
    in_rules: Op | None
    overloads: tuple[tuple[Any, Op], ...]

    def __init__(
        self, signature: Signature, forward: Callable[..., Any], options: dict[str, Any]
    ) -> None:
        self.name = signature.name
        self.inputs = tuple(signature.inputs)
        self.input_defaults = signature.inputs
        self.attrs = tuple(signature.attrs)
        self.default_attrs = {k: v for k, v in signature.attrs.items() if v is not REQUIRED}
        self.attr_names = signature.attrs.keys()
        self.plain_count = -1 if signature.variadic_input else len(self.inputs)
        # How many arguments may be given by position, where none is variadic.
        plain = [name for name in self.attrs if name not in signature.keyword_only]
        variadic = signature.variadic_input or signature.variadic_attr
        self.most_plain = -1 if variadic else len(self.inputs) + len(plain)
        self.keyword_only = signature.keyword_only
        self.variadic_input = signature.variadic_input
        self.variadic_attr = signature.variadic_attr
        self.outputs = signature.outputs
        self.forward = forward
        self.rules: dict[str, Rule] = {}
        self.plans: dict[Any, Any] = {}
        self.node_class: Any = None
        self.derived_from = ""
        self.label: str = options.pop("label", self.name)
        self.module: str = options.pop("module", "")
        self.view: bool = options.pop("view", False)
        self.promote: str | None = options.pop("promote", None)
        self.promotion = _promotion(self.promote, options.pop("complex", None))
        self.tensors_only: bool = options.pop("tensors_only", False)
        self.number_first: bool = options.pop("number_first", False)
        if options.pop("gaps", False):
            self.input_defaults[self.inputs[-1]] = None
        self.node_name: str = options.pop("node", None) or _node_name(self.name)
        self.no_grad_outputs: tuple[int, ...] = options.pop("no_grad_outputs", ())
        graded = [i + 1 for i in range(len(self.outputs)) if i not in self.no_grad_outputs]
        self.graded = graded[-1] if self.outputs[1:] else None
        self.order: tuple[str, ...] = _split(options.pop("order", ""))
        self.publish: tuple[str, ...] = options.pop("publish", ("function", "method"))
        self.inplace: bool | str = options.pop("inplace", False)
        self.write: Callable[..., Any] | None = options.pop("write", None)
        self.large: Callable[..., Any] | None = options.pop("large", None)
        self.packings: dict[str, Packing] = options.pop("packings", NO_ATTRS)
        self.aliases: tuple[str, ...] = options.pop("aliases", ())
        self.domain: str | None = options.pop("domain", None)
        self.mixes = options.pop("mixes", bool(self.inputs[1:] and (self.domain or self.promote)))
        self.jvp: Any = options.pop("jvp", "elementwise" if self.domain else "twice")
        self.without = ""
        overloads, in_rules = options.pop("overloads", ()), options.pop("in_rules", "")
        in_place, rules_in_place = options.pop("inplace_node", ""), options.pop("inplace_rules", {})
        self.doc: str = options.pop("doc", None) or forward.__doc__ or ""
        for targets, function in options.items():
            self._add_rule((targets,), function)
        self.in_place, self.in_rules, self.overloads = None, None, ()
        self.overloads = tuple([(o.when, self._recorded_as(o.node, o.without)) for o in overloads])
        if in_rules:
            self.in_rules = self._recorded_as(in_rules, self.inputs[-1])
        if in_place or rules_in_place:
            self.in_place = self._recorded_as(in_place or self.node_name)
            if rules_in_place:
                self.in_place._take_rules(rules_in_place, overloads)

    def __copy__(self) -> Op:
        """A copy; that of `copy` itself, for any object, takes twice as long."""
        other = Op.__new__(Op)
        for name in Op.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    def _recorded_as(self, node_name: str, without: str = "") -> Op:
        """This op under another node's name, with no edge for the input `without`."""
        other = copy.copy(self)
        other.node_name, other.node_class, other.without = node_name, None, without
        other.plans, other.overloads, other.in_place, other.in_rules = {}, (), None, None
        return other

    def _take_rules(self, rules: dict[str, Callable[..., Any]], overloads: Any) -> None:
        self.rules = {}
        for target, function in rules.items():
            self._add_rule((target,), function)
        self.overloads = tuple([(o.when, self._recorded_as(o.node, o.without)) for o in overloads])

    def recorded(self, inputs: Sequence[Any], attrs: dict[str, Any]) -> Op:
        """What a call is recorded as: this op or one of its overloads."""
        return next((other for when, other in self.overloads if when(self, inputs, attrs)), self)

    def _add_rule(self, targets: tuple[str, ...], function: Callable[..., Any]) -> None:
        unknown = [t for t in targets if t not in self.inputs]
        if unknown:
            raise ValueError(f"op {self.name} has no input or option named {unknown[0]!r}")
        rule = Rule(function, targets, self.name)
        for target in targets:
            self.rules[target] = rule

    def grad(self, *targets: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate the rule of the named inputs."""

        def declare(function: Callable[..., Any]) -> Callable[..., Any]:
            self._add_rule(targets, function)
            return function

        return declare

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Sort a user's arguments into inputs and attributes.

        Raises:
            TypeError: an argument is missing, unknown, or given twice.
        """
        if self.order:
            return self._bind_ordered(args, kwargs)
        rest: Sequence[Any] = ()
        if self.variadic_input:
            inputs, rest = _unpack_variadic(self, tuple(args))
        elif len(args) == self.plain_count:
            inputs = tuple(args)
        else:
            count = len(self.inputs)
            inputs, rest = tuple(args[:count]), args[count:]
        complete = self.variadic_input or len(inputs) == len(self.inputs)
        if complete and not rest:
            if not kwargs and len(self.default_attrs) == len(self.attrs):
                return inputs, self.default_attrs
            if not self.variadic_attr:
                attrs = {**self.default_attrs, **kwargs}
                if attrs.keys() == self.attr_names:
                    return inputs, attrs
        if self.variadic_attr and rest and not kwargs and len(self.attrs) == 1:
            return inputs, {self.variadic_attr: _as_one(rest)}
        attrs = dict(self.default_attrs)
        if rest and not kwargs and len(args) <= self.most_plain:
            attrs.update(zip(self.attrs, rest))
            if len(attrs) == len(self.attrs):
                return inputs, attrs
        self._bind_positional(rest, attrs)
        inputs = self._bind_keywords(inputs, kwargs, attrs, taken=len(rest))
        for name in self.attrs:
            if name not in attrs:
                if name == self.variadic_attr:
                    attrs[name] = ()
                    continue
                raise self._missing(name)
        return inputs, attrs

    def _bind_ordered(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """`bind` for an op with an `order`."""
        if len(args) > len(self.order):
            raise TypeError(
                f"{self.name}() takes {len(self.order)} positional arguments but {len(args)} were "
                "given"
            )
        named = dict(zip(self.order, args))
        for key, value in kwargs.items():
            known = key in self.inputs or key in self.attrs
            name = key if known else KEYWORD_ALIASES.get(key, key)
            if name in named:
                raise TypeError(f"{self.name}() got multiple values for argument '{key}'")
            named[name] = value
        inputs: list[Any] = []
        for name, default in self.input_defaults.items():
            value = named.pop(name, default)
            if value is REQUIRED:
                raise self._missing(name)
            if self.variadic_input and name == self.inputs[-1]:
                inputs += _tensors(self, name, value)
            else:
                inputs.append(value)
        attrs = {**self.default_attrs, **named}
        for name in self.attrs:
            if name not in attrs:
                raise self._missing(name)
        if len(attrs) > len(self.attrs):
            unknown = next(name for name in named if name not in self.attrs)
            raise TypeError(f"{self.name}() got an unexpected keyword argument '{unknown}'")
        return tuple(inputs), attrs

    def _bind_positional(self, rest: Sequence[Any], attrs: dict[str, Any]) -> None:
        for index, name in enumerate(self.attrs):
            if index >= len(rest):
                return
            if name == self.variadic_attr:
                attrs[name] = _as_one(rest[index:])
                return
            if name in self.keyword_only:
                break
            attrs[name] = rest[index]
        if len(rest) > len(self.attrs) - len(self.keyword_only):
            most = len(self.inputs) + len(self.attrs) - len(self.keyword_only)
            given = len(self.inputs) + len(rest)
            raise TypeError(
                f"{self.name}() takes {most} positional arguments but {given} were given"
            )

    def _bind_keywords(
        self, inputs: Any, kwargs: dict[str, Any], attrs: dict[str, Any], taken: int
    ) -> Any:
        named: dict[str, Any] = {}
        for key, value in kwargs.items():
            name = key
            if name not in self.attrs and name not in self.inputs:
                name = KEYWORD_ALIASES.get(key, key)
            if name in self.attrs:
                if name in self.attrs[:taken]:
                    raise TypeError(f"{self.name}() got multiple values for argument '{key}'")
                attrs[name] = tuple(value) if name == self.variadic_attr else value
            elif name in self.inputs:
                named[name] = value
            else:
                raise TypeError(f"{self.name}() got an unexpected keyword argument '{key}'")
        if self.variadic_input:
            return tuple(named[self.inputs[-1]]) if named else inputs
        return self._complete_inputs(inputs, named)

    def _complete_inputs(self, inputs: Any, named: dict[str, Any]) -> tuple[Any, ...]:
        complete = list(inputs)
        for name in self.inputs[len(complete) :]:
            value = named.pop(name, self.input_defaults[name])
            if value is REQUIRED:
                raise self._missing(name)
            complete.append(value)
        if named:
            name = next(iter(named))
            raise TypeError(f"{self.name}() got multiple values for argument '{name}'")
        return tuple(complete)

    def _missing(self, name: str) -> TypeError:
        return TypeError(f'{self.name}() missing 1 required positional arguments: "{name}"')

    def __repr__(self) -> str:
        return f"<op {self.name}({', '.join(self.inputs)})>"


def _unpack_variadic(op: Op, args: Sequence[Any]) -> tuple[tuple[Any, ...], Sequence[Any]]:
    """``f([a, b], dim)``: flatten the sequence of tensors into the inputs."""
    before = len(op.inputs) - 1
    if len(args) <= before:
        return tuple(args), ()
    tensors = _tensors(op, op.inputs[-1], args[before])
    return (*args[:before], *tensors), args[before + 1 :]


def _as_one(values: Sequence[Any]) -> tuple[Any, ...]:
    """What a variadic attribute is, of ``f(x, 1, 2)`` and ``f(x, (1, 2))``."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return tuple(values[0])
    return tuple(values)


def _tensors(op: Op, name: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, (tuple, list)):
        position = (op.order or op.inputs).index(name) + 1
        raise TypeError(
            f"{op.name}(): argument '{name}' (position {position}) must be tuple of Tensors, not "
            f"{type(value).__name__}"
        )
    return value


def _promotion(promote: str | None, refusal: Refusal | None) -> Any:
    rule = RULES[promote] if promote else None
    return rule if refusal is None else refusal.after(rule)


def _split(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",")) if names else ()


def _node_name(op_name: str) -> str:
    """``log_softmax`` -> ``LogSoftmaxBackward0``."""
    return "".join(part[:1].upper() + part[1:] for part in op_name.split("_")) + "Backward0"


REGISTRY: dict[str, Op] = {}


def op(signature: str, forward: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Declare an op; without a `forward`, a decorator for it.

    Options are attributes of `Op`, except four kinds: ``node`` is its `node_name`; with ``gaps``
    None may stand among the tensors of the last input; ``complex`` is the `Refusal` of complex
    numbers, for a binary op; any other is the rule of the input of that name.
    """

    options["module"] = sys._getframe(frames(1)).f_globals["__name__"]

    def declare(function: Callable[..., Any]) -> Op:
        declared = Op(parse_signature(signature), function, dict(options))
        if declared.name in REGISTRY:
            raise ValueError(f"op {declared.name} is declared twice")
        REGISTRY[declared.name] = declared
        return declared

    return declare if forward is None else declare(forward)


def derive(original: Op, name: str, forward: Callable[..., Any], **changes: Any) -> Op:
    """Declare an op that is `original` but for its name, its forward and some attributes.

    Its tests take the samples of the original.
    """
    derived = copy.copy(original)
    derived.name = derived.label = name
    derived.forward = forward
    derived.derived_from = original.name
    derived.plans, derived.node_class = {}, None
    for attribute, value in changes.items():
        setattr(derived, attribute, value)
    REGISTRY[name] = derived
    return derived
