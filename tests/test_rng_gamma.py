"""Gamma, Dirichlet and binomial numbers: PyTorch's, to the bit, and its generator's state."""

import numpy as np
import pytest

from clew import rng

SHAPES = [0.0, 1e-3, 0.05, 0.3, 1.0, 1.5, 2.2, 10.0, 1000.0] * 20
EACH = pytest.mark.parametrize("dtype", ["float32", "float64"])


class Pair:
    """clew's and PyTorch's generator from one seed."""

    def __init__(self, seed=5):
        self.torch = pytest.importorskip("torch")
        self.ours = rng.Generator().manual_seed(seed)
        self.theirs = self.torch.Generator().manual_seed(seed)

    def check(self, ours, theirs):
        np.testing.assert_array_equal(ours, theirs.numpy())
        assert ours.dtype == theirs.numpy().dtype
        np.testing.assert_array_equal(self.ours.state_array(), self.theirs.get_state().numpy())


@EACH
def test_standard_gamma(dtype):
    pair = Pair()
    shapes = np.array(SHAPES, dtype).reshape(9, -1)
    theirs = pair.torch._standard_gamma(pair.torch.tensor(shapes), generator=pair.theirs)
    pair.check(rng.standard_gamma(shapes, pair.ours), theirs)


def test_standard_gamma_uses_the_spare_normal():
    pair = Pair()
    rng.normal_(np.empty(3), generator=pair.ours)
    pair.torch.empty(3, dtype=pair.torch.float64).normal_(generator=pair.theirs)
    shapes = np.array([2.0, 3.0])
    theirs = pair.torch._standard_gamma(pair.torch.tensor(shapes), generator=pair.theirs)
    pair.check(rng.standard_gamma(shapes, pair.ours), theirs)


@EACH
def test_dirichlet(dtype):
    pair = Pair()
    concentrations = np.array(SHAPES[1:9] * 3, dtype).reshape(2, 3, 4)
    theirs = pair.torch._sample_dirichlet(pair.torch.tensor(concentrations), generator=pair.theirs)
    pair.check(rng.dirichlet(concentrations, pair.ours), theirs)


@EACH
def test_binomial(dtype):
    pair = Pair()
    counts = np.array([0, 1, 5, 20, 40, 100, 1000] * 30, dtype)
    p = np.random.default_rng(0).uniform(size=counts.size).astype(dtype)
    p[:4] = 0, 1, 1, 0
    theirs = pair.torch.binomial(
        pair.torch.tensor(counts), pair.torch.tensor(p), generator=pair.theirs
    )
    pair.check(rng.binomial(counts, p, pair.ours), theirs)


def test_binomial_broadcasts():
    counts, p = np.full((2, 1), 9.0), np.full(3, 0.4)
    assert rng.binomial(counts, p).shape == (2, 3)


@pytest.mark.parametrize(
    ("sample", "kernel"),
    [
        (rng.standard_gamma, "gamma_cpu"),
        (rng.dirichlet, "dirichlet"),
        (lambda x: rng.binomial(x, x), "binomial_cpu"),
    ],
)
def test_other_dtypes_are_refused(sample, kernel):
    with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for 'Half'"):
        sample(np.ones(2, np.float16))
