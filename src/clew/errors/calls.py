"""Errors of calls that autograd refuses: inputs, callbacks, contexts, checkpoints.  Layer 0."""

from __future__ import annotations

from typing import Any

from clew.errors import AutogradError, Fact, at, defined, describe_end, recorded, spaced, teach
from clew.site import Site, here


class InputsError(AutogradError, RuntimeError):
    """``inputs=`` names nothing, or something that is neither a tensor nor an edge."""

    anchor = "inputs"

    def __init__(self, clause: str, cure: str, outputs: Any = ()) -> None:
        super().__init__(
            clause,
            ("output", describe_end(outputs[0]) if outputs else None),
            ("asked", at(here())),
            ("cure", cure),
        )

    @classmethod
    def empty(cls, function: str, outputs: Any) -> InputsError:
        """Nothing is named."""
        cure = (
            "leave inputs out for the gradients of all leaves"
            if function == "backward"
            else f"say with respect to what: {function}(y, [x])"
        )
        return cls(
            f"`inputs` argument to `{function}()` cannot be empty.",
            f"{cure}; if a loop or parameters() makes the list, look why it is empty (an iterator "
            "can be used up only once)",
            outputs,
        )


class CallbackError(AutogradError, RuntimeError):
    """A callback for the end of a backward pass is queued where none runs."""

    anchor = "callback"

    def __init__(self, clause: str, callback: Any) -> None:
        super().__init__(
            clause,
            ("callback", defined(callback)),
            ("queued", at(here())),
            ("cure", "queue it in a hook or in the backward of a Function, which run in the pass; "
                     "after loss.backward() just call it"),
        )  # fmt: skip


class MutationContextError(AutogradError, AssertionError):
    """Backward needs what `allow_mutation_on_saved_tensors` kept, and the context has ended."""

    anchor = "saved-tensor-hooks"
    names_node = False

    def __init__(self, clause: str, entered: Site | None) -> None:
        super().__init__(
            clause,
            ("context", spaced("entered", entered)),
            ("backward", at(here())),
            ("cure", "call backward inside the with block too; what it kept goes when it ends"),
        )


class UnpackedError(AutogradError, RuntimeError):
    """What an unpack hook returned does not fit where the saved tensor is needed."""

    anchor = "saved-tensor-hooks"

    def __init__(self, clause: str, hook: Any, node: Any, packed: str, returned: str) -> None:
        super().__init__(
            clause,
            ("hook", defined(hook)),
            ("packed", packed),
            ("returned", returned),
            ("saved by", recorded(node)),
            ("backward", at(here())),
            ("cure", "return the tensor from the unpack hook in the shape and dtype that was "
                     "packed"),
        )  # fmt: skip


# -- checkpoints


class CheckpointError(AutogradError, RuntimeError):
    """The recomputation of a checkpointed region differs from its first run."""

    anchor = "checkpoint"
    names_node = False

    def __init__(self, clause: str, region: Any = None, cure: str = "") -> None:
        super().__init__(clause, *_region_facts(region), ("cure", cure))


class CheckpointUseError(AutogradError, RuntimeError):
    """Checkpointing with re-entrance where it cannot work."""

    anchor = "checkpoint"
    names_node = False

    def __init__(self, clause: str, function: Any, cure: str) -> None:
        super().__init__(
            clause, ("function", defined(function)), ("backward", at(here())), ("cure", cure)
        )


class CheckpointOptionError(AutogradError, ValueError):
    """An option of `checkpoint` is unknown, or does not go with another."""

    anchor = "checkpoint"

    def __init__(self, clause: str, cure: str) -> None:
        super().__init__(clause, ("asked", at(here())), ("cure", cure))


def _region_facts(region: Any) -> tuple[Fact, ...]:
    if region is None:
        return ()
    return (
        ("function", defined(region.function)),
        ("first run", at(region.site)),
        ("second", at(here())),
    )


def no_gradient_for_checkpoint_text() -> str:
    """The warning for a checkpoint with re-entrance none of whose arguments requires grad."""
    return teach(
        "None of the inputs have requires_grad=True. Gradients will be None",
        (
            ("called", at(here())),
            ("cure", "pass use_reentrant=False, which finds parameters inside the function too, "
                     "or a tensor that requires grad"),
        ),
        "checkpoint",
    )  # fmt: skip
