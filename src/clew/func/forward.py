"""Forward-mode transforms: `jvp`, `jacfwd`, `hessian`, `linearize`.

Each runs its function at a level of forward mode (``autograd/forward_mode.py``), which nests with
all other transforms.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from clew.autograd import grad as autograd_grad
from clew.autograd.dual import tangent_of
from clew.autograd.forward_mode import ForwardLevel
from clew.autograd.modes import enable_grad
from clew.dispatch import TENSORS
from clew.func.mapping import check_randomness, vmap
from clew.func.reverse import Argnums, jacrev, refuse_complex, slice_argnums, standard_bases, vjp
from clew.tensor import Tensor
from clew.utils._pytree import TreeSpec, tree_flatten, tree_unflatten


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """The value of a function, and the product of its Jacobian with a vector.

    Args:
        func: returns a tensor or a nested container of them.
        primals: a tuple with its arguments, containers of tensors.
        tangents: the vector, of the structure of `primals`.
        strict: raise if a result does not depend on the arguments; otherwise its product is zero.
        has_aux: `func` returns ``(value, aux)``.

    Returns:
        ``(value, product)`` or ``(value, product, aux)``; the product has the structure and shapes
        of the value.

    Raises:
        RuntimeError: `primals` is no tuple, has no tensors or other things than tensors, or
            `tangents` does not fit; `func` returns something that is no tensor; what `strict`
            refuses.
        ValueError: an argument is of integers or bools.

    >>> from clew.func import jvp
    >>> jvp(lambda x: x**3, (torch.tensor(2.0),), (torch.tensor(1.0),))
    (tensor(8.), tensor(12.))
    """
    values, spec = _checked_primals(primals)
    directions = _checked_tangents(tangents, spec)
    with ForwardLevel() as level:
        duals = [level.input(x, t) for x, t in zip(values, directions)]
        output = func(*tree_unflatten(duals, spec))
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "jvp(f, primals, tangents): output of function f should be a tuple: (output, "
                    "aux) if has_aux is True"
                )
            output, aux = output
        outputs, out_spec = tree_flatten(output)
        _check_outputs(outputs, output)
        products = [_product(level, x, strict) for x in outputs]
    found = (tree_unflatten(outputs, out_spec), tree_unflatten(products, out_spec))
    return (*found, aux) if has_aux else found


def _checked_primals(primals: Any) -> tuple[list[Any], TreeSpec]:
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to "
            "call f(*primals)."
        )
    values, spec = tree_flatten(primals)
    if not values:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to contain at least one Tensor."
        )
    _check_tensors(values, "primals")
    for x in values:
        if x._array.dtype.kind not in "fcV":
            raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype}")
    return values, spec


def _checked_tangents(tangents: Any, spec: TreeSpec) -> list[Any]:
    directions, found = tree_flatten(tangents)
    if found != spec:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python "
            "structure. For example, if primals is a tuple of 3 tensors, tangents also must be. "
            f"Got primals with structure {spec} and tangents with structure {found}"
        )
    _check_tensors(directions, "tangents")
    for t in directions:
        if t._array.dtype.kind not in "fcV":
            raise ValueError(
                f"Expected tangent to be floating point or complex, but got: {t.dtype}"
            )
    return directions


def _check_tensors(values: list[Any], what: str) -> None:
    for x in values:
        if not isinstance(x, Tensor):
            raise RuntimeError(
                f"jvp(f, primals, tangents): Expected {what} to only contain Tensors, got {type(x)}"
            )


def _check_outputs(outputs: list[Any], output: Any) -> None:
    if not outputs or outputs == [None]:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected f to be a function that has non-empty output (got "
            f"output = {outputs})"
        )
    for x in outputs:
        if not isinstance(x, Tensor):
            raise RuntimeError(
                "jvp(f, primals, tangents): expected f(*primals) to return only tensors, got "
                f"unsupported type {type(x)}"
            )


def _product(level: ForwardLevel, x: Tensor, strict: bool) -> Any:
    """The tangent of a result, zeros if it has none."""
    tangent = tangent_of(x, level)
    if tangent is not None:
        return tangent
    if strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
            "This is not allowed with strict=True."
        )
    with level.lowered():
        return TENSORS.zeros_like(x.detach())


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
    randomness: str = "error",
) -> Callable[..., Any]:  # fmt: skip
    """A function that returns the Jacobian of `func`, a column (an argument's element) at a time.

    Cheaper than `jacrev` where there are more results than arguments.

    Args:
        func: returns real tensors.
        argnums: which arguments to differentiate: one, or a tuple of several.
        has_aux: `func` returns ``(value, aux)``.
        randomness: what random operations in `func` do, see `vmap`.

    Returns:
        A function that returns a tensor of the shape of the output followed by that of the
        argument; containers of them where outputs or arguments are containers; with `has_aux`
        ``(jacobian, aux)``.

    Raises:
        RuntimeError: an argument or output is complex; `randomness` or `argnums` is none that
            there is; and what `jvp` raises.

    >>> from clew.func import jacfwd
    >>> jacfwd(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_randomness(randomness)

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        refuse_complex("jacfwd", args, "inputs")
        chosen = slice_argnums(args, argnums)
        inputs, spec = tree_flatten(chosen)
        basis = next(iter(standard_bases(inputs)))

        def push(*tangents: Any) -> Any:
            given = tree_unflatten(list(tangents), spec)
            whole = (chosen,) if isinstance(argnums, int) else chosen
            along = (given,) if isinstance(argnums, int) else given
            called = functools.partial(_with_arguments, func, args, argnums)
            found = jvp(called, whole, along, has_aux=has_aux)
            return (found[1], found[2]) if has_aux else (found[1],)

        found = vmap(push, randomness=randomness)(*basis)
        outputs, out_spec = tree_flatten(found[0])
        refuse_complex("jacfwd", outputs, "outputs")
        parts = [tree_unflatten(_columns(out, inputs), spec) for out in outputs]
        matrix = tree_unflatten(parts, out_spec)
        if not has_aux:
            return matrix
        leaves, aux_spec = tree_flatten(found[1])
        return matrix, tree_unflatten([x[0] for x in leaves], aux_spec)

    return wrapped


def _with_arguments(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Argnums, *chosen: Any
) -> Any:
    """`func` of the arguments, some of them replaced."""
    whole = list(args)
    for position, value in zip((argnums,) if isinstance(argnums, int) else argnums, chosen):
        whole[position] = value
    return func(*whole)


def _columns(rows: Tensor, inputs: list[Any]) -> list[Any]:
    """The Jacobian of one output in each input, from its tangents along all of their elements."""
    shape = tuple(rows._array.shape[1:])
    pieces = rows.movedim(0, -1).split([x.numel() for x in inputs], -1)
    return [piece.reshape((*shape, *x.shape)) for piece, x in zip(pieces, inputs)]


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the matrix of second derivatives of `func`: ``jacfwd(jacrev(f))``.

    >>> from clew.func import hessian
    >>> hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    found: Callable[..., Any] = jacfwd(jacrev(func, argnums), argnums)
    return found


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of a function, and the linear function that is its derivative there.

    Computed from a backward pass that is itself differentiated: the linear function does not call
    `func` again.

    Args:
        func: returns a tensor or a nested container of them.
        primals: its arguments, containers of tensors.

    Returns:
        ``(value, jvp_fn)``: ``jvp_fn(*tangents)`` is the product of the Jacobian with tangents of
        the structure, shapes and types of `primals`.

    Raises:
        RuntimeError: what `jvp` raises; tangents do not fit.

    >>> from clew.func import linearize
    >>> value, along = linearize(torch.sin, torch.zeros(2))
    >>> along(torch.ones(2))
    tensor([1., 1.])
    """
    values, spec = _checked_primals(primals)
    value, product = vjp(func, *primals)
    outputs, out_spec = tree_flatten(value)
    with enable_grad():
        # See Note [Double backward trick]; what the weights are does not matter.
        weights = [TENSORS.zeros_like(x.detach()) for x in outputs]
        for weight in weights:
            weight._requires_grad = True
        backwards = tree_flatten(product(tree_unflatten(list(weights), out_spec)))[0]

    def along(*tangents: Any) -> Any:
        """The product of the Jacobian with tangents."""
        directions, found = tree_flatten(tangents)
        _check_fit(directions, found, values, spec)
        roots = [(b, t) for b, t in zip(backwards, directions) if b.requires_grad]
        parts: Any = [None] * len(weights)
        if roots:
            ends, given = zip(*roots)
            parts = autograd_grad(ends, weights, given, retain_graph=True, allow_unused=True)
        products = [TENSORS.zeros_like(w) if p is None else p for p, w in zip(parts, weights)]
        return tree_unflatten([p.detach() for p in products], out_spec)

    return value, along


def _check_fit(directions: list[Any], found: TreeSpec, values: list[Any], spec: TreeSpec) -> None:
    if found != spec:
        raise RuntimeError(
            f"Expected the tangents {found} to have the same argspec as the primals {spec}"
        )
    for i, (t, x) in enumerate(zip(directions, values)):
        for what, mine, other in (("shape", t.shape, x.shape), ("dtype", t.dtype, x.dtype)):
            if mine != other:
                raise RuntimeError(
                    f"tangent:{i} with {what} {mine} in flattened pytree doesn't match the {what} "
                    f"{other} of the corresponding primal."
                )
