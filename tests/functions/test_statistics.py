"""Order, statistics and searching: as torch's."""

import pytest

import clew
from functions.expressions import assert_as_torch

STATISTICS = """
t.var(x(4, 3))
t.var(x(4, 3), 1, True, True)
t.var(x(4, 3), False)
t.var(x(4, 3), 0, correction=2.5, keepdim=True)
t.var(x(4, 3), 0, correction=5)
t.var(n(4))
t.var(c(4, 3), 0)
t.std(x(4, 3), axis=0)
t.std(x(4, 3), (0, 1))
t.std(x(1, 3), 0)
t.std(x(3) * 0, 0)
t.var_mean(x(4, 3), 1)
t.std_mean(x(4, 3))
t.logsumexp(x(4, 3), (0, 1))
t.logsumexp(t.tensor([-inf, -inf]), 0)
t.logsumexp(n(4, 3), 1, True)
t.logsumexp(c(4, 3), 1)
t.nansum(x(4, 3), 0)
t.nansum(c(3))
t.count_nonzero(n(4, 3), 1)
t.aminmax(x(4, 3))
t.aminmax(x(4, 3), dim=1, keepdim=True)
t.aminmax(x(0))
t.median(x(4, 3))
t.median(x(4, 3), 0)
t.nanmedian(t.tensor([2, nan, 3, nan, 5, 6.0]))
t.median(x(0, 2), 0)
t.mode(n(5, 6), 1)
t.mode(x(0))
t.quantile(x(4, 3), 0.4, 1, True, interpolation="nearest")
t.quantile(x(4, 3), 1.5)
t.quantile(n(3), 0.5)
t.nanquantile(t.tensor([1, nan, 3.0]), 0.5)
t.dist(x(4, 3), x(3))
t.dist(x(4, 3), x(2))
t.renorm(x(4, 3), 2, 0, 1.0)
t.renorm(x(4, 3), -1, 0, 1.0)
t.bincount(t.tensor([1, 2, 2]), t.tensor([0.5, 1, 1]), 5)
t.bincount(t.tensor([-1]))
t.histc(x(20).detach(), 4)
t.histc(x(20).detach(), 4, 1, -1)
""".strip().splitlines()

ORDER = """
t.sort(x(4, 3), 0, True)
t.sort(n(12))
t.sort(n(20), descending=True, stable=True)
t.sort(t.tensor([2, nan, 1.0]))
t.sort(x(), 1)
t.sort(c(3))
t.argsort(n(4, 3), dim=0)
t.msort(x(4, 3))
t.topk(x(4, 3), 2)
t.topk(x(100), 3, largest=False)
t.topk(x(4, 3), 4)
t.topk(n(3) > 2, 1)
t.kthvalue(x(4, 3), 2)
t.kthvalue(x(4, 3), 5)
t.cumsum(x(4, 3), 1)
t.cumsum(n(4) > 2, 0)
t.cumsum(x(4, 3))
t.cumprod(x(4, 3), 0)
t.cumprod(t.tensor([1, 0, 2, 0, 3.0], requires_grad=True), 0)
t.cummax(t.tensor([1, 3, 2, 3, nan, 5, nan]), 0)
t.cummin(n(4, 3), 1)
t.logcumsumexp(x(4, 3), 0)
t.logcumsumexp(n(3), 0)
t.diff(x(4, 3), 2, 0)
t.diff(x(4, 3), prepend=x(2))
t.diff(x(4, 3), 1, 0, x(1, 3), x(2, 3))
t.diff(n(4) > 2)
""".strip().splitlines()

SEARCH = """
t.unique(n(9))
t.unique(n(3, 4), return_inverse=True, return_counts=True)
t.unique(n(4, 1) % 2, dim=0, return_inverse=True)
t.unique(t.tensor([nan, nan, 1]))
t.unique(n(2, 0), dim=0)
t.unique(x(3).detach())
t.unique_consecutive(t.tensor([1, 1, 2, 2, 1]), True, True)
t.unique_consecutive(t.tensor([[1, 1], [1, 1], [2, 1]]), dim=0)
t.searchsorted(t.tensor([1, 2, 3]), t.tensor([2, 5]), right=True)
t.searchsorted(t.tensor([[1, 2], [3, 4]]), t.tensor([[2], [3]]), out_int32=True)
t.searchsorted(t.tensor([3, 1, 2]), 2, sorter=t.tensor([1, 2, 0]))
t.searchsorted(t.tensor([1, 2]), t.tensor([1]), right=True, side="left")
t.searchsorted(t.tensor([[1, 2]]), 1)
t.bucketize(t.tensor([2.5, 5]), t.tensor([1, 2, 3]))
t.bucketize(t.tensor([1]), t.tensor([[1]]))
t.isin(t.tensor([1, 2, 3]), t.tensor([2, 5]), invert=True)
t.isin(2, t.tensor([1, 2]))
t.equal(n(3), n(3))
t.equal(x(3), 3)
t.allclose(x(3), x(3).float())
t.allclose(x(3), x(3), rtol=-1)
t.allclose(t.tensor([nan]), t.tensor([nan]), equal_nan=True)
""".strip().splitlines()

