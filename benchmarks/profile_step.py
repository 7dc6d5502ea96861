"""Show where a step of clew spends its time and what it allocates.

    python benchmarks/profile_step.py "MLP step" [--threads 1] [--seconds 3]

Three looks at the same step:

- With a clock around each kernel (an op's forward, a backward rule on arrays, an optimizer's
  update): calls and seconds by kind.  What a clock counts of itself is measured and taken off;
  Python code inside of kernels counts as kernel.
- With the clocks stopped, in turns with the first: what a step takes.  A stopped clock is one more
  call, about 0.1 us.  What the step takes beyond its kernels is overhead.  On one thread, clocks
  show the time on a processor, which other programs disturb less; on several, the time of day.
- Interrupted each millisecond by a timer, to see which module of clew was at work outside of
  kernels: the overhead by part.  Python handles an interruption only between two of its own
  instructions, so a call into C counts for the line that made it.  Copies and sums that the
  engine makes of gradients count as the engine's.

Bytes are tracemalloc's, in a run of their own: by how much memory rises at most within one call,
results and temporary arrays together.  Memory that compiled code takes for itself is not seen.
"""

from __future__ import annotations

import argparse
import functools
import signal
import statistics
import time
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.table import Table
from workloads import WORKLOADS, make

import clew
from clew.dispatch import ARRAYS
from clew.kernels import optim
from clew.op import REGISTRY

CLEW = str(Path(clew.__file__).parent)

PARTS = {
    "nn/": "modules, losses",
    "optim/": "optimizers",
    "autograd/": "engine and graph",
    "functions/": "public functions",
    "methods/": "public functions",
    "publish.py": "public functions",
    "": "dispatch",
}
"""What the files below ``src/clew`` count as: the first that fits."""


Key = tuple[str, str]
"""Forward, backward or update; and the op, node or update."""


@dataclass
class Entry:
    """What the calls of one kind of kernel took."""

    calls: int = 0
    seconds: float = 0.0
    bytes: int = 0


