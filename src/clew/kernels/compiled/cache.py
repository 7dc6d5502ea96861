"""Where compiled twins are kept between programs.  Layer 1; imports the standard library.

One file for each twin, type, processor and version of what made it, in a folder for the present
source of the twins; see Note [Cache of twins].

Note [Cache of twins]
    The cache may only ever save time: whatever is wrong with it, the twin is compiled for this
    program alone.  A file is written under a name of its own and then renamed, so that programs
    which compile at once each put a whole file there, and the last one stays.  A file begins with
    a digest of the rest, since machine code of which a byte is wrong could do anything.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

_announced: set[str] = set()


def root() -> Path:
    """The folder of all versions' compiled kernels; ``CLEW_CACHE_DIR`` sets the one above."""
    above = os.environ.get("CLEW_CACHE_DIR")
    if not above:
        above = importlib.import_module("platformdirs").user_cache_dir("clew", appauthor=False)
    return Path(above) / "kernels"


def folder() -> Path:
    """The folder of this version's compiled kernels."""
    return root() / _stamp()


@functools.cache
def _stamp() -> str:
    """Changes whenever the source of any twin does: they call one another's functions."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def load(name: str) -> bytes | None:
    """What was kept under a name, or None if that is nothing, or damaged."""
    try:
        stored = (folder() / name).read_bytes()
    except OSError:
        return None
    digest, data = stored[:32], stored[32:]
    return data if hashlib.sha256(data).digest() == digest else None


def store(name: str, data: bytes) -> None:
    """Keep `data` under a name.

    Raises:
        OSError: that cannot be; nothing is left behind.
    """
    directory = folder()
    directory.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=".new-")
    try:
        with open(handle, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(temporary, directory / name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def announce(text: str) -> None:
    """Say something on the standard error, once in a program."""
    if text not in _announced:
        _announced.add(text)
        print(f"clew: {text}", file=sys.stderr, flush=True)


def usage() -> tuple[int, int]:
    """(files, bytes) of this version's compiled kernels."""
    with contextlib.suppress(OSError):
        return len(os.listdir(folder())), _size(folder())
    return 0, 0


def clear() -> int:
    """Remove all compiled kernels; return how many bytes that freed.

    Raises:
        OSError: something cannot be removed.
    """
    freed = 0
    for version in _versions():
        freed += _size(version)
        shutil.rmtree(version)
    return freed


def clear_old() -> int:
    """Remove what other versions compiled, as far as that can be; return how many bytes."""
    freed = 0
    for version in _versions():
        if version.name != _stamp():
            freed += _size(version)
            shutil.rmtree(version, ignore_errors=True)  # a program may write there now
            freed -= _size(version)
    return freed


def _versions() -> list[Path]:
    return list(root().iterdir()) if root().is_dir() else []


def _size(directory: Path) -> int:
    """How many bytes the files in a folder hold."""
    size = 0
    with contextlib.suppress(OSError):  # it may vanish now
        for entry in directory.iterdir():
            size += entry.stat().st_size
    return size
