"""What engines with PyTorch's names share: they run the workloads as they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workloads import make
from workloads.step import Step


class Named:
    """An engine with PyTorch's names.

    Args:
        engine: its module.
        compiled: compiles a function, if the engine shall.
        cannot: for workloads that it cannot do, the reason.
    """

    def __init__(
        self, engine: Any, compiled: Callable[[Any], Any] | None = None,
        cannot: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.engine, self.compiled, self.cannot = engine, compiled, cannot or {}

    def make(self, workload: str, given: Sequence[Any] = ()) -> Step:
        """The step; the engine draws the first values itself."""
        return make(workload, self.engine, self.compiled)

    def give(self, workload: str) -> list[Any]:
        """The first values of a workload, for engines with other random numbers."""
        return [tensor.detach().numpy() for tensor in make(workload, self.engine).given]

    def saved_bytes(self, step: Step) -> int | None:
        """Bytes that `step.forward` keeps for backward: each memory once, parameters left out."""
        if step.forward is None:
            return None
        parameters = step.model.parameters() if step.model is not None else ()
        apart = {p.untyped_storage().data_ptr() for p in parameters}
        sizes: dict[int, int] = {}
        kept = []

        def pack(tensor: Any) -> Any:
            storage = tensor.untyped_storage()
            kept.append(tensor)  # so that no address is used twice
            if storage.data_ptr() not in apart:
                sizes[storage.data_ptr()] = storage.nbytes()
            return tensor

        with self.engine.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss = step.forward()
        del loss
        return sum(sizes.values())
