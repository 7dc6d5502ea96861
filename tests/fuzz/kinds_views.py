"""Lines that make views and that write in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engines import torch
from fuzz.choices import (
    COMPLEX,
    FLOATS,
    INEXACT,
    Choices,
    NoChoice,
    broadcasts,
    has_dims,
    is_distinct,
    is_real,
    kind,
    some,
    without_complex_halves,
)
from fuzz.kinds_tensors import index

Where = Callable[[Any], bool]


def is_view(t: Any) -> bool:
    return bool(t._is_view())


def without_packs(c: Choices) -> bool:
    """Hooks of saved tensors are given a result itself in torch, in clew an alias."""
    return not c.packs and bool(c.tensors())


def shapes_of(n: int) -> list[tuple[int, ...]]:
    """Shapes of `n` elements."""
    found = [(n,), (-1,), (1, n), (n, 1), (1, n, 1)]
    found += [(m, n // m) for m in (2, 3) if n % m == 0]
    found += [(2, n // 4, 2)] * (n % 4 == 0) + [()] * (n == 1)
    return found


def view_of(c: Choices, x: str) -> str:
    """An expression for a view of `x`."""
    t = c.value(x)
    n = t.dim()
    options = [f"{x}.view({c.pick(shapes_of(t.numel()))})", f"{x}.reshape({c.pick(shapes_of(t.numel()))})",
               f"{x}.unsqueeze({c.dim(x, 1)})", f"{x}.squeeze()", f"{x}.view_as({x})", f"{x}[:]",
               f"{x}.expand(2, *{x}.shape)", f"{x}[None]", f"{x}[...]", f"{x}.detach()", f"{x}.flatten()",
               f"{x}.ravel()", f"{x}.data" if c.chance(0.4) else f"{x}.view(-1)",
               f"torch.atleast_2d({x})"]  # fmt: skip
    if n:
        d, last = c.dim(x), t.shape[0] - 1
        i = c.integer(-last - 1, last + c.chance(0.02))
        start = c.integer(0, max(last, 0))
        options += [f"{x}[{i}]", f"{x}[{i}]", f"{x}[{start}:]", f"{x}[:{start}]", f"{x}[{start}:{last + 1}]",
                    f"{x}[::2]", f"{x}[..., 0]", f"{x}[..., -1:]", f"{x}.select({d}, 0)", f"{x}.select({d}, -1)",
                    f"{x}.narrow({d}, 0, 1)", f"{x}.squeeze({d})", f"{x}.transpose({d}, {c.dim(x)})",
                    f"{x}.unfold({d}, 1, 1)", f"{x}.unfold({d}, 2, 1)", f"{x}.mT" if n > 1 else f"{x}.t()",
                    f"{x}.permute({', '.join(map(str, c.source.order(n)))})",
                    f"{x}.movedim({d}, 0)", f"{x}.unflatten({d}, (1, -1))", f"{x}.swapaxes(0, {d})"]  # fmt: skip
    if n and t.numel():  # NumPy knows no offset of what is empty
        options += [
            f"{x}.as_strided((2,), (1,))",
            f"{x}.as_strided((2, 2), (1, 0), {c.integer(0, 1)})",
        ]
    if n >= 2:
        options += [f"{x}.diagonal()", f"{x}.diagonal(1)", f"{x}.diagonal(0, -1, 0)", f"{x}[0, 0]",
                    f"{x}[:, 0]", f"{x}[:, 1:]", f"{x}.t()", f"{x}.T", f"{x}[:, None]"]  # fmt: skip
    if t.dtype in COMPLEX:
        options += [f"torch.view_as_real({x})", f"{x}.real", f"{x}.imag"] * 4
    full = n and t.shape[-1] == 2 and t.numel()  # NumPy knows no strides of what is empty
    if full and t.dtype != torch.float16:  # clew has no complex halves
        options += [f"torch.view_as_complex({x})"]
    if full and t.dtype == torch.float32:  # others may hold nan of any bits
        options += [f"{x}.view(torch.complex64)"]
    return c.pick(options)


@kind("view", 12)
def view(c: Choices) -> str:
    return f"{c.fresh()} = {view_of(c, c.tensor())}"


@kind("view", 3, needs=some(is_view))
def view_of_view(c: Choices) -> str:
    x = c.tensor(is_view)
    return f"{c.fresh()} = {view_of(c, x)}"


@kind("view", 2)
def view_of_result(c: Choices) -> str:
    """Of what nobody else holds."""
    x = c.inexact()
    return f"{c.fresh()} = ({x} * {c.number()})[{c.pick(('...', '0', '1:', ':1', 'None'))}]"


@kind("view", 3, needs=some(has_dims))
def several_views(c: Choices) -> str:
    x = c.tensor(lambda t: t.dim() > 0 and 0 not in t.shape)
    t = c.value(x)
    dim = c.integer(0, t.dim() - 1)
    n = t.shape[dim]
    if n > 4:
        raise NoChoice
    option = c.integer(0, 3)
    if option == 0:
        return f"{', '.join(c.fresh() for _ in range(n))}, = {x}.unbind({dim})"
    if option == 1:
        return f"{', '.join(c.fresh() for _ in range(n))}, = {x}.split(1, {dim})"
    if option == 2:
        return f"{', '.join(c.fresh() for _ in range(min(n, 2) if n != 3 else 2))}, = {x}.chunk(2, {dim})"
    return f"{', '.join(c.fresh() for _ in range(2))}, = {x}.tensor_split(2, {dim})"


# -- writes


def target(c: Choices, where: Where = lambda t: True) -> str:
    """What is written to: views more often than others."""
    view = c.chance(0.4)
    # Where elements share memory without a stride of 0, torch's result depends on its loops.
    return c.tensor(
        lambda t: where(t) and (t._is_view() or not view) and (is_distinct(t) or 0 in t.stride())
    )


def fitting(c: Choices, x: str) -> str:
    """An operand that can be written into `x`: of a smaller or the same shape, or a number."""
    if c.chance(0.35):
        return c.number()
    shape = c.value(x).shape
    mode = c.chance(0.96)
    return c.tensor(
        lambda t: apart(t, c.value(x))
        and (not mode or (t.dim() <= len(shape) and broadcasts(t.shape, shape)
                          and all(m == n or m == 1 for m, n in zip(reversed(t.shape), reversed(shape)))))
    )  # fmt: skip


def apart(t: Any, target: Any) -> bool:
    """Whether a write of `t` to `target` does not depend on the order of the elements.

    torch refuses to read what it writes to only where it is easy to see, in tensors without gaps;
    elsewhere the result is what its loops make of it.
    """
    if not t.numel() or not target.numel():
        return True
    if t.untyped_storage().data_ptr() != target.untyped_storage().data_ptr():
        return True
    same = t.stride() == target.stride() and t.storage_offset() == target.storage_offset()
    return (same and t.shape == target.shape) or (is_dense(t) and is_dense(target))


def is_dense(t: Any) -> bool:
    """Whether the elements lie without gaps, in some order of the dimensions."""
    step = 1
    for stride, n in sorted(zip(t.stride(), t.shape)):
        if n != 1:
            if stride != step:
                return False
            step *= n
    return True


@kind("write", 10)
def arithmetic_write(c: Choices) -> str:
    x = target(c, lambda t: t.dtype in INEXACT)
    y = fitting(c, x)
    if y in c.namespace:
        without_complex_halves(c, x, y)
    if c.chance(0.3):
        return f"{x} {c.pick(('+=', '-=', '*=', '/=', '**='))} {y}"
    name = c.pick(("add_", "mul_", "mul_", "sub_", "div_", "pow_"))
    return f"{x}.{name}({y})"


@kind("write", 5)
def fill(c: Choices) -> str:
    x = target(c)
    y = c.tensor(lambda t: t.dim() == 0) if c.chance(0.3) else c.number()
    return f"{x}.{c.pick((f'fill_({y})', f'fill_({y})', 'zero_()'))}"


@kind("write", 5)
def copy(c: Choices) -> str:
    x = target(c)
    y = fitting(c, x)
    return f"{x}.copy_({y})" if y in c.namespace else f"{x}.copy_(torch.tensor({y}))"


@kind("write", 7)
def setitem(c: Choices) -> str:
    x = target(c)
    t = c.value(x)
    keys = ["...", ":"]
    if t.dim():
        keys += ["0", "0", "-1", "1:", ":1", "::2", "..., 0", "None, 0"]
    if t.dim() > 1:
        keys += ["0, 0", ":, 0", ":, 1:", "0, ..., -1"]
    key = c.pick(keys)
    try:
        part = eval(f"t[{key}]", {"t": t.detach()})
    except IndexError:
        part = t
    y = c.number() if c.chance(0.4) else c.tensor(
        lambda v: (v.shape == part.shape or v.dim() == 0) and apart(v, part)
    )  # fmt: skip
    return f"{x}[{key}] = {y}"


@kind("write", 3, needs=some(has_dims))
def setitem_advanced(c: Choices) -> str:
    x = target(c)
    if not c.value(x).dim() or 0 in c.value(x).stride():
        raise NoChoice
    y = c.number() if c.chance(0.5) else c.tensor(lambda t: t.dim() == 0)
    return f"{x}[{index(c, x)}] = {y}"


UNARY_WRITES = (
    "relu_()", "exp_()", "sin_()", "tanh_()", "sigmoid_()", "neg_()", "abs_()", "sqrt_()", "clamp_(0, 1)",
    "clamp_(min=0)", "square_()", "reciprocal_()", "floor_()", "log_()", "tril_()", "round_()", "cos_()",
    "erf_()", "sign_()", "nan_to_num_()", "masked_fill_({x} > 0, 2)", "fill_diagonal_(1)",
    "index_fill_(0, torch.tensor([0]), 3)", "index_add_(0, torch.tensor([0]), {x}[:1])",
    "index_copy_(0, torch.tensor([0]), {x}[:1] * 2)", "scatter_(0, torch.zeros_like({x}, dtype=torch.int64), 1)",
    "index_add_(0, torch.tensor([0]), {y})", "index_put_((torch.tensor([0]),), {y})",
    "masked_scatter_({x} > 0, {x} * 2)", "cumsum_(0)", "addcmul_({x}, {y})", "addcdiv_({y}, {x})",
    "lerp_({y}, 0.5)", "lerp_({x} * 2, {y})", "triu_()", "clamp_({y}, {y})", "fmod_(2)", "remainder_(2)",
    "renorm_(2, 0, 1.0)", "expm1_()",
    "masked_fill_({x} > 0, {y})", "copysign_({y})", "hypot_({y})", "xlogy_({y})",
    "scatter_add_(0, torch.zeros_like({x}, dtype=torch.int64), {y})",
)  # fmt: skip


@kind("write", 6, needs=some(is_real))
def other_write(c: Choices) -> str:
    x = target(c, is_real)
    call = c.pick(UNARY_WRITES)
    if "tensor([0])" in call and not all(c.value(x).shape):
        raise NoChoice
    if "{y}" in call:
        shape = c.value(x).shape
        y = c.tensor(
            lambda t: t.dtype == c.value(x).dtype and t.dim() <= len(shape)
            and broadcasts(t.shape, shape) and apart(t, c.value(x))
        )  # fmt: skip
        if "copysign" in call and c.value(y).isnan().any():
            raise NoChoice  # nan has a sign, but nobody says which
        call = call.replace("{y}", y)
    return f"{x}.{call.replace('{x}', x)}"


@kind("write", 2)
def functional_write(c: Choices) -> str:
    # torch has no gradient of silu of complex numbers, but for one that is wrong in place.
    x = target(c, lambda t: t.dtype not in COMPLEX or not t.requires_grad)
    call = c.pick(
        (
            "relu({x}, inplace=True)",
            "relu_({x})",
            "elu({x}, inplace=True)",
            "elu_({x})",
            "leaky_relu_({x}, 0.1)",
            "hardtanh_({x})",
            "threshold({x}, 1, 0, inplace=True)",
            "dropout({x}, 0.0, inplace=True)",
            "silu({x}, inplace=True)",
            "hardswish({x}, inplace=True)",
            "relu6({x}, inplace=True)",
            "mish({x}, inplace=True)",
        )
    )
    name = c.fresh()
    return f"{name} = torch.nn.functional.{call.replace('{x}', x)}"


@kind("write", 3, needs=some(is_real))
def out(c: Choices) -> str:
    y = target(c, lambda t: t.dtype in FLOATS and 0 not in t.stride())
    dtype, most = c.value(y).dtype, c.value(y).numel()
    # A result that needs more memory gets new memory in clew, of which views know nothing, and
    # one of another shape changes what a hook of saved tensors was given.

    def fits(t: Any) -> bool:
        alike = not c.packs or t.shape == c.value(y).shape
        return t.dtype == dtype and t.numel() <= most and alike and apart(t, c.value(y))

    x = c.tensor(fits)
    z = c.tensor(lambda t: fits(t) and t.dim() == 0) if c.chance(0.3) else x
    call = c.pick((f"torch.add({x}, {z}, out={y})", f"torch.mul({x}, {z}, out={y})", f"torch.exp({x}, out={y})",
                   f"torch.neg({x}, out={y})"))  # fmt: skip
    return call


@kind("write", 4, needs=without_packs)
def view_in_place(c: Choices) -> str:
    # In torch later hooks would join those from before, see docs/differences.md.
    x = target(c, lambda t: t._backward_hooks is None)
    t = c.value(x)
    if not t.dim():
        return f"{x}.{c.pick(('unsqueeze_(0)', 'squeeze_()', 't_()'))}"
    call = c.pick((f"unsqueeze_({c.dim(x, 1)})", f"squeeze_({c.dim(x)})", "squeeze_()", "t_()",
                   f"transpose_({c.dim(x)}, {c.dim(x)})", f"swapaxes_(0, {c.dim(x)})",
                   f"as_strided_((2,), (1,), {c.integer(0, 1)})"))  # fmt: skip
    return f"{x}.{call}"


@kind("write", 2, needs=without_packs)
def storage(c: Choices) -> str:
    x, y = c.tensor(), c.tensor()
    t = c.value(x)
    n = t.numel()
    if t.untyped_storage().nbytes() // t.element_size() < t.storage_offset() + n:
        raise NoChoice  # `resize_` would need new memory, with something in it
    if t._is_view() and t.shape != c.value(y).shape:
        raise NoChoice  # it would reach beyond its base
    return c.pick((f"{x}.data = {y}", f"{x}.data = {y}.detach().clone()", f"{x}.set_({y})",
                   f"{x}.resize_({c.pick(shapes_of(n))})".replace("-1", str(n)),
                   f"{x}.resize_as_({x})", f"{x}.set_({y}.detach())"))  # fmt: skip


@kind("write", 3)
def through_alias(c: Choices) -> str:
    x = c.tensor(lambda t: is_distinct(t) or 0 in t.stride())  # see `target`
    return f"{x}.{c.pick(('data', 'detach()'))}.{c.pick(('add_(1)', 'zero_()', 'mul_(2)', 'fill_(3)'))}"


@kind("write", 3)
def chained_write(c: Choices) -> str:
    """To a view that nobody keeps."""
    x = c.tensor()
    text = view_of(c, x)
    if ".unfold" in text or not is_distinct(c.value(x)):
        raise NoChoice  # see `target`
    return f"{text}.{c.pick(('add_(1)', 'zero_()', 'mul_(2)', 'fill_(3)', 'exp_()', 'pow_(2)'))}"
