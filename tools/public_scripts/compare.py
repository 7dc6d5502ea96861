"""Run public scripts on PyTorch and on clew, compare what they print, and write the table.

    python tools/public_scripts/compare.py CHECKOUTS [--only PATTERN] [--write] [--outputs FOLDER]

CHECKOUTS holds a checkout of each repository of ``scripts.toml`` as ``owner+name``.  Each script
runs unmodified in a copy of its repository, with seeded generators: on PyTorch, on clew, and on a
PyTorch that is kept from newer machine instructions, which adds in another order.  The texts
printed must be equal but for numbers; the greatest relative difference of a number is reported,
beside PyTorch's own.  Needs torch, and what the scripts import: gymnasium,
pillow, matplotlib, scipy, six, tyro, tensorboard.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data import PREPARE
from rich.console import Console

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/compatibility.md"
MARK = "<!-- public scripts -->"
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
NOTHING = 1e-3
"""A number is compared relative to its size, or to this where it is smaller."""


@dataclass
class Run:
    """What one engine made of a script."""

    status: int
    output: str
    errors: str
    seconds: float


@dataclass
class Result:
    """A script's comparison: what to say of it, and the ratio of times."""

    name: str
    verdict: str
    good: bool
    ratio: float | None
    worst: float | None = None
    own: str = ""


ENGINES = ("torch", "clew", "older")
OLDER = {
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
}
"""The environment of a PyTorch that does the same sums in another order."""


def load() -> list[dict[str, Any]]:
    """The listed scripts, each with its repository's name, commit and folder."""
    repositories = tomllib.loads((HERE / "scripts.toml").read_text())["repository"]
    return [
        {"repository": r["name"], "commit": r["commit"], "folder": r.get("folder"), **script}
        for r in repositories
        for script in r["script"]
    ]


def run(script: dict[str, Any], engine: str, checkouts: Path, limit: float) -> Run:
    """Run a script in a fresh copy of its repository."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "repository"
        shutil.copytree(checkouts / script["repository"].replace("/", "+"), copy)
        path = copy / script["path"]
        folder = copy / script["folder"] if script["folder"] else path.parent
        if "data" in script:
            PREPARE[script["data"]](folder)
        environment = dict(os.environ, MPLBACKEND="Agg", PYTHONHASHSEED="0")
        paths = [str(HERE / "standins"), str(copy), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        environment["PUBLIC_SCRIPTS_IMAGES"] = str(script.get("images", 1024))
        if "env" in script:
            name, _, value = script["env"].partition("=")
            environment[name] = value
        if "before" in script:
            subprocess.run([sys.executable, script["before"]], cwd=folder, check=True)
        if engine == "older":
            environment |= OLDER
        name = "clew" if engine == "clew" else "torch"
        command = [sys.executable, "-m", "clew", "run", "--engine", name]
        if script.get("tests") == "pytest":
            command += ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
        else:
            command += [str(HERE / "driver.py"), str(script.get("lines", 0)), str(path)]
        command += shlex.split(script.get("args", ""))
        start = time.perf_counter()
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, text=True, capture_output=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return Run(-1, "", f"not done after {limit:.0f} s", limit)
        took = time.perf_counter() - start
        return Run(done.returncode, done.stdout.replace(scratch, ""), done.stderr, took)


def compare(script: dict[str, Any], runs: dict[str, Run]) -> Result:
    """Say how clew's output differs from PyTorch's, and PyTorch's from its own."""
    name = title(script)
    torch, clew = runs["torch"], runs["clew"]
    if torch.status != 0:
        return Result(name, f"fails on PyTorch: {_last_line(torch)}", False, None)
    ratio = clew.seconds / torch.seconds
    if clew.status != 0:
        return Result(name, f"fails: {_last_line(clew)}", False, ratio)
    ignored = script.get("ignore", r"$^")
    worst, own = (_difference(torch, runs[other], ignored) for other in ("clew", "older"))
    good = worst is not None or own is None
    return Result(name, _words(worst), good, ratio, worst, _words(own))


def _difference(one: Run, other: Run, ignored: str) -> float | None:
    """The greatest relative difference of a number printed, None if more than numbers differs."""
    texts = [re.sub(ignored, "", run.output) for run in (one, other)]
    words = [NUMBER.sub("#", text).split() for text in texts]
    if words[0] != words[1]:
        return None
    pairs = zip(*(map(float, NUMBER.findall(text)) for text in texts), strict=True)
    return max((abs(a - b) / max(abs(a), NOTHING) for a, b in pairs), default=0.0)


def _words(difference: float | None) -> str:
    if difference is None:
        return "other text"
    return "equal" if difference == 0 else f"{difference:.0e}"


def _last_line(run: Run) -> str:
    lines = [line for line in run.errors.strip().splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b", line)]
    return (errors or lines or [f"status {run.status}"])[-1][:120]


def table(results: list[Result]) -> str:
    """The results in Markdown."""
    rows = [
        "| script | clew differs by | PyTorch differs from itself by | time against PyTorch |",
        "|---|---|---|---|",
    ]
    for result in results:
        ratio = "" if result.ratio is None else f"{result.ratio:.2f}"
        rows.append(
            f"| `{result.name}` | {result.verdict.replace('|', '/')} | {result.own} | {ratio} |"
        )
    good = sum(result.good for result in results)
    return f"{good} of {len(results)} run as on PyTorch.\n\n" + "\n".join(rows)


def title(script: dict[str, Any]) -> str:
    """The repository, the path and the arguments."""
    return f"{script['repository']} {script['path']} {script.get('args', '')}".strip()


def judge(script: dict[str, Any], options: argparse.Namespace) -> Result:
    """Run a script on all engines, keep what it printed if asked to, and say how it went."""
    runs = {e: run(script, e, options.checkouts, options.limit) for e in ENGINES}
    result = compare(script, runs)
    if options.outputs:
        options.outputs.mkdir(parents=True, exist_ok=True)
        for engine, one in runs.items():
            name = re.sub(r"\W+", "-", title(script))[:80]
            text = one.output + "\n--- errors\n" + one.errors
            (options.outputs / f"{name}-{engine}.txt").write_text(text)
    figures = f"{result.verdict}; PyTorch itself: {result.own}; time {result.ratio}"
    Console().print(f"{result.name[:90]}: {figures}", markup=False, soft_wrap=True)
    return result


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", default="", help="a regular expression of names to run")
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    parser.add_argument("--outputs", type=Path, help="a folder for what each run printed")
    parser.add_argument("--jobs", type=int, default=1, help="scripts that run at a time")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one run")
    options = parser.parse_args()
    chosen = [s for s in load() if re.search(options.only, title(s))]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda script: judge(script, options), chosen))
    if options.write:
        before, _, rest = PAGE.read_text().partition(MARK)
        after = rest.partition(MARK)[2]
        PAGE.write_text(f"{before}{MARK}\n\n{table(results)}\n\n{MARK}{after}")
    return 0 if all(result.good for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
