"""The tables of results, as Markdown."""

from __future__ import annotations

import datetime
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean

from adapters import ADAPTERS
from workloads import EXTRA

README = Path(__file__).parent / "README.md"

LIMIT = 1.25
"""Ratios above it are counted under a table."""


CHANCE = 1e6
"""Bytes of resident memory by which equal processes may differ."""


def put_into_readme(text: str, name: str) -> None:
    """Write a text between the marks of its name in README.md."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = README.read_text(encoding="utf-8").partition(start)
    README.write_text(f"{before}{start}\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


@dataclass
class Result:
    """What was measured of a workload: by engine the median of seconds, bytes, or why nothing."""

    workload: str
    seconds: dict[str, float] = field(default_factory=dict)
    saved: dict[str, int | None] = field(default_factory=dict)
    growth: dict[str, int] = field(default_factory=dict)
    highest: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def ratio(self, engine: str) -> float | None:
        """Time of an engine to that of PyTorch."""
        if engine in self.seconds and "torch" in self.seconds:
            return self.seconds[engine] / self.seconds["torch"]
        return None


def time_table(results: list[Result], threads: int, rounds: int) -> str:
    """Times of torch and clew, ratios of all; when, where, how; what the ratios come to."""
    head = (
        f"{datetime.date.today()}, {platform.processor() or platform.machine()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}; threads of each engine: "
        f"{threads}; medians of {rounds} interleaved rounds; ratios of time to torch's.\n\n"
    )
    others = [e for e in _measured(results) if e not in ("clew", "torch")]
    titles = ["workload", "torch", "clew", "ratio", *[ADAPTERS[e][1] for e in others]]
    rows = [
        [r.workload, _time(r.seconds.get("torch")), _time(r.seconds.get("clew"))]
        + [_ratio(r.ratio(e)) for e in ("clew", *others)]
        for r in results
    ]
    table = head + _table(titles, rows)
    ours = [engine for engine in ("clew", *others) if engine.startswith("clew")]
    return table + "".join([_summary(results, engine) for engine in ours])


def _summary(results: list[Result], engine: str) -> str:
    pairs = [(r.workload, r.ratio(engine)) for r in results if r.workload not in EXTRA]
    ratios = {workload: ratio for workload, ratio in pairs if ratio is not None}
    if not ratios:
        return ""
    above = [workload for workload, ratio in ratios.items() if ratio > LIMIT]
    text = (
        f"\n\n{ADAPTERS[engine][1]}, {len(ratios)} workloads: geometric mean "
        f"{geometric_mean(ratios.values()):.2f}, {len(above)} above {LIMIT}"
    )
    return text + (f" ({', '.join(above)})." if above else ".")


def memory_table(results: list[Result]) -> str:
    """Saved bytes of torch and clew; resident memory of all, growth and highest."""
    grown = [e for e in ADAPTERS if any(e in r.growth for r in results)]
    titles = ["workload", "torch saves", "clew saves", "bytes", *[ADAPTERS[e][1] for e in grown]]
    rows = []
    for r in results:
        theirs, ours = r.saved.get("torch"), r.saved.get("clew")
        part = f"{100 * ours / theirs:.0f} %" if ours is not None and theirs else "-"
        counts = [f"{n:,}" if n is not None else "-" for n in (theirs, ours)]
        rows.append([r.workload, *counts, part, *[_resident(r, e) for e in grown]])
    text = _table(titles, rows)
    both = [r for r in results if "clew" in r.growth and "torch" in r.growth]
    if both:
        more = [r.workload for r in both if r.growth["clew"] > r.growth["torch"] + CHANCE]
        rows_of_all = f"{len(more)} of {len(both)} rows"
        text += f"\n\nclew's growth is above torch's by more than 1 MB on {rows_of_all}"
        text += f" ({', '.join(more)})." if more else "."
    return text


def line(result: Result) -> str:
    """What was measured of one workload, while it goes on."""
    parts = [f"{engine} {_time(seconds)}" for engine, seconds in result.seconds.items()]
    parts += [f"{engine}: {reason}" for engine, reason in result.reasons.items()]
    parts += [f"{engine} {_resident(result, engine)}" for engine in result.growth]
    return f"{result.workload}: {'; '.join(parts)}"


def reasons(results: list[Result]) -> str:
    """Why there are dashes."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for engine, reason in result.reasons.items():
            by_reason.setdefault((engine, reason), []).append(result.workload)
    lines = [
        f"- {ADAPTERS[engine][1]}, {', '.join(workloads)}: {reason}."
        for (engine, reason), workloads in by_reason.items()
    ]
    return "\n".join(["Dashes:", "", *lines]) if lines else ""


def _measured(results: list[Result]) -> list[str]:
    return [e for e in ADAPTERS if any(e in r.seconds for r in results)]


def _table(titles: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (titles, *rows)]
    return "\n".join([lines[0], "|---" * len(titles) + "|", *lines[1:]])


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def _resident(result: Result, engine: str) -> str:
    if engine not in result.growth:
        return "-"
    return f"{result.growth[engine] / 1e6:.1f} / {result.highest[engine] / 1e6:.0f}"
