"""Lines that make tensors: creation, arithmetic, reductions, products, joins, copies."""

from __future__ import annotations

from fuzz.choices import (
    FLOATS,
    INEXACT,
    Choices,
    NoChoice,
    broadcasts,
    has_dims,
    is_real,
    kind,
    nothing,
    some,
    without_complex_halves,
)

SHAPES = (
    (), (), (1,), (2,), (3,), (3,), (2, 3), (2, 3), (3, 2), (2, 2), (2, 2), (1, 3), (2, 1), (4,),
    (2, 1, 3), (2, 3, 2), (2, 2, 2), (0,), (2, 0), (0, 3),
)  # fmt: skip
DTYPES = (
    *["float32"] * 9, *["float64"] * 6, "int64", "int32", "bool", "float16", "bfloat16",
    "complex64", "complex128",
)  # fmt: skip
VALUES = (-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3)


def literal(c: Choices, shape: tuple[int, ...], dtype: str) -> str:
    """Nested lists of numbers."""
    if not shape:
        value = c.pick(VALUES)
        if dtype == "bool":
            return str(value > 0)
        if dtype.startswith("int"):
            return str(int(value))
        if dtype.startswith("complex"):
            return str(complex(value, c.pick(VALUES)))
        return str(float(value))
    return "[" + ", ".join(literal(c, shape[1:], dtype) for _ in range(shape[0])) + "]"


@kind("create", 5, needs=nothing)
def tensor(c: Choices) -> str:
    dtype, shape = c.pick(DTYPES), c.pick(SHAPES)
    values = literal(c, shape, dtype)
    if 0 in shape:
        return f"{c.fresh()} = torch.zeros({shape}, dtype=torch.{dtype})"
    grad = dtype not in ("int64", "int32", "bool") and c.chance(0.7)
    flag = ", requires_grad=True" if grad else ""
    return f"{c.fresh()} = torch.tensor({values}, dtype=torch.{dtype}{flag})"


@kind("create", needs=nothing)
def filled(c: Choices) -> str:
    shape = c.pick(SHAPES)
    make = c.pick((f"zeros({shape}", f"ones({shape}", f"full({shape}, {c.number()}",
                   f"arange({c.integer(1, 6)}.0", "eye(2, 3"))  # fmt: skip
    return f"{c.fresh()} = torch.{make}{', requires_grad=True' if c.chance(0.5) else ''})"


@kind("create")
def like(c: Choices) -> str:
    x = c.tensor()
    make = c.pick((
        f"torch.zeros_like({x}", f"torch.ones_like({x}", f"torch.full_like({x}, 2",
        f"{x}.new_zeros((2,)", f"{x}.new_tensor([1, 2]", f"{x}.new_full((2, 3), 3",
    ))  # fmt: skip
    return f"{c.fresh()} = {make}{', requires_grad=True' if c.chance(0.2) else ''})"


@kind("copy", 2)
def copied(c: Choices) -> str:
    x = c.tensor()
    how = c.pick((
        "clone()", "clone()", "contiguous()", "float()", "double()", "to(torch.float16)",
        "to(torch.complex64)", "type(torch.float32)", "to(torch.float64, copy=True)",
    ))  # fmt: skip
    return f"{c.fresh()} = {x}.{how}"


@kind("copy")
def alias(c: Choices) -> str:
    return f"{c.fresh()} = {c.tensor()}"


@kind("arithmetic", 8)
def binary(c: Choices) -> str:
    x = c.inexact()
    y = c.partner(x)
    without_complex_halves(c, x, y)
    if c.chance(0.1):
        x, y = y, x
    return f"{c.fresh()} = {x} {c.pick(('+', '-', '*', '*', '/'))} {y}"


@kind("arithmetic", 2)
def power(c: Choices) -> str:
    x = c.inexact()
    y = c.pick(("2", "2", "3", "0.5", "-1", "0", "1"))
    return f"{c.fresh()} = {x} ** {y if c.chance(0.8) else c.partner(x)}"


@kind("arithmetic", 2, needs=some(is_real))
def binary_function(c: Choices) -> str:
    x = c.tensor(is_real)
    y = c.tensor(lambda t: t.dtype == c.value(x).dtype and broadcasts(t.shape, c.value(x).shape))
    name = c.pick(("maximum", "minimum", "fmax", "hypot", "atan2", "xlogy", "copysign", "mul",
                   "true_divide", "remainder", "fmod", "floor_divide"))  # fmt: skip
    if name == "copysign" and c.value(y).isnan().any():
        raise NoChoice  # nan has a sign, but nobody says which
    return f"{c.fresh()} = torch.{name}({x}, {y})"


