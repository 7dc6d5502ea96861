"""`clew.device`: PyTorch's device object.  Layer 0: imports nothing of clew.

Only the CPU exists.  A request for another device gets the error that a PyTorch build without
it gives.
"""

from __future__ import annotations

from typing import Any

_KNOWN = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
    "mps, meta, hpu, mtia, privateuseone"
)
_TYPES = tuple(_KNOWN.split(", "))


class device:
    """A device's type and index, as ``device("cpu")`` or ``device("cpu", 0)``.

    Raises:
        RuntimeError: the text names no device that PyTorch knows.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index if index is None else index
        elif isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {_name_of(type)}")
        name, colon, number = type.partition(":")
        if name not in _TYPES:
            raise RuntimeError(
                f"Expected one of {_KNOWN} device type at start of device string: {name}"
            )
        if colon:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly:"
                    f" {type}"
                )
            if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        self.type = name
        self.index = index

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        args = (self.type,) if self.index is None else (self.type, self.index)
        return (device, args)


def _name_of(value: object) -> str:
    return value.__class__.__name__


CPU = device("cpu")

_NOT_BUILT = {
    "cuda": "Torch not compiled with CUDA enabled",
    "xpu": "Torch not compiled with XPU enabled",
    "mps": "PyTorch is not linked with support for mps devices",
}


def require_cpu(requested: Any) -> device:
    """`requested` (None, text or device) as a device that clew can use.

    Raises:
        AssertionError: CUDA or XPU is asked for (PyTorch's type and text for such a build).
        RuntimeError: any other device than the CPU.
    """
    if requested is None:
        return CPU
    found = requested if isinstance(requested, device) else device(requested)
    if found.type == "cpu":
        return found
    text = _NOT_BUILT.get(found.type)
    if found.type in ("cuda", "xpu"):
        raise AssertionError(text)
    raise RuntimeError(text or f"clew has no device '{found}': it runs on the CPU")
