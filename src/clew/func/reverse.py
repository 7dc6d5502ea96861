"""Reverse-mode transforms: `grad`, `grad_and_value`, `vjp`, `jacrev`.

They take a function and return a function, nest in one another and in `vmap`, and leave no trace:
no ``requires_grad``, no ``grad``.  `level.py` says how.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from clew.autograd.graph import disable_saved_tensors_hooks
from clew.autograd.modes import state
from clew.dispatch import TENSORS
from clew.func.level import GradLevel
from clew.func.mapping import chunk_sizes, vmap
from clew.tensor import Size, Tensor
from clew.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten, treespec_pprint

_NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an "
    "issue with your use case."
)

Argnums = int | tuple[int, ...]


# -- arguments


def _checked_argnum(argnum: Any, count: int) -> int:
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def _positions(argnums: Any, count: int) -> list[int]:
    """The positions of the arguments to differentiate.

    Raises:
        RuntimeError: `argnums` is no int and no tuple of different ints, or names no argument.
    """
    if isinstance(argnums, int):
        return [_checked_argnum(argnums, count)]
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    found = [_checked_argnum(n, count) for n in argnums]
    if not found:
        raise RuntimeError("argnums must be non-empty")
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def slice_argnums(args: Sequence[Any], argnums: Any) -> Any:
    """The arguments to differentiate: one, or a tuple of them."""
    found = tuple(args[i] for i in _positions(argnums, len(args)))
    return found[0] if isinstance(argnums, int) else found


def _as_inputs(level: GradLevel, args: tuple[Any, ...], positions: Any) -> tuple[Any, ...]:
    """The arguments as the function gets them; those at `positions` are to be differentiated."""

    def plain(x: Any) -> Any:
        return level.input(x, False) if isinstance(x, Tensor) else x

    def leaf(x: Any) -> Any:
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        if x._array.dtype.kind not in "fcV":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        return level.input(x, True)

    return tuple(tree_map(leaf if i in positions else plain, x) for i, x in enumerate(args))


def _outside(level: GradLevel, tree: Any) -> Any:
    record = level.grad_enabled
    return tree_map(lambda x: level.output(x, record), tree)


# -- gradients of one number


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `func` and its value.

    Args:
        func: returns a tensor of one number (or, with `has_aux`, that and something else).
        argnums: which arguments to differentiate: one, or a tuple of several; each may be a
            nested container of tensors.
        has_aux: `func` returns ``(value, aux)``, of which `aux` is passed on.

    Returns:
        A function that returns ``(gradient, value)``, or ``(gradient, (value, aux))``.  The
        gradient has the structure of the argument, or is a tuple for several.

    Raises:
        RuntimeError: the value is no tensor of one number; an argument to differentiate is not
            there or not floating.
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _grad_and_value(func, argnums, has_aux, args, kwargs)

    return wrapped


def _grad_and_value(
    func: Any, argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    with disable_saved_tensors_hooks(_NO_HOOKS), GradLevel() as level:
        inputs = _as_inputs(level, args, _positions(argnums, len(args)))
        kwargs = tree_map(lambda x: level.input(x, False) if isinstance(x, Tensor) else x, kwargs)
        output = func(*inputs, **kwargs)
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "grad_and_value(f)(*args): output of function f should be a tuple: (output, "
                    "aux) if has_aux is True"
                )
            output, aux = output
        _check_number(output)
        leaves, spec = tree_flatten(slice_argnums(inputs, argnums))
        one = TENSORS.ones_like(output.detach())
        found = level.gradients([output], leaves, [one], False, level.grad_enabled)
        gradient = tree_unflatten(found, spec)
        value, aux = _outside(level, output), _outside(level, aux)
    return (gradient, (value, aux)) if has_aux else (gradient, value)


def _check_number(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
        )
    if output._array.ndim:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
            f"with {output._array.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs "
            "instead?"
        )


def grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `func`; see `grad_and_value`.

    With `has_aux` it returns ``(gradient, aux)``.

    >>> from clew.func import grad
    >>> grad(lambda x: x**3)(torch.tensor(2.0))
    tensor(12.)
    >>> grad(grad(lambda x: x**3))(torch.tensor(2.0))
    tensor(12.)
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


# -- products with the Jacobian


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and a function for products with its Jacobian.

    Args:
        func: returns a tensor or a nested container of them.
        primals: its arguments, containers of tensors, all of which are differentiated.
        has_aux: `func` returns ``(value, aux)``.

    Returns:
        ``(value, vjp_fn)`` or ``(value, vjp_fn, aux)``.  ``vjp_fn`` takes cotangents of the
        structure of the value and returns a tuple with the product for each argument.

    Raises:
        RuntimeError: `func` returns something that is no floating tensor; cotangents do not fit.

    >>> from clew.func import vjp
    >>> value, vjp_fn = vjp(torch.sin, torch.zeros(2))
    >>> vjp_fn(torch.ones(2))
    (tensor([1., 1.]),)
    """
    return vjp_of(func, primals, None, has_aux)


