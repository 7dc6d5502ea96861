"""What tracking memory costs: a training step inside `clew.memory.track` and one without.

    python benchmarks/memory.py [--rounds 60] [--engine clew]

Both alternate in one process, so that a machine that slows down slows both.  The figures are
medians over the rounds of the time that the process used, and their ratio.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable

from workloads import WORKLOADS

MODELS = ("MLP step", "GAN step", "CNN step")


def measure(step: Callable[[], float], steps: int, rounds: int, engine: str) -> tuple[float, float]:
    """Medians of the seconds of a plain and of a tracked step."""
    from clew.memory import track

    plain, tracked = [], []
    for _ in range(rounds):
        plain.append(_seconds(step, steps))
        with track(engine):
            tracked.append(_seconds(step, steps))
    return statistics.median(plain), statistics.median(tracked)


def _seconds(step: Callable[[], float], steps: int) -> float:
    step()  # what is met for the first time costs more
    start = time.process_time()
    for _ in range(steps):
        step()
    return (time.process_time() - start) / steps


def main() -> None:
    """Measure each model and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--engine", choices=("clew", "torch"), default="clew")
    options = parser.parse_args()
    engine = importlib.import_module(options.engine)
    engine.set_num_threads(1)
    print("| workload | plain | tracked | ratio |\n|---|---|---|---|")
    for name in MODELS:
        make, steps = WORKLOADS[name]
        plain, tracked = measure(make(engine), steps, options.rounds, options.engine)
        times = f"{plain * 1e6:.0f} µs | {tracked * 1e6:.0f} µs"
        print(f"| {name} | {times} | {tracked / plain:.2f} |", flush=True)


if __name__ == "__main__":
    main()
