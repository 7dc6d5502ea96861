"""The autograd errors: PyTorch's type and leading clause, then what to look at and what to do.

Layer 0: imports dtypes and site.  Each text is PyTorch's, and each class derives from the type
that PyTorch raises, so that ``except`` and ``match=`` keep working; the rest is a note::

    AutogradError
    ├── NoGradientPathError       backward from a tensor that no recorded operation leads to
    ├── NonScalarBackwardError    backward from more than one element without a gradient
    ├── GraphFreedError           a second backward through a graph whose saved values are gone
    ├── SavedTensorModifiedError  a saved tensor was written to before backward needed it
    ├── PackedValueError          a look at a saved value of which only a packed form is kept
    ├── LeafModifiedError         an in-place write to a leaf that requires grad, or to its view
    ├── ViewModifiedError         an in-place write to a view that cannot take one
    ├── ExpandedWriteError        an in-place write to elements that share their memory
    ├── InferenceTensorError      an inference tensor where autograd needs a normal one
    ├── RequiresGradError         a tensor that cannot be told to require grad, or not to
    ├── NonLeafCopyError          a copy or a pickle of a tensor that has a history
    ├── UnusedInputError          the gradient of something that the outputs do not depend on
    ├── GradientError             a gradient of another shape or type than its tensor, or no tensor
    ├── HookError                 a hook returned what cannot stand in for the gradient
    ├── FunctionError             a custom Function does not do what autograd expects of it
    ├── SavedHookError            a pack or unpack hook does what it must not
    ├── DetachError               a view, or what backward needs, is detached in place
    ├── NoDerivativeError         backward through what has no derivative
    ├── TwiceDifferentiatedError  the second derivative of what is once differentiable
    ├── NanGradientError          anomaly mode has found nan
    ├── NoNodeError               a hook on a tensor without a place in the graph
    ├── InputsError               `inputs=` is empty, or holds what is no tensor
    ├── CallbackError             a callback is queued where no backward runs
    ├── MutationContextError      backward after allow_mutation_on_saved_tensors has ended
    ├── UnpackedError             an unpack hook returned another shape or type
    ├── FunctionalError           `autograd.functional` with what it cannot work with
    ├── ForwardModeError          a level or a tangent of forward mode where it cannot be
    ├── MissingMethodError        a custom Function lacks a method that is needed
    ├── CheckpointError           a checkpointed function does not do the same again
    ├── CheckpointUseError        a checkpoint with re-entrance where it cannot work
    └── CheckpointOptionError     options of a checkpoint that do not exist or fit together

docs/errors.md has a section for each, with a failing and a corrected program.
"""

from __future__ import annotations

from typing import Any

from clew.dtypes import of_numpy
from clew.site import Site, here, resolve

Fact = tuple[str, str | None]


def lesson(facts: tuple[Fact, ...], anchor: str) -> str:
    """A line for each fact that is known, and where to read more."""
    known = [(label, text) for label, text in facts if text]
    if anchor:
        known.append(("more", f"docs/errors.md#{anchor}"))
    return "\n".join(f"  {label + ':':<10} {text}" for label, text in known)


def teach(clause: str, facts: tuple[Fact, ...], anchor: str) -> str:
    """The text of a warning: PyTorch's, then the lesson."""
    return f"{clause}\n{lesson(facts, anchor)}"


class AutogradError(Exception):
    """Base of the autograd errors.

    ``str(error)`` is PyTorch's text, and nothing else, so that programs and tests that look at it
    see what they expect.  What clew adds is a note of the exception (PEP 678), which tracebacks,
    notebooks and pytest print below the text.

    Attributes:
        clause: PyTorch's text.
        facts: (label, text) pairs that follow it: which tensor, which lines, what to do.
        anchor: the section of docs/errors.md.
    """

    anchor = ""
    names_node = True
    """Whether a fact names the node that ran; the engine says it of other errors."""

    def __init_subclass__(cls) -> None:
        cls.__module__ = "clew.errors"

    def __init__(self, clause: str, *facts: Fact) -> None:
        self.clause = clause
        self.facts = [fact for fact in facts if fact[1]]
        super().__init__(clause)
        added = lesson(facts, self.anchor)
        if added:
            self.add_note(added)

    def __reduce__(self) -> Any:
        return _rebuilt, (type(self), self.clause, self.facts), self.__dict__


