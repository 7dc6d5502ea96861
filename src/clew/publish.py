"""From declarations to ``clew.exp``, ``Tensor.exp``, ``Tensor.exp_`` and ``x + y``.

Layer 4.  Ops say in their declaration where they are published; functions composed of ops say it
with the decorator `composite`.  `install` puts both on the Tensor class and returns the functions
for ``clew/__init__.py``.

Note [Overloads]
    Where PyTorch has one name for several ops (``max``), the ops have names of their own, publish
    nothing, and a composite function of the public name chooses among them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from clew.autograd.modes import state
from clew.dispatch import OperandError, apply, apply_inplace
from clew.errors import OtherLayout
from clew.op import KEYWORD_ALIASES, NO_ATTRS, REGISTRY, Op
from clew.outputs import refuse_recorded, write_out
from clew.tensor import Tensor

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Everything published as ``clew.<name>``."""

METHODS: dict[str, Callable[..., Any]] = {}
"""Everything published as ``Tensor.<name>``."""


def composite(
    *,
    function: bool = True,
    method: bool = True,
    aliases: tuple[str, ...] = (),
    name: str = "",
    out: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Publish a Python function of ops under its own name (or `name`).

    As in PyTorch, ``input=`` is another name of the first argument, ``axis=`` of ``dim=``, and so
    on; with `out` the published function takes ``out=`` too.
    """

    def declare(f: Callable[..., Any]) -> Callable[..., Any]:
        names = _other_names(f)
        published = _taking_names(f, names, out) if names or out else f
        of_method = {alias: n for alias, n in names.items() if n != "self"}
        bound = _taking_names(f, of_method, False) if of_method else f
        for public in (name or f.__name__, *aliases):
            if function:
                FUNCTIONS[public] = published
            if method:
                METHODS[public] = bound
        return f

    return declare


def taking_other_names(f: Callable[..., Any], *, out: bool = False) -> Callable[..., Any]:
    """Decorate a function of a submodule: it takes ``axis=`` for ``dim=`` and so on too.

    With `out`, it takes ``out=``.
    """
    return _taking_names(f, _other_names(f), out)


def _other_names(f: Callable[..., Any]) -> dict[str, str]:
    """The names that PyTorch takes for parameters of `f` besides their own."""
    code = inspect.unwrap(f).__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {
        alias: name
        for alias, name in KEYWORD_ALIASES.items()
        if name in parameters and alias not in parameters
    }


_SHOWN = ("__module__", "__name__", "__qualname__", "__doc__")
"""What a published function has of the one that it calls.  Annotations are found by way of that:
to copy them Python would have to make a dict of each."""


def _taking_names(f: Callable[..., Any], names: dict[str, str], out: bool) -> Callable[..., Any]:
    @functools.wraps(f, _SHOWN)
    def function(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            try:
                return f(*args)
            except OtherLayout as error:
                return _of_sparse(f.__name__, args, error)
        target = kwargs.pop("out", None) if out else None
        for alias in names.keys() & kwargs.keys():
            kwargs[names[alias]] = kwargs.pop(alias)
        if target is None:
            return f(*args, **kwargs)
        inputs = (*args, *kwargs.values())
        refuse_recorded(target, f.__name__, inputs)
        return write_out(target, f(*args, **kwargs), f.__name__, inputs)

    return function


def _of_sparse(name: str, args: tuple[Any, ...], error: OtherLayout) -> Any:
    """What the function makes of sparse tensors, if it makes anything of them."""
    from clew.sparse.operations import TABLE, run

    if name not in TABLE:
        raise error
    return run(name, args, {})


def _to(out: Any, op: Op, inputs: Any, attrs: dict[str, Any] = NO_ATTRS) -> Any:
    """Run an op and put its result into ``out=``."""
    refuse_recorded(out, op.label, inputs if op.rules else ())
    return write_out(out, apply(op, inputs, attrs), op.label, inputs)


def _function_of(op: Op) -> Callable[..., Any]:
    """The public function of an op."""
    if not op.attrs and not op.variadic_input and len(op.inputs) <= 2:
        fast: Callable[..., Any] = _unary(op) if len(op.inputs) == 1 else _binary(op)
    else:

        def fast(*args: Any, **kwargs: Any) -> Any:
            out = kwargs.pop("out", None)
            inputs, attrs = op.bind(args, kwargs)
            return apply(op, inputs, attrs) if out is None else _to(out, op, inputs, attrs)

    return _documented(fast, op, op.name)


def _unary(op: Op) -> Callable[..., Any]:
    def function(self: Any = None, **kwargs: Any) -> Any:
        if kwargs:
            out = kwargs.pop("out", None)
            inputs, attrs = op.bind(() if self is None else (self,), kwargs)
            return apply(op, inputs, attrs) if out is None else _to(out, op, inputs, attrs)
        if not isinstance(self, Tensor):
            raise _not_a_tensor(op, self)
        return apply(op, (self,))

    return function


def _binary(op: Op) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None) if kwargs else None
        inputs = args if len(args) == 2 and not kwargs else op.bind(args, kwargs)[0]
        if not (
            isinstance(inputs[0], Tensor) or (op.number_first and isinstance(inputs[1], Tensor))
        ):
            raise _not_a_tensor(op, inputs[0])
        return apply(op, inputs) if out is None else _to(out, op, inputs)

    return function


def _inplace_of(op: Op) -> Callable[..., Any]:
    """The in-place twin of an op, a method."""

    recorded = REGISTRY[op.inplace] if isinstance(op.inplace, str) else op

    def function(self: Any, *args: Any, **kwargs: Any) -> Any:
        inputs, attrs = op.bind((self, *args), kwargs)
        return apply_inplace(recorded, self, inputs[1:], attrs)

    return _documented(function, op, op.name + "_")


def _documented(function: Any, op: Op, name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = op.doc
    function.__signature__ = _Signature.of(op)
    return function


class _Signature(inspect.Signature):
    """The signature of an op's function, worked out when somebody looks at it, which few do."""

    __slots__ = ("_op",)

    _op: Op

    @classmethod
    def of(cls, op: Op) -> _Signature:
        """The signature of `op`."""
        signature = cls.__new__(cls)
        signature._op = op
        return signature

    def __getattr__(self, name: str) -> Any:
        """What `inspect.Signature` keeps, before it is there."""
        if name not in inspect.Signature.__slots__:
            raise AttributeError(name)
        try:
            self.__init__(_parameters(self._op))  # type: ignore[misc]
        except ValueError:  # a default before a parameter without one cannot be shown
            self.__init__(_ANYTHING)  # type: ignore[misc]
        return getattr(self, name)


_ANYTHING = (
    inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
    inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
)


def _parameters(op: Op) -> list[inspect.Parameter]:
    parameters = [
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=d)
        for n, d in op.input_defaults.items()
    ]
    parameters += [
        inspect.Parameter(
            n,
            inspect.Parameter.KEYWORD_ONLY if n in op.keyword_only
            else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=op.default_attrs.get(n, inspect.Parameter.empty),
        )
        for n in op.attrs if n != op.variadic_attr
    ]  # fmt: skip
    if op.order:
        place = {name: i for i, name in enumerate(op.order)}
        parameters.sort(key=lambda p: place.get(p.name, len(place)))
    return parameters


