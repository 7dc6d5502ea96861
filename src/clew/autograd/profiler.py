"""Profile a program: which ops and nodes ran, when, how long, in which thread.  Layer 4.

A `profile` is an observer; while none is entered, the program runs as always.
"""

from __future__ import annotations

import re
import threading
import time
from typing import Any, NoReturn

from clew.autograd.function import Function
from clew.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from clew.observers import Observer, observers
from clew.site import here, resolve
from clew.tensor import Tensor

__all__ = ["emit_itt", "emit_nvtx", "kineto_available", "profile", "record_function"]

OP, NODE, RANGE = 0, 1, 2
"""The scopes of events, as PyTorch numbers them."""

_VARIANT = re.compile(r"_(all|dim|scaled|inplace|number|of_number|with_number|tensors|stable)$")
"""What clew's names of the overloads of one name end in (Note [Overloads])."""


def kineto_available() -> bool:
    """False: Kineto is what PyTorch records with; clew's profiler is its own."""
    return False


class _Running:
    """A call that has begun."""

    __slots__ = ("fwd_thread", "key", "name", "seq", "shapes", "stack", "start")

    def __init__(self, key: Any, name: str, shapes: Any, seq: int, fwd_thread: int) -> None:
        self.key, self.name, self.shapes = key, name, shapes
        self.seq, self.fwd_thread = seq, fwd_thread
        self.stack: list[str] = []
        self.start = time.perf_counter_ns()


class _PerThread(threading.local):
    """The calls that run in this thread, outermost first, and the thread's number."""

    def __init__(self) -> None:
        self.running: list[_Running] = []
        self.number = 0


class profile(Observer):
    """Record the ops, nodes and named ranges that run while it is entered, in all threads.

    Args:
        enabled: whether to record at all.
        record_shapes: note the shapes of arguments.
        profile_memory: note the bytes of new memory that results take.
        with_stack: note the user's line.
        use_kineto, use_cpu: accepted; there is one way to record, and one device.
        use_device, use_cuda: refused with a warning, as by a PyTorch without that device.

    Raises:
        NotImplementedError: ``with_flops`` or ``with_modules`` is asked for.
        RuntimeError: on entry, it was entered before.

    >>> with torch.autograd.profiler.profile() as prof:
    ...     y = torch.ones(3) * 2
    >>> [event.name for event in prof.function_events]
    ['aten::empty', 'aten::mul']
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False,
        with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False,
        use_cpu: bool = True,
    ) -> None:  # fmt: skip
        for name, value in (("with_flops", with_flops), ("with_modules", with_modules)):
            if value:
                raise NotImplementedError(f"clew's profiler has no {name}")
        if use_cuda or use_device is not None:
            _warn_of_device("cuda" if use_cuda else use_device)
        self.enabled = enabled
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack = with_stack
        self.entered = False
        self._begun = 0
        self._thread = _PerThread()
        self._lock = threading.Lock()
        self._threads = 0
        self._done: list[tuple[_Running, int, int, int, int]] = []
        self._recorded_in: dict[int, int] = {}
        self._events: EventList | None = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._begun = time.perf_counter_ns()
        observers.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.enabled:
            observers.remove(self)
            self._events = self._as_events()

    # -- what the core tells

    def before_op(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> None:
        """An op begins."""
        self._begin(op, _name_of(op), inputs)

    def on_op(
        self, op: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], node: Any,
        attrs: dict[str, Any],
    ) -> None:  # fmt: skip
        """An op ends."""
        if node is not None:
            self._recorded_in[node.seq] = self._number()
        new = 0 if getattr(op, "view", False) else _nbytes(outputs)
        self._end(op, OP, -1 if node is None else node.seq, new)

    def before_inplace(
        self, op: Any, target: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]
    ) -> None:
        """A write begins."""
        self._begin(op, _name_of(op) + "_", (target, *inputs))

    def on_inplace(self, op: Any, target: Any, node: Any) -> None:
        """A write ends."""
        if node is not None:
            self._recorded_in[node.seq] = self._number()
        self._end(op, OP, -1 if node is None else node.seq, 0)

    def on_tensor(self, tensor: Any) -> None:
        """A factory has made memory."""
        self._begin("empty", "aten::empty", ())
        self._end("empty", OP, -1, _nbytes((tensor,)))

    def before_node(self, node: Any) -> None:
        """A node of a backward pass begins."""
        thread = self._recorded_in.get(node.seq, 0)
        evaluate = f"autograd::engine::evaluate_function: {node.name()}"
        self._begin((node, "evaluate"), evaluate, (), node, thread)
        self._begin((node, "apply"), node.name(), (), node, thread)

    def on_node(self, node: Any) -> None:
        """A node of a backward pass ends."""
        self._end((node, "apply"), NODE, None, 0)
        self._end((node, "evaluate"), OP, None, 0)

    # -- bookkeeping

    def _number(self) -> int:
        """The number of this thread."""
        if not self._thread.number:
            with self._lock:
                self._threads += 1
                self._thread.number = self._threads
        return self._thread.number

    def _begin(
        self, key: Any, name: str, inputs: tuple[Any, ...], node: Any = None, fwd_thread: int = 0
    ) -> None:
        shapes = [list(x.shape) if isinstance(x, Tensor) else [] for x in inputs]
        seq = -1 if node is None or not node.edges else node.seq
        call = _Running(key, name, shapes if self.record_shapes else [], seq, fwd_thread)
        if self.with_stack:
            line = resolve(here(2))
            call.stack = [str(line)] if line else []
        self._thread.running.append(call)

    def _end(self, key: Any, scope: int, seq: int | None, nbytes: int) -> None:
        """The call of this key ends; those in it that have not have raised an error."""
        now = time.perf_counter_ns()
        running = self._thread.running
        position = next((i for i in reversed(range(len(running))) if running[i].key == key), None)
        if position is None:
            return
        call = running[position]
        del running[position:]
        if seq is not None:
            call.seq = seq
        self._done.append((call, now, self._number(), scope, nbytes if self.profile_memory else 0))

    def _as_events(self) -> EventList:
        def us(ns: int) -> float:
            return (ns - self._begun) / 1000

        events = EventList(profile_memory=self.profile_memory, with_stack=self.with_stack)
        for call, end, thread, scope, nbytes in self._done:
            events.append(
                FunctionEvent(
                    0,
                    call.name,
                    thread,
                    us(call.start),
                    us(end),
                    fwd_thread=call.fwd_thread,
                    input_shapes=call.shapes,
                    stack=call.stack,
                    scope=scope,
                    cpu_memory_usage=nbytes,
                    sequence_nr=call.seq,
                )
            )
        events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
        for number, event in enumerate(events):
            event.id = number
        events._populate_cpu_children()
        for event in reversed(events):  # those that happened in others come after them
            if event.cpu_parent is not None:
                event.cpu_parent.cpu_memory_usage += event.cpu_memory_usage
        return events

    # -- what the user asks

    @property
    def function_events(self) -> EventList:
        """The events in the order in which they began; none before the end."""
        return EventList() if self._events is None else self._events

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each moment counted once."""
        return self.function_events.self_cpu_time_total

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """As `EventList.key_averages`."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """As `EventList.total_average`."""
        return self.function_events.total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """As `EventList.table`."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: Any) -> None:
        """As `EventList.export_chrome_trace`."""
        self.function_events.export_chrome_trace(path)

    def __str__(self) -> str:
        if self._events is None:
            return "<unfinished torch.autograd.profile>"
        return str(self._events)

    __repr__ = __str__


