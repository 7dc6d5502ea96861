"""Storages as they are read, and `map_location`: where they go. That is the CPU, or PyTorch's
error.

Imports NumPy only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

# PyTorch's devices by how its CPU build answers: known but not available, or not even built in.
_UNAVAILABLE = ("cuda", "xpu", "mtia")
_UNREGISTERED = ("hpu", "privateuseone")
_HINT = (
    " If you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu') to map your storages to the CPU."
)


@dataclass(slots=True, eq=False)
class LoadedStorage:
    """A buffer that was read from a file; `map_location` functions receive it.

    Attributes:
        data: uint8 of shape (bytes,).
        dtype: as the file names it, None where the file names none.
    """

    data: np.ndarray
    dtype: np.dtype[Any] | None

    def nbytes(self) -> int:
        """Size in bytes."""
        return self.data.nbytes

    def cpu(self) -> LoadedStorage:
        """The storage itself: it is on the CPU."""
        return self

    def cuda(self, device: object = None) -> NoReturn:
        """There is no CUDA here.

        Raises:
            RuntimeError: always, with PyTorch's text.
        """
        raise RuntimeError(_unavailable("cuda"))

    def swap_bytes(self) -> None:
        """Turn big-endian elements into little-endian ones, or the reverse, in place.

        Raises:
            NotImplementedError: the storage names no dtype, so the width of an element is unknown.
        """
        if self.dtype is None:
            raise NotImplementedError(
                "The file was written in the other byte order and holds an untyped storage (a "
                "tensor of uint16, uint32 or uint64): clew cannot swap its bytes."
            )
        width = self.dtype.itemsize // (2 if self.dtype.kind == "c" else 1)
        if width > 1:
            self.data.view(f"u{width}").byteswap(inplace=True)


def _unavailable(kind: str) -> str:
    return (
        f"Attempting to deserialize object on a {kind.upper()} device but "
        f"torch.{kind}.is_available() is False." + _HINT
    )


def default_restore_location(storage: LoadedStorage, location: str) -> LoadedStorage:
    """Return `storage` if `location` is "cpu".

    Raises:
        RuntimeError: any other location, with the text that PyTorch's CPU build has for it.
    """
    if location == "cpu":
        return storage
    kind = re.split("[:0-9]", location, maxsplit=1)[0]
    if kind in _UNAVAILABLE:
        raise RuntimeError(_unavailable(kind))
    if kind in _UNREGISTERED:
        raise RuntimeError(f"The {kind.upper()} device module is not registered." + _HINT)
    if kind == "mps":
        raise RuntimeError(f"torch.UntypedStorage(): Storage device not recognized: mps.{_HINT}")
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage (tagged with "
        f"{location})"
    )


Restore = Callable[[LoadedStorage, str], LoadedStorage]


def restore_function(map_location: Any) -> Restore:
    """The function (storage, location in the file) -> storage that `map_location` asks for.

    `map_location` is None, a location such as "cpu", a device (anything whose text is a location),
    a dict from locations in the file to locations, or a function (storage, location) that returns
    a storage, or None for the default.
    """
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(
            storage, map_location.get(location, location)
        )
    if isinstance(map_location, bytes):
        map_location = map_location.decode("ascii")
    # A device is asked for its text first, because it may be callable too (as a decorator).
    if isinstance(map_location, str) or hasattr(map_location, "type"):
        return lambda storage, location: default_restore_location(storage, str(map_location))
    return lambda storage, location: _ask(map_location, storage, location)


def _ask(function: Callable[..., Any], storage: LoadedStorage, location: str) -> LoadedStorage:
    answer = function(storage, location)
    if answer is None:
        return default_restore_location(storage, location)
    if not isinstance(answer, LoadedStorage):
        raise TypeError(
            "map_location must return the storage it was given, or None, but returned "
            f"{type(answer).__name__}"
        )
    return answer