def _not_a_tensor(op: Op, value: Any) -> TypeError:
    name = "input" if op.inputs[0] == "self" else op.inputs[0]
    return TypeError(
        f"{op.name}(): argument '{name}' (position 1) must be Tensor, not {type(value).__name__}"
    )


# -- operators


def _operator(op: Op, *, reflected: bool = False) -> Callable[[Any, Any], Any]:
    attrs = op.default_attrs
    if reflected:

        def operator(self: Any, other: Any) -> Any:
            try:
                return apply(op, (other, self), attrs)
            except OperandError:
                return NotImplemented

    else:

        def operator(self: Any, other: Any) -> Any:
            try:
                return apply(op, (self, other), attrs)
            except OperandError:
                return NotImplemented

    return operator


def _reflected_division(self: Any, other: Any) -> Any:
    if state.now.in_rules:  # in C++ it is a quotient
        return apply(REGISTRY["div"], (other, self))
    try:
        return apply(REGISTRY["mul"], (apply(REGISTRY["reciprocal"], (self,)), other))
    except OperandError:
        return NotImplemented


def _equal(self: Any, other: Any) -> Any:
    """``==``, which as in PyTorch takes arrays too, other than the other operators."""
    if other.__class__ is np.ndarray:
        other = Tensor._from_array(other)
    try:
        return apply(REGISTRY["eq"], (self, other))
    except OperandError:
        return NotImplemented