def _name_of(op: Any) -> str:
    """PyTorch's name of an op; a custom Function has its own."""
    if isinstance(op, type) and issubclass(op, Function):
        return op.__name__
    return f"aten::{_VARIANT.sub('', op.label)}"


def _nbytes(outputs: tuple[Any, ...]) -> int:
    return sum(x._array.nbytes for x in outputs if isinstance(x, Tensor))


def _profiler_enabled() -> bool:
    """Whether a profile is entered."""
    return any(isinstance(observer, profile) for observer in observers)


def _warn_of_device(name: str | None) -> None:
    import warnings

    warnings.warn(f"{str(name).upper()} is not available, disabling {str(name).upper()} profiling",
                  UserWarning, stacklevel=3)  # fmt: skip


class record_function:
    """Name a range of the program in the profile: around a ``with``, or a decorated function.

    Args:
        name: the name.
        args: a text about the call; PyTorch's profiles do not show it either.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._key: Any = None

    def __enter__(self) -> record_function:
        self._key = object()
        for observer in observers:
            if isinstance(observer, profile):
                observer._begin(self._key, self.name, ())
        return self

    def __exit__(self, *exception: Any) -> None:
        for observer in observers:
            if isinstance(observer, profile):
                observer._end(self._key, RANGE, -1, 0)

    def __call__(self, function: Any) -> Any:
        import functools

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped


class emit_nvtx:
    """Ranges for NVIDIA's tools, which watch a GPU; refused on entry, for there is none.

    Raises:
        AssertionError: on entry, as from a PyTorch without CUDA.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> emit_nvtx:
        if self.enabled:
            self._refuse()
        return self

    def __exit__(self, *exception: Any) -> None:
        pass

    def _refuse(self) -> NoReturn:
        raise AssertionError("Torch not compiled with CUDA enabled")


class emit_itt(emit_nvtx):
    """Ranges for Intel's tools, which clew does not speak to; refused on entry.

    Raises:
        NotImplementedError: on entry.
    """

    def _refuse(self) -> NoReturn:
        raise NotImplementedError("clew has no ITT annotations; use profile, which writes a trace")
