"""The random streams against PyTorch's: every bit of the samples and of the generator's state.

Comparing the states after each call shows that both engines consumed the same words and keep the
same spare normal number, so whatever is drawn next agrees as well.
"""

import ml_dtypes
import numpy as np
import pytest

from clew import rng

SIZES = (0, 1, 2, 15, 16, 17, 31, 32, 33, 100, 1000, 100003)
SEEDS = (0, 1, 2**32 + 5, -7)
FLOATS = ("float32", "float64", "float16", "bfloat16")
NUMPY_DTYPES = {"bfloat16": ml_dtypes.bfloat16, "bool": np.bool_}


def numpy_dtype(name):
    return np.dtype(NUMPY_DTYPES.get(name, name))


def bits(array):
    """An ndarray or a torch tensor as integers, equal exactly where the values' bits are."""
    if not isinstance(array, np.ndarray):
        torch = pytest.importorskip("torch")
        array = array.contiguous()
        array = array.view(torch.int16) if array.dtype == torch.bfloat16 else array
        array = array.numpy()
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


class Pair:
    """clew's and PyTorch's generator, side by side."""

    def __init__(self, torch):
        self.torch = torch
        self.ours, self.theirs = rng.Generator(), torch.Generator()

    def seed(self, seed):
        self.ours.manual_seed(seed)
        self.theirs.manual_seed(seed)
        return self

    def empty(self, shape, dtype, layout="contiguous"):
        """Two uninitialised arrays, of the same strides."""
        wide = (*shape[:-1], 2 * shape[-1])
        ours = np.empty(wide if layout == "sliced" else shape, numpy_dtype(dtype))
        theirs = self.torch.empty(ours.shape, dtype=getattr(self.torch, dtype))
        if layout == "sliced":
            return ours[..., ::2], theirs[..., ::2]
        if layout == "permuted":
            axes = (1, 2, 0) if len(shape) == 3 else tuple(reversed(range(len(shape))))
            return ours.transpose(axes), theirs.permute(axes)
        return ours, theirs

    def same(self, ours, theirs):
        np.testing.assert_array_equal(bits(ours), bits(theirs))
        np.testing.assert_array_equal(self.ours.state_array(), self.theirs.get_state().numpy())


@pytest.fixture
def pair():
    torch = pytest.importorskip("torch")
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("PyTorch rounds otherwise on processors without fused multiply-add")
    return Pair(torch)


# Each sampler as a function of (array or tensor, generator), for both sides.
CONTINUOUS = {
    "uniform": (
        lambda x, g: rng.uniform_(x, generator=g),
        lambda x, g: x.uniform_(generator=g),
    ),
    "uniform bounds": (
        lambda x, g: rng.uniform_(x, -0.37, 1.91, g),
        lambda x, g: x.uniform_(-0.37, 1.91, generator=g),
    ),
    "uniform narrow": (  # in half precision many samples round to the excluded bound
        lambda x, g: rng.uniform_(x, 1.0, 1.01, g),
        lambda x, g: x.uniform_(1.0, 1.01, generator=g),
    ),
    "uniform point": (
        lambda x, g: rng.uniform_(x, 3, 3, g),
        lambda x, g: x.uniform_(3, 3, generator=g),
    ),
    "normal": (
        lambda x, g: rng.normal_(x, generator=g),
        lambda x, g: x.normal_(generator=g),
    ),
    "normal scaled": (
        lambda x, g: rng.normal_(x, 0.3, 1.7, g),
        lambda x, g: x.normal_(0.3, 1.7, generator=g),
    ),
    "normal of no width": (
        lambda x, g: rng.normal_(x, -2, 0, g),
        lambda x, g: x.normal_(-2, 0, generator=g),
    ),
    "log-normal": (
        lambda x, g: rng.log_normal_(x, 0.2, 0.9, g),
        lambda x, g: x.log_normal_(0.2, 0.9, generator=g),
    ),
    "log-normal overflowing": (
        lambda x, g: rng.log_normal_(x, 700, 20, g),
        lambda x, g: x.log_normal_(700, 20, generator=g),
    ),
    "exponential": (
        lambda x, g: rng.exponential_(x, 1.7, g),
        lambda x, g: x.exponential_(1.7, generator=g),
    ),
    "cauchy": (
        lambda x, g: rng.cauchy_(x, 0.3, 1.7, g),
        lambda x, g: x.cauchy_(0.3, 1.7, generator=g),
    ),
}
DISCRETE = {
    "random": (
        lambda x, g: rng.random_(x, generator=g),
        lambda x, g: x.random_(generator=g),
    ),
    "random to": (
        lambda x, g: rng.random_(x, 0, 2, g),
        lambda x, g: x.random_(2, generator=g),
    ),
    "random from": (
        lambda x, g: rng.random_(x, 1, None, g),
        lambda x, g: x.random_(1, None, generator=g),
    ),
    "bernoulli": (
        lambda x, g: rng.bernoulli_(x, 0.3, g),
        lambda x, g: x.bernoulli_(0.3, generator=g),
    ),
    "bernoulli always": (
        lambda x, g: rng.bernoulli_(x, 1, g),
        lambda x, g: x.bernoulli_(1, generator=g),
    ),
    "bernoulli never": (
        lambda x, g: rng.bernoulli_(x, 0, g),
        lambda x, g: x.bernoulli_(0, generator=g),
    ),
    "geometric": (
        lambda x, g: rng.geometric_(x, 0.4, g),
        lambda x, g: x.geometric_(0.4, generator=g),
    ),
}
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")