def _rebuilt(cls: type[AutogradError], clause: str, facts: list[Fact]) -> AutogradError:
    """An error from its parts, for pickle: the constructors take what the parts are made of."""
    error = cls.__new__(cls)
    AutogradError.__init__(error, clause, *facts)
    return error


# -- words


def describe(tensor: Any) -> str:
    """A tensor in a few words: type, shape, whether it is a leaf, and the line that made it."""
    kind = "leaf tensor" if tensor._node is None else "tensor"
    return f"{kind} {shape_of(tensor)}{made_at(tensor)}"


def describe_end(end: Any) -> str:
    """What a gradient is asked of or for: a tensor, or a graph edge."""
    return describe(end) if hasattr(end, "_array") else f"a result of {recorded(end.node)}"


def shape_of(tensor: Any) -> str:
    """``float32 [2, 3]``."""
    return typed(tensor._array.shape, tensor._array.dtype)


def typed(shape: tuple[int, ...], dtype: Any) -> str:
    """A shape and a NumPy dtype: ``float32 [2, 3]``."""
    return f"{of_numpy(dtype).name} [{', '.join(map(str, shape))}]"


def made_at(tensor: Any) -> str:
    """The end of a sentence that says where a tensor was made; empty where nobody knows."""
    if tensor._node is not None:
        return made_by(tensor._edge[0])
    meta = tensor._meta
    return spaced(", made", meta.site) if meta is not None else ""


def made_by(node: Any) -> str:
    """The end of a sentence that says which node made a tensor, and on which line."""
    return f", made by {node.name()}{spaced('', node.site)}"


def at(site: Site | None) -> str | None:
    """``at file:line, in function: text`` of a site, or None."""
    line = resolve(site)
    return None if line is None else f"at {line}"


def spaced(words: str, site: Site | None) -> str:
    """Words and the place of a site; empty where the place is unknown."""
    place = at(site)
    return f"{words} {place}" if place else ""


def recorded(node: Any) -> str:
    """A node, what it made and on which line: ``MulBackward0, which made float32 [3] at ...``."""
    results = ", ".join(typed(*meta) for meta in node.metas if meta)
    return f"{node.name()}{f', which made {results}' if results else ','}{spaced('', node.site)}"


def defined(function: Any) -> str:
    """A function's name, and where it is defined if it is written in Python."""
    name = getattr(function, "__qualname__", type(function).__name__)
    code = getattr(function, "__code__", None)
    # The first line may be a decorator's, so its text would not help.
    return f"{name}, defined at {code.co_filename}:{code.co_firstlineno}" if code else name


# -- backward


class NoGradientPathError(AutogradError, RuntimeError):
    """Backward was asked of a tensor that no recorded operation leads to."""

    anchor = "no-gradient-path"

    def __init__(self, index: int, tensor: Any) -> None:
        cut = tensor._cut
        super().__init__(
            f"element {index} of tensors does not require grad and does not have a grad_fn",
            ("tensor", describe(tensor)),
            ("why", why_no_path(tensor)),
            ("backward", at(here())),
            ("cure", _reconnect(cut)),
        )