@kind("arithmetic", 2, needs=some(is_real))
def ternary(c: Choices) -> str:
    x = c.tensor(is_real)
    first = c.value(x)

    def other() -> str:
        return c.tensor(lambda t: t.dtype == first.dtype and broadcasts(t.shape, first.shape))

    def limit() -> str:  # torch cannot differentiate `clamp` where a limit is larger than the rest
        return c.tensor(lambda t: t.dtype == first.dtype and t.shape == first.shape)

    call = c.pick((
        f"torch.addcmul({x}, {other()}, {other()}, value=2)",
        f"torch.addcdiv({x}, {other()}, {other()})",
        f"torch.lerp({x}, {other()}, 0.5)",
        f"torch.lerp({x}, {other()}, {other()})",
        f"torch.where({x} > 0, {x}, {other()})",
        f"torch.where({other()} > 1, {x}, {c.number()})",
        f"torch.add({x}, {other()}, alpha=2)",
        f"torch.sub({x}, {other()}, alpha=0.5)",
        f"torch.rsub({x}, {other()})",
        f"torch.clamp({x}, {limit()}, {limit()})",
    ))  # fmt: skip
    return f"{c.fresh()} = {call}"


@kind("arithmetic", needs=some(is_real))
def comparison(c: Choices) -> str:
    x = c.tensor(is_real)
    y = c.tensor(lambda t: t.dtype in FLOATS and broadcasts(t.shape, c.value(x).shape))
    y = y if c.chance(0.5) else c.number()
    return f"{c.fresh()} = {x} {c.pick(('>', '<', '==', '!=', '>='))} {y}"


UNARY = (
    "neg", "abs", "exp", "sin", "cos", "tanh", "sigmoid", "relu", "sqrt", "reciprocal", "log",
    "square", "sign", "floor", "round", "erf", "log1p", "expm1", "rsqrt", "logit", "softmax(-1)",
    "log_softmax(0)", "clamp(-1, 1)", "clamp(min=0)", "sgn", "angle", "isnan",
    "nan_to_num", "leaky", "gelu", "silu", "softplus", "frac", "tan", "atan", "asinh", "exp2",
    "log2", "prelu", "deg2rad", "trunc",
)  # fmt: skip
SIMPLE = ("neg", "abs", "exp", "sin", "cos", "tanh", "reciprocal", "square", "sgn", "positive")
IN_FUNCTIONAL = {"leaky": "leaky_relu", "gelu": "gelu", "silu": "silu", "softplus": "softplus"}


@kind("unary", 6, needs=some(is_real))
def unary(c: Choices) -> str:
    name = c.pick(UNARY)
    simple = name in SIMPLE
    x = c.tensor(lambda t: t.dtype in FLOATS or (simple and t.dtype in INEXACT))
    if name == "prelu":
        weight = c.tensor(lambda t: t.numel() == 1)
        return f"{c.fresh()} = {x}.prelu({weight})"
    if name == "gelu" and not c.value(x).isfinite().all():
        raise NoChoice  # torch's of infinity depends on how many elements there are
    if name == "sgn" and c.value(x).requires_grad and not c.value(x).is_complex():
        raise NoChoice  # its gradient is a tensor without memory, which makes 0 of nan too
    if name in IN_FUNCTIONAL:
        return f"{c.fresh()} = torch.nn.functional.{IN_FUNCTIONAL[name]}({x})"
    return f"{c.fresh()} = {x}.{name}{'' if '(' in name else '()'}"


REDUCTIONS = ("sum", "sum", "mean", "prod", "amax", "amin", "max", "min", "std", "var", "norm",
              "median", "nanmean", "nansum")  # fmt: skip


@kind("reduction", 4)
def reduced(c: Choices) -> str:
    x = c.tensor(is_real) if c.chance(0.8) else c.inexact()
    names = ("sum", "sum", "mean", "prod") if c.value(x).is_complex() else REDUCTIONS
    name = c.pick(names)
    if name in ("std", "var") and 0 in c.value(x).shape:
        raise NoChoice
    if name == "median" and 0 in c.value(x).stride():
        raise NoChoice  # torch reads what was never written
    if c.chance(0.4):
        return f"{c.fresh()} = {x}.{name}()"
    dim, keep = c.dim(x), c.pick(("", "", ", keepdim=True"))
    first = "[0]" if name in ("max", "min", "median") else ""
    if name == "norm":
        return f"{c.fresh()} = {x}.norm({c.pick((1, 2, 3))}, {dim}{keep})"
    return f"{c.fresh()} = {x}.{name}({dim}{keep}){first}"


@kind("reduction", needs=some(is_real))
def along(c: Choices) -> str:
    x = c.tensor(is_real)
    dim = c.dim(x)
    first = c.value(x)
    top = "topk" if first.unique().numel() == first.numel() else "sort"  # else any may be first
    call = c.pick((f"cumsum({dim})", f"cumprod({dim})", f"logsumexp({dim})", f"flip({dim})",
                   f"roll(1, {dim})", f"sort({dim})[0]", f"{top}({'1, ' * (top == 'topk')}{dim})[0]", f"argmax({dim})",
                   f"cummax({dim})[0]", f"diff(dim={dim})", f"renorm(2, {dim}, 1.0)",
                   f"logcumsumexp({dim})", "tril()", "triu(1)", "trace()", f"sum(({dim},))",
                   f"argsort({dim})", f"count_nonzero({dim})"))  # fmt: skip
    return f"{c.fresh()} = {x}.{call}"


