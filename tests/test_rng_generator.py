"""The generator's seeds and states, the samplers' errors, and a few numbers known by heart."""

import copy
import pickle
import threading

import numpy as np
import pytest

from clew import rng


def test_known_numbers():
    """Written down from torch 2.13 with torch.manual_seed(0) before each line."""
    generator = rng.Generator()

    def start():
        return generator.manual_seed(0)

    np.testing.assert_array_equal(
        rng.rand((3,), generator=start()),
        np.array([0.49625658988952637, 0.7682217955589294, 0.08847743272781372], np.float32),
    )
    np.testing.assert_array_equal(
        rng.randn((3,), generator=start()),
        np.array([1.5409960746765137, -0.293428897857666, -2.1787893772125244], np.float32),
    )
    np.testing.assert_array_equal(
        rng.randn((16,), generator=start())[:3],
        np.array([-1.1258398294448853, -1.1523602008819580, -0.2505785822868347], np.float32),
    )
    assert rng.randint(0, 10, (5,), generator=start()).tolist() == [4, 9, 3, 0, 3]
    assert rng.randperm(5, generator=start()).tolist() == [4, 0, 1, 3, 2]


def test_seeds():
    generator = rng.Generator()
    assert generator.initial_seed() == 67280421310721
    assert generator.device.type == "cpu"
    assert generator.manual_seed(-1).initial_seed() == 2**64 - 1
    assert generator.manual_seed(-(2**63)).initial_seed() == 2**63
    assert generator.manual_seed(np.int64(3)).initial_seed() == 3
    seed = generator.seed()
    assert generator.initial_seed() == seed
    assert rng.seed() == rng.initial_seed() == rng.default_generator.initial_seed()
    assert rng.seed() != rng.seed()
    first = rng.rand((4,), generator=generator.manual_seed(5))
    second = rng.rand((4,), generator=generator.manual_seed(5 + 2**32))
    assert (first == second).all()


@pytest.mark.parametrize("seed", (2**64, -(2**63) - 1))
def test_seed_out_of_range(seed):
    with pytest.raises(ValueError, match=r"^Overflow when unpacking long long"):
        rng.Generator().manual_seed(seed)
    with pytest.raises(ValueError, match=r"^Overflow when unpacking long long"):
        rng.manual_seed(seed)


@pytest.mark.parametrize(("seed", "name"), ((1.5, "float"), (True, "bool"), ("3", "str")))
def test_seed_of_another_type(seed, name):
    with pytest.raises(RuntimeError, match=f"^manual_seed expected a long, but got {name}$"):
        rng.Generator().manual_seed(seed)


def test_device():
    assert rng.Generator("cpu:0").device == rng.Generator(device="cpu").device
    with pytest.raises(RuntimeError, match=r"^Cannot get CUDA generator"):
        rng.Generator("cuda")
    for method in (rng.Generator().get_offset, lambda: rng.Generator().set_offset(1)):
        with pytest.raises(RuntimeError, match=r"^CPU Generator does not use offset$"):
            method()


def used_in_every_way():
    """Generators: fresh, in the middle of a block, at its end, and with a spare normal number."""
    yield rng.Generator().manual_seed(1)
    for count in (1, 623, 624, 625, 1000):
        generator = rng.Generator().manual_seed(2)
        generator.words32(count)
        yield generator
    generator = rng.Generator().manual_seed(3)
    rng.randn((3,), generator=generator)
    assert generator.spare_normal is not None
    yield generator


def test_states_travel_to_pytorch_and_back():
    torch = pytest.importorskip("torch")
    theirs = torch.Generator()
    for ours in used_in_every_way():
        theirs.set_state(torch.from_numpy(ours.state_array()))
        assert (ours.state_array() == theirs.get_state().numpy()).all()
        for size in (5, 20, 700):
            numbers = torch.rand(size, generator=theirs).numpy()
            assert (rng.rand((size,), generator=ours) == numbers).all()
            numbers = torch.randn(3, dtype=torch.float64, generator=theirs).numpy()
            np.testing.assert_allclose(rng.randn((3,), np.float64, ours), numbers, rtol=1e-14)
            ours.load_state_array(theirs.get_state().numpy())
            assert (ours.state_array() == theirs.get_state().numpy()).all()