def why_no_path(tensor: Any) -> str:
    """What has kept a tensor out of the graph."""
    cut = tensor._cut
    if cut is not None:
        return f"the graph was cut by {cut[0]}{spaced('', cut[1])}"
    dtype = of_numpy(tensor._array.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        return f"tensors of {dtype.name} have no gradient"
    return "none of the tensors that it was computed from requires grad"


def _reconnect(cut: tuple[str, Site | None] | None) -> str:
    if cut is None:
        return (
            "compute it from a tensor that requires grad (x.requires_grad_() before the forward), "
            "and not by way of item(), tolist(), numpy() or torch.tensor(), which give plain values"
        )
    if cut[0] in ("no_grad", "inference_mode"):
        return f"compute it outside {cut[0]}"
    if cut[0].rstrip("()_") in ("detach", ".data"):
        return f"leave {cut[0]} out there, if the gradient is to flow on"
    return f"use a function that has a gradient instead of {cut[0]}"


class NonScalarBackwardError(AutogradError, RuntimeError):
    """Backward from a tensor of more than one element, or a complex one, without a gradient."""

    anchor = "non-scalar-backward"

    def __init__(self, end: Any, shape: tuple[int, ...], dtype: Any) -> None:
        if all(n == 1 for n in shape):
            clause = (
                "grad can be implicitly created only for real scalar outputs but got "
                f"{of_numpy(dtype)!r}"
            )
            cure = "take a real number of it (y.abs() or y.real)"
        else:
            clause = "grad can be implicitly created only for scalar outputs"
            cure = "reduce it first (y.mean() or y.sum())"
        super().__init__(
            clause,
            ("tensor", describe_end(end)),
            ("backward", at(here())),
            ("cure", f"{cure}, or pass its gradient: y.backward(torch.ones_like(y))"),
        )


class GraphFreedError(AutogradError, RuntimeError):
    """A second backward pass through a node whose saved values were released."""

    anchor = "graph-freed"

    def __init__(self, node: Any, freed_at: Site | None = None) -> None:
        super().__init__(
            "Trying to backward through the graph a second time (or directly access saved "
            "tensors after they have already been freed). Saved intermediate values of the graph "
            "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True "
            "if you need to backward through the graph a second time or if you need to access "
            "saved tensors after calling backward.",
            ("node", recorded(node)),
            ("freed", spaced("by the backward", freed_at)),
            ("again", at(here())),
            ("cure", "compute this part again before the second backward, detach() what is carried "
                     "over, add the losses and call backward once, or keep the graph with "
                     "retain_graph=True in the first call"),
        )  # fmt: skip


class SavedTensorModifiedError(AutogradError, RuntimeError):
    """A tensor that backward needs was written to after it was saved."""

    anchor = "saved-tensor-modified"

    def __init__(
        self, clause: str, tensor: str, saved_by: str, changed_by: str | None, cure: str
    ) -> None:
        super().__init__(
            clause,
            ("tensor", tensor),
            ("saved by", saved_by),
            ("changed", changed_by),
            ("cure", cure),
        )


class PackedValueError(AutogradError, RuntimeError):
    """A look at what a node keeps in a packed form, after the tensor itself has gone."""

    anchor = "packed-value"

    def __init__(self, tensor: str, kept: str, saved_by: str | None) -> None:
        super().__init__(
            "The tensor that was saved is gone: of it, only what backward needs is kept",
            ("tensor", tensor),
            ("saved by", saved_by),
            ("kept", kept),
            ("cure", "keep a reference to the tensor for as long as you want to look at it, or "
                     "record under saved_tensors_hooks, where tensors are saved as they are"),
        )  # fmt: skip


# -- in-place writes


class LeafModifiedError(AutogradError, RuntimeError):
    """An in-place write to a leaf that requires grad, or to a view of one."""

    anchor = "leaf-modified"

    def __init__(self, tensor: Any, operation: str, *, view: bool, tense: str = "is being") -> None:
        what = "a view of a leaf Variable" if view else "a leaf Variable"
        leaf = tensor._meta.base if view else tensor
        super().__init__(
            f"{what} that requires grad {tense} used in an in-place operation.",
            ("tensor", describe(leaf)),
            ("written", f"by {operation}{' through a view' if view else ''}{spaced('', here())}"),
            ("cure", "to update a parameter, write inside `with torch.no_grad():`; to compute with "
                     "it, use the out-of-place operation (y = x + 1) or write to x.clone()"),
        )  # fmt: skip


class ViewModifiedError(AutogradError, RuntimeError):
    """An in-place write to a view, or to the base of one, that autograd cannot follow."""

    anchor = "view-modified"

    def __init__(self, clause: str, tensor: Any, written: str, cure: str) -> None:
        super().__init__(
            clause,
            ("view", describe(tensor)),
            ("made", _made_in(tensor)),
            ("written", written),
            ("cure", cure),
        )


EXPANDED = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)


class ExpandedWriteError(AutogradError, RuntimeError):
    """An in-place write to a tensor of which several elements share one memory location."""

    anchor = "expanded-tensor"

    def __init__(self, tensor: Any, operation: str) -> None:
        super().__init__(
            EXPANDED,
            ("tensor", describe(tensor)),
            ("memory", f"its strides are {_strides(tensor)}; a stride of 0 repeats one element"),
            ("written", f"by {operation}{spaced('', here())}"),
            ("cure", "write to x.clone(), or to the tensor from before expand()"),
        )


