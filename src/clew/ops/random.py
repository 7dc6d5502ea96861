"""Ops that draw random numbers, and dropout, which is given its draws.

Samples that overwrite a tensor leave nothing of it, so its gradient is zero; there is none through
the parameters of a distribution either.  The streams are those of ``clew.rng``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew import rng
from clew.op import Op, op
from clew.packing import BITS


def _filling(
    signature: str, fill: Callable[..., np.ndarray], doc: str, **options: Any
) -> Op:  # fmt: skip
    """An op whose in-place twin fills a tensor with samples."""

    def write(x: Any, **attrs: Any) -> None:
        fill(x, **attrs)

    def forward(x: Any, **attrs: Any) -> Any:
        return fill(rng.dense_like(x), **attrs)

    declared: Op = op(
        signature, forward, write=write, inplace=True, publish=(), doc=doc,
        self=lambda F, grad: F.zeros_like(grad), **options,
    )  # fmt: skip
    return declared


normal = _filling(
    "normal(self; mean=0.0, std=1.0, *, generator=None)",
    lambda x, *, mean, std, generator: rng.normal_(x, float(mean), float(std), generator),
    "Fill with normal numbers.",
)
log_normal = _filling(
    "log_normal(self; mean=1.0, std=2.0, *, generator=None)",
    lambda x, *, mean, std, generator: rng.log_normal_(x, float(mean), float(std), generator),
    "Fill with exponentials of normal numbers of the given mean and deviation.",
)
exponential = _filling(
    "exponential(self; lambd=1.0, *, generator=None)",
    lambda x, *, lambd, generator: rng.exponential_(x, float(lambd), generator),
    "Fill with exponential numbers of rate `lambd`.",
)
cauchy = _filling(
    "cauchy(self; median=0.0, sigma=1.0, *, generator=None)",
    lambda x, *, median, sigma, generator: rng.cauchy_(x, float(median), float(sigma), generator),
    "Fill with Cauchy numbers.",
)
geometric = _filling(
    "geometric(self; p, *, generator=None)",
    lambda x, *, p, generator: rng.geometric_(x, float(p), generator),
    "Fill with the numbers of trials, of success `p` each, up to the first success.",
)
uniform = _filling(
    "uniform(self; low, high, generator)",
    lambda x, *, low, high, generator: rng.uniform_(x, float(low), float(high), generator),
    "Fill with uniform numbers in ``[low, high)``.",
)
random = _filling(
    "random(self; low, high, generator)",
    lambda x, *, low, high, generator: rng.random_(x, low, high, generator),
    "Fill with integers in ``[low, high)``.",
)
bernoulli_fill = _filling(
    "bernoulli_fill(self; p, generator)",
    lambda x, *, p, generator: rng.bernoulli_(x, float(p), generator),
    "Fill with ones of probability `p`, else zeros.",
    label="bernoulli", node="BernoulliBackward2",
)  # fmt: skip


def _write_bernoulli(x: Any, p: Any, *, generator: Any) -> None:
    rng.bernoulli_(x, p, generator)


@op("bernoulli_each(self, p; generator)", publish=(), inplace=True, write=_write_bernoulli,
    label="bernoulli", node="BernoulliBackward1")  # fmt: skip
def bernoulli_each(x: Any, p: Any, *, generator: Any) -> Any:
    """Fill with ones, each with its own probability in `p`, else zeros."""
    return rng.bernoulli_(rng.dense_like(x), p, generator)


@bernoulli_each.grad("self")
def _(F: Any, grad: Any) -> Any:
    return F.zeros_like(grad)


@bernoulli_each.grad("p")
def _(F: Any, grad: Any, p_shape: Any) -> Any:
    return F.full(grad, size=p_shape, value=0)


@op("bernoulli(self; *, generator=None)", publish=(), self=lambda F, grad: F.zeros_like(grad))
def bernoulli(x: Any, *, generator: Any) -> Any:
    """Ones, each with the probability that stands in its place in `self`, else zeros."""
    return rng.bernoulli_(rng.dense_like(x), x, generator)


@op("bernoulli_number(self; p, generator)", publish=(), node="torch::autograd::NotImplemented")
def bernoulli_number(x: Any, *, p: Any, generator: Any) -> Any:
    """Ones of probability `p`, else zeros, in the shape and type of `self`, in order."""
    return rng.bernoulli_(np.empty(x.shape, x.dtype), float(p), generator)


@bernoulli_number.grad("self")
def _(F: Any, grad: Any) -> Any:
    raise RuntimeError("derivative for aten::bernoulli is not implemented")


@op("normal_each(mean, std; generator)", publish=(), node="NormalBackward3")
def normal_each(mean: Any, std: Any, *, generator: Any) -> Any:
    """Normal numbers with a mean and a deviation for each, at least one of them a tensor."""
    return rng.normal(mean, std, generator)


@normal_each.grad("mean")
def _(F: Any, grad: Any, mean_shape: Any) -> Any:
    return F.full(grad, size=mean_shape, value=0)


@normal_each.grad("std")
def _(F: Any, grad: Any, std_shape: Any) -> Any:
    return F.full(grad, size=std_shape, value=0)


@op("poisson(self; generator=None)", publish=("function",),
    self=lambda F, grad: F.zeros_like(grad))  # fmt: skip
def poisson(x: Any, *, generator: Any) -> Any:
    """Poisson numbers, each with the rate that stands in its place in `self`."""
    return rng.poisson(x, generator)


@op("dropout_by_mask(self, mask; scale)", publish=(), inplace=True, label="dropout",
    node="MulBackward0", jvp="bilinear", packings={"mask": BITS})  # fmt: skip
def dropout_by_mask(x: Any, mask: Any, *, scale: float) -> Any:
    """`self` times `scale` where `mask` is true, times 0 elsewhere; the two broadcast."""
    factor = np.multiply(mask, x.dtype.type(scale))
    alike = factor.ndim and factor.shape == x.shape and factor.strides == x.strides
    return np.multiply(x, factor, out=factor if alike else None)


# A bool mask stands for the floating-point factor that PyTorch keeps, in a fraction of the bytes.
@dropout_by_mask.grad("self", "mask")
def _(F: Any, grad: Any, mask: Any, *, scale: float, need: Any) -> Any:
    return [F.dropout_by_mask(grad, mask, scale=scale), None]
