"""The tests that ``docs/add-an-op.md`` promises do come with the op that it declares."""

import os
import re
import subprocess
import sys
from pathlib import Path

import runner

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "add-an-op.md"


def test_the_declared_op_gets_its_tests(tmp_path):
    declaration = runner.blocks_of(PAGE.read_text(encoding="utf-8"))[0]
    (tmp_path / "declaration.py").write_text(declaration.text, encoding="utf-8")
    command = [
        sys.executable, "-m", "pytest", "-p", "declaration", "-p", "no:cacheprovider",
        "-k", "gudermannian", "tests/ops/test_generated.py",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    promised = re.findall(r"runs (\d+) tests", PAGE.read_text(encoding="utf-8"))
    assert re.findall(r"(\d+) passed", done.stdout) == promised
