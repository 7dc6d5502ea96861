"""Time clew against PyTorch and others, count what is saved for backward and what memory grows.

    python benchmarks/run.py [--engines clew torch jax=PYTHON ...] [--rounds 9] [--threads 1 2]
                             [--only MLP] [--no-peak] [--write]

Each engine has a process of its own; rounds of one workload alternate between them, so that a
machine that slows down slows all.  The figures are ratios of medians; below 1, an engine is
faster than PyTorch.  An engine may be run by another interpreter, where it is installed; one that
cannot be imported is left out.  ``--write`` puts the tables into benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from adapters import ADAPTERS
from remote import Engine, Failed
from tables import Result, line, memory_table, put_into_readme, reasons, time_table
from workloads import WORKLOADS

TOLERANCE = 1e-3
"""How far the losses of the first steps may be from the first engine's, as a part of them."""

PATIENCE = 15.0
"""Seconds after which an engine takes no further round of a workload.

Where the six steps would take longer, resident memory is not measured.
"""


def start(names: list[str], threads: int) -> dict[str, Engine]:
    """The engines that can be imported; the others are named."""
    engines = {}
    for entry in names:
        name, _, python = entry.partition("=")
        try:
            engines[name] = Engine(name, python or sys.executable, threads)
        except Failed as error:
            print(f"{name} is left out: {error}", flush=True)
    return engines


def prepare(engine: Engine, workload: str, file: str, expected: list[float]) -> list[float]:
    """Have an engine take the first steps; its losses.

    Raises:
        Failed: it cannot, or its losses are not the expected ones.
    """
    reason = engine.ask("make", workload, file)
    if reason:
        raise Failed(reason)
    losses: list[float] = engine.ask("warm")
    for loss, wanted in zip(losses, expected):
        if not abs(loss - wanted) <= TOLERANCE * max(1.0, abs(wanted)):
            raise Failed(f"its losses differ ({loss:.6g} instead of {wanted:.6g})")
    return losses


REST = 0.03
"""Seconds between rounds: threads of OpenMP that wait for work go on running for a while, and
would take a processor from the engine whose turn is next."""


def measure(workload: str, engines: dict[str, Engine], rounds: int, file: str) -> Result:
    """Medians of the seconds of a step, and saved bytes."""
    result = Result(workload)
    first = next(iter(engines.values()))
    first.ask("give", workload, file)
    expected: list[float] = []
    times: dict[str, list[float]] = {}
    for name, engine in engines.items():
        try:
            losses = prepare(engine, workload, file, expected)
        except Failed as error:
            result.reasons[name] = str(error)
            continue
        expected = expected or losses
        times[name] = []
    for _ in range(rounds):
        for name, taken in times.items():
            if sum(taken) * WORKLOADS[workload][1] < PATIENCE:
                time.sleep(REST)
                taken.append(engines[name].ask("round"))
    result.seconds = {name: statistics.median(taken) for name, taken in times.items()}
    result.saved = {name: engines[name].ask("saved") for name in times}
    return result


def grow(result: Result, engines: dict[str, Engine], file: str) -> None:
    """Note the resident memory of the first steps, of each engine in a fresh process."""
    for name, seconds in result.seconds.items():
        if 6 * seconds > PATIENCE:
            continue
        engine = engines[name].again()
        try:
            result.growth[name], result.highest[name] = engine.ask("peak", result.workload, file)
        except Failed as error:
            print(f"no peak of {name}, {result.workload}: {error}", flush=True)
        finally:
            engine.close()


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--engines", nargs="+", default=list(ADAPTERS), metavar="NAME[=PYTHON]",
        help=f"of {', '.join(ADAPTERS)}; the first gives the others the values to start from",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, min(2, os.cpu_count() or 1)])
    parser.add_argument(
        "--only", nargs="+", default=[""], help="workloads whose name holds one of these"
    )
    parser.add_argument("--no-peak", dest="peak", action="store_false", help="leave out memory")
    parser.add_argument("--write", action="store_true", help="put the tables into README.md")
    options = parser.parse_args()
    for entry in options.engines:
        if entry.partition("=")[0] not in ADAPTERS:
            parser.error(f"no engine {entry}")
    return options


def main() -> None:
    """Run the workloads and print the tables."""
    options = arguments()
    workloads = [name for name in WORKLOADS if any(part in name for part in options.only)]
    parts = []
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "given.npz")
        for threads in options.threads:
            engines = start(options.engines, threads)
            results = []
            for workload in workloads:
                results.append(measure(workload, engines, options.rounds, file))
                if options.peak and threads == options.threads[-1]:
                    grow(results[-1], engines, file)
                print(line(results[-1]), flush=True)
            for engine in engines.values():
                engine.close()
            parts.append(time_table(results, threads, options.rounds))
    parts.append(memory_table(results))
    parts.append(reasons(results))
    text = "\n\n".join(part for part in parts if part)
    print(text)
    if options.write:
        put_into_readme(text, "table")


if __name__ == "__main__":
    main()