DISCRETE_CASES = [(name, dtype) for name in DISCRETE for dtype in FLOATS + INTEGERS]
DISCRETE_CASES.remove(("geometric", "bool"))  # not a sampler of bools


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(pair, name, dtype):
    ours, theirs = CONTINUOUS[name]
    for seed in SEEDS:
        pair.seed(seed)
        for size in SIZES[:-1]:
            x, y = pair.empty((size,), dtype)
            pair.same(ours(x, pair.ours), theirs(y, pair.theirs))


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_large(pair, name, dtype):
    x, y = pair.seed(3).empty((SIZES[-1],), dtype)
    pair.same(CONTINUOUS[name][0](x, pair.ours), CONTINUOUS[name][1](y, pair.theirs))


@pytest.mark.parametrize(("name", "dtype"), DISCRETE_CASES)
def test_discrete(pair, name, dtype):
    ours, theirs = DISCRETE[name]
    for seed in SEEDS:
        pair.seed(seed)
        for size in SIZES:
            x, y = pair.empty((size,), dtype)
            pair.same(ours(x, pair.ours), theirs(y, pair.theirs))


@pytest.mark.parametrize("layout", ("sliced", "permuted"))
@pytest.mark.parametrize("shape", ((3,), (40,), (5, 7), (3, 4, 5), (2, 1, 9)))
@pytest.mark.parametrize("name", (*CONTINUOUS, *DISCRETE))
def test_strided_targets_are_filled_in_memory_order(pair, name, shape, layout):
    ours, theirs = (CONTINUOUS | DISCRETE)[name]
    for dtype in ("float32", "float64"):
        x, y = pair.seed(11).empty(shape, dtype, layout)
        pair.same(ours(x, pair.ours), theirs(y, pair.theirs))


def test_mixed_calls_stay_in_step(pair):
    calls = list((CONTINUOUS | DISCRETE).values())
    choose = np.random.default_rng(0)
    pair.seed(99)
    for _ in range(400):
        ours, theirs = calls[choose.integers(len(calls))]
        dtype = ("float32", "float64")[choose.integers(2)]
        layout = ("contiguous", "sliced")[choose.integers(2)]
        x, y = pair.empty((int(choose.integers(1, 40)),), dtype, layout)
        pair.same(ours(x, pair.ours), theirs(y, pair.theirs))


def test_new_arrays(pair):
    torch = pair.torch
    pair.seed(5)
    for dtype in (*FLOATS, "complex64", "complex128"):
        kind = getattr(torch, dtype)
        for size in ((), (3, 7), (33,)):
            ours = rng.rand(size, numpy_dtype(dtype), pair.ours)
            theirs = torch.rand(size, dtype=kind, generator=pair.theirs)
            if "complex" in dtype:
                ours, theirs = rng.target.real_view(ours), torch.view_as_real(theirs)
            pair.same(ours, theirs)
            ours = rng.randn(size, numpy_dtype(dtype), pair.ours)
            theirs = torch.randn(size, dtype=kind, generator=pair.theirs)
            if "complex" in dtype:
                ours, theirs = rng.target.real_view(ours), torch.view_as_real(theirs)
            pair.same(ours, theirs)


@pytest.mark.parametrize("layout", ("contiguous", "sliced", "permuted"))
@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
def test_complex_targets(pair, dtype, layout):
    pair.seed(41)
    for name in ("uniform", "normal scaled"):
        ours, theirs = CONTINUOUS[name]
        x, y = pair.empty((3, 4, 5), dtype, layout)
        ours, theirs = ours(x, pair.ours), theirs(y, pair.theirs)
        pair.same(rng.target.real_view(ours), pair.torch.view_as_real(theirs))


