"""The autograd errors: PyTorch's type and leading clause, then what to look at and what to do.

Layer 0: imports dtypes and site.  Every class is a RuntimeError, as PyTorch raises, and its text
begins with PyTorch's, so that ``except`` and ``match=`` keep working::

    AutogradError
    ├── NoGradientPathError     backward from a tensor that no recorded operation leads to
    ├── GraphFreedError         a second backward through a graph whose saved values are gone
    ├── SavedTensorModifiedError   a saved tensor was written to before backward needed it
    ├── LeafModifiedError       an in-place write to a leaf that requires grad, or to a view of one
    ├── ViewModifiedError       an in-place write to a view that cannot take one
    ├── InferenceTensorError    an inference tensor where autograd needs a normal one
    └── NonScalarBackwardError  backward from more than one element without a gradient

docs/errors.md has a page for each, with a failing and a corrected program.
"""

from __future__ import annotations

from typing import Any

from clew.dtypes import of_numpy
from clew.site import Site, resolve


class AutogradError(RuntimeError):
    """Base of the autograd errors.

    Attributes:
        facts: (label, text) pairs behind the text: which tensor, which lines, what to do.
    """

    anchor = ""

    def __init__(self, clause: str, *facts: tuple[str, str | None]) -> None:
        self.clause = clause
        self.facts = [(label, text) for label, text in facts if text]
        lines = [f"  {label + ':':<10} {text}" for label, text in self.facts]
        if self.anchor:
            lines.append(f"  {'more:':<10} docs/errors.md#{self.anchor}")
        super().__init__("\n".join([clause, *lines]))


def describe(tensor: Any) -> str:
    """A tensor in a few words: type, shape, whether it is a leaf, and the line that made it."""
    array = tensor._array
    shape = ", ".join(map(str, array.shape))
    kind = "leaf tensor" if tensor._edge is None else "tensor"
    return f"{kind} {of_numpy(array.dtype).name} [{shape}]" + made_at(tensor)


def made_at(tensor: Any) -> str:
    """The end of a sentence that says where a tensor was made; empty where nobody knows."""
    if tensor._edge is not None:
        node = tensor._edge[0]
        place = at(node.site)
        return f", made by {node.name()}" + (f" {place}" if place else "")
    meta = tensor._meta
    place = at(meta.site) if meta is not None else None
    return f", made {place}" if place else ""


def at(site: Site | None) -> str | None:
    """``at file:line, in function: text`` of a site, or None."""
    line = resolve(site)
    return None if line is None else f"at {line}"


class NoGradientPathError(AutogradError):
    """Backward was asked of a tensor that no recorded operation leads to."""

    anchor = "no-gradient-path"

    def __init__(self, index: int, tensor: Any) -> None:
        super().__init__(
            f"element {index} of tensors does not require grad and does not have a grad_fn",
            ("tensor", describe(tensor)),
            ("why", _why_no_path(tensor)),
            ("cure", "compute it from a tensor that requires grad, outside no_grad, and without "
                     "detach(), .data, .item() or numpy() in between"),
        )  # fmt: skip


def _why_no_path(tensor: Any) -> str:
    cut = tensor._meta.cut if tensor._meta is not None else None
    if cut is None:
        return "it was computed from tensors that do not require grad, or under no_grad"
    name, site = cut
    place = at(site)
    return f"the graph was cut by {name}" + (f" {place}" if place else "")


class GraphFreedError(AutogradError):
    """A second backward pass through a node whose saved values were released."""

    anchor = "graph-freed"

    def __init__(self, node: Any, freed_at: Site | None = None) -> None:
        where = at(node.site)
        super().__init__(
            "Trying to backward through the graph a second time (or directly access saved "
            "tensors after they have already been freed). Saved intermediate values of the graph "
            "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True "
            "if you need to backward through the graph a second time or if you need to access "
            "saved tensors after calling backward.",
            ("node", node.name() + (f", recorded {where}" if where else "")),
            ("freed", f"by the backward {at(freed_at)}" if freed_at else None),
            ("cure", "compute this part again before the second backward, detach() what is carried "
                     "over, add the losses and call backward once, or keep the graph with "
                     "retain_graph=True in the first call"),
        )  # fmt: skip


class SavedTensorModifiedError(AutogradError):
    """A tensor that backward needs was written to after it was saved."""

    anchor = "saved-tensor-modified"

    def __init__(
        self, clause: str, tensor: str, saved_by: str, changed_by: str | None, cure: str
    ) -> None:
        super().__init__(
            clause, ("tensor", tensor), ("saved by", saved_by), ("changed", changed_by),
            ("cure", cure),
        )  # fmt: skip


class LeafModifiedError(AutogradError):
    """An in-place write to a leaf that requires grad, or to a view of one."""

    anchor = "leaf-modified"

    def __init__(self, tensor: Any, operation: str, *, view: bool, tense: str = "is being") -> None:
        what = "a view of a leaf Variable" if view else "a leaf Variable"
        leaf = tensor._meta.base if view else tensor
        super().__init__(
            f"{what} that requires grad {tense} used in an in-place operation.",
            ("tensor", describe(leaf)),
            ("write", f"{operation} on {'a view of it' if view else 'it'}"),
            ("cure", "to update a parameter, write inside `with torch.no_grad():`; to compute with "
                     "it, use the out-of-place operation (x = x + 1) or write to x.clone()"),
        )  # fmt: skip


class ViewModifiedError(AutogradError):
    """An in-place write to a view whose base's history cannot be rewritten."""

    anchor = "view-modified"

    def __init__(self, clause: str, tensor: Any, cure: str) -> None:
        super().__init__(clause, ("tensor", describe(tensor)), ("cure", cure))


class InferenceTensorError(AutogradError):
    """An inference tensor is used where autograd needs a normal tensor."""

    anchor = "inference-tensor"

    def __init__(self, clause: str, tensor: Any, cure: str) -> None:
        super().__init__(clause, ("tensor", describe(tensor)), ("cure", cure))


class NonScalarBackwardError(AutogradError):
    """Backward from a tensor of more than one element without a gradient for it."""

    anchor = "non-scalar-backward"

    def __init__(self, tensor: Any) -> None:
        super().__init__(
            "grad can be implicitly created only for scalar outputs",
            ("tensor", describe(tensor)),
            ("cure", "reduce it first (loss.mean() or loss.sum()), or pass a gradient of its "
                     "shape: y.backward(torch.ones_like(y))"),
        )  # fmt: skip
