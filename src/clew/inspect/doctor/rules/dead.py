"""R15, parameters that never get a gradient, and terms of a loss that train nothing."""

from __future__ import annotations

import ast
from typing import Any

from clew.inspect.doctor.finding import listed
from clew.inspect.doctor.rules.base import Rule, leaf_names, name_of_optimizer, short
from clew.inspect.watch import Call, Cut, Leaf, NodeInfo, Path, Step
from clew.inspect.watch.paths import reads, statement, targets

STEPS = 3


class DeadParameters(Rule):
    """Optimised parameters without a single contribution in at least three steps (a), or all of
    an optimizer's, while the parameters of the modules that run are in no optimizer (c)."""

    id = "R15"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dead: dict[Leaf, tuple[Step, int, str]] = {}

    def on_step(self, step: Step) -> None:
        if step.number < STEPS:
            return
        silent = [leaf for leaf in step.leaves if not leaf.gradients]
        if step.number == STEPS:
            names = leaf_names(self.stream, silent) if silent else []
            for leaf, name in zip(silent, names):
                self.dead[leaf] = (step, step.number, name)
        else:
            for leaf in silent:
                if leaf in self.dead:
                    self.dead[leaf] = (self.dead[leaf][0], step.number, self.dead[leaf][2])

    def finish(self) -> None:
        if self.found("R14") or self.found("R08"):
            return
        groups: dict[int, list[Leaf]] = {}
        for leaf, (step, _, _) in self.dead.items():
            tensor = leaf.ref()
            if not leaf.gradients and (tensor is None or tensor.requires_grad):
                groups.setdefault(id(step.optimizer), []).append(leaf)
        for leaves in groups.values():
            self._report(leaves)

    def _report(self, leaves: list[Leaf]) -> None:
        step, number = self.dead[leaves[0]][:2]
        names = [self.dead[leaf][2] for leaf in leaves]
        optimizer = name_of_optimizer(self.stream, step.optimizer, step.path)
        strays = self._strays() if len(leaves) == len(step.leaves) else []
        if strays:
            self.report(
                "warning", step.path,
                f"{optimizer} updates tensors that the model no longer has: in {number} steps none "
                f"of its {len(leaves)} parameters got a gradient, while parameters that are in no "
                f"optimizer did ({listed(strays)}).",
                "Make the optimizer after the last change to the model, or give it the new "
                "parameters with add_param_group.",
                [("step", step.path)], kind="stale", parameters=strays, steps=number,
            )  # fmt: skip
            return
        self.report(
            "warning", step.path,
            f"{listed(names)} {'are' if len(names) > 1 else 'is'} in {optimizer}, but no backward "
            f"reaches {'them' if len(names) > 1 else 'it'}: no gradient in {number} steps.",
            "Use them in the loss, or take them out of the model and the optimizer.",
            [("step", step.path)], kind="dead", parameters=names, steps=number,
        )  # fmt: skip

    def _strays(self) -> list[str]:
        found = [
            leaf
            for leaf in self.stream.leaves.values()
            if leaf.is_parameter and leaf.gradients >= STEPS and not self.stream.owners_of(leaf)
        ]
        return leaf_names(self.stream, found)