@kind("product", 3, needs=some(has_dims))
def product(c: Choices) -> str:
    x = c.tensor(lambda t: t.dim() > 0 and t.dtype in INEXACT)
    first = c.value(x)

    def fits(t: object) -> bool:
        inner = t.shape[-2] if t.dim() > 1 else t.shape[-1] if t.dim() else -1  # type: ignore[attr-defined]
        return inner == first.shape[-1] and t.dtype == first.dtype  # type: ignore[attr-defined]

    y = c.tensor(fits if c.chance(0.95) else None)
    call = c.pick((f"{x} @ {y}", f"{x} @ {y}", f"torch.matmul({x}, {y})", f"torch.outer({x}, {x})",
                   f"torch.mm({x}, {y})", f"torch.mv({x}, {y})", f"torch.dot({x}, {y})",
                   f"torch.bmm({x}, {y})",
                   f"torch.addmm({x}, {x}, {y})",
                   f"torch.nn.functional.linear({x}, {y})", f"torch.kron({x}, {y})"))  # fmt: skip
    return f"{c.fresh()} = {call}"


@kind("join", 2, needs=some(has_dims))
def join(c: Choices) -> str:
    x = c.tensor(has_dims)
    shape = c.value(x).shape
    parts = [x, c.tensor(lambda t: t.shape == shape)]
    if c.chance(0.3):
        parts.append(c.tensor(lambda t: t.shape == shape))
    name = c.pick(("cat", "cat", "stack", "vstack", "hstack"))
    dim = f", {c.dim(x)}" if name in ("cat", "stack") else ""
    return f"{c.fresh()} = torch.{name}([{', '.join(parts)}]{dim})"


@kind("join", needs=some(has_dims))
def repeated(c: Choices) -> str:
    x = c.tensor(has_dims)
    call = c.pick((f"{x}.repeat(2, *[1] * {c.value(x).dim()})", f"{x}.tile((2,))",
                   f"{x}.repeat_interleave(2, {c.dim(x)})",
                   f"torch.nn.functional.pad({x}, (1, 0))", f"{x}.diag_embed()",
                   f"{x}.expand(2, *{x}.shape).clone()"))  # fmt: skip
    return f"{c.fresh()} = {call}"


@kind("index", 2, needs=some(has_dims))
def advanced_index(c: Choices) -> str:
    x = c.tensor(has_dims)
    return f"{c.fresh()} = {x}[{index(c, x)}]"


def index(c: Choices, x: str) -> str:
    """An index that copies: a list, a tensor of numbers, a mask."""
    t = c.value(x)
    masks = c.tensors(lambda m: str(m.dtype) == "torch.bool" and m.shape == t.shape)
    last = t.shape[0] - 1
    if last < 0:
        raise NoChoice
    some = f"[{', '.join(str(c.integer(-last - 1, last)) for _ in range(c.integer(1, 3)))}]"
    sign = "!=" if t.is_complex() else ">"
    options = [some, f"torch.tensor({some})", f"{x} {sign} 0", f"{some}, 0", f"..., {some}", f"None, {some}",
               f"{some}, {some}", f"0, {some}", f"torch.tensor({some[1:].split(',')[0].strip(']')})",
               *masks]  # fmt: skip
    return c.pick(options)


@kind("index", 2, needs=some(has_dims))
def gathered(c: Choices) -> str:
    x = c.tensor(lambda t: t.dim() > 0 and not t.is_complex())
    dim = c.dim(x)
    zeros = f"torch.zeros_like({x}, dtype=torch.int64)"
    call = c.pick((f"{x}.index_select({dim}, torch.tensor([0, 0]))", f"{x}.gather({dim}, {zeros})",
                   f"{x}.take(torch.tensor([0, -1]))", f"{x}.masked_select({x} > 0)",
                   f"{x}.masked_fill({x} > 0, {c.number()})", f"torch.take_along_dim({x}, {zeros}, {dim})",
                   f"{x}.index_fill({dim}, torch.tensor([0]), {c.number()})",
                   f"{x}.scatter({dim}, {zeros}, {c.number()})", f"{x}.nonzero()",
                   f"{x}.index_add({dim}, torch.arange({x}.shape[{dim}]), {x})",
                   f"{x}.scatter_add({dim}, {zeros}, {x})", f"{x}.select_scatter({x}.select({dim}, 0), {dim}, 0)",
                   f"{x}.index_put((torch.tensor([0]),), {x}[0])"))  # fmt: skip
    return f"{c.fresh()} = {call}"
