"""Run a program on clew and on torch side by side, and find the first line where they differ."""

from __future__ import annotations

import functools
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import clew
from clew.storage import address, root
from clew.torch_alias import enable_torch
from engines import torch


@contextmanager
def warn_always() -> Iterator[None]:
    """Both engines warn each time, also of what they say once in a process."""
    engines = (torch, clew)
    before = [engine.is_warn_always_enabled() for engine in engines]
    for engine in engines:
        engine.set_warn_always(True)
    try:
        yield
    finally:
        for engine, was in zip(engines, before):
            engine.set_warn_always(was)


PRELUDE = Path(__file__).parent / "prelude.py"
_CODE = compile(PRELUDE.read_text(), "prelude.py", "exec")
TOLERANCE = {"torch.float64": 1e-6, "torch.complex128": 1e-6, "torch.float16": 3e-2,
             "torch.bfloat16": 2e-1}  # fmt: skip
OTHERWISE = 1e-3
FROM_SINGLE = 1e-5
"""Of double precision that may have been computed from single."""


UNALLOCATED = re.compile("tensor with unallocated storage|ZeroTensors are immutable")
"""torch on what its formulas make of zeros without memory, as the derivative of `sgn`."""

BROKEN = "INTERNAL ASSERT FAILED"
"""torch on what it should not have come to, as writes to what keeps the gradient of a non-leaf."""

OF_GRADIENTS = ("Can't detach views in-place", "If your Function modifies inplace an input that is")
"""torch on gradients, which may be views there."""

BEFORE = ("Output ", "A view was created", "Inference tensors cannot be saved")
"""torch on the history of operands, before it looks at their shapes."""

OF_OWN = re.compile(
    r"'(AddStrided|PutStrided|TakeStrided|ProductsOfOthers|CumprodBackward|PreluKernel)\w*'"
)
"""Nodes of gradients of gradients that torch computes by several operations, or others."""

STRIDES = re.compile(r"(?<=setStorage: sizes ).*")
"""In an error's text, the strides of what may be empty."""

MODIFIED = "has been modified by an inplace operation"

BY_OTHERS = re.compile(r"\b(cum)?prod\(|prelu\(|trace\(|renorm|diff\(|as_strided")
"""What is differentiated by other operations than torch's."""

CHANGES = re.compile(r"_\(|\w\] = |[-+*/]= ")
"""Lines that write."""

LAYOUT = "grad and param do not obey the gradient layout contract"

OVERLAP = "some elements of the input tensor and the written-to tensor"
NO_GRAD_VIEW = "A view was created in no_grad mode"


class Mismatch(Exception):
    """The engines differ after a line."""


class KnownDifference(Exception):
    """The engines differ after a line as docs/differences.md says; the program ends."""


@dataclass
class Outcome:
    """What a line did with one engine."""

    error: BaseException | None = None
    warned: list[str] = field(default_factory=list)


@dataclass
class Step:
    """A line that ran on both engines.

    Attributes:
        line: the statement.
        before: torch's gradients before it, where it may change them.
        inference: whether there were inference tensors before it.
        theirs: what it did with torch.
        ours: what it did with clew.
    """

    line: str
    before: dict[int, Any] | None
    inference: bool
    theirs: Outcome
    ours: Outcome


@functools.lru_cache(maxsize=20_000)
def _compiled(line: str) -> CodeType:
    return compile(line, "program.py", "exec")


