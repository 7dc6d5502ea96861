"""`einsum`: sums of products in Einstein's notation, by permutation and `bmm` as in PyTorch.

All operands get the same dimensions in the same order: those of the output, then those that are
summed.  Two at a time are then multiplied, and a dimension is summed as soon as no other operand
has it.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from clew.dispatch import apply
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor

_BMM = REGISTRY["bmm"]
_ELLIPSIS = "..."


class _Plan(NamedTuple):
    """Where each dimension goes.

    Attributes:
        labels: of each operand, its subscripts.
        places: the position of each label.
        ellipsis: the position of the first dimension that an ellipsis covers.
        covered: how many dimensions the longest ellipsis covers.
        outputs: how many dimensions the result has.
        total: how many dimensions there are, those that are summed among them.
    """

    labels: list[list[str]]
    places: dict[str, int]
    ellipsis: int
    covered: int
    outputs: int
    total: int


@composite(method=False)
def einsum(*args: Any) -> Any:
    """Multiply the operands elementwise along the labels they share; sum labels not in the output.

    ``einsum("bij,bjk->bik", x, y)``, or with lists of integers for the subscripts,
    ``einsum(x, [0, 1, 2], y, [0, 2, 3], [0, 1, 3])``.  Without ``->`` the output has the labels
    that appear once, in alphabetical order.  ``...`` stands for any number of dimensions, which
    are broadcast.

    Raises:
        ValueError: an operand is missing.
        RuntimeError: the equation does not fit the operands.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation, operands = _from_sublists(args)
    else:
        equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    plan = _planned(equation, operands)
    counts = [0] * plan.total
    aligned = _aligned(operands, plan, counts)
    result = aligned[0]
    for other in aligned[1:]:
        result = _contracted(result, other, plan, counts)
    if plan.total == plan.outputs:
        return result
    if len(operands) > 1:  # everything was summed on the way
        return result.view(result.shape[: plan.outputs])
    return result.sum(tuple(range(plan.outputs, plan.total)))


# -- reading the equation


def _from_sublists(args: Any) -> tuple[str, tuple[Any, ...]]:
    operands, sublists = args[: len(args) // 2 * 2 : 2], args[1::2]
    equation = ",".join("".join(map(_letter, sublist)) for sublist in sublists)
    if len(args) % 2:
        equation += "->" + "".join(map(_letter, args[-1]))
    return equation, operands


def _letter(subscript: Any) -> str:
    if subscript is Ellipsis:
        return _ELLIPSIS
    if 0 <= subscript < 26:
        return chr(ord("A") + subscript)
    if 26 <= subscript < 52:
        return chr(ord("a") + subscript - 26)
    raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")


def _subscripts(text: str, offset: int, again: str, stray: str) -> list[str]:
    """The labels of one operand or of the output; an ellipsis is one label.

    Args:
        text: that part of the equation.
        offset: where it begins in the equation.
        again: what to say of a second ellipsis.
        stray: what to say of a dot that is no ellipsis.
    """
    labels: list[str] = []
    i = 0
    while i < len(text):
        if text[i] == ".":
            if _ELLIPSIS in labels:
                raise RuntimeError(f"einsum(): found '.' for {again}")
            if text[i : i + 3] != _ELLIPSIS:
                raise RuntimeError(f"einsum(): found '.' for {stray}")
            labels.append(_ELLIPSIS)
            i += 3
            continue
        if text[i] != " ":
            if not (text[i].isascii() and text[i].isalpha()):
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {offset + i} in the equation "
                    "string, subscripts must be in [a-zA-Z]"
                )
            labels.append(text[i])
        i += 1
    return labels


def _planned(equation: str, operands: Any) -> _Plan:
    inputs, arrow, output = equation.partition("->")
    parts = inputs.split(",")
    labels = []
    offset = 0
    for i, part in enumerate(parts):
        if i == len(operands):
            raise RuntimeError(
                "einsum(): fewer operands were provided than specified in the equation"
            )
        again = f"operand {i} for which an ellipsis was already found"
        stray = f"operand {i} that is not part of any ellipsis"
        labels.append(_subscripts(part, offset, again, stray))
        offset += len(part) + 1
    if len(parts) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    covered = max(_covered(x, i, labels[i]) for i, x in enumerate(operands))
    seen = [label for each in labels for label in each if label != _ELLIPSIS]
    if arrow:
        again = "output but an ellipsis (...) was already found"
        stray = "output that is not part of any ellipsis (...)"
        wanted = _subscripts(output, len(inputs) + 2, again, stray)
        _check_output(wanted, seen)
    else:
        wanted = [_ELLIPSIS, *sorted(label for label in set(seen) if seen.count(label) == 1)]
    return _placed(labels, wanted, sorted(set(seen)), covered)


def _covered(operand: Any, index: int, labels: list[str]) -> int:
    """How many dimensions of the operand its ellipsis covers."""
    ndim = operand._array.ndim
    named = len([label for label in labels if label != _ELLIPSIS])
    if _ELLIPSIS in labels:
        if named <= ndim:
            return ndim - named
        problem, end = "is more than", ""
    elif named == ndim:
        return 0
    else:
        problem, end = "does not match", " and no ellipsis was given"
    raise RuntimeError(
        f"einsum(): the number of subscripts in the equation ({named}) {problem} the number of "
        f"dimensions ({ndim}) for operand {index}{end}"
    )


