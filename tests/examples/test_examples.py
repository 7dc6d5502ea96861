"""Each example runs on clew, and prints the same first losses as on PyTorch.

An example runs as its reader would run it, in a process of its own, with settings that make it
short. Both engines run at the same time, each on one thread.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("gymnasium")
pytest.importorskip("PIL")

ROOT = Path(__file__).parents[2]
ENGINES = {"clew": ["-m", "clew", "run"], "torch": []}
EXAMPLES = {
    "01_graph": "",
    "02_recording": "",
    "03_accumulate": "",
    "04_memory": "",
    "05_retain": "",
    "gan": "--epochs 1 --every 1",
    "07_growing_loop": "--steps 20 --limit 1",
    "08_detach": "",
    "ppo": "--iterations 1 --episodes 2",
    "10_finetune": "--epochs 1",
    "11_comparison": "--steps 2",
    "12_accumulation": "--steps 20",
    "13_inplace": "",
    "14_unreleased_graphs": "--steps 6",
    "16_picture": "",
    "17_unused_branch": "--steps 3",
    "char_transformer": "--steps 10 --batch 8",
    "cnn_digits": "--epochs 1",
}


class Runs:
    """The examples that were started so far, each on every engine that is installed."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = {}

    def start(self, example):
        script = ROOT / "examples" / f"{example}.py"
        for engine, command in ENGINES.items():
            if importlib.util.find_spec(engine) is None:
                continue
            stem = self.folder / f"{example}-{engine}"
            options = ["--losses", f"{stem}.txt", "--out", stem]
            with open(f"{stem}.log", "w") as log:
                self.processes[example, engine] = subprocess.Popen(
                    [sys.executable, *command, script, *EXAMPLES[example].split(), *options],
                    env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )

    def losses(self, example, engine):
        """Wait for the example to end well; return the losses it wrote."""
        if (example, engine) not in self.processes:
            self.start(example)
        status = self.processes[example, engine].wait(timeout=300)
        assert status == 0, self.output(example, engine)
        return [float(line) for line in self.path(example, engine, ".txt").read_text().split()]

    def output(self, example, engine):
        return self.path(example, engine, ".log").read_text()

    def path(self, example, engine, suffix=""):
        return self.folder / f"{example}-{engine}{suffix}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    runs = Runs(tmp_path_factory.mktemp("examples"))
    yield runs
    for process in runs.processes.values():
        process.kill()
        process.wait()


@pytest.mark.parametrize("example", EXAMPLES)
def test_runs_on_clew(runs, example):
    assert runs.losses(example, "clew")
    assert runs.output(example, "clew")


@pytest.mark.parametrize("example", EXAMPLES)
def test_agrees_with_torch(runs, example):
    pytest.importorskip("torch")
    theirs = runs.losses(example, "torch")
    assert runs.losses(example, "clew") == pytest.approx(theirs, rel=1e-4, abs=1e-6)


def test_the_gan_draws_its_samples(runs):
    assert runs.losses("gan", "clew")
    pictures = sorted(path.name for path in runs.path("gan", "clew").iterdir())
    assert pictures == ["gan_epoch_000.png", "gan_epoch_001.png"]


def test_the_picture_is_drawn_in_three_formats(runs):
    pytest.importorskip("pygraphviz")
    assert runs.losses("16_picture", "clew")
    folder = runs.path("16_picture", "clew")
    assert (folder / "digits.svg").read_text().rstrip().endswith("</svg>")
    assert (folder / "digits.pdf").read_bytes().startswith(b"%PDF")
    assert (folder / "digits.png").read_bytes().startswith(b"\x89PNG")


def test_every_example_is_tested():
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert scripts == EXAMPLES.keys() | {"common"}


def test_no_example_names_clew_in_an_import():
    for script in (ROOT / "examples").glob("*.py"):
        imports = re.findall(r"^\s*(?:import|from)\s+(\w+)", script.read_text(), re.MULTILINE)
        assert "clew" not in imports
