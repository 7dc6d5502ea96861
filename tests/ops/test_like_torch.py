"""Ops against torch on their samples: results, gradients, and what the graph says of itself.

Where the two are known to differ, `KNOWN_RESULTS` or `KNOWN_GRAPHS` says so, and the test fails
when the difference is gone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

import pytest

from clew.op import Op
from ops.calls import Backward, Forward, assert_close, directions, values
from ops.samples import Sample, case_id, differentiable, load
from ops.torch_calls import torch, torch_attrs, torch_call, torch_inputs, torch_kept

forward_ad = torch.autograd.forward_ad

OPS = load()

_OVERLOADS = "torch has two nodes here, for a tensor and for a number (or an option)"
_FACTORS = "torch keeps the factors of the matrix, which clew finds again"
_PLACES = "clew keeps places of maxima in their windows, one byte each, and torch in the plane"
_NO_RULE = "a node without derivative: torch gives it edges only for what requires grad"

KNOWN_RESULTS: dict[str, str] = {
    "celu-variant2": "torch rounds 1 / alpha to float32",
    "celu_inplace-variant2": "torch rounds 1 / alpha to float32",
    "hardsigmoid-usual": "torch multiplies by a sixth rounded to float32",
    "hardsigmoid-0-d": "torch multiplies by a sixth rounded to float32",
    "standard_gamma-usual": "torch's derivative is an approximation, to four places",
    "standard_gamma-0-d": "torch's derivative is an approximation, to four places",
    "standard_gamma_grad-usual": "torch's derivative is an approximation, to four places",
    "standard_gamma_grad-0-d": "torch's derivative is an approximation, to four places",
    "dirichlet_grad-usual": "torch's derivative is an approximation, to seven places",
    "rrelu_with_noise-usual": "torch draws the noise in this function",
    "rrelu_with_noise-0-d": "torch draws the noise in this function",
    "rrelu_with_noise-evaluation": "torch draws the noise in this function",
    "pixel_shuffle-empty": "torch gives the gradient another shape, and refuses it",
    "pixel_unshuffle-empty": "torch gives the gradient another shape, and refuses it",
    "scaled_dot_product_flash_attention_for_cpu-bool_mask": "torch converts the mask before",
    "index_put-number": "torch makes a tensor of the number before",
    "convolution-complex": "torch makes several real ones of it before",
}
"""Op and sample: why results or gradients differ from torch's."""

KNOWN_GRAPHS: dict[str, str] = {
    "normal_each-number": _OVERLOADS,
    "standard_gamma_grad-*": _NO_RULE,
    "mul-number": "torch keeps a number as a tensor",
    "div-number": "torch keeps a number as a tensor",
    "div_rounded-number": "torch keeps a number as a tensor",
    "complex-*": "torch keeps the parts, which no rule needs",
    "log_sigmoid-*": "torch keeps exp(-abs(self)) too",
    "linalg_det-*": _FACTORS,
    "linalg_slogdet-*": _FACTORS,
    "linalg_solve_ex-*": _FACTORS,
    "multilabel_margin_loss-*": "torch keeps too which classes the targets name",
    "softmax_backward-*": "torch keeps an input that no rule needs",
    "log_softmax_backward-*": "torch keeps an input that no rule needs",
    "fused_rms_norm-*": "torch composes it of other ops on the CPU",
    "rrelu_with_noise-evaluation": "torch draws the noise in this function",
    "scaled_dot_product_flash_attention_for_cpu-bool_mask": "torch converts the mask before",
    "convolution-complex": KNOWN_RESULTS["convolution-complex"],
    "index_put-number": "torch makes a tensor of the number before",
    **{f"max_pool{n}d_with_places-{name}": _PLACES for n in (2, 3)
       for name in ("usual", "overlapping", "ceiling", "unbatched")},
}  # fmt: skip
"""Op and sample: why nodes, edges or what is kept differ from torch's."""


_RULE_OF_CLEW = "torch has no rule for tangents"
_STATISTICS = "torch gives the statistics tangents too"

KNOWN_TANGENTS: dict[str, str] = {
    **{k: v for k, v in KNOWN_RESULTS.items() if k.startswith(("celu", "hardsig", "rrelu"))},
    "index_put-number": KNOWN_RESULTS["index_put-number"],
    "convolution-complex": KNOWN_RESULTS["convolution-complex"],
    "scaled_dot_product_flash_attention_for_cpu-*": _RULE_OF_CLEW,
    "standard_gamma-*": _RULE_OF_CLEW,
    "grid_sampler_*": _RULE_OF_CLEW,
    "cdist-*": _RULE_OF_CLEW,
    "multi_margin_loss-*": _RULE_OF_CLEW,
    "multilabel_margin_loss-*": _RULE_OF_CLEW,
    "cholesky-*": _RULE_OF_CLEW,
    "index_reduce-*": _RULE_OF_CLEW,
    "native_group_norm-*": _STATISTICS,
    "fused_rms_norm-*": _STATISTICS,
    "logcumsumexp-empty": "torch refuses a tangent without elements",
    "normal_each-broadcast": "torch gives the tangent another shape, and refuses it",
    "pixel_unshuffle-empty": "torch gives the tangent another shape",
    "scatter_reduce-prod*": "torch gives no tangent",
    "scatter_reduce-zeros*": "torch gives no tangent",
    "cholesky_inverse-usual": "torch reads the tangent of the triangle that it does not read",
    "cholesky_inverse-upper": "torch reads the tangent of the triangle that it does not read",
}
"""Op and sample: why tangents differ from torch's."""


