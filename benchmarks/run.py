"""Time clew against PyTorch and count what both save for backward, in one interleaved run.

    python benchmarks/run.py [--rounds 15] [--threads 1 2] [--only MLP] [--write]

Each engine has a process of its own; rounds of one workload alternate between them, so that a
machine that slows down slows both.  The figure is the ratio of the medians; below 1, clew is
faster.  ``--write`` puts the table into benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
START, END = "<!-- table -->", "<!-- end of table -->"


# -- in the engine's process


def saved_bytes(engine: Any, step: Any) -> int | None:
    """Bytes kept for backward by the forward of a model: each memory once, parameters left out."""
    forward = getattr(step, "forward", None)
    if forward is None:
        return None
    parameters = {p.untyped_storage().data_ptr() for p in step.model.parameters()}
    sizes: dict[int, int] = {}
    kept = []

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        kept.append(tensor)  # so that no address is used twice
        if storage.data_ptr() not in parameters:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with engine.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = forward()
    del loss
    return sum(sizes.values())


def serve(name: str, threads: int) -> None:
    """Answer commands on stdin: ``["make", workload]``, ``["round"]``, ``["saved"]``."""
    engine = __import__(name)
    engine.set_num_threads(threads)
    from workloads import WORKLOADS

    step: Any = None
    count = 1
    for line in sys.stdin:
        command = json.loads(line)
        answer: Any = None
        if command[0] == "make":
            make, count = WORKLOADS[command[1]]
            step = make(engine)
            answer = step()
        elif command[0] == "round":
            start = time.perf_counter()
            for _ in range(count):
                loss = step()
            answer = [(time.perf_counter() - start) / count, loss]
        elif command[0] == "saved":
            answer = saved_bytes(engine, step)
        print(json.dumps(answer), flush=True)


# -- in the parent


class Worker:
    """An engine in a process of its own."""

    def __init__(self, engine: str, threads: int) -> None:
        # NumPy's wheels choose the best kernel by themselves; an override slows them.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", engine, "--threads", str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=HERE,
        )  # fmt: skip

    def ask(self, *command: Any) -> Any:
        """Send a command, wait for the answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the worker ended with {self.process.wait()} at {command}")
        return json.loads(answer)


def measure(name: str, workers: dict[str, Worker], rounds: int) -> dict[str, Any]:
    """Medians, ratio and saved bytes of one workload."""
    times: dict[str, list[float]] = {engine: [] for engine in workers}
    losses: dict[str, float] = {}
    for worker in workers.values():
        worker.ask("make", name)
    for _ in range(rounds):
        for engine, worker in workers.items():
            seconds, losses[engine] = worker.ask("round")
            times[engine].append(seconds)
    saved = {engine: worker.ask("saved") for engine, worker in workers.items()}
    medians = {engine: statistics.median(t) for engine, t in times.items()}
    return {"name": name, "seconds": medians, "saved": saved, "losses": losses}


def row(result: dict[str, Any]) -> str:
    """One line of the table."""
    clew, torch = result["seconds"]["clew"], result["seconds"].get("torch")
    saved, theirs = result["saved"]["clew"], result["saved"].get("torch")
    cells = [result["name"], _time(torch), _time(clew), f"{clew / torch:.2f}" if torch else "-"]
    if saved is None:
        cells += ["-", "-", "-"]
    else:
        ratio = f"{100 * saved / theirs:.0f} %" if theirs else "-"
        cells += [f"{theirs:,}" if theirs is not None else "-", f"{saved:,}", ratio]
    return "| " + " | ".join(cells) + " |"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def table(results: list[dict[str, Any]], threads: int, rounds: int) -> str:
    """The table with its heading: when, where and how."""
    head = (
        f"{datetime.date.today()}, {platform.processor() or platform.machine()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}; threads of each engine: "
        f"{threads}; medians of {rounds} interleaved rounds.\n\n"
        "| workload | torch | clew | time ratio | torch saves | clew saves | bytes |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    return head + "\n".join(row(r) for r in results)


def main() -> None:
    """Run the workloads and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, min(2, os.cpu_count() or 1)])
    parser.add_argument("--only", default="", help="workloads whose name holds this")
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.threads[0])
        return
    from importlib.util import find_spec

    from workloads import WORKLOADS

    engines = ["clew"] + (["torch"] if find_spec("torch") else [])
    names = [name for name in WORKLOADS if options.only in name]
    tables = []
    for threads in options.threads:
        workers = {engine: Worker(engine, threads) for engine in engines}
        results = []
        for name in names:
            results.append(measure(name, workers, options.rounds))
            print(row(results[-1]), results[-1]["losses"], flush=True)
        tables.append(table(results, threads, options.rounds))
    text = "\n\n".join(tables)
    print(text)
    if options.write:
        readme = HERE / "README.md"
        before, _, rest = readme.read_text(encoding="utf-8").partition(START)
        readme.write_text(
            f"{before}{START}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
