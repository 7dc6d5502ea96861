"""Copies of what views show: ``view_copy`` and its like, derived from the views.

Each is the view's forward with its result copied, and the view's rules.  PyTorch names its node
after the view's, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew.op import REGISTRY, derive, op
from clew.ops.rules import wrap_dim

COPIED = {
    "alias": "function",
    "as_strided": "",
    "diagonal": "function",
    "expand": "function",
    "permute": "function",
    "select": "function",
    "slice": "function",
    "split": "",
    "split_with_sizes": "function",
    "squeeze_all": "",
    "squeeze_dim": "",
    "squeeze_dims": "",
    "t": "function",
    "transpose": "function",
    "unbind": "function",
    "unfold": "function",
    "unsqueeze": "function",
    "view": "",
    "view_as_real": "function",
}
"""The views that have such a copy, and where it is published."""


def _copying(view: Callable[..., Any]) -> Callable[..., Any]:
    def forward(*inputs: Any, **attrs: Any) -> Any:
        seen = view(*inputs, **attrs)
        if isinstance(seen, (tuple, list)):
            return tuple(np.array(part, order="C") for part in seen)
        return np.array(seen, order="C")

    return forward


for _name, _where in COPIED.items():
    _view = REGISTRY[_name]
    derive(
        _view, f"{_name}_copy", _copying(_view.forward), view=False, aliases=(), inplace=False,
        node_name=_view.node_name + "_copy", publish=(_where,) if _where else (),
        doc=f"A copy of what `{_name}` shows.",
    )  # fmt: skip


@op("narrow_copy(self; dim, start, length)", publish=(), jvp="linear")
def narrow_copy(x: Any, *, dim: int, start: int, length: int) -> Any:
    """A copy of `length` slices along `dim`, from `start`."""
    d = wrap_dim(dim, x.ndim)
    start += x.shape[d] if start < 0 else 0
    return x[(slice(None),) * d + (slice(start, start + length),)].copy()


@narrow_copy.grad("self")
def _(F: Any, grad: Any, self_shape: Any, *, dim: int, start: int, length: int) -> Any:
    d = wrap_dim(dim, len(self_shape))
    start += self_shape[d] if start < 0 else 0
    return F.slice_backward(grad, self_shape, d, start, start + length, 1)
