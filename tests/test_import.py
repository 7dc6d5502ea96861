"""What ``import clew`` brings along: NumPy, and nothing that a plain program does not need."""

import subprocess
import sys

import pytest

HEAVY = (
    # for some dtypes, kernels and commands only
    *("ml_dtypes", "numba", "llvmlite", "safetensors", "rich", "platformdirs", "torch"),
    # of the standard library
    *("argparse", "asyncio", "bz2", "concurrent.futures", "csv", "dataclasses", "email", "hashlib"),
    *("html", "http", "importlib.metadata", "json", "logging", "lzma", "mmap", "multiprocessing"),
    *("pathlib", "pkgutil", "shutil", "socket", "subprocess", "tempfile", "traceback", "urllib"),
    *("uuid", "xml", "zipfile"),
    # parts of clew
    *("clew.cli", "clew.distributions", "clew.func", "clew.inspect", "clew.nn", "clew.optim"),
    *("clew.serialization", "clew.sharing", "clew.sparse", "clew.utils"),
    *("clew.kernels.attention", "clew.kernels.batch_norm", "clew.kernels.conv"),
    *("clew.kernels.loss", "clew.kernels.norm", "clew.kernels.optim", "clew.kernels.pool"),
    *("clew.kernels.recurrent", "clew.kernels.compiled.cache", "clew.kernels.compiled.kernel"),
)


def modules_after(program: str) -> set[str]:
    """The modules that have been imported when a program ends."""
    code = f"{program}\nimport sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


@pytest.fixture(scope="module")
def brought() -> set[str]:
    """The modules that ``import clew`` brings and ``import numpy`` does not."""
    return modules_after("import clew") - modules_after("import numpy")


def test_import_brings_the_ops_and_the_tensor(brought: set[str]) -> None:
    assert {"clew", "clew.ops.elementwise", "clew.kernels.pointwise", "clew.tensor"} <= brought


@pytest.mark.parametrize("name", HEAVY)
def test_import_leaves_out(name: str, brought: set[str]) -> None:
    assert name not in brought


def test_a_late_kernel_is_imported_when_it_is_used() -> None:
    used = modules_after("import clew; clew.nn.functional.layer_norm(clew.ones(2, 3), (3,))")
    assert "clew.kernels.norm" in used
    assert "clew.kernels.conv" not in used
