"""`map_location`: where the storages of a file go. In clew that is the CPU, or PyTorch's error.

Imports `records` only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from clew.serialization.records import LoadedStorage

Restore = Callable[[LoadedStorage, str], LoadedStorage]

# PyTorch's devices by how its CPU build answers: known but not available, or not even built in.
_UNAVAILABLE = ("cuda", "xpu", "mtia")
_UNREGISTERED = ("hpu", "privateuseone")
_HINT = (
    " If you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu') to map your storages to the CPU."
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
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but "
            f"torch.{kind}.is_available() is False." + _HINT
        )
    if kind in _UNREGISTERED:
        raise RuntimeError(f"The {kind.upper()} device module is not registered." + _HINT)
    if kind == "mps":
        raise RuntimeError(f"torch.UntypedStorage(): Storage device not recognized: mps.{_HINT}")
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage (tagged with "
        f"{location})"
    )


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
