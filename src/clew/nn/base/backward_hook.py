"""Full backward hooks of a module: what ties them to the graph.  May import the core of clew.

Note [Full backward hooks]
    The module's inputs pass through an identity function, its outputs through another.  In the
    backward pass the outputs' node runs first and sees the gradients of the outputs; the inputs'
    node runs last and sees those of the inputs.  The user's hooks are called there, with both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from clew.autograd import Function
from clew.autograd.modes import state
from clew.tensor import Tensor

Hook = Callable[..., Any]


class BackwardHookFunction(Function):
    """The identity, for the sake of its node."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> Any:
        ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


class BackwardHook:
    """Calls a module's backward hooks during one backward pass; see Note [Full backward hooks].

    Args:
        module: what the hooks are given.
        user_hooks: called with the gradients of inputs and outputs.
        user_pre_hooks: called with the gradients of the outputs.
    """

    def __init__(self, module: Any, user_hooks: list[Hook], user_pre_hooks: list[Hook]) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: Any = None
        self.inputs = _Places(0, None)
        self.outputs = _Places(0, None)

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The module's arguments, tied."""
        args, self.inputs = _tie(args, self._after_inputs)
        return args

    def setup_output_hook(self, result: Any) -> Any:
        """The module's result, tied."""
        results = result if isinstance(result, tuple) else (result,)
        results, self.outputs = _tie(results, self._after_outputs)
        return results if isinstance(result, tuple) else results[0]

    def _after_outputs(self, _: Any, grads: tuple[Any, ...]) -> Any:
        """Runs when the gradients of the outputs are there."""
        self.grad_outputs = self.outputs.spread(grads)
        for hook in self.user_pre_hooks:
            replaced = hook(self.module, self.grad_outputs)
            if replaced is None:
                continue
            expected = len(self.grad_outputs)
            if len(replaced) != expected:
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, got "
                    f"{len(replaced)}, but expected {expected}"
                )
            self.grad_outputs = replaced
        passed_on = self.outputs.gather(self.grad_outputs)
        if self.inputs.tensors is None:
            self._call_without_inputs()
        return passed_on

    def _call_without_inputs(self) -> None:
        """No input requires grad, so no input's node will run: the hooks' turn is now."""
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            "outputs since no inputs require gradients. See "
            "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details.",
            stacklevel=5,
        )
        nothing = (None,) * self.inputs.count
        for hook in self.user_hooks:
            replaced = hook(self.module, nothing, self.grad_outputs)
            if replaced is not None and not (
                isinstance(replaced, tuple) and all(r is None for r in replaced)
            ):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_outputs = None

    def _after_inputs(self, grads: tuple[Any, ...], _: Any) -> Any:
        """Runs when the gradients of the inputs are there."""
        if self.grad_outputs is None:  # this backward did not pass through the outputs
            return None
        spread = self.inputs.spread(grads)
        for hook in self.user_hooks:
            replaced = hook(self.module, spread, self.grad_outputs)
            if replaced is None:
                continue
            if len(replaced) != len(spread):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, got "
                    f"{len(replaced)}, but expected {len(spread)}"
                )
            spread = replaced
        self.grad_outputs = None
        return self.inputs.gather(spread)


class _Places:
    """Which of `count` values are tensors (None: they are not tied)."""

    def __init__(self, count: int, tensors: list[int] | None) -> None:
        self.count = count
        self.tensors = tensors

    def spread(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values in their places, None elsewhere."""
        result = [None] * self.count
        for place, value in zip(self.tensors or (), values):
            result[place] = value
        return tuple(result)

    def gather(self, values: Any) -> tuple[Any, ...]:
        """What stands in the tensors' places."""
        return tuple(values[place] for place in self.tensors or ())


def _tie(values: Any, hook: Hook) -> tuple[Any, _Places]:
    """Pass the tensors among `values` through the identity, and hook its node."""
    places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not (state.now.grad_enabled and any(values[i].requires_grad for i in places)):
        return values, _Places(len(values), None)
    tied = BackwardHookFunction.apply(*[values[i] for i in places])
    node = next(t.grad_fn for t in tied if t.grad_fn is not None)
    node.register_hook(hook)
    result = list(values)
    for place, tensor in zip(places, tied):
        result[place] = tensor
    made = tuple(result) if type(values) is tuple else type(values)(*result)
    return made, _Places(len(values), places)