RANGES = (
    (0, 10),
    (-5, 3),
    (0, 2**28 - 1),
    (0, 2**28),
    (-(2**31), 2**31 - 1),
    (-(2**62), 2**62 + 12345),
    (-(2**63) + 1, 2**63 - 1),
    (-(2**63), 2**63 - 1),
)


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_randint_range_decides_the_word_size(pair, low, high):
    pair.seed(8)
    for size in (1, 7, 1000):
        theirs = pair.torch.randint(low, high, (size,), generator=pair.theirs)
        pair.same(rng.randint(low, high, (size,), generator=pair.ours), theirs)


@pytest.mark.filterwarnings("ignore:.*out of bounds:UserWarning")
@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    (
        ("float32", 0, 2**25 + 1),
        ("float32", 2**24 + 1, 2**24 + 4),
        ("float32", -(2**26) - 1, 2**30),
        ("float16", 0, 5001),
        ("float16", -2049, 65504),
        ("bfloat16", 257, 100_000),
        ("bfloat16", 0, 2**62),
        ("float64", 2**53 + 1, 2**60),
        ("float32", 100, None),
        ("bfloat16", 3, None),
        ("float64", -(2**63), None),
        ("bfloat16", -(2**63), None),
        ("int64", -(2**63), None),
        ("int64", -4, None),
        ("int16", -(2**15), None),
        ("uint16", 0, 60000),
        ("uint32", 9, None),
        ("uint64", 0, 2**63 - 1),
    ),
)
def test_random_with_bounds(pair, dtype, low, high):
    x, y = pair.seed(21).empty((500,), dtype)
    pair.same(rng.random_(x, low, high, pair.ours), y.random_(low, high, generator=pair.theirs))


def test_random_warns_when_a_float_misses_integers(pair):
    x, y = pair.empty((3,), "float16")
    with pytest.warns(UserWarning, match=r"to - 1 is out of bounds \[-\(2\^11\), 2\^11\]"):
        rng.random_(x, 0, 5000, pair.ours)
    with pytest.warns(UserWarning, match=r"to - 1 is out of bounds \[-\(2\^11\), 2\^11\]"):
        y.random_(0, 5000, generator=pair.theirs)
    pair.same(x, y)


@pytest.mark.parametrize("p_dtype", FLOATS)
@pytest.mark.parametrize("dtype", ("float32", "float64", "bool", "int64", "bfloat16"))
def test_bernoulli_with_a_probability_for_each(pair, dtype, p_dtype):
    torch = pair.torch
    probabilities = torch.linspace(0, 1, 7).to(getattr(torch, p_dtype))
    array = probabilities.view(torch.int16).numpy() if "float16" in p_dtype else probabilities
    array = np.asarray(array).view(numpy_dtype(p_dtype))
    pair.seed(2)
    for layout in ("contiguous", "sliced", "permuted"):
        x, y = pair.empty((7, 5, 7), dtype, layout)
        if layout == "permuted":
            x, y = x.swapaxes(1, 2), y.transpose(1, 2)
        rng.bernoulli_(x, array, pair.ours)
        y.bernoulli_(probabilities, generator=pair.theirs)
        pair.same(x, y)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", (0.0, 0.1, 0.5, 0.7, 1.0))
def test_dropout(pair, p, dtype):
    torch = pair.torch
    for layout in ("contiguous", "sliced", "permuted"):
        x, y = pair.empty((3, 4, 50), dtype, layout)
        y.fill_(1)
        with torch.random.fork_rng():
            torch.manual_seed(17)
            theirs = torch.nn.functional.dropout(y, p)
            pair.ours.manual_seed(17)
            ours = rng.dropout_noise(x, p, pair.ours)
            np.testing.assert_array_equal(bits(ours), bits(theirs))
            steps = np.array(ours.strides) // ours.itemsize
            assert p == 0 or tuple(steps) == theirs.stride()
            np.testing.assert_array_equal(pair.ours.state_array(), torch.get_rng_state().numpy())


@pytest.mark.parametrize("dtype", ("int64", "int32", "int8", "uint8", "float32", "bfloat16"))
def test_randperm(pair, dtype):
    pair.seed(4)
    for n in (0, 1, 2, 3, 10, 100, 127, *((1000, 100_003) if dtype == "int64" else ())):
        theirs = pair.torch.randperm(n, dtype=getattr(pair.torch, dtype), generator=pair.theirs)
        pair.same(rng.randperm(n, numpy_dtype(dtype), pair.ours), theirs)


def test_randperm_is_the_sequence_of_swaps():
    """Also with targets that a uniform draw makes rare: long chains, all to one place."""
    for n in (1, 2, 5, 64, 300):
        steps = np.arange(n)
        uniform = np.random.default_rng(n).integers(steps, n)
        for swaps in (steps, np.full(n, n - 1), np.minimum(steps + 1, n - 1), uniform):
            items = list(range(n))
            for i, j in enumerate(swaps.tolist()):
                items[i], items[j] = items[j], items[i]
            assert rng.selection._apply_swaps(swaps).tolist() == items


