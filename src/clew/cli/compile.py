"""`clew compile`: compile the modules that every operation passes.

Imports the standard library; Cython and setuptools when it runs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from clew import ahead
from clew.cli.progress import wait_for_all
from clew.inspect.text import bytes_text

_DESCRIPTION = """\
Compile the modules that every operation passes, with Cython and a C compiler: small operations
then take two thirds of the time.  The same code runs either way, with the same results.  What is
made lies in clew's own folder and is used by all programs of this installation from then on;
CLEW_COMPILED=0 runs one without it:
  clew compile
  clew compile --clear      remove it; the modules run as Python
"""

_NEEDED = ("Cython", "setuptools")
_C_OPTIONS = [] if sys.platform == "win32" else ["-O2", "-g0"]

_TRIAL = """
import clew
x = clew.ones(3, requires_grad=True)
(x * x).sum().backward()
assert clew.ahead.is_used() and x.grad.tolist() == [2, 2, 2]
"""


def main(arguments: list[str]) -> int:
    """Compile what is not compiled yet; return 0, or 1 if that cannot be.

    Raises:
        SystemExit: help was asked for, or the command line is wrong (status 2).
    """
    parser = argparse.ArgumentParser(
        prog="clew compile",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--clear", action="store_true", help="remove what was compiled")
    options = parser.parse_args(arguments)
    try:
        if options.clear:
            freed = _clear(but=None)
            print(f"removed {bytes_text(freed)} from {ahead.ROOT}")
            return 0
        missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            print(f"clew compile: needs {' and '.join(missing)}: pip install 'clew[compile]'")
            return 1
        if not os.path.isdir(ahead.folder()):
            _compile_all()
        _try()
        _clear(but=ahead.folder())
    except (OSError, CompileError) as error:
        print(f"clew compile: {error}", file=sys.stderr)
        return 1
    print(f"{len(ahead.MODULES)} compiled modules, in {ahead.folder()}")
    return 0


class CompileError(Exception):
    """A module could not be compiled, or does not work."""


def _compile_all() -> None:
    """Make the folder of compiled modules, whole or not at all, showing progress.

    Raises:
        OSError: it cannot be written.
        CompileError: a module cannot be compiled.
    """
    os.makedirs(ahead.ROOT, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=ahead.ROOT, prefix=".new-") as work,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        made = Path(work, "made")
        tasks = [pool.submit(_compile, module, Path(work), made) for module in ahead.MODULES]
        wait_for_all(tasks, pool, "compiling modules")
        os.replace(made, ahead.folder())


def _compile(module: str, work: Path, made: Path) -> None:
    """Compile one module, in a process of its own, into the folder `made`."""
    command = [sys.executable, "-m", "clew.cli.compile", module, str(work), str(made)]
    environment = {**os.environ, "CLEW_COMPILED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise CompileError(f"clew.{module} could not be compiled:\n{done.stdout}{done.stderr}")


def _build(module: str, work: str, made: str) -> None:
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    source = ahead.source_of(module)
    (extension,) = cythonize(
        Extension(f"clew.{module}", [source], extra_compile_args=_C_OPTIONS),
        build_dir=str(Path(work, "c")),
        compiler_directives={"language_level": 3, "annotation_typing": False},
    )
    _show_in_tracebacks(source, Path(extension.sources[0]))
    command = Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
    command.build_temp = str(Path(work, "objects", module))
    command.build_lib = made
    command.ensure_finalized()
    command.run()


def _show_in_tracebacks(source: str, in_c: Path) -> None:
    """Name the source by its whole path, where Python finds it, in what Cython has made of it.

    There it is the first of the files in a table.
    """
    text = in_c.read_text(encoding="utf-8")
    before, start, table = text.partition("__pyx_f[] = {\n")
    _, comma, after = table.partition(",")
    in_c.write_text(f"{before}{start}{json.dumps(source)}{comma}{after}", encoding="utf-8")


def _try() -> None:
    """Use the compiled modules in a program.

    Raises:
        CompileError: it fails; they are gone then.
    """
    environment = {**os.environ, "CLEW_COMPILED": "1"}
    command = [sys.executable, "-c", _TRIAL]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        shutil.rmtree(ahead.folder())
        raise CompileError(f"the compiled modules do not work:\n{done.stderr}")


def _clear(but: str | None) -> int:
    """Remove compiled modules, except the folder `but`; return how many bytes.

    Raises:
        OSError: something cannot be removed.
    """
    freed = 0
    root = Path(ahead.ROOT)
    for folder in root.iterdir() if root.is_dir() else ():
        if str(folder) != but:
            freed += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            shutil.rmtree(folder)
    return freed


if __name__ == "__main__":
    _build(*sys.argv[1:])
