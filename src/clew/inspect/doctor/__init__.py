"""The doctor: watches a program, and says which mistakes with graphs and gradients it makes.

Imports the watcher and the rules.  `doctor` watches a block of code, `clew doctor` a script,
``pytest --clew-doctor`` tests; `explain` is about one exception.
"""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any

from clew.inspect.doctor.explain import explain
from clew.inspect.doctor.finding import SEVERITIES, Finding
from clew.inspect.doctor.rules import RULES, Options, Rule
from clew.inspect.watch import Stream, watch_clew, watch_torch, when_imported

__all__ = ["Doctor", "Finding", "Options", "doctor", "explain"]

ENGINES = ("clew", "torch")

AT_WORK: list[_Patient] = []
"""What is watched now; `clew.why` asks for what was noted there."""


class Doctor:
    """Watches from entering to leaving a ``with``; finds what is wrong.

    Args:
        engine: ``"clew"``, ``"torch"``, or None for clew and, if the program has it or imports
            it, real PyTorch.
        options: the thresholds of the rules.
        show: print the findings on leaving.

    Attributes:
        findings: what was found, worst first; complete once the block is left.
        troubles: tracebacks of the doctor's own failures, which do not disturb the program.
    """

    def __init__(
        self, engine: str | None = None, options: Options | None = None, *, show: bool = True
    ) -> None:
        if engine not in (None, *ENGINES):
            raise ValueError(f"engine is 'clew', 'torch' or None, got {engine!r}")
        self.engine = engine
        self.options = options or Options()
        self.show = show
        self._found: list[Finding] = []
        self.troubles: list[str] = []
        self._patients: list[_Patient] = []
        self._forget_import: Any = None

    @property
    def findings(self) -> list[Finding]:
        """What was found, worst first, then by line."""
        order = {severity: i for i, severity in enumerate(SEVERITIES)}
        return sorted(
            self._found, key=lambda f: (order[f.severity], f.rule, f.file or "", f.line or 0)
        )

    @property
    def status(self) -> int:
        """1 if there is an error or a warning, else 0."""
        return int(any(f.severity != "info" for f in self._found))

    def start(self, base: FrameType | None = None) -> Doctor:
        """Begin to watch; `base` is the outermost frame that counts as the program's."""
        frame = base or sys._getframe(1)
        if self.engine in (None, "clew"):
            self._add(watch_clew, frame)
        if self.engine in (None, "torch"):
            real = sys.modules.get("torch")
            if real is None or not hasattr(real, "__clew_module__"):
                self._forget_import = when_imported("torch", lambda: self._add(watch_torch, frame))
        return self

    def _add(self, watch: Any, frame: FrameType | None) -> None:
        stream, watcher = watch(frame, checksums=self.options.checksums)
        self._patients.append(_Patient(stream, watcher, self.options, self._found, self.troubles))

    def mark(self) -> None:
        """An iteration ends here: for programs that have no optimizer and no repeated backward."""
        for patient in self._patients:
            patient.stream.mark()

    def stop(self, error: BaseException | None = None) -> None:
        """End it; `error` is what ended the program, to be explained."""
        if self._forget_import is not None:
            self._forget_import()
        for patient in self._patients:
            patient.end()
        if error is not None and self._patients and not any(p.told(error) for p in self._patients):
            self._explain(error)
        for patient in self._patients:
            patient.judge()
        self._patients.clear()

    def _explain(self, error: BaseException) -> None:
        """Add what ended the program, which no rule has said when it happened."""
        patient = next((p for p in self._patients if p.was_passed_by(error)), self._patients[0])
        finding = explain(error, patient.stream)
        if finding.rule == "R18" and any(f.rule == "R11" for f in self._found):
            return  # the rebinding is the cause
        if finding.rule:
            self._found.append(finding)

    def __enter__(self) -> Doctor:
        return self.start(sys._getframe(1))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop(error if isinstance(error, Exception) else None)
        if self.show:
            from clew.inspect.doctor.report import print_findings

            print_findings(self.findings)


class _Patient:
    """One engine that is watched: its stream, its watcher, its rules."""

    def __init__(
        self, stream: Stream, watcher: Any, options: Options, findings: list[Finding],
        troubles: list[str],
    ) -> None:  # fmt: skip
        self.stream = stream
        self.watcher = watcher
        self.findings = findings
        self.troubles = troubles
        self.file = str(sys.modules[type(watcher).__module__].__file__)
        self.folder = str(sys.modules[stream.engine.name].__file__).removesuffix("__init__.py")
        self.rules: list[Rule] = [rule(stream, options, findings) for rule in RULES]
        stream.listeners += self.rules
        watcher.start()
        AT_WORK.append(self)

    def end(self) -> None:
        """Stop watching."""
        AT_WORK.remove(self)
        self.watcher.stop()
        self.stream.finish()

    def told(self, error: BaseException) -> bool:
        """Whether a rule has reported an exception when a backward raised it."""
        last = self.stream.calls[-1] if self.stream.calls else None
        return (
            last is not None
            and last.error is error
            and any(f.severity == "error" for f in self.findings)
        )

    def was_passed_by(self, error: BaseException) -> bool:
        """Whether an exception came through this watcher, or the engine that it watches."""
        trace = error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if file == self.file or (file.startswith(self.folder) and "inspect" not in file):
                return True
            trace = trace.tb_next
        return False

    def judge(self) -> None:
        """Have the rules say what they found."""
        for rule in self.rules:
            try:
                rule.finish()
            except Exception as failure:
                self.stream.trouble(failure)
        self.troubles += self.stream.troubles
        self.stream.close()


def doctor(engine: str | None = None, *, show: bool = True, **options: Any) -> Doctor:
    """Watch the code of a ``with`` block and say which autograd mistakes it makes.

    The findings are printed when the block is left, and stand in ``findings``.

    Args:
        engine: which engine to watch; both by default, real PyTorch only if the program uses it.
        show: print the findings.
        options: thresholds, see `Options`.

    >>> with clew.doctor(show=False) as d:
    ...     x = torch.ones(3, requires_grad=True)
    ...     for _ in range(3):
    ...         (x * x).sum().backward(retain_graph=True)
    >>> [finding.rule for finding in d.findings]
    ['R05']
    """
    return Doctor(engine, Options(**options), show=show)
