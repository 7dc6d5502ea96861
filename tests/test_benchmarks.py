"""The benchmarks' machinery works.  What it measures is nobody's test."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clew

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def _run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=BENCHMARKS, check=True
    )
    return done.stdout


def test_a_table_of_one_engine_in_a_process_of_its_own() -> None:
    text = _run("run.py", "--engines", "clew", "--only", "MLP step", "--rounds", "1",
                "--threads", "1", "--no-peak")  # fmt: skip
    row = next(line for line in text.splitlines() if line.startswith("| MLP step | -"))
    assert "s | - |" in row


def test_resident_memory_is_measured_where_the_system_tells_it(tmp_path: Path) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("no /proc/self/clear_refs")
    from remote import Engine

    workload, file = "elementwise chain on 4 M floats", str(tmp_path / "given.npz")
    engine = Engine("clew", sys.executable, 1)
    try:
        engine.ask("give", workload, file)
        growth, highest = engine.ask("peak", workload, file)
    finally:
        engine.close()
    # Four saved arrays, the gradient and what is being computed, 16 MB each; not twice as much.
    assert 64e6 < growth < 300e6
    assert highest > growth


def test_an_engine_that_fails_says_why_and_goes_on(tmp_path: Path) -> None:
    from remote import Engine, Failed

    engine = Engine("clew", sys.executable, 1)
    try:
        with pytest.raises(Failed, match="KeyError"):
            engine.ask("give", "no such workload", str(tmp_path / "x.npz"))
        assert engine.ask("give", "three ops and backward", str(tmp_path / "x.npz")) is None
        with np.load(tmp_path / "x.npz") as given:
            assert [a.tolist() for a in given.values()] == [[1.0, 2.0, 3.0]]
    finally:
        engine.close()


@pytest.mark.skipif(find_spec("mygrad") is not None, reason="MyGrad is installed")
def test_one_that_cannot_be_imported_says_so() -> None:
    from remote import Engine, Failed

    with pytest.raises(Failed, match="mygrad"):
        Engine("mygrad", sys.executable, 1)


FIRST_LOSSES = (
    "three ops and backward", "chain of 200 ops", "MLP step", "large MLP step",
    "classifier on a frozen backbone", "LSTM step",
)  # fmt: skip


@pytest.mark.parametrize("name", FIRST_LOSSES)
def test_both_forms_of_a_workload_have_the_same_first_loss(name: str) -> None:
    """With NumPy as an engine that knows no gradients: the weights stay as they are."""
    from adapters.functional import Functional
    from adapters.named import Named

    class Plain(Functional):
        def value_and_grad(self, function: Any) -> Any:
            return lambda p: (function(p), [np.zeros_like(a) for a in p])

    named = Named(clew)
    given = named.give(name)
    assert Plain(np, {}).make(name, given)() == pytest.approx(named.make(name)(), rel=1e-5)


def test_both_forms_have_the_same_workloads() -> None:
    from workloads import EXTRA, WORKLOADS
    from workloads.functional import FUNCTIONAL

    assert list(FUNCTIONAL) == list(WORKLOADS)
    assert set(WORKLOADS) > EXTRA


def test_tables() -> None:
    from tables import Result, memory_table, reasons, time_table

    results = [
        Result("a", {"torch": 1.0, "clew": 0.5, "jax": 20.0}, {"torch": 100, "clew": 60},
               {"torch": 10**6, "clew": 3 * 10**6}, {"torch": 10**7, "clew": 10**7}),
        Result("b", {"torch": 2e-6, "clew": 4e-6}, {"torch": None, "clew": None}, {}, {},
               {"jax": "it is too hard"}),
        Result("small CNN step", {"torch": 1.0, "clew": 100.0}),
    ]  # fmt: skip
    times = time_table(results, 1, 3)
    assert "| a | 1000.00 ms | 500.00 ms | 0.50 | 20 |" in times
    assert "| b | 2 µs | 4 µs | 2.00 | - |" in times
    assert "clew, 2 workloads: geometric mean 1.00, 1 above 1.25 (b)." in times
    memory = memory_table(results)
    assert "| a | 100 | 60 | 60 % | 3.0 / 10 | 1.0 / 10 |" in memory
    assert "by more than 1 MB on 1 of 1 rows (a)." in memory
    assert reasons(results) == "Dashes:\n\n- JAX (jit), b: it is too hard."


def test_a_profile_counts_kernels_and_names_parts() -> None:
    text = _run("profile_step.py", "three ops and backward", "--seconds", "0.1")
    for kind in ("forward mul", "forward pow", "forward sum", "backward PowBackward0"):
        row = next(line for line in text.splitlines() if kind in line)
        assert row.split("│")[2].strip() == "1"
    assert "dispatch" in text
    assert "engine and graph" in text