def _inplace_operator(op: Op) -> Callable[[Any, Any], Any]:
    attrs = op.default_attrs

    def operator(self: Any, other: Any) -> Any:
        try:
            return apply_inplace(op, self, (other,), attrs)
        except OperandError:
            return NotImplemented

    return operator


_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "mod": "remainder",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
# The in-place methods that PyTorch has as functions too (``torch.exp_(x)``).
_INPLACE_FUNCTIONS = """
abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_
atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_
erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_
log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ resize_as_ round_ rsqrt_
sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_
"""
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _install_operators() -> None:
    for python_name, op_name in _OPERATORS.items():
        op = REGISTRY[op_name]
        setattr(Tensor, f"__{python_name}__", _operator(op))
        setattr(Tensor, f"__r{python_name}__", _operator(op, reflected=True))
        setattr(Tensor, f"__i{python_name}__", _inplace_operator(op))
    # What PyTorch makes of a number before an operator: an op of its own, the operands swapped, or
    # a product with the reciprocal, which is rounded twice.
    for python_name, op_name in (("sub", "rsub"), ("add", "add"), ("mul", "mul")):
        setattr(Tensor, f"__r{python_name}__", _operator(REGISTRY[op_name]))
    for name in ("__rtruediv__", "__rdiv__"):
        setattr(Tensor, name, _reflected_division)
    for name in _COMPARISONS:
        setattr(Tensor, f"__{name}__", _operator(REGISTRY[name]))


def published_in(module: str) -> dict[str, Callable[..., Any]]:
    """The functions of the ops that are published in a submodule, by their names there.

    An op named ``special_i0e`` stands in ``clew.special`` as ``i0e``.
    """
    prefix = module + "_"
    return {
        op.name.removeprefix(prefix): _function_of(op)
        for op in REGISTRY.values()
        if module in op.publish
    }


def install() -> dict[str, Callable[..., Any]]:
    """Publish everything; the functions, by name."""
    for op in REGISTRY.values():
        names = (op.name, *op.aliases)
        if op.publish:
            function = _function_of(op)
            for name in names:
                if "function" in op.publish:
                    FUNCTIONS.setdefault(name, function)
                if "method" in op.publish:
                    METHODS.setdefault(name, function)
        if op.inplace and op.label == op.name:
            inplace = _inplace_of(op)
            for name in names:
                METHODS.setdefault(name + "_", inplace)
    for name, method in METHODS.items():
        setattr(Tensor, name, method)
    for name in _INPLACE_FUNCTIONS.split():
        if hasattr(Tensor, name):
            FUNCTIONS.setdefault(name, getattr(Tensor, name))
    _install_operators()
    setattr(Tensor, "__eq__", _equal)  # noqa: B010
    # Installing __eq__ has taken it away.
    setattr(Tensor, "__hash__", object.__hash__)  # noqa: B010
    return FUNCTIONS
