"""Without CUDA: the answers, the refusals and their texts are those of a torch without CUDA."""

import pytest

import clew
from engines import same

SAME = {
    "is_available": lambda c, e: c.is_available(),
    "is_initialized": lambda c, e: c.is_initialized(),
    "is_bf16_supported": lambda c, e: c.is_bf16_supported(),
    "device_count": lambda c, e: c.device_count(),
    "arch": lambda c, e: c.get_arch_list(),
    "manual_seed": lambda c, e: c.manual_seed(3),
    "manual_seed_all": lambda c, e: c.manual_seed_all(3),
    "seed": lambda c, e: (c.seed(), c.seed_all()),
    "states": lambda c, e: (c.get_rng_state_all(), c.set_rng_state_all([])),
    "memory": lambda c, e: (
        c.memory_allocated(), c.max_memory_allocated(), c.memory_reserved(), c.empty_cache(),
        c.max_memory_reserved(), c.memory_stats(),
    ),
    "current_device": lambda c, e: c.current_device(),
    "collect": lambda c, e: c.ipc_collect(),
    "synchronize": lambda c, e: c.synchronize(),
    "name": lambda c, e: c.get_device_name(0),
    "properties": lambda c, e: c.get_device_properties(0),
    "capability": lambda c, e: c.get_device_capability(),
    "init": lambda c, e: c.init(),
    "state": lambda c, e: c.get_rng_state(),
    "initial_seed": lambda c, e: c.initial_seed(),
    "current_stream": lambda c, e: c.current_stream(),
    "Stream": lambda c, e: c.Stream(),
    "Event": lambda c, e: c.Event(),
    "no stream": lambda c, e: c.stream(None).__enter__(),
    "no device": lambda c, e: (c.set_device(-1), c.device(-1).idx),
    "tensor": lambda c, e: c.FloatTensor(3),
    "long tensor": lambda c, e: c.LongTensor([1]),
    "isinstance": lambda c, e: isinstance(e.ones(1), c.FloatTensor),
    "error class": lambda c, e: issubclass(c.OutOfMemoryError, RuntimeError),
    "to": lambda c, e: e.ones(1).to("cuda"),
    "cuda()": lambda c, e: e.nn.Linear(1, 1).cuda(),
    "idiom": lambda c, e: str(e.device("cuda" if c.is_available() else "cpu")),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_same_as_torch(name):
    same(lambda e: SAME[name](e.cuda, e))


def test_a_device_cannot_be_entered_or_set():
    for call in (
        lambda: clew.cuda.set_device(0),
        lambda: clew.cuda.set_device("cuda:1"),
        lambda: clew.cuda.device("cuda").__enter__(),
        lambda: clew.cuda.set_stream(3),
        lambda: clew.cuda.set_rng_state_all([1]),
        lambda: clew.cuda.stream(3).__enter__(),
    ):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            call()
    with clew.cuda.device_of(clew.ones(1)), clew.cuda.stream(None):
        pass


def test_a_missing_name_is_an_attribute_error():
    assert not hasattr(clew.cuda, "nonsense")


FLAGS = ("enabled", "benchmark", "deterministic", "allow_tf32", "benchmark_limit")


def test_flags_of_cudnn():
    def run(e):
        cudnn = e.backends.cudnn
        with cudnn.flags(enabled=False, benchmark=True):
            inside = cudnn.enabled, cudnn.benchmark
        after = cudnn.enabled, cudnn.benchmark
        cudnn.deterministic = True
        seen = inside, after, cudnn.deterministic, cudnn.is_available(), cudnn.version()
        cudnn.deterministic = False
        return seen

    same(run)
    assert [hasattr(clew.backends.cudnn, f) for f in FLAGS] == [True] * 5
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        clew.backends.cudnn.flags(x=1).__enter__()


def test_other_backends_are_not_there():
    backends = clew.backends
    assert not backends.mps.is_available() and not backends.mps.is_built()
    assert not backends.openmp.is_available()
    assert not backends.mkl.is_available() and not backends.cuda.is_built()
    backends.cuda.matmul.allow_tf32 = True
    assert backends.cuda.matmul.allow_tf32
    backends.cuda.matmul.allow_tf32 = False
    assert backends.cpu.get_cpu_capability() == "DEFAULT"
