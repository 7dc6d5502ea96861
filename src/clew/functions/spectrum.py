"""The short-time Fourier transform and its inverse."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from clew import dtypes
from clew.dispatch import apply
from clew.functions.linalg import refuse_non_tensors
from clew.functions.pad import pad
from clew.op import REGISTRY
from clew.publish import composite
from clew.tensor import Tensor

_C2C, _R2C, _C2R = (REGISTRY[name] for name in ("fft_c2c", "fft_r2c", "fft_c2r"))
_AS_REAL, _AS_COMPLEX = REGISTRY["view_as_real"], REGISTRY["view_as_complex"]
_PAD, _SLICE, _OVERLAP = (REGISTRY[n] for n in ("constant_pad_nd", "slice", "unfold_backward"))


def _described(name: str, x: Tensor, kind: str, arguments: dict[str, Any]) -> str:
    """The call for messages: ``stft(torch.FloatTensor[20], n_fft=8, window=None)``."""
    words = [f"{kind}[{', '.join(map(str, x._array.shape))}]"]
    for key, value in arguments.items():
        if isinstance(value, Tensor):
            shape = list(value._array.shape)
            value = f"torch.{dtypes.legacy_type(value._array.dtype)}{{{shape}}}"
        words.append(f"{key}={int(value) if isinstance(value, bool) else value}")
    return f"{name}({', '.join(words)})"


def _warn_without_window() -> None:
    warnings.warn(
        "A window was not provided. A rectangular window will be applied,which is known to cause "
        "spectral leakage. Other windows such as torch.hann_window or torch.hamming_window are "
        "recommended to reduce spectral leakage.To suppress this warning and use a rectangular "
        "window, explicitly set `window=torch.ones(n_fft, device=<device>)`.",
        UserWarning,
        stacklevel=3,
    )


def _in_the_middle(window: Tensor | None, kind: Any, length: int, n_fft: int) -> Tensor:
    """The window, by default ones, in the middle of `n_fft` places."""
    dtype = kind if window is None else window.dtype
    places = Tensor._from_array(np.zeros(n_fft, dtype.numpy))
    middle = places.narrow(0, (n_fft - length) // 2, length)
    if window is None:
        middle.fill_(1)
    else:
        middle.copy_(window)
    return places


@composite()
def stft(
    self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect",
    normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:  # fmt: skip
    """The Fourier transforms of windows that slide over a signal.

    Args:
        self: a signal ``(time,)``, or several ``(batch, time)``.
        n_fft: the size of each transform.
        hop_length: the distance of two windows; ``n_fft // 4`` by default.
        win_length: the size of the window, in the middle of `n_fft` places; `n_fft` by default.
        window: ``(win_length,)``; ones by default.
        center: pad the signal, by `pad_mode`, so that the k-th window is centred at its k-th hop.
        normalized: divide by the root of `n_fft`.
        onesided: leave out the mirrored half; by default of real signals.
        return_complex: must be given for real signals; False gives the parts as pairs.
        align_to_window: without `center`: the first window begins at the first number.

    Returns:
        ``(batch, frequencies, windows)``, complex or with a last dimension of two.

    Raises:
        RuntimeError: the sizes do not go together, or `return_complex` is missing.
    """
    refuse_non_tensors("stft", input=self)
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        self = _centered(self, n_fft, pad_mode)
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if window is None:
        _warn_without_window()
    arguments = {
        "n_fft": n_fft, "hop_length": hop, "win_length": length, "window": window,
        "normalized": normalized, "onesided": onesided, "return_complex": return_complex,
        "align_to_window": align_to_window,
    }  # fmt: skip
    _check_stft(self, n_fft, hop, length, window, arguments)
    batched = self if self._array.ndim == 2 else self.unsqueeze(0)
    if length < n_fft:
        window = _in_the_middle(window, self.dtype, length, n_fft)
    if align_to_window and length < n_fft:
        left = (n_fft - length) // 2
        batched = apply(_PAD, (batched,), {"pad": (left, n_fft - length - left), "value": 0})
    frames = _frames(batched, n_fft, hop)
    if window is not None:
        frames = frames * window
    spectra = _transformed(frames, normalized, onesided)
    result = spectra.transpose_(1, 2)
    if self._array.ndim == 1:
        result = result.squeeze_(0)
    return apply(_AS_REAL, (result,)) if return_complex is False else result


def _centered(x: Tensor, n_fft: int, pad_mode: str) -> Tensor:
    shape = x._array.shape
    extended = x.view(*(1,) * (3 - len(shape)), *shape)
    padded = pad(extended, [n_fft // 2, n_fft // 2], pad_mode)
    return padded.view(padded._array.shape[3 - len(shape) :])


def _check_stft(
    x: Tensor, n_fft: int, hop: int, length: int, window: Tensor | None, arguments: dict[str, Any]
) -> None:
    array = x._array
    call = _described("stft", x, "torch." + dtypes.legacy_type(array.dtype), arguments)
    if array.dtype.kind not in "fcV":
        raise RuntimeError(f"{call} : expected a tensor of floating point or complex values")
    if array.ndim not in (1, 2):
        raise RuntimeError(f"{call} : expected a 1D or 2D tensor")
    if not 0 < n_fft <= array.shape[-1]:
        raise RuntimeError(
            f"{call} : expected 0 < n_fft < {array.shape[-1]}, but got n_fft={n_fft}"
        )
    if hop <= 0:
        raise RuntimeError(f"{call} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(
            f"{call} : expected 0 < win_length <= n_fft, but got win_length={length}"
        )
    if window is not None and window._array.shape != (length,):
        raise RuntimeError(
            f"{call} : expected a 1D window tensor of size equal to win_length={length}, but got "
            f"window with size {list(window._array.shape)}"
        )
    is_complex = "c" in (array.dtype.kind, window is not None and window._array.dtype.kind)
    if arguments["return_complex"] is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further "
            "require that return_complex=True in a future PyTorch release."
        )


def _frames(x: Tensor, n_fft: int, hop: int) -> Tensor:
    """The windows of a batch of signals ``(batch, window, n_fft)``, a view."""
    batch, time = x._array.shape
    across, along = x.stride()
    size = (batch, 1 + (time - n_fft) // hop, n_fft)
    return x.as_strided(size, (across, hop * along, along))


def _transformed(frames: Tensor, normalized: bool, onesided: bool | None) -> Any:
    scale = 1 if normalized else 0
    last = {"dim": (frames._array.ndim - 1,), "normalization": scale}
    if frames._array.dtype.kind == "c":
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        return apply(_C2C, (frames,), {**last, "forward": True})
    return apply(_R2C, (frames,), {**last, "onesided": onesided is not False})


# -- the inverse


@composite()
def istft(
    self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Any:  # fmt: skip
    """The signal of which `stft` with the same arguments gives these spectra, by least squares.

    Args:
        self: ``(frequencies, windows)`` or ``(batch, frequencies, windows)``, complex.
        length: how long the signal is to be; by default as long as the windows reach.
        return_complex: the signal is complex; `self` is then not `onesided`.

    The others are as of `stft`.

    Raises:
        RuntimeError: the sizes do not go together, or the windows leave out a part of the signal.
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    if window is None:
        _warn_without_window()
    arguments = {
        "n_fft": n_fft, "hop_length": hop, "win_length": size, "window": window, "center": center,
        "normalized": normalized, "onesided": onesided, "length": length,
        "return_complex": return_complex,
    }  # fmt: skip
    call = _described("istft", self, f"CPU{dtypes.scalar_name(self._array.dtype)}Type", arguments)
    onesided = not return_complex if onesided is None else onesided
    _check_istft(self, n_fft, hop, size, window, onesided, return_complex, call)
    if window is None:
        window = Tensor._from_array(np.ones(size, self.dtype.to_real().numpy))
    if size != n_fft:
        left = (n_fft - size) // 2
        window = apply(_PAD, (window,), {"pad": (left, n_fft - size - left), "value": 0})
    pairs = apply(_AS_REAL, (self,))
    if self._array.ndim == 2:
        pairs = pairs.unsqueeze(0)
    spectra = apply(_AS_COMPLEX, (pairs.transpose(1, 2),))
    frames = _inverted(spectra, n_fft, normalized, onesided, return_complex)
    reach = n_fft + hop * ((count := spectra._array.shape[1]) - 1)
    signal = _overlapped(frames * window.view(1, 1, n_fft), reach, n_fft, hop)
    envelope = _overlapped(window.square().expand(1, count, n_fft), reach, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else reach - (n_fft // 2 if center else 0)
    part = {"dim": 1, "start": start, "end": end, "step": 1}
    signal, envelope = apply(_SLICE, (signal,), part), apply(_SLICE, (envelope,), part)
    if np.abs(envelope._array).min() < 1e-11:
        raise RuntimeError(f"{call} window overlap add min: 1")
    signal = signal / envelope
    if self._array.ndim == 2:
        signal = signal.squeeze(0)
    if end > reach:  # a tail that no window reaches
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded "
            "with zeros in the tail. Please check your center and hop_length settings.",
            UserWarning,
            stacklevel=2,
        )
        signal = apply(_PAD, (signal,), {"pad": (0, end - reach), "value": 0})
    return signal


def _check_istft(
    x: Tensor, n_fft: int, hop: int, size: int, window: Tensor | None, onesided: bool,
    return_complex: bool, call: str,
) -> None:  # fmt: skip
    array = x._array
    if array.dtype.kind != "c":
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    if array.size == 0:
        raise RuntimeError(f"{call} : input tensor cannot be empty.")
    if array.ndim not in (2, 3):
        raise RuntimeError(
            f"{call} : expected a tensor with 2 or 3 dimensions, but got {array.ndim}"
        )
    expected = n_fft // 2 + 1 if onesided else n_fft
    if array.shape[-2] != expected:
        raise RuntimeError(
            f"{call} : expected the frequency dimension (3rd to the last) of the input tensor to "
            f"match n_fft {'/ 2 + 1 ' if onesided else ''}when onesided="
            f"{'True' if onesided else 'False'}, but got {array.shape[-2]}"
        )
    if not 0 < hop <= size:
        raise RuntimeError(f"{call} : expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        raise RuntimeError(f"{call} : expected 0 < win_length <= n_fft")
    if window is not None and window._array.shape != (size,):
        raise RuntimeError(
            f"{call} : Invalid window shape. window has to be 1D and length of `win_length`"
        )
    if return_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and window._array.dtype.kind == "c":
        raise RuntimeError("Complex windows are incompatible with return_complex=False")


def _inverted(
    spectra: Tensor, n_fft: int, normalized: bool, onesided: bool, return_complex: bool
) -> Tensor:
    attrs: dict[str, Any] = {"dim": (2,), "normalization": 1 if normalized else 2}
    frames: Tensor
    if return_complex:
        frames = apply(_C2C, (spectra,), {**attrs, "forward": False})
        return frames
    if not onesided:
        spectra = apply(
            _SLICE, (spectra,), {"dim": 2, "start": 0, "end": n_fft // 2 + 1, "step": 1}
        )
    frames = apply(_C2R, (spectra,), {**attrs, "last_dim_size": n_fft})
    return frames


def _overlapped(frames: Tensor, reach: int, n_fft: int, hop: int) -> Tensor:
    """The frames ``(batch, window, n_fft)`` added up where they stood in ``(batch, reach)``."""
    attrs = {"input_size": (frames._array.shape[0], reach), "dimension": 1, "size": n_fft}
    added: Tensor = apply(_OVERLAP, (frames,), {**attrs, "step": hop})
    return added