class Clock:
    """Stands around kernels; nested ones (a rule that runs an op) count for the outermost.

    Args:
        now: tells the time in seconds.

    Attributes:
        entries: what was counted since the last `take`.
        weighing: count bytes instead of seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.entries: defaultdict[Key, Entry] = defaultdict(Entry)
        self.weighing = False
        self.busy = False

    def around(self, function: Callable[..., Any], phase: str, kind: str) -> Callable[..., Any]:
        """`function`, measured."""
        key, now, entries = (phase, kind), self.now, self.entries

        @functools.wraps(function)
        def kernel(*args: Any, **kwargs: Any) -> Any:
            if self.busy:
                return function(*args, **kwargs)
            self.busy = True
            if self.weighing:
                tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0] if self.weighing else 0
            start = now()
            try:
                return function(*args, **kwargs)
            finally:
                seconds = now() - start
                self.busy = False
                entry = entries[key]
                entry.calls += 1
                entry.seconds += seconds
                if self.weighing:
                    entry.bytes += max(0, tracemalloc.get_traced_memory()[1] - before)

        return kernel

    def around_rule(self, function: Callable[..., Any], kind: str) -> Callable[..., Any]:
        """A backward rule, measured where it computes with arrays; on tensors it calls ops."""
        measured = self.around(function, "backward", kind)

        @functools.wraps(function)
        def rule(F: Any, *args: Any, **kwargs: Any) -> Any:
            return (measured if F is ARRAYS else function)(F, *args, **kwargs)

        return rule

    def install(self) -> None:
        """Stand around every kernel.  Before any op has run: ops remember their rules."""
        rules: dict[Any, str] = {}
        for op in sorted(REGISTRY.values(), key=lambda op: op.derived_from):
            op.forward = self.around(op.forward, "forward", op.label)
            if op.write is not None:
                op.write = self.around(op.write, "forward", op.label + "_")
            for form in (op, op.in_place, *[other for _, other in op.overloads]):
                for rule in form.rules.values() if form is not None else ():
                    rules.setdefault(rule, form.node_name if form is not None else "")
        for rule, kind in rules.items():
            rule.function = self.around_rule(rule.function, kind)
        for name, function in vars(optim).items():
            if getattr(function, "__module__", "") == optim.__name__ and name[0] != "_":
                setattr(optim, name, self.around(function, "update", name))

    def take(self) -> dict[Key, Entry]:
        """The entries, which begin anew."""
        taken = dict(self.entries)
        self.entries.clear()
        return taken

    def seconds_of_a_reading(self) -> float:
        """What the clock counts of itself in a call, at best."""
        nothing = self.around(lambda: None, "", "")
        readings = []
        for _ in range(1000):
            nothing()
            readings.append(self.entries.pop(("", "")).seconds)
        return min(readings)


class Sampler:
    """Notes each millisecond which part of the program is at work."""

    def __init__(self) -> None:
        self.samples: Counter[str] = Counter()
        self.functions: Counter[str] = Counter()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        part, function = "the program", ""
        while frame is not None:
            code = frame.f_code
            if code.co_filename == __file__ and code.co_name == "kernel":
                part, function = "kernels", ""
                break
            if not function and code.co_filename.startswith(CLEW):
                path = code.co_filename[len(CLEW) + 1 :]
                part = next(part for start, part in PARTS.items() if path.startswith(start))
                function = f"{path}: {code.co_qualname}"
            frame = frame.f_back
        self.samples[part] += 1
        if function:
            self.functions[function] += 1

    def watch(self, step: Callable[[], Any], seconds: float) -> None:
        """Sample while the step is taken for some seconds."""
        old = signal.signal(signal.SIGALRM, self)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        try:
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                step()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)


def clocked(
    clock: Clock, step: Callable[[], Any], seconds: float
) -> tuple[float, float, dict[Key, Entry]]:
    """Take the step for some seconds, with the clocks stopped and running in turns.

    Returns:
        The median of the seconds of a step with the clocks stopped, and running; and what a step
        spends in kernels by kind, the median over the steps.
    """
    times: tuple[list[float], list[float]] = ([], [])
    steps: list[dict[Key, Entry]] = []
    while sum(times[0]) < seconds or len(times[0]) < 3:
        for running in (False, True):
            clock.busy = not running
            start = clock.now()
            step()
            times[running].append(clock.now() - start)
        steps.append(clock.take())
    last = steps[-1]
    for key, entry in last.items():
        entry.seconds = statistics.median(taken[key].seconds for taken in steps)
    return statistics.median(times[False]), statistics.median(times[True]), last


def weighed(clock: Clock, step: Callable[[], Any]) -> dict[Key, int]:
    """Bytes a call by kind, in a step."""
    tracemalloc.start()
    clock.weighing = True
    step()
    clock.take()
    step()
    tracemalloc.stop()
    clock.weighing = False
    return {key: round(entry.bytes / entry.calls) for key, entry in clock.take().items()}


def kinds_table(
    entries: dict[Key, Entry], sizes: dict[Key, int], reading: float
) -> tuple[Table, float]:
    """The kernels by kind, and their seconds in a step."""
    table = Table(title="kernels, in one step")
    table.add_column("kind")
    for title in ("calls", "µs", "µs a call", "bytes a call"):
        table.add_column(title, justify="right")
    total = 0.0
    for (phase, kind), entry in sorted(entries.items(), key=lambda item: -item[1].seconds):
        seconds = max(0.0, entry.seconds - reading * entry.calls)
        total += seconds
        table.add_row(
            f"{phase} {kind}", str(entry.calls), f"{seconds * 1e6:.1f}",
            f"{seconds / entry.calls * 1e6:.2f}", f"{sizes.get((phase, kind), 0):,}",
        )  # fmt: skip
    return table, total


def parts_table(sampler: Sampler, plain: float, kernels: float) -> Table:
    """Kernels and the parts of the overhead, as shares of the step."""
    table = Table(title=f"one step: {plain * 1e6:,.0f} µs")
    for title in ("part", "µs", "share"):
        table.add_column(title, justify="left" if title == "part" else "right")
    table.add_row("kernels", f"{kernels * 1e6:.1f}", f"{kernels / plain:.0%}")
    outside = {part: n for part, n in sampler.samples.items() if part != "kernels"}
    overhead = max(0.0, plain - kernels)
    for part, n in sorted(outside.items(), key=lambda item: -item[1]):
        seconds = overhead * n / sum(outside.values())
        table.add_row(part, f"{seconds * 1e6:.1f}", f"{seconds / plain:.0%}")
    return table


def functions_table(sampler: Sampler, count: int) -> Table:
    """The functions that were at work most often outside of kernels."""
    table = Table(title="overhead by function (samples)")
    table.add_column("function")
    table.add_column("share of the overhead", justify="right")
    outside = sum(n for part, n in sampler.samples.items() if part != "kernels")
    for function, n in sampler.functions.most_common(count):
        table.add_row(function, f"{n / outside:.1%}")
    return table


def main() -> None:
    """Profile a workload and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each look")
    parser.add_argument("--functions", type=int, default=15, help="how many to list")
    options = parser.parse_args()
    clew.set_num_threads(options.threads)
    clock = Clock(time.thread_time if options.threads == 1 else time.perf_counter)
    sampler = Sampler()
    clock.install()
    step = make(options.workload, clew)
    for _ in range(5):
        step()
    clock.take()
    reading = clock.seconds_of_a_reading()
    plain, disturbed, entries = clocked(clock, step, options.seconds)
    sizes = weighed(clock, step)
    sampler.watch(step, options.seconds)
    console = Console(width=max(100, Console().width))
    kinds, kernels = kinds_table(entries, sizes, reading)
    console.print(parts_table(sampler, plain, kernels))
    console.print(functions_table(sampler, options.functions))
    console.print(kinds)
    console.print(
        f"The clocks make a step {disturbed / plain:.2f} times as long; they count "
        f"{reading * 1e9:.0f} ns of themselves in a call, which is taken off."
    )


if __name__ == "__main__":
    main()
