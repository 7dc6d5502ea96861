"""R10, R12 and R13a: what a graph keeps is written to before backward asks for it."""

from __future__ import annotations

from typing import Any

from clew.inspect.doctor.rules.base import Rule, name_of_optimizer, name_of_result, short
from clew.inspect.doctor.rules.carried import _same_line
from clew.inspect.watch import Call, NodeInfo, Path, Saved, Write


class WriteToSaved(Rule):
    """A write raised the version of what is kept: an error if backward asked for it, a warning
    if it still can.  The write of an optimizer's step is R12."""

    id = "R10"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.step_between = StepBetween(*args)

    def on_backward(self, call: Call, reached: list[NodeInfo]) -> None:
        culprits = [s for s in call.culprits if s.write is not None and not s.silent]
        if call.error is None or not culprits:
            return
        saved = culprits[0]
        node = saved.node
        if node is not None and node.runs and _same_line(node.last_call, call):
            return  # R06
        assert saved.write is not None
        if saved.write.optimizer is None:
            self._report("error", saved, saved.write, call.path)
        else:
            self._report_step(saved, saved.write, call)

    def finish(self) -> None:
        for storage in list(self.stream.storages.values()):
            for saved in storage.saved:
                write = saved.write
                if write is None or saved.silent or not write.recorded or saved.unpacks:
                    continue
                if saved.node is not None and not saved.node.component.root().used:
                    self._report("warning", saved, write, None)

    def _report(self, severity: str, saved: Saved, write: Write, backward: Path | None) -> None:
        role = "its own result" if saved.is_output else "an input"
        kept = saved.name if saved.node is None else saved.node.name
        plain = write.name.rstrip("_").removeprefix("__i").strip("_")
        result = name_of_result(write.path)
        instead = (
            f"{result} = {result} + ... (a new tensor)"
            if result and plain in ("add", "add_")
            else f"the out-of-place {plain}"
        )
        outcome = (
            "backward asked for it and raised"
            if severity == "error"
            else "backward will raise when it asks for it"
        )
        self.report(
            severity, write.path,
            f"This in-place {write.name} changes a tensor that backward needs: {kept} on "
            f"{short(saved.path)} keeps it ({role}, at version {saved.version}), and {outcome}.",
            f"Use {instead} instead, or write to a clone(). An op that does not keep this tensor "
            "(add, conv, batch norm for their results) would allow the write.",
            [("write", write.path), ("saved", saved.path), ("backward", backward)],
            op=write.name, saved_by=kept, role="output" if saved.is_output else "input",
            confirmed=severity == "error",
        )  # fmt: skip

    def _report_step(self, saved: Saved, write: Write, call: Call) -> None:
        name = name_of_optimizer(self.stream, write.optimizer, write.path)
        kept = saved.name if saved.node is None else saved.node.name
        self.step_between.report(
            "error", write.path,
            f"{name}.step() comes between a forward and its backward: {kept} on "
            f"{short(saved.path)} keeps a weight as it was, the step on {short(write.path)} "
            f"changes it in place, and the backward on {short(call.path)} needs the old value. "
            "retain_graph=True and clone() cannot help.",
            "Compute this loss again after the step, or call all backwards before any step.",
            [("step", write.path), ("saved", saved.path), ("backward", call.path)],
            op=write.name, saved_by=kept, optimizer=name,
        )  # fmt: skip


class StepBetween(Rule):
    """R12, reported by `WriteToSaved`: the write to what is kept was an optimizer's step."""

    id = "R12"


class SilentChange(Rule):
    """R13a: what is kept was changed by a write that its version does not show (``.data``), or
    its checksum differs."""

    id = "R13"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.count = 0

    def on_unpack(self, saved: Saved, call: Call | None) -> None:
        if not saved.silent:
            return
        self.count += 1
        write = saved.write
        kept = saved.name if saved.node is None else saved.node.name
        how = (
            f"{write.name} on {short(write.path)} through .data, whose writes autograd does not see"
            if write is not None
            else "something that autograd does not see (numpy, .data or another library)"
        )
        place = write.path if write is not None else saved.path
        self.report(
            "error", place,
            f"A gradient is computed from changed values, without an error: {kept} on "
            f"{short(saved.path)} keeps this tensor, and it was changed by {how}. The version is "
            f"still {saved.version}, so backward uses the new values as if they were the old ones.",
            "Write to a clone(); or use detach() instead of .data, which makes PyTorch raise.",
            [("hidden write", write.path if write else None), ("saved", saved.path),
             ("backward", call.path if call else None)],
            kind="hidden", op=write.name if write else None, saved_by=kept,
        )  # fmt: skip
