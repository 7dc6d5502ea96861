"""What a program asks, or tells, the library as a whole: types of objects, defaults, switches."""

from __future__ import annotations

import warnings
from typing import Any

from clew import dtypes
from clew.config import switches
from clew.device import device, require_cpu
from clew.functions.linalg import refuse_non_tensors
from clew.methods.legacy import tensortype
from clew.methods.storage import TypedStorage, UntypedStorage
from clew.publish import FUNCTIONS, composite
from clew.tensor import Tensor

# -- what an object is


@composite(method=False)
def is_tensor(obj: Any, /) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


@composite(method=False)
def is_storage(obj: Any, /) -> bool:
    """Whether an object is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


@composite(method=False)
def typename(obj: Any, /) -> str:
    """The name of an object's type: ``torch.FloatTensor`` of a tensor, else module and name."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") or hasattr(obj, "__name__") else type(obj)
    name = getattr(named, "__qualname__", None) or named.__name__
    module = getattr(named, "__module__", None) or ""
    return name if module in ("", "builtins") else f"{module}.{name}"


@composite(method=False)
def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The type of the result of arithmetic with two tensors or numbers."""
    for value in (tensor1, tensor2):
        if not isinstance(value, (Tensor, bool, int, float, complex)):
            raise TypeError(
                "result_type() received an invalid combination of arguments - got "
                f"({type(tensor1).__name__}, {type(tensor2).__name__})"
            )
    arrays = [v._array if isinstance(v, Tensor) else v for v in (tensor1, tensor2)]
    return dtypes.result_type(arrays)


@composite(method=False)
def is_signed(input: Tensor) -> bool:
    """Whether the type has negative numbers."""
    refuse_non_tensors("is_signed", input=input)
    return input.is_signed()


@composite(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    refuse_non_tensors("is_inference", input=input)
    return input.is_inference()


@composite(method=False)
def detach(input: Tensor) -> Tensor:
    """The tensor without its history: the same memory."""
    refuse_non_tensors("detach", input=input)
    return input.detach()


@composite()
def get_device(self: Tensor) -> int:
    """-1: the CPU has no number."""
    return -1


FUNCTIONS["UntypedStorage"] = UntypedStorage
FUNCTIONS["TypedStorage"] = TypedStorage


def _declare_storage(name: str) -> None:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"clew makes no {name}: a storage belongs to a tensor, which gives it as "
            "tensor.untyped_storage() or tensor.storage()"
        )

    doc = f"Raises NotImplementedError: there is no {name} without a tensor."
    FUNCTIONS[name] = type(name, (), {"__init__": refuse, "__module__": "torch", "__doc__": doc})


for _type in dtypes.LEGACY_TYPES.values():
    _declare_storage(_type.replace("Tensor", "Storage"))


# -- defaults


@composite(method=False)
def set_default_device(device: Any) -> None:
    """Accept the CPU (or None), where all tensors are.

    Raises:
        AssertionError, RuntimeError: another device.
    """
    require_cpu(device)


@composite(method=False)
def get_default_device() -> device:
    """The CPU."""
    return require_cpu(None)


@composite(method=False)
def set_default_tensor_type(t: Any, /) -> None:
    """Set the default floating type, by a class as `FloatTensor` or its name; deprecated.

    Raises:
        TypeError: it is no floating type of the CPU.
    """
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=2,
    )
    name = t if isinstance(t, str) else typename(t)
    if name.startswith("torch.cuda."):
        raise TypeError(f"type {name} not available. Torch not compiled with CUDA enabled.")
    kind = dtypes.of_legacy_type(name.removeprefix("torch."))
    if kind is None or not isinstance(t, (str, tensortype)):
        raise TypeError(
            "invalid type object: only floating-point types are supported as the default type"
        )
    if not kind.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    dtypes.set_default_dtype(kind)


# -- switches


class _Requests:
    """What a program has asked for that makes no difference here."""

    deterministic = 0
    matmul_precision = "highest"


_DEBUG_MODES = ("default", "warn", "error")
_PRECISIONS = ("highest", "high", "medium")


@composite(method=False)
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted: clew's algorithms are deterministic anyway.

    Raises:
        TypeError: `mode` is no bool.
    """
    if not isinstance(mode, bool):
        raise TypeError(
            "_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not "
            f"{type(mode).__name__}"
        )
    _Requests.deterministic = (1 if warn_only else 2) if mode else 0


@composite(method=False)
def are_deterministic_algorithms_enabled() -> bool:
    """Whether they were asked for."""
    return _Requests.deterministic > 0


@composite(method=False)
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether they were asked for with ``warn_only``."""
    return _Requests.deterministic == 1


@composite(method=False)
def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """As `use_deterministic_algorithms`: "default", "warn" or "error", or 0, 1, 2.

    Raises:
        RuntimeError: another value.
        TypeError: neither text nor int.
    """
    if not isinstance(debug_mode, (str, int)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    _Requests.deterministic = debug_mode


@composite(method=False)
def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: what was asked for."""
    return _Requests.deterministic


@composite(method=False)
def set_float32_matmul_precision(precision: str) -> None:
    """Accepted: matrix products of float32 have the precision of float32, at least as asked."""
    if precision not in _PRECISIONS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            UserWarning,
            stacklevel=2,
        )
        return
    _Requests.matmul_precision = precision


@composite(method=False)
def get_float32_matmul_precision() -> str:
    """What was asked for."""
    return _Requests.matmul_precision


@composite(method=False)
def set_flush_denormal(mode: bool, /) -> bool:
    """False: the processor's mode stays as it is, and small numbers keep their digits."""
    return False


@composite(method=False)
def set_warn_always(b: bool, /) -> None:
    """Repeat the warnings that are otherwise given once per process, or do not.

    Raises:
        RuntimeError: `b` is no bool.
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    switches.warn_always = b


@composite(method=False)
def is_warn_always_enabled() -> bool:
    """Whether such warnings are repeated."""
    return switches.warn_always


@composite(method=False)
def is_autocast_enabled(device_type: str | None = None) -> bool:
    """False: see `clew.amp.autocast`."""
    return False


# -- compiling


@composite(method=False)
def compile(model: Any = None, *, disable: bool = False, **options: Any) -> Any:
    """Raises NotImplementedError, unless `disable` is true: then it returns the model.

    PyTorch's compiler would fall back to running the model as it is; clew says instead that it
    does not compile, so that nobody waits for a speed that does not come.
    """
    if not disable:
        raise NotImplementedError(
            "clew does not compile models: leave out torch.compile (the model gives the same "
            "results without it), or pass disable=True"
        )
    return (lambda later: later) if model is None else model