class DeadTerm(Rule):
    """A term of the loss depends on what is being trained through a cut only (b).

    The loss is taken apart at sums, and through what keeps a sum one: means, products with a
    constant, signs.  A term that came by way of ``item()`` has left the graph as a number; it is
    found in the source: the name that the number was given, in a sum that a recorded op computed.
    """

    id = "R15"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.terms: dict[int, list[_Term]] = {}
        self.dead: dict[Path, list[tuple[Call, _Term]]] = {}
        self.numbers: dict[tuple[str, str], Cut] = {}
        self.reported: set[Path] = set()

    def on_cut(self, cut: Cut, source: Any, result: Any) -> None:
        if isinstance(result, float) and cut.leaves and cut.path:
            place = cut.path[-1]
            for name in targets(statement(place)):
                self.numbers[place.source.function, name] = cut

    def on_backward(self, call: Call, reached: list[NodeInfo]) -> None:
        if call.error is None and call.accumulates and call.roots:
            terms = [t for root in call.roots for t in self._terms_of(root)]
            if any(t.behind for t in terms):
                self.terms[call.index] = terms

    def _terms_of(self, root: NodeInfo) -> list[_Term]:
        found: list[_Term] = []
        stack = [root]
        while stack and len(found) < 64:
            info = stack.pop()
            kind = info.name.rstrip("0123456789").removesuffix("Backward")
            if kind in _SUMS:
                for constant, single in info.constants:
                    cut = constant.cuts[-1] if constant.cuts else None
                    if single or not _is_straight_through(cut, info):
                        found.append(_Term(0, constant.leaves, constant.path, cut, info.path))
                if info.scalars:
                    found += self._numbers_in(info)
                if info.inputs:
                    stack += info.inputs
                continue
            if kind in _LINEAR and len(info.inputs) == 1 and not info.direct:
                stack += info.inputs
                continue
            cuts = info.component.root().cuts
            cut = next((c for c in reversed(cuts) if c.leaves & info.behind), None)
            found.append(_Term(info.leaves, info.behind, info.path, cut))
        return found

    def _numbers_in(self, info: NodeInfo) -> list[_Term]:
        """Terms of a sum that were taken out of the graph as numbers, by the source."""
        if not info.path:
            return []
        place = info.path[-1]
        found = []
        for term in _summands(statement(place)):
            if _calls_item(term):
                cut = next(
                    (c for (_, _), c in self.numbers.items() if c.path[-1].is_on_line_of(place)),
                    None,
                )
                if cut is not None:
                    found.append(_Term(0, cut.leaves, info.path, cut, info.path))
                continue
            for name in reads(term):
                cut = self.numbers.get((place.source.function, name))
                if cut is not None:
                    found.append(_Term(0, cut.leaves, info.path, cut, info.path))
        return found

    def on_closed(self, call: Call) -> None:
        terms = self.terms.pop(call.index, None)
        if terms is None or not call.steppers:
            return
        trained = 0
        for leaf in call.leaves:
            if any(o in call.steppers for o in self.stream.owners_of(leaf)):
                trained |= 1 << leaf.bit
        for optimizer in call.steppers:
            for parameter in self.stream.engine.parameters_of(optimizer):
                leaf_of = self.stream.leaves.get(id(parameter))
                if leaf_of is not None:
                    trained |= 1 << leaf_of.bit
        for term in terms:
            if term.behind & trained and not term.leaves & trained:
                self.dead.setdefault(term.path, []).append((call, term))
                if len(self.dead[term.path]) == self.options.repetitions:
                    self._report(call, term)

    def _name(self, term: _Term) -> str | None:
        """What the program calls a term, unless that is the name of the whole sum."""
        for path in (term.path, term.cut.path if term.cut is not None else ()):
            if path and not (term.total and path[-1].is_on_line_of(term.total[-1])):
                return next(iter(targets(statement(path[-1]))), None)
        return None

    def _report(self, call: Call, term: _Term) -> None:
        cut = term.cut
        where = cut.path if cut is not None else term.path
        if where in self.reported:
            return
        self.reported.add(where)
        trained = name_of_optimizer(self.stream, call.steppers[0])
        name = self._name(term)
        what = f"The term {name}" if name else "A term"
        kind = cut.kind if cut is not None else "a cut"
        self.report(
            "warning", where,
            f"{what} of the loss trains nothing: it is computed from values of the parameters of "
            f"{trained}, but {kind} on {short(where)} cuts it off, so its gradient reaches none of "
            f"them ({self.options.repetitions} of {self.options.repetitions} backward passes so "
            "far).",
            f"Leave {kind} out there and cut only what is logged, or leave the term out.",
            [("cut", where), ("the term", term.path), ("backward", call.path)],
            kind="term", cut=kind, term=name,
        )  # fmt: skip


def _is_straight_through(cut: Cut | None, info: NodeInfo) -> bool:
    """Whether a cut value is added to a value of the graph that it was cut from.

    ``x + (round(x) - x).detach()`` passes gradients straight through, on purpose.
    """
    return (
        cut is not None
        and cut.component is not None
        and cut.component.root() is info.component.root()
    )


class _Term:
    """A term of a loss: the leaves that it leads to, those behind cuts, its lines, a cut, and the
    lines of the sum."""

    def __init__(
        self, leaves: int, behind: int, path: Path, cut: Cut | None, total: Path = ()
    ) -> None:
        self.total = total
        self.leaves = leaves
        self.behind = behind
        self.path = path
        self.cut = cut


_SUMS = frozenset({"Add", "Sub", "Rsub", "Stack", "Cat", "Addcmul"})
_LINEAR = frozenset({
    "Mul", "Div", "Neg", "Sum", "Mean", "View", "Reshape", "Squeeze", "Unsqueeze", "Clone",
    "Select", "Expand",
})  # fmt: skip


def _summands(node: ast.AST | None) -> list[ast.AST]:
    """The terms of the sums that a statement computes; none if it computes no sum."""
    if node is None:
        return []
    found: list[ast.AST] = []
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Add, ast.Sub)):
            found += [
                side for side in (part.left, part.right)
                if not (isinstance(side, ast.BinOp) and isinstance(side.op, (ast.Add, ast.Sub)))
            ]  # fmt: skip
        elif isinstance(part, ast.AugAssign) and isinstance(part.op, (ast.Add, ast.Sub)):
            found.append(part.value)
    return found


def _calls_item(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Call)
        and (
            (isinstance(part.func, ast.Attribute) and part.func.attr == "item")
            or (isinstance(part.func, ast.Name) and part.func.id == "float")
        )
        for part in ast.walk(node)
    )
