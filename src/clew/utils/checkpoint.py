"""PyTorch's ``torch.utils.checkpoint``: keep less for backward, and compute it again there.

Imports the core.

Note [Checkpoints]
    Without re-entrance, a region runs under saved-tensor hooks that keep a `_Slot` for each saved
    tensor instead of the tensor.  When backward asks for the first of them, the region's function
    runs again, on the saved arguments, under hooks that put the n-th saved tensor into the n-th
    slot; it stops as soon as the last slot is full.  A slot belongs to the node that saved it, so
    values that nobody needs any more go with it.  Each backward pass fills the slots anew.

    With re-entrance, the region is one `Function`, which runs without recording, and again with
    recording, in a backward inside the backward.
"""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from clew import rng
from clew.autograd import Function, backward, engine
from clew.autograd.graph import saved_tensors_hooks
from clew.autograd.modes import enable_grad, no_grad, state
from clew.autograd.saved import PackedTensor, SavedTensor, refuse_saving, save_input
from clew.errors import (
    CheckpointError,
    CheckpointOptionError,
    CheckpointUseError,
    no_gradient_for_checkpoint_text,
)
from clew.site import here
from clew.tensor import Tensor
from clew.utils.checkpoint_trace import Trace, with_traces

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]

_CURE = (
    "let the function do the same each time: no branches on what changes between the runs, no "
    "counters, no in-place writes to what it reads; debug=True (or `with "
    "torch.utils.checkpoint.set_checkpoint_debug_enabled(True):`) shows the operations of both runs"
)


class _Overrides:
    """What `set_checkpoint_early_stop` and `set_checkpoint_debug_enabled` set; None: nothing."""

    early_stop: bool | None = None
    debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """While entered, checkpoints stop recomputing early, or do not, whatever they say."""
    before, _Overrides.early_stop = _Overrides.early_stop, enable
    try:
        yield
    finally:
        _Overrides.early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """While entered, checkpoints are debugged, or not, whatever they say; None: as they say."""
    before, _Overrides.debug = _Overrides.debug, enabled
    try:
        yield
    finally:
        _Overrides.debug = before


def noop_context_fn() -> Contexts:
    """Contexts that do nothing: the default of `checkpoint`."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, which keeps its arguments for backward and little else.

    What backward needs is computed by calling `function` again.  See Note [Checkpoints].

    Args:
        function: must do the same each time.
        use_reentrant: the older way, of one node, or the newer, which works with `grad`, nested
            structures and keyword arguments; to be given explicitly (PyTorch's default is True).
        context_fn: makes two context managers, for the first run and for the second.
        determinism_check: "default" compares shapes, types and devices of what both runs save,
            "none" nothing.
        debug: say in errors which operations ran.
        early_stop: stop the second run when all that is needed is there.
        preserve_rng_state: let the second run draw the same random numbers.

    Raises:
        ValueError: an option is unknown, or does not go with `use_reentrant`.
        CheckpointError: (in backward) the second run differs from the first.
    """
    if use_reentrant is None:
        _warn_of_default("torch.utils.checkpoint", "calling checkpoint without")
        use_reentrant = True
    if use_reentrant:
        _refuse_with_reentrance(kwargs, context_fn is not noop_context_fn or debug is not False)
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if determinism_check not in ("default", "none"):
        raise CheckpointOptionError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}",
            "pass 'default' to compare shapes and dtypes of both runs, 'none' for no comparison",
        )
    traces = None
    if debug if _Overrides.debug is None else _Overrides.debug:
        if context_fn is not noop_context_fn:
            raise CheckpointOptionError(
                "debug=True is incompatible with non-default context_fn",
                "leave one of the two out: debug=True needs the contexts for its own records",
            )
        traces = (Trace(), Trace())
    contexts = traces or context_fn()
    if not state.now.grad_enabled:
        return function(*args, **kwargs)
    _refuse_inference(args)
    region = _Region(function, args, kwargs, contexts[1])
    region.early_stop = early_stop if _Overrides.early_stop is None else _Overrides.early_stop
    region.compares = determinism_check == "default"
    region.rng_state = rng.default_generator.state_array() if preserve_rng_state else None
    region.traces = traces
    return region.run(contexts[0], args)


