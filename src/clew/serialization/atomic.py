"""Write a file so that its path never shows a half-written one.

Imports the standard library only. The new content goes into a temporary file beside the target and
is flushed to the disk; one rename then puts it in place. Whatever fails before the rename leaves
the old file as it was and no temporary file behind.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the path of an empty file, which takes the place of `path` if the block ends without
    an error.

    A new file gets the permissions that `open(path, "wb")` would give it, a replaced one keeps its
    own. A
    symbolic link is followed: its target is replaced, the link stays. Something that no rename can
    replace (a pipe, `/dev/null`, a directory) is yielded itself.

    Raises:
        OSError: what `open(path, "wb")` would raise (a missing directory, no permission to write
            an existing file), or a failure to bring the file to the disk or to rename it.
    """
    target = os.path.realpath(os.fspath(path))
    mode = _mode_of(target)
    if mode is not None and not stat.S_ISREG(mode):
        yield target
        return
    if mode is not None and not os.access(target, os.W_OK):
        # A rename needs no permission on the file that it replaces; `open` would have refused.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    directory = os.path.dirname(target)
    temporary = os.path.join(directory, f".{secrets.token_hex(8)}.tmp")
    # 0o666 is what `open` asks for: the system takes the umask away from it.
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield temporary
        _sync(temporary, os.O_RDWR)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if os.name == "posix":  # elsewhere a directory cannot be opened
        _sync(directory, os.O_RDONLY)


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open `path` for writing in binary; replacing and errors as `replacing` says."""
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        yield stream


def _mode_of(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _sync(path: str, flags: int) -> None:
    """Bring what was written to `path` (for a directory: the names in it) to the disk."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
