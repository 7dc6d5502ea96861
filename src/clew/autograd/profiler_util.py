"""What a profiler has seen: events in time, their averages, lists of them.  Layer 4.

Times are in microseconds from the start of the profile, as in PyTorch; there is one device, so the
times of devices other than the CPU are zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from clew.autograd import profiler_table
from clew.autograd.profiler_table import _format_memory as _format_memory
from clew.autograd.profiler_table import _format_time as _format_time
from clew.autograd.profiler_table import _format_time_share as _format_time_share


class Interval(NamedTuple):
    """A stretch of time."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """How long it is."""
        return self.end - self.start


class _Times:
    """What events and their averages have in common: the average times, and those as text."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = 0
    self_device_time_total = 0
    cuda_time_total = 0
    self_cuda_time_total = 0
    self_device_memory_usage = 0
    device_memory_usage = 0

    @property
    def cpu_time(self) -> float:
        """The average time of one call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Zero: there is no other device than the CPU."""
        return 0.0

    cuda_time = device_time

    @property
    def cpu_time_str(self) -> str:
        """`cpu_time` as text."""
        return _format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """`cpu_time_total` as text."""
        return _format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """`self_cpu_time_total` as text."""
        return _format_time(self.self_cpu_time_total)


class FunctionEvent(_Times):
    """One call of an op, a node of a backward pass, or a range that the program has named.

    Attributes:
        name: ``aten::mul``, ``MulBackward0``, or the name that was given.
        time_range: from when to when.
        thread, fwd_thread: in which thread; for a node of a backward pass, in which it was
            recorded.  Threads are numbered from 1 as they appear.
        sequence_nr: that of the node that the op recorded, or that ran; -1 if there is none.
        input_shapes: the shape of each argument, [] for one that is no tensor.
        stack: the user's line, if it was asked for.
        scope: 0 for a call of an op, 1 for a node of a backward pass, 2 for a named range.
        cpu_memory_usage: the bytes of new memory that results of the op took.
        cpu_parent, cpu_children: the event that it happened in, and those that happened in it.
    """

    def __init__(
        self, id: int, name: str, thread: int, start_us: float, end_us: float, *,
        node_id: int = -1, fwd_thread: int | None = None, input_shapes: Any = None,
        stack: Any = None, scope: int = 0, cpu_memory_usage: int = 0, is_async: bool = False,
        is_remote: bool = False, sequence_nr: int = -1,
    ) -> None:  # fmt: skip
        self.id, self.node_id, self.name = id, node_id, name
        self.time_range = Interval(start_us, end_us)
        self.thread, self.fwd_thread = thread, fwd_thread
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes = [] if input_shapes is None else input_shapes
        self.stack = [] if stack is None else stack
        self.scope, self.sequence_nr = scope, sequence_nr
        self.cpu_memory_usage = cpu_memory_usage
        self.is_async, self.is_remote = is_async, is_remote

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Note an event that happened in this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Note the event that this one happened in."""
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """What averages are taken by: the name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """How long it took, what happened in it included."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """How long it took without what happened in it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """`cpu_memory_usage` without that of what happened in it."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"is_async={self.is_async} seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(_Times):
    """Several events of one key, added up."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.input_shapes: Any = None
        self.stack: Any = None
        self.scope: int | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.is_async = self.is_remote = False

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event, or another average, of the same key.

        Raises:
            AssertionError: the keys differ.
        """
        if self.key is None:
            self.key, self.node_id = other.key, other.node_id
            self.input_shapes, self.stack, self.scope = other.input_shapes, other.stack, other.scope
            self.cpu_parent, self.is_async = other.cpu_parent, other.is_async
        if other.key != self.key:
            raise AssertionError(f"cannot add {other.key!r} to the average of {self.key!r}")
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.count += other.count
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list[Any]):
    """Events, or averages of them."""

    def __init__(
        self, events: Iterable[Any] = (), *, profile_memory: bool = False, with_stack: bool = False
    ) -> None:
        super().__init__(events)
        self._profile_memory, self._with_stack = profile_memory, with_stack

    def _populate_cpu_children(self) -> None:
        """Find for each event the one that it happened in: the shortest around it in its thread."""
        by_start = sorted(
            (event for event in self if not event.is_async),
            key=lambda event: (event.thread, event.time_range.start, -event.time_range.end),
        )
        around: list[FunctionEvent] = []
        for event in by_start:
            while around and not _holds(around[-1], event):
                around.pop()
            if around:
                around[-1].append_cpu_child(event)
                event.set_cpu_parent(around[-1])
            around.append(event)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all, each moment counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """The events added up by their names, and by shapes of arguments or lines if asked for."""
        averages: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (
                event.key,
                str(event.input_shapes) if group_by_input_shape else "",
                tuple(event.stack[:group_by_stack_n]),
            )
            average = averages.setdefault(key, FunctionEventAvg()).add(event)
            if not group_by_input_shape:
                average.input_shapes = ""
            if not group_by_stack_n:
                average.stack = []
        return EventList(
            averages.values(), profile_memory=self._profile_memory, with_stack=self._with_stack
        )

    def total_average(self) -> FunctionEventAvg:
        """All events added up, under the name "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key  # so that they all can be added
            total.add(event)
        total.key = "Total"
        return total

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80,
        header: str | None = None, top_level_events_only: bool = False,
    ) -> str:  # fmt: skip
        """The events as text, one in a row.

        Args:
            sort_by: a time or count to sort by, largest first: ``cpu_time``, ``cpu_time_total``,
                ``self_cpu_time_total``, ``count``, ``cpu_memory_usage``, ...
            row_limit: how many rows to show at most; -1 shows all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: where longer
                texts are cut off.
            header: a line to put above.
            top_level_events_only: leave out what happened in other events.
        """
        widths = {
            "name": max_name_column_width,
            "shapes": max_shapes_column_width,
            "source": max_src_column_width,
        }
        return profiler_table.table(
            self, sort_by, row_limit, widths, header, top_level_events_only,
            memory=self._profile_memory, source=self._with_stack,
        )  # fmt: skip

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write the events for ``chrome://tracing`` or ui.perfetto.dev."""
        events = [
            {
                "name": event.name, "ph": "X", "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(), "tid": event.thread, "pid": "CPU functions",
                "args": {"Input Dims": event.input_shapes, "Sequence number": event.sequence_nr},
            }
            for event in self
        ]  # fmt: skip
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


def _holds(outer: FunctionEvent, inner: FunctionEvent) -> bool:
    """Whether one event happened in another."""
    if outer.thread != inner.thread:
        return False
    start, end = outer.time_range
    return start <= inner.time_range.start < end and inner.time_range.end <= end