def _check_output(wanted: list[str], seen: list[str]) -> None:
    for i, label in enumerate(wanted):
        if label == _ELLIPSIS:
            continue
        if label in wanted[:i]:
            raise RuntimeError(
                f"einsum(): output subscript {label} appears more than once in the output"
            )
        if label not in seen:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any "
                "input operand"
            )


def _placed(labels: list[list[str]], wanted: list[str], seen: list[str], covered: int) -> _Plan:
    places: dict[str, int] = {}
    position = ellipsis = 0
    for label in wanted:
        if label == _ELLIPSIS:
            ellipsis = position
            position += covered
        else:
            places[label] = position
            position += 1
    outputs = position
    if _ELLIPSIS not in wanted:
        ellipsis = position
        position += covered
    for label in seen:
        if label not in places:
            places[label] = position
            position += 1
    return _Plan(labels, places, ellipsis, covered, outputs, position)


# -- bringing the operands into one order


def _aligned(operands: Any, plan: _Plan, counts: list[int]) -> list[Any]:
    """The operands with all dimensions in the same order, of size one where they have none.

    `counts` becomes the number of operands in which each dimension is not of size one.
    """
    sizes: dict[str, int] = {}
    covered_sizes = [1] * plan.covered
    aligned = []
    for i, (operand, labels) in enumerate(zip(operands, plan.labels)):
        x, order = operand, [-1] * plan.total
        dim = 0
        for label in labels:
            if label == _ELLIPSIS:
                for j in range(plan.covered - _covered(operand, i, labels), plan.covered):
                    _note_covered(covered_sizes, j, x.shape[dim], dim, i)
                    order[plan.ellipsis + j] = dim
                    dim += 1
                continue
            place = plan.places[label]
            if order[place] == -1:
                _note_size(sizes, label, x.shape[dim], i)
                order[place] = dim
                dim += 1
            else:
                x = _diagonal(x, order[place], dim, label, i)
        for place, d in enumerate(order):
            if d == -1:
                x = x.unsqueeze(dim)
                order[place] = dim
                dim += 1
        for place, d in enumerate(order):
            counts[place] += x.shape[d] != 1
        aligned.append(x.permute(order))
    return aligned


def _note_size(sizes: dict[str, int], label: str, n: int, operand: int) -> None:
    known = sizes.get(label, 1)
    if n != 1 and known not in (1, n):
        raise RuntimeError(
            f"einsum(): subscript {label} has size {n} for operand {operand} which does not "
            f"broadcast with previously seen size {known}"
        )
    sizes[label] = max(known, n) if n else 0


def _note_covered(sizes: list[int], j: int, n: int, dim: int, operand: int) -> None:
    if n != 1 and sizes[j] not in (1, n):
        raise RuntimeError(
            f"einsum(): dimension {dim} covered by ellipsis in operand {operand}has size {n} "
            f"which does not broadcast with previously seen ellipsis with size {sizes[j]} for "
            "the respective dimension"
        )
    sizes[j] = n if n != 1 else sizes[j]


def _diagonal(x: Any, first: int, second: int, label: str, operand: int) -> Any:
    """A label that an operand has twice: only where both are equal."""
    if x.shape[second] != x.shape[first]:
        raise RuntimeError(
            f"einsum(): subscript {label} is repeated for operand {operand} but the sizes don't "
            f"match, {x.shape[second]} != {x.shape[first]}"
        )
    return x.diagonal(0, first, second).movedim(-1, first)


# -- multiplying two operands


def _contracted(a: Any, b: Any, plan: _Plan, counts: list[int]) -> Any:
    """The product of two operands, summed over the dimensions that no other operand has."""
    sum_a: list[int] = []
    sum_b: list[int] = []
    shared: list[int] = []
    for dim in range(plan.outputs, plan.total):
        in_a, in_b = a.shape[dim] != 1, b.shape[dim] != 1
        if in_a and in_b:
            counts[dim] -= 1
            if counts[dim] == 1:
                shared.append(dim)
                counts[dim] = 0
        elif counts[dim] == 1 and (in_a or in_b):
            (sum_a if in_a else sum_b).append(dim)
            counts[dim] = 0
    if sum_a:
        a = a.sum(tuple(sum_a), True)
    if sum_b:
        b = b.sum(tuple(sum_b), True)
    return _sum_of_products(a, b, shared) if shared else a * b


def _sum_of_products(a: Any, b: Any, shared: list[int]) -> Any:
    """``(a * b).sum(shared, keepdim=True)`` as products of matrices."""
    both: list[int] = []
    only_a: list[int] = []
    only_b: list[int] = []
    for dim in range(a.ndim):
        if dim in shared:
            continue
        if a.shape[dim] != 1 and b.shape[dim] != 1:
            both.append(dim)
        else:
            (only_a if a.shape[dim] != 1 else only_b).append(dim)
    if only_a and only_b and only_b[-1] < only_a[0]:  # so that the result is contiguous
        a, b, only_a, only_b = b, a, only_b, only_a

    def size(x: Any, dims: list[int]) -> int:
        return prod(x.shape[d] for d in dims)

    batch, inner = size(a, both), size(a, shared)
    left = a.permute([*both, *only_a, *shared, *only_b])
    left = left.reshape(batch, size(a, only_a), inner)
    right = b.permute([*both, *shared, *only_b, *only_a])
    right = right.reshape(batch, inner, size(b, only_b))
    result = apply(_BMM, (left, right))
    shape = [a.shape[d] for d in (*both, *only_a)] + [1] * len(shared)
    result = result.view([*shape, *(b.shape[d] for d in only_b)])
    order = [*both, *only_a, *shared, *only_b]
    return result.permute([order.index(dim) for dim in range(len(order))])