def _refuse_inference(args: tuple[Any, ...]) -> None:
    for x in args:
        if isinstance(x, Tensor) and x.is_inference():
            refuse_saving(x)


def _refuse_with_reentrance(kwargs: dict[str, Any], has_other_options: bool) -> None:
    if kwargs:
        raise CheckpointOptionError(
            "Unexpected keyword arguments: " + ",".join(kwargs),
            "pass use_reentrant=False, which takes keyword arguments, or pass them by position",
        )
    if has_other_options:
        raise CheckpointOptionError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False.",
            "pass use_reentrant=False",
        )


def _warn_of_default(lead: str, what: str) -> None:
    warnings.warn(
        f"{lead}: the use_reentrant parameter should be passed explicitly. Starting in PyTorch "
        f"2.9, {what} use_reentrant will raise an exception. use_reentrant=False is recommended; "
        "use_reentrant=True keeps the current default.",
        stacklevel=3,
    )


# -- without re-entrance


class _Stop(Exception):
    """Ends a recomputation that has all it needs."""


class _Slot:
    """Stands for a saved tensor; holds its recomputed value for the backward passes that ask."""

    __slots__ = ("__weakref__", "values")

    def __init__(self) -> None:
        self.values: dict[Any, Tensor] = {}


class _Region:
    """A checkpointed call; see Note [Checkpoints].

    For error messages about the saved arguments it plays the part of a node.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        context: AbstractContextManager[Any],
    ) -> None:
        self.function = function
        self.metas = ()
        self.args = [save_input(a) if isinstance(a, Tensor) else a for a in args]
        self.makers = [a.grad_fn if isinstance(a, Tensor) else None for a in args]
        self.kwargs = kwargs
        self.context = context
        self.early_stop = True
        self.compares = True
        self.rng_state: Any = None
        self.traces: tuple[Trace, Trace] | None = None
        self.site = here()
        self.slots: list[weakref.ref[_Slot]] = []
        self.facts: list[dict[str, Any]] = []
        self.first_run_over = False
        self.recomputed: set[Any] = set()
        self.saved_again: dict[Any, int] = defaultdict(int)
        self.has_inner_backward = False

    def name(self) -> str:
        return "checkpoint"

    short_name = name

    def edge_of_saved(self, saved: Any) -> Any:
        """The node that had made an argument."""
        return next(node for arg, node in zip(self.args, self.makers) if arg is saved)

    def run(self, context: AbstractContextManager[Any], args: tuple[Any, ...]) -> Any:
        """The first run."""
        returned = False
        with saved_tensors_hooks(self._make_slot, self._value_of), context:
            result = self.function(*args, **self.kwargs)
            returned = True
        if not returned:
            raise RuntimeError(
                "torch.utils.checkpoint: the forward context provided by context_fn suppressed an "
                "exception raised during the checkpointed forward. This is not supported because "
                "checkpoint cannot return a value for a failed forward."
            )
        self.first_run_over = True
        return result

    def _make_slot(self, tensor: Tensor) -> _Slot:
        slot = _Slot()
        self.slots.append(weakref.ref(slot))
        self.facts.append(_facts_of(tensor))
        return slot

    def _value_of(self, slot: _Slot) -> Tensor:
        try:
            return self._recomputed_value(slot)
        except CheckpointError as error:
            if self.traces is None:
                raise
            raise CheckpointError(with_traces(error, self.traces), self, _CURE) from error

    def _recomputed_value(self, slot: _Slot) -> Tensor:
        task = engine.current.task
        # Outside backward (somebody looks at a saved tensor) each question is a pass of its own.
        key = object() if task is None else task.id
        if key not in self.recomputed:
            self._run_again(key)
            self.recomputed.add(key)
            self._check(key)
        if key not in slot.values:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                "unpacked once. If you are calling ctx.saved_tensors in backward, make sure to do "
                "so only once. Otherwise please open an issue with details on your use case.",
                self,
                "read ctx.saved_tensors once and keep what it gives in a variable",
            )
        return slot.values.pop(key)

    def _run_again(self, key: Any) -> None:
        args = [
            a.unpack(self) if isinstance(a, (SavedTensor, PackedTensor)) else a for a in self.args
        ]
        hooks = saved_tensors_hooks(lambda tensor: self._fill_slot(key, tensor), lambda x: x)
        with (
            contextlib.suppress(_Stop),
            _same_random_numbers(self.rng_state),
            hooks,
            enable_grad(),
            self.context,
        ):
            self.function(*args, **self.kwargs)

    def _fill_slot(self, key: Any, tensor: Tensor) -> Tensor:
        value = tensor.detach() if tensor.requires_grad else tensor
        position = self.saved_again[key]
        self.saved_again[key] += 1
        if position >= len(self.slots):
            if self.first_run_over:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation "
                    "than during the original forward pass.",
                    self,
                    _CURE,
                )
            # The function itself calls backward, and the first run has only come this far.
            self.has_inner_backward = True
            return value
        slot = self.slots[position]()
        if slot is not None:  # else its node is gone already
            slot.values[key] = value
        if self.early_stop and position + 1 == len(self.slots):
            raise _Stop
        return value

    def _check(self, key: Any) -> None:
        """Compare what both runs saved."""
        if self.has_inner_backward:
            return
        first, second = len(self.slots), self.saved_again[key]
        if first != second:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {first}\n"
                f"Number of tensors saved during recomputation: {second}.",
                self,
                _CURE,
            )
        if not self.compares:
            return
        differences = ""
        for position, (reference, saved) in enumerate(zip(self.slots, self.facts)):
            slot = reference()
            if slot is None:
                continue
            again = _facts_of(slot.values[key])
            if again != saved:
                differences += (
                    f"tensor at position {position}:\nsaved metadata: {saved}\n"
                    f"recomputed metadata: {again}\n"
                )
        if differences:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\n{differences}.",
                self,
                _CURE,
            )


def _facts_of(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


@contextlib.contextmanager
def _same_random_numbers(rng_state: Any) -> Iterator[None]:
    """Draw from an earlier state of the default generator, and then go on where it was."""
    if rng_state is None:
        yield
        return
    generator = rng.default_generator
    now = generator.state_array()
    generator.load_state_array(rng_state)
    try:
        yield
    finally:
        generator.load_state_array(now)


# -- with re-entrance


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs, the tensors among them as leaves that require grad if they did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs
    )


def check_backward_validity(inputs: Any) -> None:
    """Warn if no tensor among the inputs requires grad."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn(no_gradient_for_checkpoint_text(), stacklevel=2)


