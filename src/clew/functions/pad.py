"""Padding with a constant or with the image's own elements."""

from __future__ import annotations

from collections.abc import Sequence

from clew.functions.calls import Tensor, call, require_tensors

_OPS = {"reflect": "reflection", "replicate": "replication", "circular": "circular"}


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Pad the last dimensions; `pad` holds (before, after) of the last, then of the one before.

    Negative amounts crop.  `mode` is "constant" (with `value`, 0 by default), "reflect" (mirrored
    at the outermost elements), "replicate" (which repeats them) or "circular"; these three pad the
    last one, two or three dimensions of a batch or a sample of images.

    Raises:
        RuntimeError: `pad` does not fit the input.
        NotImplementedError: the mode is unknown or does not take such an input.
    """
    require_tensors("pad", input=input)
    if not isinstance(pad, Sequence):
        raise TypeError(
            f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}"
        )
    amounts = tuple(n.__index__() for n in pad)
    if len(amounts) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(amounts) > 2 * input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(amounts)} and input of dimension {input.ndim}"
        )
    if mode == "constant":
        return call("constant_pad_nd", input, pad=amounts, value=value)
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    dims = len(amounts) // 2
    if dims not in (1, 2, 3) or input.ndim not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"Padding size {len(amounts)} is not supported for {input.ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    if mode not in _OPS:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return call(f"{_OPS[mode]}_pad{dims}d", input, padding=amounts)