def test_randperm_of_very_many_items(monkeypatch):
    """PyTorch's other algorithm, which starts at 214 million items; replayed with few."""
    monkeypatch.setattr(rng.selection, "_MANY", 1000)
    ours = rng.randperm(20_000, generator=rng.Generator().manual_seed(6))
    words = rng.Generator().manual_seed(6).words64(20_000)
    items = []
    for i, word in enumerate(words.tolist()):
        items.append(i)
        j = word % (i + 1)
        items[i], items[j] = items[j], i
    assert ours.tolist() == items


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("replacement", (False, True))
def test_multinomial(pair, replacement, dtype):
    torch = pair.torch
    pair.seed(13)
    torch_weights = torch.rand(6, 50, generator=pair.theirs, dtype=getattr(torch, dtype))
    weights = rng.rand((6, 50), dtype, pair.ours)
    weights[:, ::3] = 0
    torch_weights[:, ::3] = 0
    layouts = (
        (weights, torch_weights),
        (weights[1], torch_weights[1]),
        (weights[:, 1::2], torch_weights[:, 1::2]),
        (weights.reshape(50, 6).T, torch_weights.reshape(50, 6).T),
        (np.broadcast_to(weights[2], (4, 50)), torch_weights[2].expand(4, 50)),
    )
    for x, y in layouts:
        for count in (1, 2, 7, 16):
            ours = rng.multinomial(x, count, replacement, pair.ours)
            pair.same(ours, torch.multinomial(y, count, replacement, generator=pair.theirs))


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_multinomial_in_half_precision(pair, dtype):
    torch = pair.torch
    y = (torch.arange(1, 21) % 7).to(getattr(torch, dtype)).expand(30, 20).contiguous()
    x = np.ascontiguousarray(np.broadcast_to(np.arange(1, 21) % 7, (30, 20)))
    x = x.astype(numpy_dtype(dtype))
    pair.seed(1)
    for _ in range(5):
        ours = rng.multinomial(x, 1, generator=pair.ours)
        pair.same(ours, torch.multinomial(y, 1, generator=pair.theirs))
        ours = rng.multinomial(x, 9, True, pair.ours)
        pair.same(ours, torch.multinomial(y, 9, True, generator=pair.theirs))


@pytest.mark.parametrize("dtype", FLOATS)
def test_poisson(pair, dtype):
    torch = pair.torch
    rates = torch.tensor([0, 0.3, 1, 5.5, 9.99, 10, 11, 40, 300, 5000.0] * 20)
    y = rates.reshape(40, 5).to(getattr(torch, dtype))
    x = rates.reshape(40, 5).numpy().astype(numpy_dtype(dtype))
    pair.seed(77)
    pair.same(rng.poisson(x, pair.ours), torch.poisson(y, generator=pair.theirs))
    pair.same(rng.poisson(x.T, pair.ours), torch.poisson(y.T, generator=pair.theirs))


@pytest.mark.parametrize("size", (1, 5, 16, 100))
def test_normal_with_arrays(pair, size):
    torch = pair.torch
    mean, std = torch.linspace(-3, 3, size), torch.linspace(0, 2, size)
    point = torch.tensor(1.25, dtype=torch.float64)
    pair.seed(31)
    for m, s in (
        (mean, 1.7),
        (0.3, std),
        (mean, std),
        (mean.double(), std),
        (mean, std.double()),
        (mean, std[:, None]),
        (mean.half(), std),
        (mean, point),
        (point, std),
        (mean.to(torch.complex64), 1.7),
    ):
        theirs = torch.normal(m, s, generator=pair.theirs)
        arrays = [v.numpy() if isinstance(v, torch.Tensor) else v for v in (m, s)]
        ours = rng.normal(*arrays, generator=pair.ours)
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        if theirs.is_complex():
            ours, theirs = rng.target.real_view(ours), torch.view_as_real(theirs)
        pair.same(ours, theirs)


def test_samplers_use_the_default_generator(pair):
    torch = pair.torch
    with torch.random.fork_rng():
        assert rng.manual_seed(2.9) is rng.default_generator
        torch.manual_seed(2.9)
        assert rng.initial_seed() == torch.initial_seed() == 2
        for ours, theirs in (
            (rng.rand((3,)), torch.rand(3)),
            (rng.randn((3,)), torch.randn(3)),
            (rng.randint(0, 9, (3,)), torch.randint(0, 9, (3,))),
            (rng.randperm(9), torch.randperm(9)),
            (rng.multinomial(np.ones(9), 3), torch.multinomial(torch.ones(9).double(), 3)),
            (rng.poisson(np.ones(9)), torch.poisson(torch.ones(9).double())),
        ):
            np.testing.assert_array_equal(bits(ours), bits(theirs))
