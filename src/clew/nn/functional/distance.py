"""Vectors of unit length."""

from __future__ import annotations

from clew.functions.calls import Tensor
from clew.outputs import write_out


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """`input` divided by its p-norm along `dim`, which counts as `eps` at least."""
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    result = input / length
    return result if out is None else write_out(out, result)