class Engine:
    """A namespace in which lines run, with `torch` meaning one of the engines."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.namespace: dict[str, Any] = {"torch": module, "__name__": "program"}
        if module is clew:
            with enable_torch(replace=True):
                exec(_CODE, self.namespace)
        else:
            exec(_CODE, self.namespace)
        self.known = frozenset(self.namespace)
        self.log: list[Any] = self.namespace["log"]

    def run(self, line: str) -> Outcome:
        outcome = Outcome()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                exec(_compiled(line), self.namespace)
            except Exception as error:
                outcome.error = error.with_traceback(None)
        if caught:
            outcome.warned = [first_clause(str(w.message)) for w in caught]
        return outcome

    def tensors(self) -> dict[str, Any]:
        kind = self.module.Tensor
        return {
            k: v for k, v in self.namespace.items() if k not in self.known and isinstance(v, kind)
        }

    def reset(self) -> None:
        """Forget the program."""
        for name in self.namespace.keys() - self.known:
            del self.namespace[name]
        self.log.clear()
        self.module.set_grad_enabled(True)


def first_clause(text: str) -> str:
    """The first sentence of a text."""
    return re.split(r"\. |\n| \(Triggered internally", text.strip())[0].rstrip(".")


class Machine:
    """Both engines, and the comparison of their states.  One serves many programs."""

    def __init__(self) -> None:
        self.ours, self.theirs = Engine(clew), Engine(torch)
        self.failed = 0
        self.last: Step | None = None
        self.seen: dict[int, Any] = {}
        # Gradients and views of them: what torch's formulas made views of, and how often they
        # wrote, is theirs.  By torch's tensor, how many writes clew has more.
        self.gradients: dict[int, int] = {}
        # Whether gradients of gradients may be of other nodes than torch's, and whether data was
        # replaced by some of another shape.
        self.own = self.replaced = False
        self.lines = ""

    def step(self, line: str) -> None:
        """Run a line on both."""
        self.lines += line + "\n"
        self.own |= "create_graph" in line and BY_OTHERS.search(self.lines) is not None
        shapes = {id(x): x.shape for x in self.theirs.tensors().values()}
        before = self._gradients_of_theirs() if "backward(" in line else None
        inference = any(x.is_inference() for x in self.theirs.tensors().values())
        self.last = Step(line, before, inference, self.theirs.run(line), self.ours.run(line))
        if ".data = " in line:
            found = self.theirs.tensors().values()
            self.replaced |= any(x.shape != shapes.get(id(x), x.shape) for x in found)

    def compare(self) -> None:
        """Compare what the last line did.

        Raises:
            Mismatch: the engines differ after it.
            KnownDifference: they differ as is known.
        """
        if self.last is None:
            return
        step, self.last = self.last, None
        line, before, theirs, ours = step.line, step.before, step.theirs, step.ours
        text = str(theirs.error)
        inference = step.inference or "inference_mode" in line
        if inference and re.search(r"\.data = |\.set_\(", line):
            raise KnownDifference  # torch changes only a part of what makes an inference tensor
        if UNALLOCATED.search(text) or BROKEN in text:
            raise KnownDifference
        if self.gradients and text.startswith(OF_GRADIENTS) and ours.error is None:
            raise KnownDifference
        if text.startswith("Inplace update to inference tensor") and ours.error is not None:
            raise KnownDifference  # torch has written when it says so
        if self.gradients and "requires_grad" in line and self._has_view_of_gradient():
            raise KnownDifference
        if str(ours.error).startswith("Inplace update to inference tensor") and text != "None":
            raise KnownDifference  # torch finds something else first
        if text.startswith("Expected isFloatingType"):
            raise KnownDifference  # complex numbers filled with real ones, which get a gradient
        if before is not None and self._is_shared(before):
            raise KnownDifference
        no_grad_view = str(theirs.error).startswith(NO_GRAD_VIEW)
        if self.gradients and no_grad_view and str(ours.error) != str(theirs.error):
            raise KnownDifference  # a gradient, which in torch may be a view of something
        self._compare_outcomes(ours, theirs)
        if theirs.error is not None:
            self._drop_packed()
        if "create_graph=True" in line:
            self._drop_packed()  # what a formula saves depends on how it is computed
        if OF_OWN.search(str(self.ours.log)):
            raise KnownDifference
        if len(self.ours.log) != len(self.theirs.log):
            raise Mismatch(f"noted {self.ours.log} instead of {self.theirs.log}")
        for mine, other in zip(self.ours.log, self.theirs.log):
            if not alike(mine, other):
                if "complex" in str(other) and re.search("nan|inf", str(other)):
                    raise KnownDifference  # see below
                raise Mismatch(f"noted {mine}\ninstead of {other}")
        self.ours.log.clear()
        self.theirs.log.clear()
        self._compare_tensors(line, theirs.error is not None)

    def _compare_outcomes(self, ours: Outcome, theirs: Outcome) -> None:
        a, b = ours.error, theirs.error
        if b is None:
            if MODIFIED in str(a) and self.own:
                raise KnownDifference  # see below
            if a is not None:
                raise Mismatch(f"raised {type(a).__name__}: {a}")
        elif a is None:
            shapes = [x.shape for x in self.theirs.tensors().values()]
            if OVERLAP in str(b) and any(0 in s or 1 in s for s in shapes):
                raise KnownDifference  # told by strides that say nothing
            if "last dimension with stride 1" in str(b) and any(0 in s for s in shapes):
                raise KnownDifference  # here too
            if MODIFIED in str(b) and self.own:
                raise KnownDifference  # of what a graph of other nodes has saved
            raise Mismatch(f"did not raise {type(b).__name__}: {b}")
        else:
            kinds = {k.__name__ for k in type(a).__mro__}
            self.failed += 1
            said = self._said(a) == self._said(b) or isinstance(b, TypeError)
            if str(b).startswith(BEFORE) and not said:
                raise KnownDifference  # torch asks for the graph before it computes
            if isinstance(b, ValueError) and re.fullmatch(r"s\d+", str(b)) and not said:
                raise KnownDifference  # torch saves before it computes
            if self.replaced and not said:
                raise KnownDifference  # data of another shape: who notices it first says so
            if type(b).__name__ not in kinds or not said:
                raise Mismatch(
                    f"raised {type(a).__name__}: {a}\ninstead of {type(b).__name__}: {b}"
                )
        if b is not None and str(b).startswith(BEFORE):
            return  # clew may have computed, and warned
        if ours.warned != theirs.warned:
            if LAYOUT in ours.warned + theirs.warned and self._has_odd_gradient():
                raise KnownDifference  # told by strides that say nothing, or that are not there
            raise Mismatch(f"warned {ours.warned} instead of {theirs.warned}")

    def _has_odd_gradient(self) -> bool:
        """Whether there is a tensor without elements, or with a gradient of other dimensions."""
        tensors = self.theirs.tensors().values()
        of_leaf = self._gradients_of_theirs()
        return any(
            0 in x.shape or (of_leaf.get(id(x)) is not None and of_leaf[id(x)].dim() != x.dim())
            for x in tensors
        )

    def _has_view_of_gradient(self) -> bool:
        """Whether the program has a view of a gradient, which in torch may be a view itself."""
        return any(x._is_view() and self._is_on_gradient(x) for x in self.seen.values())

    def _gradients_of_theirs(self) -> dict[int, Any]:
        """torch's gradients, by the tensor that has it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # is_leaf would bring the edges of views up to date
            return {id(x): x.grad for x in self.theirs.tensors().values() if x.numel()}

    def _is_shared(self, before: dict[int, Any]) -> bool:
        """Whether torch has made something's gradient of memory that is another tensor's too.

        It takes over a gradient that is a view, though the memory may be another gradient's, or
        the leaf's own; the next pass then adds into both.
        """
        found = self._gradients_of_theirs()
        new = {i: g for i, g in found.items() if g is not None and g is not before.get(i)}
        if not new:
            return False
        places = Counter(place(g) for g in found.values() if g is not None)
        places.update(place(x) for x in self.seen.values())
        return any(places[place(g)] > 1 for g in new.values())

    def _is_on_gradient(self, x: Any) -> bool:
        """Whether `x` shares memory with a gradient."""
        if not self.gradients:
            return False
        place = x.untyped_storage().data_ptr()
        return any(
            self.seen[i].untyped_storage().data_ptr() == place
            for i in self.gradients.keys() & self.seen.keys()
        )

    def _drop_packed(self) -> None:
        """torch saves tensors before it computes, clew after: not, if the computation fails."""
        for engine in (self.ours, self.theirs):
            engine.log[:] = [entry for entry in engine.log if not packs(entry)]

    def _said(self, error: BaseException) -> str:
        clause = STRIDES.sub("", first_clause(str(error)))
        return re.sub(r"version \d+", "version N", clause) if self.gradients else clause

    def _compare_tensors(self, line: str, theirs_failed: bool) -> None:
        """Geometry, version and elements of all tensors; which share memory, which are the same."""
        ours, theirs = self.ours.tensors(), self.theirs.tensors()
        if ours.keys() != theirs.keys():
            raise Mismatch(f"variables {list(ours)} instead of {list(theirs)}")
        first: dict[int, str] = {}
        partner: dict[int, int] = {}
        memory: dict[int, int] = {}
        # On inference tensors torch runs without its bookkeeping of views and versions.
        inference = any(t.is_inference() for t in theirs.values())
        narrow = any(t.dtype.itemsize // (1 + t.is_complex()) < 8 for t in theirs.values())
        if any(t.requires_grad and not t.is_floating_point() and not t.is_complex()
               for t in theirs.values()):  # fmt: skip
            raise KnownDifference  # integers filled with what requires grad: torch cannot use them
        for name, x in theirs.items():
            y = ours[name]
            if partner.setdefault(id(x), id(y)) != id(y):
                raise Mismatch(f"{name} is not the same object as {first[id(x)]}")
            if id(x) in first:
                continue
            first[id(x)] = name
            a, b = facts(y), self._facts_of_theirs(x)
            if id(x) not in self.seen and ("grad" in line or self._is_on_gradient(x)):
                self.gradients[id(x)] = (a[4] or 0) - (b[4] or 0)
            if id(x) in self.gradients:
                written = id(x) in self.seen and "grad" not in line and x._is_view()
                if written and x.requires_grad and not y._is_view() and CHANGES.search(line):
                    raise KnownDifference  # a write to what is a view in torch
                a[4] = b[4] and a[4] - self.gradients[id(x)]
            elif base_of(self.ours, y) != base_of(self.theirs, x) and not inference:
                raise Mismatch(
                    f"{name} is a view of {base_of(self.ours, y)} "
                    f"instead of {base_of(self.theirs, x)}"
                )
            if theirs_failed and a != b:
                raise KnownDifference  # clew refuses before it changes anything
            if b[4] is None:  # an inference tensor, or one whose data is an inference tensor's
                a[4] = None
            if a[2] != b[2] and a[:2] == b[:2] and a[3:5] == b[3:5] and self._has_thin(theirs):
                raise KnownDifference  # strides of dimensions of size one decide the order
            if (inference or not x.numel()) and a[:4] == b[:4] and a[4] != b[4]:
                raise KnownDifference  # what is empty may be its own gradient, see `_is_shared`
            if a[:5] == b[:5] and x.is_complex() and re.search("nan|inf", str(b[5])):
                # In sums torch multiplies by one first, which makes nan of what is infinite.
                raise KnownDifference
            if a[:5] != b[:5] or not alike(a[5], b[5], max(tolerance(b[0]), FROM_SINGLE * narrow)):
                raise Mismatch(f"{name} is {a}\ninstead of {b}")
            if x.numel():
                place = x.untyped_storage().data_ptr()
                if memory.setdefault(place, address(root(y._array))) != address(root(y._array)):
                    raise Mismatch(f"{name} does not share memory as in torch")
        if len(set(memory.values())) != len(memory):
            raise Mismatch("tensors share memory that do not in torch")
        self.seen = {id(x): x for x in theirs.values()}

    def _has_thin(self, tensors: dict[str, Any]) -> bool:
        """Whether there is a tensor of which NumPy does not know all strides."""
        return any(x.dim() > 1 and 1 in x.shape for x in tensors.values())

    def _facts_of_theirs(self, x: Any) -> list[Any]:
        try:
            return facts(x)
        except RuntimeError as error:
            if UNALLOCATED.search(str(error)):
                raise KnownDifference from None
            raise

    def reset(self) -> None:
        """Forget the program."""
        self.failed = 0
        self.last = None
        self.seen.clear()
        self.gradients.clear()
        self.own = self.replaced = False
        self.lines = ""
        self.ours.reset()
        self.theirs.reset()


@functools.cache
def machine() -> Machine:
    """The machine of this process, without a program."""
    return Machine()


def facts(x: Any) -> list[Any]:
    """What is compared of every tensor after every line; nothing that would change it."""
    return [str(x.dtype), tuple(x.shape), strides(x), offset(x), version(x), x.tolist()]


def version(x: Any) -> int | None:
    """None of an inference tensor, and of one whose data is that of one."""
    try:
        return None if x.is_inference() else int(x._version)
    except RuntimeError:
        return None


def place(x: Any) -> int:
    """Where torch has the storage of a tensor; of zeros without memory a number of its own."""
    try:
        return int(x.untyped_storage().data_ptr())
    except RuntimeError:
        return -id(x)


def packs(entry: Any) -> bool:
    """Whether a hook of saved tensors noted this."""
    return isinstance(entry[0], str) and re.fullmatch(r"pack|s\d+", entry[0]) is not None


def base_of(engine: Engine, x: Any) -> str | None:
    """The name of what `x` is a view of."""
    base = x._base
    return None if base is None else engine.namespace["name_of"](base) or "something"


def offset(x: Any) -> int:
    """Where `x` begins; NumPy does not say of one without elements."""
    return x.storage_offset() if x.numel() else 0


def strides(x: Any) -> Any:
    """As the prelude has them."""
    return machine().theirs.namespace["strides"](x)


def tolerance(dtype: str) -> float:
    return TOLERANCE.get(dtype, OTHERWISE)


def alike(a: Any, b: Any, rtol: float = OTHERWISE) -> bool:
    """Whether plain data agree: numbers to a tolerance relative to themselves or to one."""
    if a.__class__ is float and b.__class__ is float:
        return a == b or abs(a - b) <= rtol * max(1.0, abs(b)) or (a != a and b != b)
    if a.__class__ is complex and b.__class__ is complex:
        return alike(a.real, b.real, rtol * size(b)) and alike(a.imag, b.imag, rtol * size(b))
    if isinstance(a, dict):
        return saved_alike(a, b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return False
        if is_tensor(b) and is_tensor(a):
            return a[1:4] == b[1:4] and alike(a[4], b[4], tolerance(b[1]))
        return all(alike(x, y, rtol) for x, y in zip(a, b))
    return bool(a == b)


def saved_alike(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether two nodes have saved the same.

    Of what is no tensor, torch has only what its own formulas use, and shows negative numbers as
    unsigned; a number that stands where a tensor could it keeps as a tensor.
    """
    for name in ours.keys() | theirs.keys():
        a, b = ours.get(name), theirs.get(name)
        if is_tensor(b) and isinstance(a, (bool, int, float, complex)):
            b = b[4]  # type: ignore[index]
        elif not is_tensor(a) and not is_tensor(b):
            continue
        if not alike(a, b):
            return False
    return True


def is_tensor(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 5 and value[0] == "tensor"


def size(value: complex) -> float:
    found = math.hypot(value.real, value.imag)  # not abs: that may overflow
    return max(1.0, found) if math.isfinite(found) else 1.0