def test_copies_continue_the_stream():
    for generator in used_in_every_way():
        copies = (
            generator.clone_state(),
            copy.copy(generator),
            copy.deepcopy(generator),
            pickle.loads(pickle.dumps(generator)),
        )
        state = generator.state_array()
        expected = rng.randn((700,), np.float64, generator)
        for clone in copies:
            assert (clone.state_array() == state).all()
            assert (rng.randn((700,), np.float64, clone) == expected).all()


def test_a_float_normal_of_an_old_state_is_carried_along():
    state = rng.Generator().state_array()
    state[5048:5052] = np.frombuffer(np.float32(1.5).tobytes(), np.uint8)
    state[5052] = 1
    generator = rng.Generator()
    generator.load_state_array(state)
    assert (generator.state_array() == state).all()
    generator.manual_seed(1)
    assert not generator.state_array()[5048:].any()


def test_invalid_states():
    generator = rng.Generator()
    good = generator.state_array()
    with pytest.raises(TypeError, match=r"^RNG state must be a torch\.ByteTensor$"):
        generator.load_state_array(good.astype(np.int8))
    with pytest.raises(TypeError, match=r"^RNG state must be a torch\.ByteTensor$"):
        generator.load_state_array(bytes(good))
    with pytest.raises(RuntimeError, match=r"^RNG state must be contiguous$"):
        generator.load_state_array(np.stack([good, good], 1)[:, 0])
    with pytest.raises(RuntimeError, match=r"^Expected a CPUGeneratorImplState of size 5056 but"):
        generator.load_state_array(good[:-1])
    for place, value in ((8, 0), (9, 255), (12, 0), (8, 7)):
        bad = good.copy()
        bad[place] = value
        with pytest.raises(RuntimeError, match=r"^Invalid mt19937 state$"):
            generator.load_state_array(bad)
    assert (generator.state_array() == good).all()