FREE = {
    "linalg_det-singular": "whether rounding leaves the matrix singular, and then torch gives 0",
    "linalg_eig-*": "the size and phase of an eigenvector",
    "linalg_eigh-*": "the sign of an eigenvector",
    "linalg_svd-*": "the signs of a pair of singular vectors",
    "multilabel_margin_loss-empty": "torch leaves the result as the memory was",
}
"""Op and sample whose results are not determined, and what is free."""


def cases(wanted: Callable[[Op, Sample], bool], known: dict[str, str]) -> Any:
    """Parametrise a test by the samples of ops that torch has; known differences must be there."""
    parameters = []
    for op, found in OPS.values():
        if torch_call(op) is None:
            continue
        for sample in found:
            name = case_id(op, sample)
            why = [reason for pattern, reason in known.items() if fnmatch(name, pattern)]
            marks = [pytest.mark.xfail(strict=True, reason=why[0])] if why else []
            if wanted(op, sample):
                parameters.append(pytest.param(op, sample, id=name, marks=marks))
    return pytest.mark.parametrize("op, sample", parameters)


def run_torch(op: Op, sample: Sample, leaves: list[int]) -> tuple[list[Any], tuple[Any, ...]]:
    """The inputs and the outputs of torch's function."""
    inputs = torch_inputs(sample, leaves)
    function = torch_call(op)
    assert function is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = function(inputs, torch_attrs(sample))
    return inputs, tuple(found) if isinstance(found, (tuple, list)) else (found,)


def test_every_published_op_is_compared() -> None:
    missing = [name for name, (op, _) in OPS.items() if op.publish and torch_call(op) is None]
    assert missing == [], "say in torch_calls.py what torch calls it"


def test_known_differences_are_of_samples() -> None:
    names = [case_id(op, sample) for op, found in OPS.values() for sample in found]
    for pattern in (*KNOWN_RESULTS, *KNOWN_GRAPHS, *KNOWN_TANGENTS, *FREE):
        assert any(fnmatch(name, pattern) for name in names), pattern


def is_determined(op: Op, sample: Sample) -> bool:
    return not any(fnmatch(case_id(op, sample), pattern) for pattern in FREE)


@cases(is_determined, KNOWN_RESULTS)
def test_results_and_gradients(op: Op, sample: Sample) -> None:
    leaves = [] if sample.refuses else differentiable(op, sample)
    inputs, outputs = run_torch(op, sample, leaves)
    for ours, theirs in zip(values(op, sample), outputs, strict=True):
        if ours is not None and theirs is not None:
            array = theirs.numpy(force=True)
            assert (ours.shape, ours.dtype) == (array.shape, array.dtype)
            assert_close(ours, array, "result", 1e-9)
    if not leaves:
        return
    backward = Backward(op, sample, leaves)
    found = torch.autograd.grad(
        [outputs[p] for p in backward.places],
        [inputs[i] for i in leaves],
        [torch.from_numpy(c._array) for c in backward.cotangents],
        allow_unused=True,
    )
    for ours, theirs in zip(backward.grads(), found, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert_close(ours._array, theirs.numpy(force=True), "gradient", 1e-9)


@cases(lambda op, sample: bool(differentiable(op, sample)), KNOWN_GRAPHS)
def test_graph(op: Op, sample: Sample) -> None:
    """Name, edges, and names and bytes of what is kept, for each input alone and for all."""
    every = differentiable(op, sample)
    for leaves in [every, *([i] for i in every if len(every) > 1)]:
        backward = Backward(op, sample, leaves)
        node = backward.outputs[0].grad_fn
        _, outputs = run_torch(op, sample, leaves)
        theirs = outputs[backward.places[0]].grad_fn
        assert node.name() == theirs.name()
        assert [f is None for f, _ in node.next_functions] == [
            f is None for f, _ in theirs.next_functions
        ]
        kept: dict[str, int] = {}
        for name, saved in node.kept():
            kept[name] = kept.get(name, 0) + saved.tensor._array.nbytes
        assert kept == torch_kept(theirs)


@cases(
    lambda op, sample: (
        is_determined(op, sample) and bool(differentiable(op, sample)) and not sample.refuses
    ),
    KNOWN_TANGENTS,
)
def test_tangents(op: Op, sample: Sample) -> None:
    """Forward mode gives what torch's gives, or refuses as torch's does."""
    leaves = differentiable(op, sample)
    tangents = directions([sample.inputs[i] for i in leaves], seed=6)
    inputs = torch_inputs(sample, [])
    function = torch_call(op)
    assert function is not None
    with torch.no_grad(), forward_ad.dual_level(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, tangent in zip(leaves, tangents):
            inputs[i] = forward_ad.make_dual(inputs[i], torch.from_numpy(tangent))
        try:
            found = function(inputs, torch_attrs(sample))
        except NotImplementedError:
            assert op.jvp is None
            return
        outputs = found if isinstance(found, (tuple, list)) else (found,)
        theirs = [forward_ad.unpack_dual(o).tangent for o in outputs]
    for ours, other in zip(Forward(op, sample, leaves, tangents).tangents, theirs, strict=True):
        if ours is not None or other is not None:
            assert ours is not None and other is not None
            assert_close(ours, other.numpy(force=True), "tangent", 1e-9)
