"""Random numbers in a batch: refused, the same for all examples, or different ones."""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply, apply_inplace
from clew.func.batching.rules import Call, Same, padded, rule, run
from clew.op import REGISTRY, Op

_DRAWS = """
bernoulli bernoulli_number normal_each poisson binomial standard_gamma sample_dirichlet normal
log_normal exponential cauchy geometric uniform random bernoulli_fill bernoulli_each
"""
DRAWS = frozenset(_DRAWS.split())
"""Ops that draw."""

NO_RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
)
_NEVER_RANDOM = (
    "vmap: We do not yet support calling random operations inside of vmap. Please perform random "
    "operations outside of vmap as a workaround"
)
NOT_THE_SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an "
    "issue with functorch"
)
_NOT_DIFFERENT = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear "
    "like same randomness. If this is necessary for your usage, please file an issue with "
    "functorch."
)


def check_allowed(call: Call) -> None:
    """Refuse to draw where the user has not said how."""
    if call.randomness == "refused":
        raise RuntimeError(_NEVER_RANDOM)
    if call.randomness == "error":
        raise RuntimeError(NO_RANDOM)


@rule(*DRAWS)
def draw(op: Op, call: Call, attrs: dict[str, Any]) -> Any:
    """Draws for each example, or one for all."""
    check_allowed(call)
    batched = any(d is not None for d in call.dims)
    if call.randomness == "same":
        if batched:
            raise RuntimeError(NOT_THE_SAME)
        return Same(apply(op, call.values, attrs))
    ndim = max(call.ndim(i) for i in range(len(call)))
    return apply(op, [padded(call.full(i), ndim) for i in range(len(call))], attrs)


def write_random(op: Op, call: Call, attrs: dict[str, Any], name: str) -> bool:
    """Fill the first input with draws, if that is what `op` does; whether it is."""
    if op.name not in DRAWS:
        return False
    check_allowed(call)
    if call.randomness == "same":
        if any(d is not None for d in call.dims[1:]):
            raise RuntimeError(NOT_THE_SAME)
        if not call.is_batched(0):
            apply_inplace(op, call.values[0], call.values[1:], attrs, name)
            return True
        one = run("select", call.front(0), dim=0, index=0).clone()
        apply_inplace(op, one, call.values[1:], attrs, name)
        apply_inplace(REGISTRY["copy"], call.front(0), (one,), name=name)
        return True
    if not call.is_batched(0):
        raise RuntimeError(_NOT_DIFFERENT)
    values = [call.full(i) for i in range(1, len(call))]
    apply_inplace(op, call.front(0), values, attrs, name)
    return True
