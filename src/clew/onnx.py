"""``clew.onnx``: a module that programs import at their top; clew exports no ONNX.  Layer 5."""

from __future__ import annotations

from typing import Any, NoReturn


def is_in_onnx_export() -> bool:
    """False."""
    return False


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    raise NotImplementedError(
        "torch.onnx.export: clew does not write ONNX files. Save the state_dict (torch.save or "
        "safetensors), load it into the model under PyTorch and export it there."
    )


export.is_lacking = True  # type: ignore[attr-defined]  # for tools/compatibility.py