def _strides(tensor: Any) -> list[int]:
    array = tensor._array
    return [s // array.itemsize for s in array.strides]


class InferenceTensorError(AutogradError, RuntimeError):
    """An inference tensor is used where autograd needs a normal tensor."""

    anchor = "inference-tensor"

    def __init__(self, clause: str, tensor: Any, cure: str) -> None:
        super().__init__(
            clause,
            ("tensor", describe(tensor)),
            ("made", _made_in(tensor)),
            ("used", at(here())),
            ("cure", cure),
        )


def _made_in(tensor: Any) -> str | None:
    """The mode in which a tensor without an edge was made, and the line that turned it on."""
    if tensor._node is not None or tensor._cut is None:
        return None
    return f"in {tensor._cut[0]}{spaced('', tensor._cut[1])}"


# -- flags, copies, gradients


class RequiresGradError(AutogradError, RuntimeError):
    """The flag of a tensor with a history, or of one whose type has no gradient, is set."""

    anchor = "requires-grad"

    def __init__(self, clause: str, tensor: Any, cure: str) -> None:
        super().__init__(
            clause, ("tensor", describe(tensor)), ("asked", at(here())), ("cure", cure)
        )


class NonLeafCopyError(AutogradError, RuntimeError):
    """A tensor with a history is to be copied or pickled without it."""

    anchor = "non-leaf-copy"

    def __init__(self, clause: str, tensor: Any) -> None:
        super().__init__(
            clause,
            ("tensor", describe(tensor)),
            ("copied", at(here())),
            ("cure", "copy the values with y.detach().clone(), or use y.clone() to copy it within "
                     "the graph; if a module holds it, keep it there as y.detach()"),
        )  # fmt: skip


class UnusedInputError(AutogradError, RuntimeError):
    """A gradient was asked for with respect to something that the outputs do not depend on."""

    anchor = "unused-input"

    def __init__(self, clause: str, tensor: Any, cure: str) -> None:
        super().__init__(
            clause, ("input", describe_end(tensor)), ("asked", at(here())), ("cure", cure)
        )


class GradientError(AutogradError):
    """A gradient is not such as what it is the gradient of asks for."""

    anchor = "gradient-mismatch"

    def __init__(self, clause: str, *facts: Fact, cure: str) -> None:
        super().__init__(clause, *facts, ("given", at(here())), ("cure", cure))


class GradientMismatchError(GradientError, RuntimeError):
    """A gradient has another shape or type than what it is the gradient of."""


class GradientTypeError(GradientError, TypeError):
    """Something that is no tensor is given as a gradient."""


class OtherLayout(NotImplementedError):
    """A sparse tensor where an operation needs a dense one.

    Attributes:
        tensor: the sparse tensor.
    """

    def __init__(self, tensor: Any, name: str = "") -> None:
        what = f"'aten::{name}'" if name else "this operation"
        super().__init__(f"Could not run {what} with arguments from the 'SparseCPU' backend.")
        self.tensor = tensor
        self.add_note(
            lesson((("cure", "make it dense first, x.to_dense(), or compute with x.coalesce()"
                             ".values()"),), "")
        )  # fmt: skip


# They derive from what stands above.
from clew.errors.calls import (  # noqa: E402
    CallbackError,
    CheckpointError,
    CheckpointOptionError,
    CheckpointUseError,
    InputsError,
    MutationContextError,
    UnpackedError,
    no_gradient_for_checkpoint_text,
)
from clew.errors.derivatives import (  # noqa: E402
    ForwardModeError,
    FunctionalError,
    FunctionalOptionError,
    FunctionalResultError,
    FunctionalTypeError,
    LevelError,
    MissingMethodError,
    TangentTypeError,
)
from clew.errors.notices import non_leaf_grad_text, scalar_of_graph_text  # noqa: E402
from clew.errors.user_code import (  # noqa: E402
    DetachError,
    FunctionError,
    FunctionResultError,
    FunctionTypeError,
    HookError,
    HookResultError,
    HookTypeError,
    NanGradientError,
    NoDerivativeError,
    NoNodeError,
    SavedHookError,
    SavedHookTypeError,
    TwiceDifferentiatedError,
    whose_gradient,
)
