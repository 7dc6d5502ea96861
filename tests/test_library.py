"""Questions and switches of the whole library: torch's answers, errors and warnings."""

import warnings

import pytest

import clew
from engines import same


@pytest.fixture(autouse=True)
def defaults():
    yield
    from engines import ENGINES

    for e in ENGINES.values():
        e.use_deterministic_algorithms(False)
        e.set_float32_matmul_precision("highest")
        e.set_default_dtype(e.float32)
        e.set_warn_always(False)


CALLS = {
    "is_tensor": lambda e: [e.is_tensor(x) for x in (e.ones(1), e.nn.Parameter(e.ones(1)), 3)],
    "is_storage": lambda e: [
        e.is_storage(x) for x in (e.ones(1).untyped_storage(), e.ones(1), None)
    ],
    "typename": lambda e: [
        e.typename(x) for x in (e.ones(1), e.ones(1).long(), e.nn.Parameter(e.ones(1)), 3, [1], len)
    ],
    "typename class": lambda e: e.typename(e.nn.Linear).split(".", 1)[1],
    "default device": lambda e: (e.set_default_device("cpu"), str(e.get_default_device())),
    "default device none": lambda e: e.set_default_device(None),
    "default device unknown": lambda e: e.set_default_device("x"),
    "tensor type": lambda e: (e.set_default_tensor_type(e.DoubleTensor), e.zeros(1)),
    "tensor type text": lambda e: (e.set_default_tensor_type("torch.DoubleTensor"), e.zeros(1)),
    "tensor type int": lambda e: e.set_default_tensor_type(e.LongTensor),
    "tensor type dtype": lambda e: e.set_default_tensor_type(e.float32),
    "tensor type cuda": lambda e: e.set_default_tensor_type("torch.cuda.FloatTensor"),
    "tensor type cuda class": lambda e: e.set_default_tensor_type(e.cuda.FloatTensor),
    "deterministic": lambda e: (
        e.use_deterministic_algorithms(True),
        e.are_deterministic_algorithms_enabled(),
        e.is_deterministic_algorithms_warn_only_enabled(),
        e.get_deterministic_debug_mode(),
    ),
    "deterministic warn": lambda e: (
        e.use_deterministic_algorithms(True, warn_only=True),
        e.are_deterministic_algorithms_enabled(),
        e.is_deterministic_algorithms_warn_only_enabled(),
        e.get_deterministic_debug_mode(),
    ),
    "deterministic type": lambda e: e.use_deterministic_algorithms(1),
    "debug mode": lambda e: [
        (e.set_deterministic_debug_mode(m), e.get_deterministic_debug_mode())
        for m in ("default", "warn", "error", 0, 1, 2)
    ],
    "debug mode text": lambda e: e.set_deterministic_debug_mode("x"),
    "debug mode number": lambda e: e.set_deterministic_debug_mode(7),
    "debug mode type": lambda e: e.set_deterministic_debug_mode([]),
    "matmul": lambda e: (
        e.set_float32_matmul_precision("high"),
        e.get_float32_matmul_precision(),
    ),
    "warn always": lambda e: (e.set_warn_always(True), e.is_warn_always_enabled()),
    "warn always type": lambda e: e.set_warn_always(1),
    "autocast": lambda e: e.is_autocast_enabled(),
    "compile disabled": lambda e: e.compile(len, disable=True)([1, 2]),
    "compile disabled later": lambda e: e.compile(disable=True)(len)([1, 2]),
}


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
@pytest.mark.parametrize("name", CALLS)
def test_same_as_torch(name):
    same(CALLS[name])


def test_default_device_other_than_the_cpu():
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        clew.set_default_device("cuda")


def test_unknown_precision_warns_and_changes_nothing():
    with pytest.warns(UserWarning, match="x is not one of 'highest', 'high', or 'medium'"):
        clew.set_float32_matmul_precision("x")
    assert clew.get_float32_matmul_precision() == "highest"


def test_default_tensor_type_warns():
    with pytest.warns(UserWarning, match=r"set_default_tensor_type\(\) is deprecated"):
        clew.set_default_tensor_type(clew.FloatTensor)


def test_warn_always_repeats():
    x = clew.ones(1, requires_grad=True)
    clew.set_warn_always(True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        float(x)
        float(x)
    assert len(caught) == 2


def test_denormals_are_kept():
    assert clew.set_flush_denormal(True) is False


def test_compiling_is_refused_with_advice():
    with pytest.raises(NotImplementedError, match=r"leave out torch\.compile"):
        clew.compile(clew.nn.Linear(1, 1))
    with pytest.raises(NotImplementedError, match=r"leave out torch\.compile"):
        clew.compile(mode="max-autotune")


@pytest.mark.parametrize("name", ["FloatStorage", "LongStorage", "ComplexDoubleStorage"])
def test_storages_of_their_own_are_refused(name):
    with pytest.raises(NotImplementedError, match="a storage belongs to a tensor"):
        getattr(clew, name)(3)


def test_script_is_refused_with_advice():
    for call in (clew.jit.script, clew.jit.trace, clew.jit.load):
        with pytest.raises(NotImplementedError, match="has no TorchScript"):
            call(len)
    with pytest.raises(NotImplementedError, match="save the model's state_dict"):
        clew.jit.save(len, "x")


def test_the_mark_that_drops_warns():
    def run(e):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            marked = e.jit.ignore(drop=True)(lambda x: len(x))
        return [str(w.message) for w in caught], marked([1, 2])

    same(run)


def test_marks_for_script_and_compile_change_nothing():
    def run(e):
        jit, compiler = e.jit, e.compiler
        marks = (jit.ignore, jit.ignore(), jit.unused, jit.export)
        marked = [mark(lambda x: len(x)) for mark in marks]
        questions = [jit.is_scripting(), jit.is_tracing(), compiler.is_compiling()]
        return [f([1, 2]) for f in marked], questions, jit.annotate(int, 3)

    same(run)
    assert clew.compiler.disable(len)([1]) == clew.compiler.disable()(len)([1]) == 1


def test_version():
    assert clew.version.__version__ == clew.__version__
    assert clew.version.cuda is None and clew.version.hip is None
