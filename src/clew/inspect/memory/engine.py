"""What tracking clew and tracking real PyTorch have in common."""

from __future__ import annotations

from typing import Any

from clew.inspect.memory.log import (
    BUFFER,
    GRADIENT,
    INPUT,
    PARAMETER,
    STATE,
    TEMPORARY,
    Log,
    Storage,
)
from clew.inspect.memory.modules import Modules
from clew.site import Site

BEFORE = "before tracking"
"""What made storages that are found, not seen to be made."""


class Engine:
    """Writes down what one engine's tensors do.

    A subclass says what a tensor and its storage are, and listens.

    Args:
        log: where to write.
        own: the beginnings of the paths of files that are not the program's.
        running: as of `Modules`.
        call: as of `Modules`.
    """

    name: str

    def __init__(self, log: Log, own: tuple[str, ...], running: Any, call: str = "") -> None:
        self.log = log
        self.modules = Modules(log.modules, own, self._named, running, call)
        self._passes: list[Site | None] = []  # the lines of the backward passes that run
        self._pass: Site | None = None  # of the innermost
        self._step: str | None = None  # the optimizer's step that runs

    def start(self) -> None:
        """Find what is there already, then listen."""
        raise NotImplementedError

    def stop(self) -> None:
        """Listen no longer."""
        raise NotImplementedError

    def storage_of(self, tensor: Any) -> Storage | None:
        """The storage that a tensor stands on; None for a tensor that has none.

        One that was not known counts as input, from before tracking.
        """
        raise NotImplementedError

    def tensors_in(self, value: Any) -> Any:
        """The tensors in nested containers."""
        raise NotImplementedError

    @property
    def _is_inner(self) -> bool:
        """Whether a module or a backward pass runs: what is made then is no input."""
        return bool(self._passes) or bool(self.modules.path)

    def _see_grad(self, leaf: Any, grad: Any) -> None:
        """`grad` is the gradient of `leaf`."""
        storage, of = self.storage_of(grad), self.storage_of(leaf)
        if storage is not None:
            self.log.is_gradient(storage.key, None if of is None else of.key, self._pass)

    def _see_state(self, optimizer: Any) -> None:
        """The tensors in an optimizer's state belong to the modules of its parameters."""
        place, what = self.log.place, f"{type(optimizer).__name__}.step"
        for parameter, state in optimizer.state.items():
            of = next((self.storage_of(tensor) for tensor in self.tensors_in(parameter)), None)
            module = "" if of is None else place(of).origin.module
            for tensor in self.tensors_in(state):
                storage = self.storage_of(tensor)
                if storage is not None:
                    self.log.play(storage, STATE, (place(storage).origin.site, module, what))

    def _named(self, module: Any, path: str) -> None:
        """A module is met for the first time: what it has belongs to it."""
        for table, role in ((module._parameters, PARAMETER), (module._buffers, BUFFER)):
            for name, tensor in table.items():
                if tensor is None:
                    continue
                self._belongs(tensor, role, path, name)
                grad = getattr(tensor, "grad", None) if role == PARAMETER else None
                if grad is not None:
                    self._belongs(grad, GRADIENT, path, f"gradient of {name}")

    def _belongs(self, tensor: Any, role: int, module: str, what: str) -> None:
        storage = self.storage_of(tensor)
        if storage is not None:
            site = self.log.place(storage).origin.site
            self.log.play(storage, role, (site, module, what))

    def _role_of_made(self) -> int:
        """The kind of a tensor that is made now, from no other."""
        if self._step is not None:
            return STATE
        return TEMPORARY if self._is_inner else INPUT
