"""What a tensor says of itself: sizes, strides, storage, printing.  Layer 4."""

from __future__ import annotations

from typing import Any

from clew import dtypes
from clew.config import warn_once
from clew.dispatch import apply
from clew.op import REGISTRY
from clew.ops.rules import wrap_dim
from clew.publish import composite
from clew.storage import address, element_strides, geometry, root
from clew.tensor import Size, Tensor


@composite(function=False)
def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dimension."""
    if dim is None:
        return Size(self._array.shape)
    if self._array.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return self._array.shape[wrap_dim(dim, self._array.ndim)]


@composite(function=False)
def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self._array.ndim


composite(function=False, name="ndimension")(dim)


@composite()
def numel(self: Tensor) -> int:
    """The number of elements."""
    return self._array.size


composite(function=False, name="nelement")(numel)


@composite(function=False)
def stride(self: Tensor, dim: int | None = None) -> Any:
    """The strides in elements, or the stride of one dimension."""
    strides = element_strides(self._array)
    return strides if dim is None else strides[dim]


@composite(function=False)
def storage_offset(self: Tensor) -> int:
    """Where the first element lies in the storage, in elements."""
    return geometry(self._array).offset


@composite(function=False)
def element_size(self: Tensor) -> int:
    """Bytes of one element."""
    return self._array.itemsize


@composite(function=False)
def data_ptr(self: Tensor) -> int:
    """The address of the first element."""
    return address(self._array) if self._array.size else 0


@composite(function=False)
def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie in memory in the order of their indices."""
    return bool(self._array.flags.c_contiguous)


@composite(function=False)
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same part of the same storage."""
    same = root(self._array) is root(tensor._array)
    return same and geometry(self._array) == geometry(tensor._array)


@composite()
def is_floating_point(self: Tensor) -> bool:
    """Whether the type is floating."""
    return self.dtype.is_floating_point


@composite(method=False)
def is_inference(self: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    if not isinstance(self, Tensor):
        raise TypeError(
            f"is_inference(): argument 'input' (position 1) must be Tensor, not "
            f"{type(self).__name__}"
        )
    return self.is_inference()


@composite()
def is_complex(self: Tensor) -> bool:
    """Whether the type is complex."""
    return self.dtype.is_complex


@composite(function=False)
def is_signed(self: Tensor) -> bool:
    """Whether the type has a sign."""
    return self.dtype.is_signed


@composite()
def is_nonzero(self: Tensor) -> bool:
    """Whether the only element is not zero."""
    return bool(self)


@composite()
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether the shapes are equal."""
    return self._array.shape == other._array.shape


@composite(function=False)
def is_pinned(self: Tensor) -> bool:
    """False: pinned memory serves GPUs."""
    return False


@composite(function=False)
def __repr__(self: Tensor) -> str:
    from clew.printing import format_tensor

    return format_tensor(self)


@composite(function=False)
def __dir__(self: Tensor) -> list[str]:
    return sorted({*object.__dir__(self)})


def _property(name: str, getter: Any, doc: str) -> None:
    setattr(Tensor, name, property(getter, doc=doc))


_PERMUTE = REGISTRY["permute"]


def _reverse_dims(self: Tensor) -> Any:
    if self._array.ndim == 0:
        _warn_of_number("T", "This function is the identity in these cases.")
    elif self._array.ndim != 2:
        warn_once(
            "T",
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
            "deprecated and it will throw an error in a future release. Consider `x.mT` to "
            "transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to "
            "reverse the dimensions of a tensor.",
            stacklevel=2,
        )
    dims = tuple(range(self._array.ndim - 1, -1, -1))
    return apply(_PERMUTE, (self,), {"dims": dims})


def _warn_of_number(name: str, advice: str) -> None:
    warn_once(f"0-D {name}", f"Tensor.{name} is deprecated on 0-D tensors. {advice}", stacklevel=3)


def _swapped(name: str, conjugate: bool, only_matrices: bool) -> Any:
    """A getter that swaps the last two dimensions; of a number, the number."""

    def getter(self: Tensor) -> Any:
        ndim = self._array.ndim
        if ndim == 1 or (only_matrices and ndim > 2):
            batches = "matrices or batches of matrices"
            accepted = "matrices (2-D tensors)" if only_matrices else batches
            hint = " For batches of matrices, consider using tensor.mH" if ndim > 2 else ""
            raise RuntimeError(
                f"tensor.{name} is only supported on {accepted}. Got {ndim}-D tensor.{hint}"
            )
        if not ndim:
            identity = "This function is the identity in these cases."
            _warn_of_number(name, "Consider using x.conj()." if conjugate else identity)
        swapped = apply(REGISTRY["transpose"], (self,), {"dim0": -2, "dim1": -1}) if ndim else self
        if conjugate and self._array.dtype.kind == "c":
            return apply(REGISTRY["conj"], (swapped,))
        return swapped

    return getter


_property("T", _reverse_dims, "All dimensions in reverse order.")
_property("mT", _swapped("mT", False, False), "The last two dimensions swapped.")
_property("mH", _swapped("mH", True, False), "The last two dimensions swapped, conjugated.")
_property("H", _swapped("H", True, True), "The conjugate transpose of a matrix.")
_property("itemsize", lambda self: self._array.itemsize, "Bytes of one element.")
_property("nbytes", lambda self: self._array.nbytes, "Bytes of all elements.")
_property("is_cuda", lambda self: False, "False: the tensor is on the CPU.")
_property("is_mps", lambda self: False, "False: the tensor is on the CPU.")
_property("is_xpu", lambda self: False, "False: the tensor is on the CPU.")
_property("is_meta", lambda self: False, "False: the tensor has memory.")
_property("is_sparse", lambda self: False, "False: the tensor is dense.")
_property("is_quantized", lambda self: False, "False: the tensor is not quantised.")
_property("is_cpu", lambda self: True, "True.")
_property("is_nested", lambda self: False, "False: the tensor is not nested.")
_property("layout", lambda self: dtypes.strided, "``strided``.")
_property("names", lambda self: (None,) * self._array.ndim, "None for each dimension.")


def _get_name(self: Tensor) -> str | None:
    return None if self._meta is None else self._meta.name


def _set_name(self: Tensor, value: str | None) -> None:
    self._ensure_meta().name = value


Tensor.name = property(_get_name, _set_name, doc="A name, or None.")  # type: ignore[attr-defined]
