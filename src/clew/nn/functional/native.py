"""Losses under the names that PyTorch has at its top level, ``torch.kl_div`` and so on.

They are those of ``nn.functional`` with other signatures: the reduction is a number, 0 for "none"
(which is PyTorch's default here), 1 for "mean" and 2 for "sum".  ``clew/__init__.py`` imports this
module when one is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from clew.nn import functional as F

_REDUCTIONS = ("none", "mean", "sum")


def _native(function: Callable[..., Any], parameters: str) -> Callable[..., Any]:
    """The function with these parameters, written as in a ``def`` without annotations."""
    made: list[Parameter] = []
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for word in parameters.split(", "):
        if word == "*":
            kind = Parameter.KEYWORD_ONLY
            continue
        name, equals, default = word.partition("=")
        value = eval(default, {}) if equals else Parameter.empty
        made.append(Parameter(name, kind, default=value))
    signature = Signature(made)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        if not 0 <= given["reduction"] < len(_REDUCTIONS):
            raise ValueError(f"{given['reduction']} is not a valid value for reduction")
        given["reduction"] = _REDUCTIONS[given["reduction"]]
        return function(**given)

    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = f"`nn.functional.{function.__name__}` with a number as reduction."
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


kl_div = _native(F.kl_div, "input, target, reduction=0, *, log_target=False")
poisson_nll_loss = _native(F.poisson_nll_loss, "input, target, log_input, full, eps, reduction")
binary_cross_entropy_with_logits = _native(
    F.binary_cross_entropy_with_logits, "input, target, weight=None, pos_weight=None, reduction=0"
)
hinge_embedding_loss = _native(F.hinge_embedding_loss, "input, target, margin=1.0, reduction=0")
margin_ranking_loss = _native(
    F.margin_ranking_loss, "input1, input2, target, margin=0.0, reduction=0"
)
cosine_embedding_loss = _native(
    F.cosine_embedding_loss, "input1, input2, target, margin=0.0, reduction=0"
)
triplet_margin_loss = _native(
    F.triplet_margin_loss,
    "anchor, positive, negative, margin=1.0, p=2.0, eps=1e-06, swap=False, reduction=0",
)
ctc_loss = _native(
    F.ctc_loss,
    "log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False",
)
