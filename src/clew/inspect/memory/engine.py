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
    Origin,
    Storage,
)
from clew.inspect.memory.modules import Modules
from clew.site import Site

BEFORE = "before tracking"
"""What made storages that are found, not seen to be made."""

MADE = "made"
"""What made those of factories: no operation."""

OFTEN = 1024
"""The log is flushed when so much is noted."""


class Engine:
    """Writes down what one engine's tensors do.

    A subclass says what a tensor and its storage are, and listens.

    Args:
        log: where to write.
        own: the beginnings of the paths of files that are not the program's.
    """

    name: str

    def __init__(self, log: Log, own: tuple[str, ...]) -> None:
        self.log = log
        self.modules = Modules(log.modules, own, self._named)
        self._passes: list[Site | None] = []  # the lines of the backward passes that run
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
        storage = self.storage_of(grad)
        if storage is None or storage.roles >> GRADIENT & 1:
            return
        of = self.storage_of(leaf)
        self._is_gradient(storage, None if of is None else of.made)

    def _is_gradient(self, storage: Storage, of: Origin | None) -> None:
        """The storage is that of a gradient, of a leaf which `of` has made."""
        module, what = ("", "") if of is None else (of.module, of.what)
        site = self._passes[-1] if self._passes else storage.made.site
        self._belongs(storage, GRADIENT, site, module, f"gradient of {what}")

    def _see_state(self, optimizer: Any) -> None:
        """The tensors in an optimizer's state belong to the modules of its parameters."""
        what = f"{type(optimizer).__name__}.step"
        for parameter, state in optimizer.state.items():
            of = next((self.storage_of(tensor) for tensor in self.tensors_in(parameter)), None)
            module = "" if of is None else of.made.module
            for tensor in self.tensors_in(state):
                storage = self.storage_of(tensor)
                if storage is None:
                    continue
                made = storage.made
                if not storage.roles >> STATE & 1 or module != made.module:
                    self._belongs(storage, STATE, made.site, module, what)

    def _named(self, module: Any, path: str) -> None:
        """A module is met for the first time: what it has belongs to it."""
        for table, role in ((module._parameters, PARAMETER), (module._buffers, BUFFER)):
            for name, tensor in table.items():
                if tensor is None:
                    continue
                storage = self.storage_of(tensor)
                if storage is not None:
                    self._belongs(storage, role, storage.made.site, path, name)
                grad = getattr(tensor, "grad", None) if role == PARAMETER else None
                of_grad = None if grad is None else self.storage_of(grad)
                if of_grad is not None:
                    self._belongs(of_grad, GRADIENT, of_grad.made.site, path, f"gradient of {name}")

    def _belongs(
        self, storage: Storage, role: int, site: Site | None, module: str, what: str
    ) -> None:
        self.log.play(storage, role, self.log.origin(site, module, what))

    def _role_of_made(self) -> int:
        """The kind of a tensor that is made now, from no other."""
        if self._step is not None:
            return STATE
        return TEMPORARY if self._is_inner else INPUT
