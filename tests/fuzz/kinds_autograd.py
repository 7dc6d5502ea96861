"""Lines that deal with the graph: backward, gradients, hooks, flags, Functions, looking."""

from __future__ import annotations

from fuzz.choices import (
    Choices,
    NoChoice,
    is_distinct,
    is_recorded,
    kind,
    some,
    without_complex_halves,
)

# -- backward


def root(c: Choices) -> str:
    """An expression to start a backward pass from: mostly a scalar."""
    x = c.recorded()
    t = c.value(x)
    if t.dim() == 0 and not t.is_complex() and c.chance(0.6):
        return x
    if t.is_complex():
        return f"{x}.abs().sum()"
    return c.pick((f"{x}.sum()", f"{x}.sum()", f"({x} * {x}).sum()", f"{x}.mean()"))


def options(c: Choices) -> str:
    """The options of a pass."""
    text = ""
    if c.chance(0.35):
        text += ", retain_graph=True"
    if c.chance(0.2):
        text += ", create_graph=True"
    return text


@kind("backward", 8, needs=some(is_recorded))
def backward(c: Choices) -> str:
    kwargs = options(c)
    if c.chance(0.2):
        some = [c.recorded() for _ in range(c.integer(1, 2))]
        kwargs += f", inputs=[{', '.join(some)}]"
    if c.chance(0.25):
        x = c.recorded()
        seed = c.pick((f"torch.ones_like({x})", f"torch.full_like({x}, 2)", f"{x}.detach()", x,
                       c.tensor(lambda t: t.shape == c.value(x).shape), "torch.tensor(1.0)", ""))  # fmt: skip
        return f"{x}.backward({seed}{kwargs if seed else kwargs[2:]})"
    return f"{root(c)}.backward({kwargs[2:]})"


@kind("backward", 2, needs=some(is_recorded))
def backward_of_several(c: Choices) -> str:
    x, y = root(c), root(c)
    seeds = c.pick(("", "", ", [None, torch.tensor(2.0)]"))
    return f"torch.autograd.backward([{x}, {y}]{seeds}{options(c)})"


@kind("backward", 5, needs=some(is_recorded))
def grad_of(c: Choices) -> str:
    some = list(dict.fromkeys(c.recorded() for _ in range(c.integer(1, 2))))
    kwargs = options(c)
    if c.chance(0.6):
        kwargs += ", allow_unused=True"
    if c.chance(0.1):
        kwargs += ", materialize_grads=True"
    names = ", ".join(c.fresh() for _ in some)
    return f"{names}, = torch.autograd.grad({root(c)}, [{', '.join(some)}]{kwargs})"


# -- gradients


@kind("grads", 4, needs=some(is_recorded))
def grads(c: Choices) -> str:
    x = c.recorded()
    if not is_distinct(c.value(x)) and 0 not in c.value(x).stride():
        raise NoChoice  # what is written to it depends on torch's loops
    return c.pick((f"{x}.grad = None", f"{x}.grad.zero_()", f"{c.fresh()} = {x}.grad", f"{c.fresh()} = {x}.grad",
                   f"{x}.grad.detach_()", f"{x}.grad = {c.tensor(lambda t: t.shape == c.value(x).shape)}",
                   f"{x}.grad.mul_(2)", f"with torch.no_grad(): {x}.sub_({x}.grad)",
                   f"{x}.data.sub_({x}.grad)", f"{x}.grad.requires_grad_(False)",
                   f"{x}.grad.data.zero_()", f"{c.fresh()} = {x}.grad.sum()"))  # fmt: skip


# -- flags


@kind("flags", 4)
def flags(c: Choices) -> str:
    x = c.tensor()
    # A hook that was given a result of torch itself sees that it was detached; in clew an alias.
    detach = f"{c.fresh()} = {x}.detach()" if c.packs else f"{x}.detach_()"
    return c.pick((f"{x}.requires_grad_()", f"{x}.requires_grad_()", f"{x}.requires_grad_(False)",
                   f"{x}.requires_grad = False", detach, detach, f"{c.fresh()} = {x}.detach()",
                   f"{x}.requires_grad = True", f"{c.fresh()} = torch.nn.Parameter({x})"))  # fmt: skip


@kind("flags", 2, needs=some(is_recorded))
def keep_grad(c: Choices) -> str:
    return f"{c.recorded()}.retain_grad()"


@kind("flags", 2, needs=lambda c: len(c.tensors()) > 3)
def delete(c: Choices) -> str:
    return f"del {c.tensor()}"


@kind("modes", 2)
def mode(c: Choices) -> str:
    """A mode that holds until the program ends or another is set."""
    return f"torch.set_grad_enabled({c.pick((False, True, True, True))})"


# -- hooks


def hook(c: Choices) -> str:
    """A hook of a tensor."""
    name = c.label("h")
    x = c.recorded()
    return c.pick((f"note('{name}')", f"note('{name}')", f"note('{name}')", f"scale('{name}', 2)",
                   f"scale('{name}', {x})", f"overwrite('{name}', 3)", f"fail('{name}')",
                   f"again('{name}', {x})", f"scale('{name}', torch.ones(2, 2))"))  # fmt: skip