def vjp_of(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Argnums | None, has_aux: bool
) -> Any:
    """`vjp` for some of the arguments; None means all, whose products are then a tuple."""
    with disable_saved_tensors_hooks(_NO_HOOKS), GradLevel() as level:
        positions = range(len(args)) if argnums is None else _positions(argnums, len(args))
        inputs = _as_inputs(level, args, positions)
        output = func(*inputs)
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "vjp(f, *primals): output of function f should be a tuple: (output, aux) if "
                    "has_aux is True"
                )
            output, aux = output
            aux = _outside(level, aux)
        outputs, spec = tree_flatten(output)
        _check_outputs(outputs)
        wanted = inputs if argnums is None else slice_argnums(inputs, argnums)
        value = _outside(level, output)
    product = _Product(level, outputs, spec, *tree_flatten(wanted))
    return (value, product, aux) if has_aux else (value, product)


def _check_outputs(outputs: list[Any]) -> None:
    if not outputs:
        raise RuntimeError(
            "vjp(f, *primals): Expected f to be a function that has non-empty output (got output "
            f"= {outputs})"
        )
    for x in outputs:
        if not isinstance(x, Tensor):
            raise RuntimeError(
                "vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported "
                f"type {type(x)}"
            )
        if x._array.dtype.kind not in "fcV":
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                f"Tensor with dtype {x.dtype}"
            )


class _Product:
    """The function that `vjp` returns: from cotangents to the products for the arguments."""

    def __init__(
        self, level: GradLevel, outputs: list[Any], spec: TreeSpec, inputs: list[Any],
        input_spec: TreeSpec,
    ) -> None:  # fmt: skip
        self._level = level
        self._outputs = outputs
        self._spec = spec
        self._inputs = inputs
        self._input_spec = input_spec

    def __call__(
        self, cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        leaves, spec = tree_flatten(cotangents)
        if spec != self._spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {treespec_pprint(spec)}, primal output: "
                f"{treespec_pprint(self._spec)}"
            )
        for i, (x, v) in enumerate(zip(self._outputs, leaves)):
            if x.requires_grad and v._array.shape != x._array.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {Size(v._array.shape)} "
                    f"and output[{i}] has a shape of {Size(x._array.shape)}."
                )
        record = state.now.grad_enabled if create_graph is None else create_graph
        found = self._level.gradients(self._outputs, self._inputs, leaves, retain_graph, record)
        return tree_unflatten(found, self._input_spec)


# -- whole matrices


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
    chunk_size: int | None = None, _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function that returns the Jacobian of `func`, a row (an output's element) at a time.

    Args:
        func: returns real tensors.
        argnums: which arguments to differentiate.
        has_aux: `func` returns ``(value, aux)``.
        chunk_size: how many rows to compute at a time, by `vmap`; all by default.

    Returns:
        A function that returns a tensor of the shape of the output followed by that of the
        argument; containers of them where outputs or arguments are containers; with `has_aux`
        ``(jacobian, aux)``.

    Raises:
        RuntimeError: an argument or output is complex.
        ValueError: `chunk_size` is not positive.

    >>> from clew.func import jacrev
    >>> jacrev(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        refuse_complex("jacrev", args, "inputs")
        found = vjp_of(func, args, argnums, has_aux)
        output, product = found[0], found[1]
        outputs, output_spec = tree_flatten(output)
        refuse_complex("jacrev", outputs, "outputs")
        inputs, input_spec = tree_flatten(slice_argnums(args, argnums))
        rows = _rows(product, outputs, output_spec, chunk_size)
        sizes = tuple(out.numel() for out in outputs)
        columns = []
        for part, x in zip(rows, inputs):
            pieces = zip(part.split(list(sizes), 0), outputs)
            columns.append([piece.view(out.shape + x.shape) for piece, out in pieces])
        parts = [tree_unflatten(list(row), input_spec) for row in zip(*columns)]
        matrix = tree_unflatten(parts, output_spec)
        return (matrix, found[2]) if has_aux else matrix

    return wrapped


def refuse_complex(name: str, tree: Any, what: str) -> None:
    """Refuse complex tensors, of which a Jacobian would mean two things.

    Raises:
        RuntimeError: there is one.
    """
    for i, x in enumerate(tree_flatten(tree)[0]):
        if isinstance(x, Tensor) and x._array.dtype.kind == "c":
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened "
                f"input idx: {i}"
            )


def _rows(
    product: Callable[[Any], Any], outputs: list[Any], spec: TreeSpec, chunk_size: int | None
) -> list[Any]:
    """For each argument its products with all rows of an identity matrix."""
    parts = []
    for basis in standard_bases(outputs, chunk_size):
        if chunk_size == 1:
            found = product(tree_unflatten([b.squeeze(0) for b in basis], spec))
            parts.append([x.unsqueeze(0) for x in tree_flatten(found)[0]])
        else:
            parts.append(tree_flatten(vmap(product)(tree_unflatten(list(basis), spec)))[0])
    if len(parts) == 1:
        return parts[0]
    return [TENSORS.cat(column, dim=0) for column in zip(*parts)]


def standard_bases(
    tensors: Sequence[Any], chunk_size: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """The rows of an identity matrix, `chunk_size` at a time, cut into the shapes of tensors."""
    sizes = [x.numel() for x in tensors]
    total = sum(sizes)
    counts = chunk_sizes(total, chunk_size) if chunk_size and chunk_size < total else [total]
    start = 0
    for count in counts:
        parts, column = [], 0
        for x, size in zip(tensors, sizes):
            part = x.detach().new_zeros(count, size)
            part.diagonal(start - column).fill_(1)
            parts.append(part.view(count, *x.shape))
            column += size
        yield tuple(parts)
        start += count
