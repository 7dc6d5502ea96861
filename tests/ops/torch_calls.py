"""How torch is called for what an op of clew does.

Most ops have the name and the parameters of one of torch's (sometimes behind an underscore); for
the others a function stands here.  Needs torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew
from clew.op import Op
from ops.samples import SEED, Sample

torch = pytest.importorskip("torch")
aten = torch.ops.aten

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _by_keyword(name: str) -> Callable[..., Any]:
    return lambda *inputs, **attrs: getattr(torch, name)(*inputs, **attrs)


def _upsample(name: str) -> Callable[..., Any]:
    def function(x: Any, output_size: Any, align_corners: bool, scales: Any) -> Any:
        corners = () if "nearest" in name else (align_corners,)
        return getattr(aten, name)(x, output_size, *corners, *scales)

    return function


def _copied(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that writes to its first argument, given a copy that is no leaf."""
    return lambda x, *others, **attrs: function(x.clone(), *others, **attrs)


def _ctc_loss(*inputs: Any, **attrs: Any) -> Any:
    """The losses; of the recursion torch leaves as the memory was what is behind a sample's end."""
    return aten._ctc_loss(*inputs, **attrs)[0], None


def _max_pool(dims: int) -> Callable[..., Any]:
    """The maxima and their places in the window; torch's are of the plane."""
    pool = getattr(aten, f"max_pool{dims}d_with_indices")

    def function(x: Any, **pooling: Any) -> Any:
        values, indices = pool(x, **pooling)
        places = torch.zeros_like(indices)
        for dim, where in enumerate(torch.unravel_index(indices, x.shape[-dims:])):
            kernel, stride, padding, dilation = (
                pooling[n][dim] for n in ("kernel_size", "stride", "padding", "dilation")
            )
            starts = torch.arange(values.shape[dim - dims]) * stride - padding
            starts = starts.reshape(-1, *(1,) * (dims - 1 - dim))
            places = places * kernel + (where - starts) // dilation
        return values, places.to(torch.uint8)

    return function


CALLS: dict[str, Callable[..., Any]] = {
    # overloads of one name
    "add_scaled": lambda x, y, alpha: torch.add(x, y, alpha=alpha),
    "sub_scaled": lambda x, y, alpha: torch.sub(x, y, alpha=alpha),
    "div": torch.div,
    "div_rounded": torch.div,
    "clamp_min_tensor": torch.clamp_min,
    "clamp_max_tensor": torch.clamp_max,
    "round": lambda x, decimals: torch.round(x, decimals=decimals) if decimals else torch.round(x),
    "pow": torch.pow,
    "pow_scalar": lambda x, exponent: torch.pow(x, exponent),
    "rpow": lambda x, base: torch.pow(base, x),
    "xlogy_of_number": torch.xlogy,
    "xlogy_with_number": torch.xlogy,
    "copysign_number": torch.copysign,
    "clamp_tensors": torch.clamp,
    "sort_stable": _by_keyword("sort"),
    **{f"{name}_all": getattr(torch, name) for name in ("max", "min", "median", "nanmedian")},
    **{f"{name}_dim": _by_keyword(name) for name in ("max", "min", "median", "nanmedian")},
    "sum_all": lambda x, dtype: torch.sum(x, dtype=dtype),
    "mean_all": lambda x, dtype: torch.mean(x, dtype=dtype),
    "prod_all": lambda x, dtype: torch.prod(x, dtype=dtype),
    "roll": torch.roll,
    "squeeze_all": torch.squeeze,
    "squeeze_dim": torch.squeeze,
    "squeeze_dims": torch.squeeze,
    "squeeze_dims_copy": torch.squeeze_copy,
    "lerp_number": torch.lerp,
    "as_strided": lambda x, size, stride, storage_offset, base: torch.as_strided(
        x, size, stride, storage_offset
    ),
    "as_strided_copy": lambda x, size, stride, storage_offset, base: torch.as_strided_copy(
        x, size, stride, storage_offset
    ),
    "squeeze_all_copy": torch.squeeze_copy,
    "squeeze_dim_copy": torch.squeeze_copy,
    "histogram_counts": lambda points, weight, *edges, density: torch.histogramdd(
        points, edges, weight=weight, density=density
    )[0],
    "frexp": torch.frexp,
    "to_dtype": lambda x, dtype: x.to(dtype, copy=True),
    # twins in place that have a node of their own
    "elu_inplace": _copied(aten.elu_),
    "celu_inplace": _copied(torch.celu_),
    **{
        f"{name}_inplace": _copied(getattr(torch, name + "_"))
        for name in (
            "acosh",
            "asinh",
            "atanh",
        )
    },
    "threshold_inplace": _copied(torch.threshold_),
    "leaky_relu_inplace": _copied(aten.leaky_relu_),
    "copy": _copied(lambda x, source: x.copy_(source)),
    "zero": _copied(lambda x: x.zero_()),
    # names and parameters of torch's own
    "ctc_loss": _ctc_loss,
    "nll_loss": lambda *inputs, reduction, ignore_index: aten.nll_loss_forward(
        *inputs, reduction, ignore_index
    ),
    "nll_loss_2d": lambda *inputs, reduction, ignore_index: aten.nll_loss2d_forward(
        *inputs, reduction, ignore_index
    ),
    "linalg_cholesky_ex": lambda a, caller, **attrs: torch.linalg.cholesky_ex(a, **attrs),
    "linalg_eig": lambda a, caller: torch.linalg.eig(a),
    "linalg_eigh": lambda a, UPLO: torch.linalg.eigh(a, UPLO),
    "multilabel_margin_loss": lambda *inputs, reduction: aten.multilabel_margin_loss_forward(
        *inputs, reduction
    ),
    "searchsorted": lambda sequence, values, sorter, **attrs: torch.searchsorted(
        sequence, values, sorter=sorter, **attrs
    ),
    "softmax_backward": lambda grad, y, dim: aten._softmax_backward_data(grad, y, dim, y.dtype),
    "log_softmax_backward": lambda grad, y, dim: aten._log_softmax_backward_data(
        grad, y, dim, y.dtype
    ),
    "native_group_norm": lambda x, w, b, group, eps: aten.native_group_norm(
        x, w, b, x.shape[0], x.shape[1], x.shape[2:].numel(), group, eps
    ),
    "fused_rms_norm": lambda x, w, normalized_shape, eps: aten._fused_rms_norm(
        x, normalized_shape, w, eps
    ),
    "max_pool2d_with_places": _max_pool(2),
    "max_pool3d_with_places": _max_pool(3),
    "max_unpool3d": lambda x, indices, output_size: aten.max_unpool3d(
        x, indices, output_size, (1, 1, 1), (0, 0, 0)
    ),
    **{
        f"upsample_{ours}{n}d": _upsample(theirs.format(n=n))
        for ours, theirs, dims in (
            ("nearest", "upsample_nearest{n}d", (1, 2, 3)),
            ("nearest_exact", "_upsample_nearest_exact{n}d", (1, 2, 3)),
            ("linear", "upsample_linear{n}d", (1,)),
            ("linear", "upsample_bilinear{n}d", (2,)),
            ("linear", "upsample_trilinear{n}d", (3,)),
            ("cubic", "upsample_bicubic{n}d", (2,)),
        )
        for n in dims
    },
    # random numbers
    "normal": _copied(lambda x, mean, std, generator: x.normal_(mean, std, generator=generator)),
    "log_normal": _copied(
        lambda x, mean, std, generator: x.log_normal_(mean, std, generator=generator)
    ),
    "uniform": _copied(lambda x, low, high, generator: x.uniform_(low, high, generator=generator)),
    "random": _copied(lambda x, low, high, generator: x.random_(low, high, generator=generator)),
    "exponential": _copied(lambda x, **attrs: x.exponential_(**attrs)),
    "cauchy": _copied(lambda x, **attrs: x.cauchy_(**attrs)),
    "geometric": _copied(lambda x, **attrs: x.geometric_(**attrs)),
    "bernoulli_fill": _copied(lambda x, p, generator: x.bernoulli_(p, generator=generator)),
    "bernoulli_each": _copied(lambda x, p, generator: x.bernoulli_(p, generator=generator)),
    "bernoulli_number": lambda x, p, generator: torch.bernoulli(x, p, generator=generator),
    "normal_each": lambda mean, std, generator: torch.normal(mean, std, generator=generator),
}