@kind("hooks", 4, needs=some(is_recorded))
def tensor_hook(c: Choices) -> str:
    x = c.recorded()
    t = c.value(x)
    # torch crashes where a view was written to and gets a hook before anybody asked for its node.
    ask = f"{x}.grad_fn; " if t._is_view() else ""
    return f"{ask}{c.label('handle')} = {x}.register_hook({hook(c)})"


@kind("hooks", 3, needs=some(is_recorded))
def node_hook(c: Choices) -> str:
    x, name = c.recorded(), c.label("n")
    make = c.pick(("note", "note", "scale_each", "fail"))
    more = ", 2" if make == "scale_each" else ""
    which = c.pick((f"{x}.grad_fn", f"{x}.grad_fn", f"{x}.grad_fn.next_functions[0][0]",
                    f"torch.autograd.graph.get_gradient_edge({x}).node"))  # fmt: skip
    kind = c.pick(("register_hook", "register_prehook"))
    return f"{c.label('handle')} = {which}.{kind}({make}('{name}'{more}))"


@kind("hooks", 2, needs=some(is_recorded))
def post_accumulate_hook(c: Choices) -> str:
    x, name = c.recorded(), c.label("p")
    make = c.pick(
        (f"note('{name}')", f"clear_grad('{name}')", f"step('{name}')", f"fail('{name}')")
    )
    return f"{c.label('handle')} = {x}.register_post_accumulate_grad_hook({make})"


@kind("hooks", needs=some(is_recorded))
def several_hook(c: Choices) -> str:
    some = list(dict.fromkeys(c.recorded() for _ in range(2)))
    mode = c.pick(("", ", mode='any'", ", mode='all'"))
    name = c.label("m")
    ask = "".join(f"{x}.grad_fn; " for x in some)  # see `tensor_hook`
    return (f"{ask}{c.label('handle')} = torch.autograd.graph.register_multi_grad_hook("
            f"({', '.join(some)},), note('{name}'){mode})")  # fmt: skip


@kind("hooks", needs=lambda c: bool(c.handles()))
def remove_hook(c: Choices) -> str:
    return f"{c.pick(c.handles())}.remove()"


# -- saved tensors


@kind("saved", needs=some(is_recorded))
def hooks_on_saved(c: Choices) -> str:
    x = c.recorded()
    name = c.label("s")
    attribute = c.pick(("self", "result", "other"))
    return (f"{x}.grad_fn._raw_saved_{attribute}.register_hooks("
            f"{c.pick(('pack', 'keep'))}('{name}'), keep('{name}'))")  # fmt: skip


@kind("saved", 2, needs=some(is_recorded))
def saved_hooks(c: Choices) -> str:
    """Hooks for what the next few lines save; a mode (see `machine.Program`) could do it too."""
    x, name, y = c.recorded(), c.label("s"), c.inexact()
    packer = c.pick(
        (
            f"pack('{name}')",
            f"keep('{name}')",
            f"fail('{name}')" if c.chance(0.2) else f"keep('{name}')",
        )
    )
    unpacker = c.pick(
        (
            f"keep('{name}')",
            f"unpack('{name}', 1)",
            "lambda t: 3" if c.chance(0.2) else "lambda t: t",
        )
    )
    without_complex_halves(c, x, y)
    op = c.pick((f"{x} * {y}", f"{x}.exp()", f"{x}.sigmoid() * {x}", f"{x} / 2"))
    return (
        f"with torch.autograd.graph.saved_tensors_hooks({packer}, {unpacker}): {c.fresh()} = {op}"
    )


# -- Functions and checkpoints


@kind("functions", 4)
def function(c: Choices) -> str:
    x, y = c.inexact(), c.inexact()
    # What writes needs a tensor in which each element has memory of its own.
    writes = is_distinct(c.value(x))
    name = c.pick(("Double", "Exp", "Write" if writes else "Same", "Same", "Row", "Once"))
    if c.chance(0.3):
        two = c.pick(
            (
                f"{'WriteBoth' if writes else 'Absent'}.apply({x}, {y})",
                f"Halves.apply({x})",
                f"Absent.apply({x}, {y})",
            )
        )
        return f"{c.fresh()}, {c.fresh()} = {two}"
    return f"{c.fresh()} = {name}.apply({x})"


@kind("functions", 2)
def checkpointed(c: Choices) -> str:
    x = c.inexact()
    f, reentrant = (
        c.pick(("cube", "layered", "torch.sin", "Double.apply")),
        c.pick((True, False, False)),
    )
    return f"{c.fresh()} = checkpoint({f}, {x}, use_reentrant={reentrant})"


# -- looking


@kind("look", 4)
def looked(c: Choices) -> str:
    return f"look({c.tensor()})"


@kind("look")
def looked_at_grad(c: Choices) -> str:
    return f"grad({c.tensor()})"


@kind("look", 2, needs=some(is_recorded))
def graphed(c: Choices) -> str:
    return f"{c.pick(('graph', 'saved'))}({c.recorded()})"
