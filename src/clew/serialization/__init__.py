"""`save` and `load`: checkpoints in PyTorch's file format, and what `torch.serialization` offers
with them.

Layer 5. Imports NumPy, the standard library and, through `adapter`, the Tensor class.

A file is a zip archive with a pickle, which says what was saved, and one record of raw bytes for
each buffer that its tensors are views of. The way through this package:

    save   pickling.CheckpointPickler -> archive.ArchiveWriter -> atomic.atomic_write
    load   archive.ArchiveReader -> unpickling.WeightsUnpickler -> rebuild.Rebuilder -> adapter

`legacy` has the format before zip, `safetensors` the other format that people exchange weights in.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any, BinaryIO

from clew.serialization import safetensors
from clew.serialization.adapter import tensor_adapter
from clew.serialization.atomic import atomic_write
from clew.serialization.checkpoint import load_zip, save_zip
from clew.serialization.legacy import load_legacy, save_legacy
from clew.serialization.locations import Restore, default_restore_location, restore_function
from clew.serialization.pickling import CheckpointPickler, pickler_class
from clew.serialization.safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from clew.serialization.unpickling import ReadPickle, read_anything, read_weights

__all__ = [
    "DEFAULT_PROTOCOL",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]

DEFAULT_PROTOCOL = 2

FileLike = str | os.PathLike[str] | BinaryIO


def save(
    obj: object,
    f: FileLike,
    pickle_module: ModuleType = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Save `obj`, tensors in any nesting of containers, as a file that PyTorch reads too.

    A path is written atomically: until everything is on the disk, a file that was there stays as
    it was. Tensors that share memory share it in the file; a view is saved with the whole buffer
    it belongs to.

    Args:
        obj: what to save.
        f: a path, or a binary stream with `write`.
        pickle_module: whose `Pickler` to use; it must be derived from the standard library's in
            Python.
        pickle_protocol: of the pickle inside; 2, the default, is what every PyTorch reads.

    Raises:
        AttributeError: `f` is neither.
        RuntimeError: the parent directory of `f` is missing, or tensors of several dtypes view one
            buffer.
        OSError: the file cannot be written.
        TypeError, AttributeError, pickle.PicklingError: `obj` holds something that cannot be
            pickled.
    """
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        parent = os.path.dirname(path)
        if parent and not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {parent} does not exist.")
        name, opened = _archive_name(path), atomic_write(path)
    elif hasattr(f, "write"):
        name, opened = "archive", _flushed(f)
    else:
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    adapter = tensor_adapter()
    with opened as stream:
        if _use_new_zipfile_serialization:
            pickler = pickler_class(CheckpointPickler, pickle_module)
            byte_order = not _disable_byteorder_record
            save_zip(obj, stream, name, pickler, pickle_protocol, adapter, byte_order)
        else:
            save_legacy(obj, stream, pickle_module, pickle_protocol, adapter)


def load(
    f: FileLike,
    map_location: Any = None,
    pickle_module: ModuleType | None = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load what `save`, PyTorch's or this one, has written.

    By default nothing that the file contains is executed: it may hold tensors, plain Python values
    and containers, and what `add_safe_globals` has allowed. A path that ends in ".safetensors" is
    read with that library.

    Args:
        f: a path, or a binary stream with `read`, `readline`, `seek` and `tell`.
        map_location: where storages go: None, "cpu", a device, a dict from locations in the file to
            locations, or a function (storage, location) -> storage or None. Only the CPU exists.
        pickle_module: whose `Unpickler` to use; giving one means `weights_only=False`.
        weights_only: False lets the pickle do whatever it says. None, the default, means True.
        mmap: map the file into memory and read a tensor when it is used; `f` must be a path.
            Writing to such a tensor does not change the file.
        pickle_load_args: for the `Unpickler`, with `weights_only=False`; `encoding` is "utf-8" by
            default.

    Raises:
        pickle.UnpicklingError: the file asks for what is not allowed, or is damaged.
        RuntimeError: the file is damaged or of a kind that clew does not read, or a storage is to
            go to another device than the CPU.
        EOFError: the file is empty or cut off.
        OSError: the file cannot be opened.
    """
    weights_only = _resolve_weights_only(weights_only, pickle_module)
    if pickle_load_args and weights_only:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    pickle_load_args.setdefault("encoding", "utf-8")
    if weights_only:
        read = partial(read_weights, tensor_adapter(), pickle_load_args["encoding"])
    else:
        module = pickle_module or pickle
        read = partial(read_anything, tensor_adapter(), module, pickle_load_args)
    if not isinstance(f, (str, os.PathLike)):
        _check_seekable(f)
        return _load(f, restore_function(map_location), read, mmap, f)
    path = os.fspath(f)
    if path.endswith(".safetensors"):
        return safetensors.load_for_map_location(path, map_location)
    with open(path, "rb") as stream:
        return _load(stream, restore_function(map_location), read, mmap, f)


def _load(
    stream: BinaryIO, restore: Restore, read: ReadPickle, mmap: bool | None, given: FileLike
) -> Any:
    """`load` from an open file; `given` is what the user named it by."""
    if _is_zip(stream):
        if mmap and stream is given:
            raise ValueError("f must be a file path in order to use the mmap argument")
        return load_zip(stream, read, restore, bool(mmap))
    if mmap:
        shown = f"{given}, " if isinstance(given, str) else ""
        raise RuntimeError(
            f"mmap can only be used with files saved with `torch.save({shown}"
            "_use_new_zipfile_serialization=True), please torch.save your checkpoint with this "
            "option in order to use mmap."
        )
    return load_legacy(stream, read, restore)


def _resolve_weights_only(weights_only: bool | None, pickle_module: ModuleType | None) -> bool:
    """Whether to restrict the load, from the arguments and PyTorch's two environment variables."""
    force, forbid = (
        os.environ.get(name, "0").lower() in ("1", "y", "yes", "true")
        for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    )
    if force and forbid:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or "
            "`TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    if force:
        weights_only = True
    elif weights_only is None:
        weights_only = pickle_module is None and not forbid
        if forbid:
            warnings.warn(
                "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the "
                "`weights_only` argument was not explicitly passed to `torch.load`, forcing "
                "weights_only=False.",
                stacklevel=3,
            )
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return weights_only


def _archive_name(path: str) -> str:
    """The folder inside the zip file: the file's name without its extension, as PyTorch has it."""
    name = re.split(r"[\\/]", path)[-1]
    stem = name.rpartition(".")[0] if "." in name else name
    return stem if stem and stem.isascii() else "archive"


@contextmanager
def _flushed(stream: BinaryIO) -> Iterator[BinaryIO]:
    yield stream
    stream.flush()


def _is_zip(stream: BinaryIO) -> bool:
    """Whether a zip archive starts where the stream stands."""
    position = stream.tell()
    start = stream.read(4)
    stream.seek(position)
    return start == b"PK\x03\x04"


def _check_seekable(stream: BinaryIO) -> None:
    try:
        stream.seek(stream.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load "
            "the data into a buffer like io.BytesIO and try to load from it instead."
        ) from None
