"""Print the size of a default install and the time of ``import clew``, in a fresh environment.

python benchmarks/install.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def megabytes(folder: Path) -> float:
    """Size of the files below a folder."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def seconds(python: Path, code: str, runs: int = 15) -> float:
    """Median time of running a line of Python."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([python, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    """Make the environment, measure, print."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin" / "python"
        packages = next((Path(folder) / "lib").glob("python*")) / "site-packages"
        before = megabytes(packages)
        subprocess.run([python, "-m", "pip", "install", "-q", "--compile", ROOT], check=True)
        print(f"default install: {megabytes(packages) - before:.0f} MB")
        for entry in sorted(packages.iterdir(), key=lambda p: -megabytes(p) if p.is_dir() else 0):
            if entry.is_dir() and megabytes(entry) >= 1 and entry.name not in ("pip", "setuptools"):
                print(f"  {megabytes(entry):5.1f} MB {entry.name}")
        bare = seconds(python, "pass")
        print(f"import numpy: {(seconds(python, 'import numpy') - bare) * 1000:.0f} ms")
        print(f"import clew: {(seconds(python, 'import clew') - bare) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