OWN = {
    "as_strided_scatter", "conj", "dropout_by_mask", "full", "fw_primal", "imag", "real", "reshape",
    "reshape_alias", "square", "sum_to_size",
}  # fmt: skip
"""Ops that serve others, and whose likes in torch are called otherwise or are no ops."""


def torch_call(op: Op) -> Callable[..., Any] | None:
    """The function of (inputs, attributes), tensors of a variadic input one by one.

    None for an op of clew's own, such as most derivatives.
    """
    if op.name in CALLS:
        function = CALLS[op.name]
        return lambda inputs, attrs: function(*inputs, **attrs)
    if op.name in OWN or "_backward" in op.name:
        return None
    for name in (op.label, f"_{op.label}"):
        if hasattr(aten, name):
            function = getattr(aten, name)
            return lambda inputs, attrs: function(**_named(op, inputs), **attrs)
    return None


def _named(op: Op, inputs: list[Any]) -> dict[str, Any]:
    if not op.variadic_input:
        return dict(zip(op.inputs, inputs))
    single = len(op.inputs) - 1
    return {**dict(zip(op.inputs, inputs[:single])), op.inputs[-1]: inputs[single:]}


def torch_inputs(sample: Sample, leaves: list[int]) -> list[Any]:
    """The inputs as torch's tensors; those in `leaves` require grad."""
    return [
        torch.from_numpy(x.copy()).requires_grad_(i in leaves) if isinstance(x, np.ndarray) else x
        for i, x in enumerate(sample.inputs)
    ]


def torch_attrs(sample: Sample) -> dict[str, Any]:
    """The attributes with torch's dtypes, generators and numbers for reductions."""
    found = {}
    for name, value in sample.attrs.items():
        if isinstance(value, clew.dtype):
            value = getattr(torch, value.name)
        elif isinstance(value, clew.Generator):
            value = torch.Generator().manual_seed(SEED)
        elif name == "reduction":
            value = _REDUCTIONS[value]
        found[name] = value
    return found


def torch_kept(node: Any) -> dict[str, int]:
    """Bytes of the tensors that a node of torch keeps, by name."""
    kept = {}
    for attribute in dir(node):
        if attribute.startswith("_saved_"):
            value = getattr(node, attribute)
            tensors = [t for t in (value if isinstance(value, tuple) else (value,))
                       if isinstance(t, torch.Tensor)]  # fmt: skip
            if tensors:
                kept[attribute.removeprefix("_saved_")] = sum(t.nbytes for t in tensors)
    return kept
