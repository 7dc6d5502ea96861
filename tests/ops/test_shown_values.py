"""What nodes show of what they saved, as torch's: names, types and values of ``_saved_*``.

And the page that lists how graphs differ.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import clew
from clew.op import Op
from ops.calls import Backward
from ops.samples import Sample, case_id, differentiable
from ops.test_like_torch import _OVERLOADS, KNOWN_GRAPHS, OPS, cases, run_torch
from ops.torch_calls import torch

_OTHER_NODES = (
    "fused_rms_norm-*", "rrelu_with_noise-evaluation", "index_put-number",
    "scaled_dot_product_flash_attention_for_cpu-bool_mask",
)  # fmt: skip

_SIZES = "clew's rule reads a size that torch's knows from elsewhere"

KNOWN_SHOWN: dict[str, str] = {
    **{f"{name}-*": _SIZES for name in (
        "bernoulli_each", "block_diag", "cat", "channel_shuffle", "fft_c2r", "fft_r2c", "permute",
        "put",
    )},
    **{f"{name}-*": KNOWN_GRAPHS[f"{name}-*"] for name in (
        "complex", "linalg_det", "linalg_slogdet", "linalg_solve_ex", "log_sigmoid",
        "multilabel_margin_loss",
    )},
    "convolution-*": "clew does not know the size of a bias that requires no grad",
    "mm-nothing_to_add": "strides of what is empty",
    "mm-empty": "strides of what is empty",
    "addmm-empty": "strides of what is empty",
}  # fmt: skip
"""Op and sample: why names or values of ``_saved_*`` differ from torch's."""


def rows_of_differences() -> list[str]:
    """The known differences of graphs as rows of the table in docs/differences.md."""
    reasons: dict[str, set[str]] = {}
    for pattern, why in (*KNOWN_GRAPHS.items(), *KNOWN_SHOWN.items()):
        reasons.setdefault(why, set()).add(pattern.rpartition("-")[0])
    return [
        f"| {', '.join(f'`{n}`' for n in sorted(ops))} | {why} |" for why, ops in reasons.items()
    ]


def test_the_page_lists_the_differences_of_graphs() -> None:
    page = Path(__file__).parents[2] / "docs" / "differences.md"
    table = page.read_text().partition("| op | difference |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = rows_of_differences()
    assert table.splitlines() == rows, "write into docs/differences.md:\n" + "\n".join(rows)


def test_known_differences_are_of_samples() -> None:
    names = [case_id(op, sample) for op, found in OPS.values() for sample in found]
    for pattern in KNOWN_SHOWN:
        assert any(fnmatch(name, pattern) for name in names), pattern


def is_same_node(op: Op, sample: Sample) -> bool:
    """Whether both record the same kind of node."""
    return not any(
        fnmatch(case_id(op, sample), pattern)
        for pattern, why in KNOWN_GRAPHS.items()
        if why == _OVERLOADS or pattern in _OTHER_NODES
    )


def shown(node: Any) -> dict[str, Any]:
    """What a node shows of its saved values by name, tensors as a word; and which are raw."""
    found: dict[str, Any] = {
        name: _plain(getattr(node, name)) for name in dir(node) if name.startswith("_saved_")
    }
    found["raw"] = sorted(name for name in dir(node) if name.startswith("_raw_saved_"))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(map(_plain, value))
    if isinstance(value, (clew.Tensor, torch.Tensor)):
        return "tensor", str(value.dtype), tuple(value.shape)
    if isinstance(value, int) and value >= 2**63:
        value -= 2**64  # torch shows negative numbers without their sign
    return type(value).__name__, str(value)


@cases(
    lambda op, sample: bool(differentiable(op, sample)) and is_same_node(op, sample), KNOWN_SHOWN
)
def test_shown_values(op: Op, sample: Sample) -> None:
    """Names, types and values of ``_saved_*``; the names for each input alone too.

    A size that only the rule of another input reads is not known then, and shown as empty.
    """
    every = differentiable(op, sample)
    for leaves in [every, *([i] for i in every if len(every) > 1)]:
        backward = Backward(op, sample, leaves)
        _, outputs = run_torch(op, sample, leaves)
        ours = shown(backward.outputs[0].grad_fn)
        theirs = shown(outputs[backward.places[0]].grad_fn)
        assert ours.keys() == theirs.keys()
        if leaves == every:
            assert ours == theirs


def test_a_number_is_shown_as_a_tensor() -> None:
    def run(e: Any) -> Any:
        x = e.tensor([1.0, 2.0], requires_grad=True)
        found = []
        for number in (2, 2.5, True, 1 + 2j):
            node = (x * number).grad_fn
            found.append([node._saved_other, node._saved_self])
        return found

    from twins import assert_same

    assert_same(run)


def test_hooks_may_be_put_on_a_saved_number() -> None:
    def run(e: Any) -> Any:
        x = e.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        y.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t + 1)
        y.sum().backward()
        return x.grad

    from twins import assert_same

    assert_same(run)
