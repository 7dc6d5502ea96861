"""What random programs use beside torch: hooks, Functions, and functions that look at tensors.

Run once for each engine, which is then called `torch` here and in the program.  Everything that a
program finds out goes into `log` as plain data; the machine compares the two logs after each line.
"""

from typing import Any

import torch
from torch.utils.checkpoint import checkpoint  # noqa: F401  (programs use it)

log: list[Any] = []


def plain(value):
    """A value without engine objects: a tensor as its geometry and its elements."""
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), tuple(value.shape), strides(value), value.tolist()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, (torch.dtype, torch.layout, torch.device, torch.memory_format)):
        return str(value)
    return value


def strides(tensor):
    """Those that say something: NumPy has no opinion on dimensions without a second element."""
    if 0 in tensor.shape:
        return ()
    return tuple([s for s, n in zip(tensor.stride(), tensor.shape) if n > 1])


def names():
    """The program's tensors by name."""
    return {k: v for k, v in globals().items() if isinstance(v, torch.Tensor)}


def name_of(tensor):
    """The name that the program has for this very tensor, or None."""
    return next((name for name, value in names().items() if value is tensor), None)


# -- looking


def look(tensor):
    """Note how the tensor stands in the graph; this brings the edge of a view up to date."""
    node = tensor.grad_fn
    log.append([
        "look", tensor.requires_grad, tensor.is_leaf, node and node.name(), tensor.output_nr,
        tensor.retains_grad, tensor.is_inference(),
    ])  # fmt: skip


def grad(tensor):
    """Note the tensor's gradient."""
    found = tensor.grad
    if found is None:
        log.append(["grad", None])
    else:
        node = found.grad_fn
        log.append(["grad", plain(found), found.requires_grad, node and node.name(),
                    name_of(found)])  # fmt: skip


def graph(*tensors):
    """Note the nodes that lead to these tensors, each with its edges."""
    numbers, nodes = {}, []

    def number(node):
        if node is not None and node not in numbers:
            numbers[node] = len(numbers)
            nodes.append(node)
        return numbers.get(node)

    log.append(["roots", [(number(t.grad_fn), t.output_nr) for t in tensors]])
    for node in nodes:  # grows
        leaf = name_of(node.variable) if hasattr(node, "variable") else None
        log.append([node.name(), leaf, [(number(n), nr) for n, nr in node.next_functions]])
    return nodes


def saved(*tensors):
    """Note what the nodes that lead to these tensors have saved, or that it is not to be had."""
    for node in graph(*tensors):
        found = {}
        for name in dir(node):
            if name.startswith("_saved_"):
                try:
                    found[name] = plain(getattr(node, name))
                except RuntimeError as error:
                    found[name] = first_sentence(error)
        log.append(["saved", found])


def first_sentence(error):
    """The part of an error's text in which the engines must agree."""
    return str(error).split(". ")[0].split("\n")[0]


# -- hooks


def note(name):
    """A hook that notes what it is given."""
    return lambda *given: log.append([name, plain(given)])


def scale(name, factor):
    """A tensor hook that returns another gradient."""

    def hook(given):
        log.append([name, plain(given)])
        return given * factor

    return hook


def scale_each(name, factor):
    """A hook of a node that returns other gradients."""

    def hook(given, *rest):
        log.append([name, plain([given, *rest])])
        return tuple(None if g is None else g * factor for g in given)

    return hook


def overwrite(name, value):
    """A hook that writes to the gradient it is given."""

    def hook(given):
        log.append([name, plain(given)])
        given.fill_(value)

    return hook


def fail(name):
    """A hook that raises."""

    def hook(*given):
        log.append([name, plain(given)])
        raise ValueError(name)

    return hook


def clear_grad(name):
    """A hook for after the accumulation, as of an optimizer that steps in backward."""

    def hook(leaf):
        log.append([name, plain(leaf.grad)])
        leaf.grad = None

    return hook


def step(name):
    """A hook for after the accumulation that updates the leaf."""

    def hook(leaf):
        log.append([name, plain(leaf.grad)])
        with torch.no_grad():
            leaf.sub_(leaf.grad)

    return hook


def again(name, tensor):
    """A hook that runs another backward pass."""

    def hook(given):
        log.append([name, plain(given)])
        tensor.sum().backward(retain_graph=True)

    return hook


def pack(name):
    """A pack hook that notes and detaches what is saved."""

    def hook(tensor):
        log.append([name, plain(tensor), tensor.requires_grad])
        return tensor.detach()

    return hook


def keep(name):
    """A pack hook or an unpack hook that notes and passes on what it is given."""

    def hook(tensor):
        log.append([name, plain(tensor), tensor.requires_grad])
        return tensor

    return hook


def unpack(name, offset):
    """An unpack hook that changes what was saved."""

    def hook(tensor):
        log.append([name, plain(tensor)])
        return tensor + offset

    return hook


# -- Functions


class Double(torch.autograd.Function):
    """Keeps its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        log.append(["Double", plain(grad), ctx.needs_input_grad])
        return 2 * x * grad


class Exp(torch.autograd.Function):
    """Keeps its output; context apart."""

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


class Write(torch.autograd.Function):
    """Writes to its input and says so."""

    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        log.append(["Write", plain(grad)])
        return grad * 2


class WriteBoth(torch.autograd.Function):
    """Writes to its first input, returns a computed tensor too."""

    @staticmethod
    def forward(ctx, x, y):
        x.add_(1)
        ctx.mark_dirty(x)
        return x, y * 3

    @staticmethod
    def backward(ctx, first, second):
        log.append(["WriteBoth", plain([first, second]), ctx.needs_input_grad])
        return first, second * 3


class Same(torch.autograd.Function):
    """Returns its input."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 5


class Row(torch.autograd.Function):
    """Returns a view of its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[0]

    @staticmethod
    def backward(ctx, grad):
        full = torch.zeros(ctx.shape, dtype=grad.dtype)
        full[0] = grad
        return full


class Halves(torch.autograd.Function):
    """Returns two tensors of which the second has no gradient."""

    @staticmethod
    def forward(ctx, x):
        half, sign = x / 2, x.sgn()
        ctx.mark_non_differentiable(sign)
        return half, sign

    @staticmethod
    def backward(ctx, grad, none):
        log.append(["Halves", plain([grad, none])])
        return grad / 2


class Absent(torch.autograd.Function):
    """Takes what no gradient arrives for as None, and gives one of its inputs none."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 2, y * 3

    @staticmethod
    def backward(ctx, first, second):
        log.append(["Absent", plain([first, second])])
        return None if first is None else first * 2, None


class Once(torch.autograd.Function):
    """Cannot be differentiated twice."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * 2


# -- what is checkpointed


def cube(x):
    """A few ops that keep what they compute."""
    return (x * x).sin() * x


def layered(x):
    """With an in-place write on what was computed inside."""
    y = x * 2
    y[..., :1].mul_(3)
    return y.tanh()


# -- the end


def check():
    """Look at everything."""
    known = names()
    for tensor in known.values():
        look(tensor)
        if tensor.is_leaf or tensor.retains_grad:
            grad(tensor)
    saved(*known.values())