NUMERIC = """
t.logaddexp(x(3), x(2, 3))
t.logaddexp(x(3), 1.0)
t.logaddexp2(n(3), n(3))
t.xlogy(x(3), x(3).abs())
t.xlogy(2.0, x(3).abs())
t.xlogy(x(3), 2.0)
t.heaviside(x(3).detach(), x(3).float().detach())
t.copysign(x(3), -2)
t.nextafter(x(3), x(3))
t.gcd(n(3), n(3))
t.lcm(x(3), x(3))
t.float_power(x(3).abs().float(), 2)
t.sinc(x(3))
t.deg2rad(n(3))
t.special.ndtr(x(3).detach())
t.special.log_ndtr(x(3) * 30)
t.special.entr(x(3))
t.special.erfcx(x(3))
t.special.xlog1py(2.0, x(3).abs())
t.polygamma(2, x(3).abs())
t.polygamma(-1, x(3))
t.mvlgamma(x(3).abs() + 2, 3)
t.igamma(t.tensor([0, 0, 1, -1, inf, 2, 0.5, 90]), t.tensor([0, 1, 0, 1, inf, inf, 0.2, 80]))
t.igammac(t.tensor([0, 1, 2.5, 1e-3]), t.tensor([1, 0, 30, 5.0]))
t.igamma(x(3).detach().abs(), x(3).abs())
t.logit(x(3).sigmoid(), 0.1)
""".strip().splitlines()

COMPOSED = """
t.gradient(x(4, 3))
t.gradient(x(4, 3), dim=0, spacing=2.0, edge_order=2)
t.gradient(x(4), spacing=(t.tensor([0, 1, 3, 4.0]).double(),), edge_order=2)
t.gradient(x(4, 3), spacing=(1.0,))
t.gradient(x(1))
5 / x(3)
x(3).square()
t.quantile(x(4, 3), 0.4)
t.quantile(x(4, 3), 0.4, 0, interpolation="midpoint")
t.nanmean(x(4, 3), 1)
t.nanmean(n(3))
t.cov(x(4, 3))
t.cov(x(4, 3), correction=0, fweights=t.tensor([1, 2, 3]))
t.cov(x(4, 3), aweights=t.tensor([0.1, 0.2, 0.3]).double())
t.cov(x(4, 3), fweights=t.tensor([1, 2]))
t.corrcoef(x(4, 3))
t.corrcoef(x(2, 2, 2))
t.trapezoid(x(4, 3), dx=2, dim=0)
t.trapezoid(x(4, 3), x(3))
t.trapezoid(x(4, 3), x(2))
t.cumulative_trapezoid(x(4, 3), x(4), dim=0)
t.quantile(x(4, 3), t.tensor([0.1, 0.5]).double(), 0).clone()
""".strip().splitlines()


@pytest.mark.parametrize("call", [*STATISTICS, *ORDER, *SEARCH, *NUMERIC])
def test_as_torch(call):
    assert_as_torch(call)


@pytest.mark.parametrize("call", COMPOSED)
def test_values_as_torch(call):
    """Where torch multiplies by numbers inside, its nodes have other names."""
    assert_as_torch(call, graph=False)


def test_variance_of_one_element_warns():
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert clew.var(clew.ones(1)).isnan()


def test_distinct_elements_have_no_derivative():
    x = clew.ones(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="the derivative for '_unique2'"):
        clew.unique(x).sum().backward()


def test_named_results():
    found = clew.sort(clew.tensor([2.0, 1.0]))
    assert found.values.tolist() == [1, 2]
    assert found.indices.tolist() == [1, 0]


def test_out_of_a_pair():
    out = (clew.empty(2), clew.empty(2, dtype=clew.int64))
    found = clew.topk(clew.tensor([1.0, 3.0, 2.0]), 2, out=out)
    assert found.values is out[0]
    assert out[0].tolist() == [3, 2]
    assert out[1].tolist() == [1, 2]