def test_threads_share_a_generator_without_losing_numbers():
    def draw(generator, count, into):
        into.extend(rng.rand((100,), np.float64, generator).tobytes() for _ in range(count))

    alone, together = [], []
    draw(rng.Generator().manual_seed(1), 400, alone)
    shared = rng.Generator().manual_seed(1)
    threads = [threading.Thread(target=draw, args=(shared, 100, together)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(together) == sorted(alone)


f32, i32 = np.float32, np.int32


@pytest.mark.parametrize(
    ("error", "clause", "call"),
    (
        (RuntimeError, "uniform_ expects to return a [from, to) range, but found from=1 > to=0",
         lambda g: rng.uniform_(np.empty(2, f32), 1, 0, g)),
        (RuntimeError, "to is out of bounds for float",
         lambda g: rng.uniform_(np.empty(2, f32), 0, 1e39, g)),
        (RuntimeError, "from is out of bounds for c10::Half",
         lambda g: rng.uniform_(np.empty(2, np.float16), float("nan"), 1, g)),
        (RuntimeError, "uniform_ expects to-from <= std::numeric_limits<Float>::max(), but found "
         "to=3e+38 and from=-3e+38 which result in to-from to exceed the limit",
         lambda g: rng.uniform_(np.empty(2, f32), -3e38, 3e38, g)),
        (NotImplementedError, "\"check_uniform_bounds\" not implemented for 'Int'",
         lambda g: rng.uniform_(np.empty(2, i32), generator=g)),
        (RuntimeError, "normal expects std >= 0.0, but found std -1",
         lambda g: rng.normal_(np.empty(2, f32), 0, -1, g)),
        (NotImplementedError, "\"normal_kernel_cpu\" not implemented for 'Int'",
         lambda g: rng.normal_(np.empty(2, i32), generator=g)),
        (RuntimeError, "normal expects std >= 0.0, but found std -1",
         lambda g: rng.normal(np.empty(2, f32), -1, g)),
        (RuntimeError, "normal expects all elements of std >= 0.0",
         lambda g: rng.normal(0.0, -np.ones(2, f32), g)),
        (RuntimeError, "normal expects standard deviation to be non-complex",
         lambda g: rng.normal(0.0, np.ones(2, np.complex64), g)),
        (RuntimeError, "log_normal_ expects std > 0.0, but found std=0",
         lambda g: rng.log_normal_(np.empty(2, f32), 0, 0, g)),
        (NotImplementedError, "\"log_normal_cpu\" not implemented for 'Int'",
         lambda g: rng.log_normal_(np.empty(2, i32), generator=g)),
        (RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=0",
         lambda g: rng.exponential_(np.empty(2, f32), 0, g)),
        (RuntimeError, "Exponential distribution is a continuous probability distribution. dtype "
         "must be a floating point but you specified Int",
         lambda g: rng.exponential_(np.empty(2, i32), generator=g)),
        (RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=-1",
         lambda g: rng.cauchy_(np.empty(2, f32), 0, -1, g)),
        (RuntimeError, "Cauchy distribution is a continuous probability distribution. dtype must "
         "be a floating point but you specified int",
         lambda g: rng.cauchy_(np.empty(2, i32), generator=g)),
        (RuntimeError, "geometric_ expects p to be in (0, 1), but got p=1",
         lambda g: rng.geometric_(np.empty(2, f32), 1, g)),
        (NotImplementedError, "\"geometric_cpu\" not implemented for 'Bool'",
         lambda g: rng.geometric_(np.empty(2, np.bool_), 0.5, g)),
        (RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=nan",
         lambda g: rng.bernoulli_(np.empty(2, f32), float("nan"), g)),
        (NotImplementedError, "\"bernoulli_scalar_cpu_\" not implemented for 'ComplexFloat'",
         lambda g: rng.bernoulli_(np.empty(2, np.complex64), 0.5, g)),
        (NotImplementedError, "\"bernoulli_tensor_cpu_p_\" not implemented for 'Long'",
         lambda g: rng.bernoulli_(np.empty(2, f32), np.array([0, 1]), g)),
        (RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.",
         lambda g: rng.bernoulli_(np.empty(2, f32), np.array([0.0, 2.0]), g)),
        (ValueError, "dropout probability has to be between 0 and 1, but got 1.5",
         lambda g: rng.dropout_noise(np.empty(2, f32), 1.5, g)),
        (RuntimeError, "random_ expects 'from' to be less than 'to', but got from=3 >= to=3",
         lambda g: rng.random_(np.empty(2, f32), 3, 3, g)),
        (RuntimeError, "to - 1 is out of bounds for unsigned char",
         lambda g: rng.random_(np.empty(2, np.uint8), 0, 257, g)),
        (RuntimeError, "from is out of bounds for bool",
         lambda g: rng.random_(np.empty(2, np.bool_), -1, 2, g)),
        (RuntimeError, "to - 1 is out of bounds for c10::Half",
         lambda g: rng.random_(np.empty(2, np.float16), 0, 70000, g)),
        (RuntimeError, "to - 1 is out of bounds for long unsigned int",
         lambda g: rng.random_(np.empty(2, np.uint64), 5, None, g)),
        (RuntimeError, "random_ expects 'from' casted to dtype to be less than or equal to "
         "'to_inc' casted to dtype, but got from=5000 > to_inc=2048",
         lambda g: rng.random_(np.empty(2, np.float16), 5000, None, g)),
        (RuntimeError, "check_random_bounds handles only integral, floating-point and boolean",
         lambda g: rng.random_(np.empty(2, np.complex64), 0, 5, g)),
        (NotImplementedError, "\"random_kernel_cpu\" not implemented for 'UInt32'",
         lambda g: rng.random_(np.empty(2, np.uint32), generator=g)),
        (NotImplementedError,
         "\"random_full_64_bits_range_kernel_cpu\" not implemented for 'Half'",
         lambda g: rng.random_(np.empty(2, np.float16), -(2**63), None, g)),
        (RuntimeError, "random_full_64_bits_range_kernel_cpu handles only int64, double, float",
         lambda g: rng.random_(np.empty(2, i32), -(2**63), None, g)),
        (RuntimeError, "Trying to create tensor with negative dimension -1: [-1]",
         lambda g: rng.randperm(-1, generator=g)),
        (RuntimeError, "value cannot be converted to type uint8_t without overflow",
         lambda g: rng.randperm(257, np.uint8, g)),
        (RuntimeError, "n cannot be greater than 2049 for Half type.",
         lambda g: rng.randperm(2050, np.float16, g)),
        (RuntimeError, "n cannot be greater than 2^24+1 for Float type.",
         lambda g: rng.randperm(2**24 + 2, np.float32, g)),
        (NotImplementedError, "\"randperm\" not implemented for 'Bool'",
         lambda g: rng.randperm(2, np.bool_, g)),
        (RuntimeError, "prob_dist must be 1 or 2 dim",
         lambda g: rng.multinomial(np.ones((2, 2, 2)), 1, generator=g)),
        (RuntimeError, "multinomial only supports floating-point dtypes for input, got: Int",
         lambda g: rng.multinomial(np.ones(3, i32), 1, generator=g)),
        (RuntimeError, "cannot sample n_sample <= 0 samples",
         lambda g: rng.multinomial(np.ones(3), 0, generator=g)),
        (RuntimeError, "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
         lambda g: rng.multinomial(np.ones(3), 4, generator=g)),
        (RuntimeError, "number of categories cannot exceed 2^24",
         lambda g: rng.multinomial(np.broadcast_to(np.ones(1), 2**24 + 1), 1, generator=g)),
        (RuntimeError, "probability tensor contains either `inf`, `nan` or element < 0",
         lambda g: rng.multinomial(np.array([1.0, np.nan]), 1, True, g)),
        (RuntimeError, "probability tensor contains either `inf`, `nan` or element < 0",
         lambda g: rng.multinomial(np.array([1.0, -1]), 1, generator=g)),
        (RuntimeError, "invalid multinomial distribution (sum of probabilities <= 0)",
         lambda g: rng.multinomial(np.zeros((2, 3)), 1, True, g)),
        (RuntimeError, "aminmax(): cannot compute aminmax over an empty dimension as the operation",
         lambda g: rng.multinomial(np.ones((2, 0)), 1, True, g)),
        (RuntimeError, "invalid Poisson rate, expected rate to be non-negative",
         lambda g: rng.poisson(np.array([1.0, np.nan]), g)),
        (NotImplementedError, "\"poisson_cpu\" not implemented for 'Long'",
         lambda g: rng.poisson(np.array([1]), g)),
    ),
)  # fmt: skip
def test_errors_have_pytorchs_type_and_clause_and_draw_nothing(error, clause, call):
    generator = rng.Generator()
    before = generator.state_array()
    with pytest.raises(error) as caught:
        call(generator)
    assert str(caught.value).startswith(clause)
    assert (generator.state_array() == before).all()


def test_empty_targets_draw_nothing():
    generator = rng.Generator()
    before = generator.state_array()
    for dtype in (np.float32, np.float64, np.complex64):
        rng.uniform_(np.empty((0, 3), dtype), generator=generator)
        rng.normal_(np.empty((0, 3), dtype), generator=generator)
    assert rng.multinomial(np.ones((0, 3)), 2, generator=generator).shape == (0, 2)
    assert rng.poisson(np.ones((2, 0)), generator).shape == (2, 0)
    assert rng.bernoulli_(np.empty(0), np.empty(0), generator).shape == (0,)
    assert rng.dropout_noise(np.empty((0, 2)), 0.5, generator).shape == (0, 2)
    assert (generator.state_array() == before).all()


def test_dense_like_keeps_the_order_of_axes():
    x = np.empty((3, 4, 5))
    assert rng.dense_like(x.transpose(2, 0, 1)).strides == x.transpose(2, 0, 1).strides
    assert rng.dense_like(x[:, ::2]).strides == (80, 40, 8)
    assert rng.dense_like(np.broadcast_to(x[0, 0], (3, 5))).strides == (40, 8)
