"""`clew.explain`: what an autograd exception means, where it comes from, and what to do.

Imports the doctor's findings and the watcher's words.  With the stream of a watched program it
knows the lines too; of an exception alone it says what can be known, and how to get the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from clew.inspect.doctor.finding import Finding
from clew.inspect.watch.paths import OWN, reads, statement_at, value_of
from clew.site import SourceLine

MORE = (
    "Run the program under `clew doctor --engine torch` (or inside `with clew.doctor():`), which "
    "notes both lines."
)


def explain(error: BaseException, stream: Any = None) -> Finding:
    """What an autograd exception of clew or PyTorch means: what, where, lines, cure.

    The exception must have been raised (its traceback is read).  An exception that no rule knows
    gives a finding without a rule that says so.

    >>> try:
    ...     torch.ones(2).sum().backward()
    ... except RuntimeError as error:
    ...     print(clew.explain(error).rule)
    R14
    """
    context = _Context(error, stream)
    for pattern, handler in _HANDLERS:
        found = re.search(pattern, context.text)
        if found and (result := handler(context)) is not None:
            return result
    return Finding(
        "", "error",
        f"{type(error).__name__}: {context.text.splitlines()[0] if context.text else ''}".strip(),
        "This is no exception of autograd that clew has an explanation for.", context.place,
        [("raised", context.place)] if context.place else [],
    )  # fmt: skip


class _Context:
    """An exception, the user's frames that it passed, and what a stream knows."""

    def __init__(self, error: BaseException, stream: Any) -> None:
        self.error = error
        self.text = str(error)
        self.stream = stream
        self.all_frames = _frames(error.__traceback__)
        self.frames = [f for f in self.all_frames if not _is_internal(f[0], stream)]
        self.facts = dict(getattr(error, "facts", ()))
        self.place: SourceLine | None = None
        if self.frames:
            frame, line = self.frames[-1]
            self.place = source_line(frame.f_code.co_filename, line, frame.f_code.co_name)

    def tensors(self) -> list[tuple[str, Any]]:
        """The tensors that the failing statement names."""
        if not self.frames:
            return []
        frame, line = self.frames[-1]
        names = reads(statement_at(frame.f_code.co_filename, line))
        found = []
        for name in names:
            for part in (name, name.rpartition(".")[0]):
                value = value_of(part, frame) if part else None
                if value is not None and is_tensor(value):
                    found.append((part, value))
        return list(dict.fromkeys(found)) if all(_hashable(v) for _, v in found) else found

    def known_cause(self) -> str:
        """What clew's own error says of tensor and lines."""
        return " ".join(f"{label}: {text}." for label, text in self.facts.items()
                        if label != "cure")  # fmt: skip

    def cure(self) -> str:
        """What clew's own error advises, as a sentence."""
        text = self.facts.get("cure", "")
        return f"{text[:1].upper()}{text[1:]}." if text else ""

    def finding(self, rule: str, message: str, cure: str, *lines: Any, **figures: Any) -> Finding:
        """A finding at the failing line."""
        known = [("raised", self.place), *lines]
        return Finding(
            rule, "error", message, cure, self.place, [(r, p) for r, p in known if p], figures
        )


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of either engine."""
    return hasattr(value, "grad_fn") and hasattr(value, "requires_grad")


def _hashable(value: Any) -> bool:
    return type(value).__hash__ is not None


def source_line(file: str, line: int, function: str = "") -> SourceLine:
    """A line of a file with its text."""
    import linecache

    return SourceLine(file, line, function, linecache.getline(file, line).strip())


def _frames(trace: TracebackType | None) -> list[tuple[FrameType, int]]:
    found = []
    while trace is not None:
        found.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return found


def _is_internal(frame: FrameType, stream: Any) -> bool:
    file = frame.f_code.co_filename
    if stream is not None and stream.stack.is_internal(file):
        return True
    return file.startswith((OWN, "<frozen")) or "/site-packages/torch/" in file


def _info(context: _Context, tensor: Any) -> Any:
    """What a stream noted of the node of a tensor."""
    if context.stream is None or not context.stream.engine.is_tensor(tensor):
        return None
    node = context.stream.engine.node(tensor)
    return None if node is None else context.stream.engine.info(node)


def _line(path: Any) -> SourceLine | None:
    return path[-1].source if path else None


def _second_backward(context: _Context) -> Finding:
    known = context.known_cause() or (
        "Which part of the graph was walked before is not in the exception. " + MORE
    )
    return context.finding(
        "R06",
        "Backward enters a graph for a second time, and what the graph had saved was freed by the "
        f"first pass. {known}",
        context.cure()
        or "Detach what is carried over from an earlier iteration (h = h.detach()), compute the "
        "shared part again, or add the losses and call backward once; retain_graph=True in the "
        "first call keeps everything.",
    )  # fmt: skip


def _modified(context: _Context) -> Finding:
    facts = context.facts
    by_step = "optimizer step" in facts.get("changed", "")
    which = re.search(r"which is (output \d+ of \w+)", context.text)
    versions = re.search(r"is at version (\d+); expected version (\d+)", context.text)
    known = context.known_cause()
    if not known:
        named = f" PyTorch names it as {which[1]}, which is its newest producer." if which else ""
        wrote = (
            f" It was written to {int(versions[1]) - int(versions[2])} times since."
            if versions
            else ""
        )
        known = f"{named}{wrote} The line of the write is not in the exception. {MORE}".strip()
    return context.finding(
        "R12" if by_step else "R10",
        f"A tensor that backward needs was changed in place after it was saved. {known}",
        context.cure()
        or "Use the out-of-place operation, write to a clone(), or compute this loss after the "
        "optimizer's step; retain_graph=True cannot help.",
    )  # fmt: skip


def _leaf_written(context: _Context) -> Finding:
    view = "a view of a leaf" in context.text
    lines, said = [], ""
    for name, tensor in context.tensors():
        base = getattr(tensor, "_base", None)
        leaf = base if base is not None else tensor
        if not (leaf.is_leaf and leaf.requires_grad) or (view and base is None):
            continue
        said = f" The leaf is {_named(leaf, context) or name} ({_shape(leaf)})."
        if view and base is not None:
            info = _info(context, tensor)
            made = _line(info.path) if info is not None else _site(tensor)
            if made is not None:
                lines.append(("view made", made))
                said += f" {name} is its view, made on line {made.line}."
        break
    written = context.facts.get("written", "")
    op = re.search(r"by (\w+)", written)
    what = f" by {op[1]}" if op else ""
    where = f" on line {context.place.line}" if context.place else ""
    return context.finding(
        "R11",
        f"{'A view of a leaf' if view else 'A leaf'} that requires grad is written to in place"
        f"{what}{where}, while operations are recorded: the value that gradients are computed "
        f"for would be gone.{said}",
        "To initialise or update a parameter, write inside `with torch.no_grad():`; to compute "
        "with it, use the out-of-place operation or write to a clone().",
        *lines, view=view,
    )  # fmt: skip


def _named(leaf: Any, context: _Context) -> str | None:
    if not context.frames:
        return None
    from clew.inspect.watch.paths import variable_of

    frame = context.frames[-1][0]
    found = variable_of(leaf, [frame])
    if found is not None:
        return found
    for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
        for inner, part in (getattr(value, "_parameters", None) or {}).items():
            if part is leaf:
                return f"{name}.{inner}"
    return None


def _shape(tensor: Any) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}".removeprefix("torch.")


def _site(tensor: Any) -> SourceLine | None:
    """The line of the node that made a tensor of clew."""
    from clew.site import resolve

    return resolve(getattr(tensor.grad_fn, "site", None)) if tensor.grad_fn is not None else None


def _no_path(context: _Context) -> Finding:
    lines, said = [], ""
    roots = [(n, t) for n, t in context.tensors() if not t.requires_grad]
    for name, tensor in roots:
        known = context.stream.provenance(tensor) if context.stream is not None else None
        for cut in known.cuts if known is not None else ():
            at = _line(cut.path)
            if at is not None:
                lines.append(("cut", at))
                said = (
                    f" {name} was computed from values that {cut.kind} on line {at.line} cut off."
                )
    if not said:
        why = context.facts.get("why")
        if why:
            said = f" Why: {why}."
        elif not roots or context.stream is not None:
            said = (
                " None of the tensors that it was computed from requires grad, or they came by "
                "way of item(), numpy() or torch.tensor(), which give plain values."
            )
        else:
            said = f" Which cut stopped it is not in the exception. {MORE}"
    return context.finding(
        "R14",
        f"Backward finds no path: the loss has no recorded history.{said}",
        "Compute the loss from tensors that require grad, outside no_grad, and without detach(), "
        ".data, item(), numpy() or torch.tensor() on the way.",
        *lines, kind="no path",
    )  # fmt: skip


def _non_leaf(context: _Context) -> Finding:
    tensor = None
    for frame, _ in reversed(context.all_frames):
        for name in ("param", "parameter", "p"):
            value = frame.f_locals.get(name)
            if value is not None and is_tensor(value) and value.grad_fn is not None:
                tensor = value
        if tensor is not None:
            break
    said, lines = "", []
    if tensor is not None:
        info = _info(context, tensor)
        made = _line(info.path) if info is not None else _site(tensor)
        node = tensor.grad_fn.name().rstrip("0123456789").removesuffix("Backward")
        where = f" on line {made.line}" if made is not None else ""
        said = f" The tensor ({_shape(tensor)}) was made by {node}{where}."
        if made is not None:
            lines.append(("made", made))
    return context.finding(
        "R18",
        "An optimizer was given a tensor that is no leaf, but the result of an operation, so its "
        f"gradient is not kept.{said}",
        "Make the tensor first (on its device, scaled), and set requires_grad on the result: "
        "p = (0.01 * torch.rand(3)).to(device).requires_grad_().",
        *lines,
    )  # fmt: skip


def _replica(context: _Context) -> Finding | None:
    if not isinstance(context.error, StopIteration) or context.place is None:
        return None
    if "parameters()" not in context.place.text:
        return None
    return context.finding(
        "R17",
        "next(self.parameters()) found no parameter. On a replica that DataParallel makes there "
        "are none: its parameters are results of a copy and no leaves.",
        "Take device and dtype from the input: x.device, x.dtype.", kind="parameters",
    )  # fmt: skip


def _none_grad(context: _Context) -> Finding | None:
    text = context.place.text if context.place else ""
    if "NoneType" not in context.text or ".grad" not in text:
        return None
    for name, tensor in context.tensors():
        if tensor.grad_fn is None:
            continue
        info = _info(context, tensor)
        made = _line(info.path) if info is not None else _site(tensor)
        node = tensor.grad_fn.name().rstrip("0123456789").removesuffix("Backward")
        at = f" on line {made.line}" if made else ""
        return context.finding(
            "R18",
            f"{name}.grad is None because {name} is no leaf: {node}{at} made it, and backward "
            "keeps gradients of leaves only.",
            f"Update {name} in place under no_grad instead of binding the name anew, or call "
            f"{name}.retain_grad().",
            ("made", made),
        )  # fmt: skip
    return None


def _other(message: str, cure: str) -> Callable[[_Context], Finding]:
    def handler(context: _Context) -> Finding:
        known = context.known_cause()
        return context.finding("", f"{message} {known}".strip(), cure)

    return handler


_HANDLERS: tuple[tuple[str, Callable[[_Context], Finding | None]], ...] = (
    (r"^Trying to backward through the graph a second time", _second_backward),
    (r"has been modified by an inplace operation", _modified),
    (r"a leaf Variable that requires grad", _leaf_written),
    (r"does not require grad and does not have a grad_fn", _no_path),
    (r"can't optimize a non-leaf Tensor", _non_leaf),
    (r"^$|StopIteration", _replica),
    (r"NoneType", _none_grad),
    (r"grad can be implicitly created only for", _other(
        "Backward starts from more than one number, so it has no gradient to start with.",
        "Reduce the loss first (loss.mean()), or pass a gradient: y.backward(torch.ones_like(y)).",
    )),
    (r"appears to not have been used in the graph", _other(
        "A gradient was asked for with respect to a tensor that the result does not depend on.",
        "Pass allow_unused=True, or ask for the tensor that was really used (a view or a copy made "
        "later is another tensor).",
    )),
    (r"is a view and (is being|its base)|multiple views", _other(
        "A view was written to in place that autograd cannot follow (an output of split, unbind or "
        "chunk, or a view made under no_grad).",
        "Write to a clone(), or write to the tensor before it is split.",
    )),
    (r"refer to a single memory location|refers to a single memory location", _other(
        "Several elements of the tensor share one place in memory (it was expanded), so a write "
        "has no meaning for each.",
        "Write to x.clone(), or to the tensor from before expand().",
    )),
    (r"[Ii]nference", _other(
        "A tensor made in inference mode has no version and can never be part of a graph.",
        "Use torch.no_grad() instead of torch.inference_mode(), or clone() the tensor outside.",
    )),
    (r"Only Tensors created explicitly by the user|serialize non-leaf", _other(
        "A tensor that has a history is to be copied or sent without it.",
        "Copy y.detach().clone(), and store detached tensors in modules.",
    )),
)  # fmt: skip
