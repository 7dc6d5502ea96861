"""How a tensor is sent to another process: as a descriptor of shared memory, and where it lies."""

from __future__ import annotations

from multiprocessing import reduction
from typing import Any

from clew.dtypes import dtype as Dtype
from clew.errors import NonLeafCopyError
from clew.nn.parameter import Parameter
from clew.sharing import attached_array, shared_memory
from clew.storage import Geometry, flat_storage, geometry, root, strided
from clew.tensor import Tensor


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """Move the tensor to shared memory and say how another process finds it.

    Raises:
        NonLeafCopyError: it is a result that requires grad: graphs do not leave their process.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise NonLeafCopyError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries.  If you just want to transfer the "
            "data, call detach() on the tensor before serializing (e.g., putting it on the queue).",
            tensor,
        )
    tensor.share_memory_()
    memory = shared_memory(tensor._array)
    assert memory is not None
    descriptor = reduction.DupFd(memory.descriptor)
    place = geometry(tensor._array)
    nbytes = root(tensor._array).nbytes
    return _rebuild, (
        type(tensor), descriptor, nbytes, tensor.dtype, tuple(place), tensor.requires_grad,
    )  # fmt: skip


def _rebuild(
    kind: type[Tensor], descriptor: Any, nbytes: int, dtype: Dtype, place: Any, requires_grad: bool
) -> Tensor:
    whole = attached_array(descriptor.detach(), nbytes)
    array = strided(flat_storage(whole).view(dtype.numpy), Geometry(*place))
    return kind._from_array(array, requires_grad)


def register() -> None:
    """Teach multiprocessing's pickler; other picklers keep copying tensors."""
    for kind in (Tensor, Parameter):
        reduction.ForkingPickler.register(kind, reduce_tensor)
