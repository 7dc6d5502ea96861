"""``clew.cuda``: what PyTorch's ``torch.cuda`` is without CUDA.  Layer 5.

There is no device.  What can be answered without one is (`is_available`, `device_count`, seeds,
memory that nobody uses); the rest raises what a PyTorch build without CUDA raises.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NoReturn

from clew.cuda import amp as amp
from clew.device import device as _device

_NO_CUDA = "Torch not compiled with CUDA enabled"


class OutOfMemoryError(RuntimeError):
    """Nothing in clew raises it; programs catch it."""


# -- answers


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def get_arch_list() -> list[str]:
    """Empty."""
    return []


def manual_seed(seed: int) -> None:
    """Does nothing: there is no generator of a device."""


def manual_seed_all(seed: int) -> None:
    """Does nothing: there is no generator of a device."""


def seed() -> None:
    """Does nothing: there is no generator of a device."""


def seed_all() -> None:
    """Does nothing: there is no generator of a device."""


def get_rng_state_all() -> list[Any]:
    """Empty: there is no generator of a device."""
    return []


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Accepts what `get_rng_state_all` gave.

    Raises:
        AssertionError: there are states of devices.
    """
    if list(new_states):
        raise AssertionError(_NO_CUDA)


def empty_cache() -> None:
    """Does nothing: there is no cache."""


def memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """0."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """0."""
    return 0


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Empty."""
    return OrderedDict()


def reset_peak_memory_stats(device: Any = None) -> None:
    """Does nothing: no memory was used."""


class device:
    """A scope in which a device is the current one; enters only for none (a negative index)."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else _index(device)

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise AssertionError(_NO_CUDA)

    def __exit__(self, *exception: Any) -> None:
        """Nothing was changed."""


class device_of(device):
    """A scope in which the device of a tensor is the current one; tensors are on the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(None)


def _index(device: Any) -> int:
    if isinstance(device, int):
        return device
    found = _device(device)
    return 0 if found.type == "cuda" and found.index is None else found.index or 0


class stream:
    """A scope of a stream; enters only for None."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            raise AssertionError(_NO_CUDA)

    def __exit__(self, *exception: Any) -> None:
        """Nothing was changed."""


def set_device(device: Any) -> None:
    """Accepts a negative index, which means none.

    Raises:
        AssertionError: any device.
    """
    if _index(device) >= 0:
        raise AssertionError(_NO_CUDA)


def set_stream(stream: Any) -> None:
    """Accepts None.

    Raises:
        AssertionError: any stream.
    """
    if stream is not None:
        raise AssertionError(_NO_CUDA)


# -- what needs a device

_NEEDS_A_DEVICE = (
    "can_device_access_peer", "current_blas_handle", "current_device", "current_stream",
    "default_stream", "get_device_capability", "get_device_name", "get_device_properties",
    "get_rng_state", "init", "initial_seed", "ipc_collect", "mem_get_info",
    "memory_snapshot", "memory_summary", "set_per_process_memory_fraction",
    "set_rng_state", "synchronize",
)  # fmt: skip


def _refusing(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError(_NO_CUDA)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises AssertionError: there is no CUDA device."
    return function


for _name in _NEEDS_A_DEVICE:
    globals()[_name] = _refusing(_name)


class Stream:
    """Raises RuntimeError: there is no CUDA device."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


class Event:
    """Raises RuntimeError: there is no CUDA device."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("Tried to instantiate dummy base class Event")


class _TensorOfCuda(type):
    """The type of ``torch.cuda.FloatTensor`` and the like, of which there are no tensors."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"type torch.cuda.{cls.__name__} not available. {_NO_CUDA}.")

    def __instancecheck__(cls, instance: Any) -> bool:
        return False


for _name in (
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "ShortTensor",
):  # fmt: skip
    globals()[_name] = _TensorOfCuda(_name, (), {"__module__": "torch.cuda"})


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'clew.cuda' has no attribute '{name}': clew runs on the CPU")
