"""The pytest plugin: findings in the summary, and failures when asked for."""

import subprocess
import sys
from importlib.metadata import entry_points

TESTS = """
import clew as torch

def test_needless():
    x = torch.ones(3, requires_grad=True)
    for _ in range(3):
        (x * x).sum().backward(retain_graph=True)

def test_fine():
    x = torch.ones(3, requires_grad=True)
    (x * x).sum().backward()
"""


def run(folder, *options):
    (folder / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if not any(entry.name == "clew-doctor" for entry in entry_points(group="pytest11")):
        command += ["-p", "clew.inspect.doctor.plugin"]  # clew is on the path, not installed
    command += [*options, "test_it.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_summary(tmp_path):
    done = run(tmp_path, "--clew-doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning R05" in done.stdout
    assert "test_it.py:7 in test_it.py::test_needless" in done.stdout
    assert done.stdout.count("R05") == 1


def test_failure(tmp_path):
    done = run(tmp_path, "--clew-doctor-fail")
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout


def test_without_the_flag_nothing_is_watched(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0
    assert "clew doctor" not in done.stdout