class CheckpointFunction(Function):
    """The node of a checkpointed call with re-entrance."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = rng.default_generator.state_array() if preserve_rng_state else None
        ctx.inputs = [None if isinstance(a, Tensor) else a for a in args]
        ctx.tensor_indices = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_indices))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        task = engine.current.task
        if task is not None and task.wanted is not None:
            raise CheckpointUseError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument.",
                ctx.run_function,
                "pass use_reentrant=False to checkpoint",
            )
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.tensor_indices, ctx.saved_tensors):
            inputs[i] = tensor
        leaves = detach_variable(tuple(inputs))
        with _same_random_numbers(ctx.rng_state), enable_grad():
            outputs = ctx.run_function(*leaves)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        roots = [i for i, o in enumerate(outputs) if isinstance(o, Tensor) and o.requires_grad]
        if not roots:
            raise CheckpointUseError(
                "none of output has requires_grad=True, this checkpoint() is not necessary",
                ctx.run_function,
                "look for detach(), no_grad or argmax in the function, or call it without "
                "checkpoint",
            )
        backward([outputs[i] for i in roots], [grads[i] for i in roots])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in leaves))


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Apply modules or functions one after another, all segments but the last checkpointed.

    Args:
        functions: a `Sequential` or a list.
        segments: into how many parts to cut it.
        input: what the first takes.
        use_reentrant: see `checkpoint`.
        kwargs: only ``preserve_rng_state``.

    Raises:
        ValueError: another keyword.
    """
    if use_reentrant is None:
        _warn_of_default("torch.utils.checkpoint.checkpoint_sequential", "calling it without")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise CheckpointOptionError(
            "Unexpected keyword arguments: " + ",".join(kwargs),
            "checkpoint_sequential takes use_reentrant and preserve_rng_state only",
        )
    steps = list(functions.children() if hasattr(functions, "children") else functions)
    size = len(steps) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            _chain(steps[start:end]), input, use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )  # fmt: skip
    return _chain(steps[end:])(input)


def _chain(steps: list[Any]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return run
