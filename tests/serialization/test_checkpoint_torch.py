"""Files of clew read by PyTorch, and the reverse."""

import collections
import io
import pickle

import ml_dtypes
import numpy as np
import pytest

import clew
from clew import dtypes, serialization
from clew.device import device
from clew.nn.parameter import Parameter

torch = pytest.importorskip("torch")

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def array_of(name, shape=(2, 3)):
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    return (np.arange(np.prod(shape)) % 2).reshape(shape).astype(dtype)


def tensor(values, dtype=np.float32):
    return clew.from_numpy(np.array(values, dtype))


def to_torch(obj, **options):
    stream = io.BytesIO()
    serialization.save(obj, stream)
    stream.seek(0)
    return torch.load(stream, **options)


def to_clew(obj, *, legacy=False, **options):
    stream = io.BytesIO()
    torch.save(obj, stream, _use_new_zipfile_serialization=not legacy)
    stream.seek(0)
    return serialization.load(stream, **options)


def elements(t):
    """The elements of a torch tensor as an array, bfloat16 too."""
    if t.dtype == torch.bfloat16:
        return t.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return t.detach().numpy()


def same(ours, theirs):
    """Whether a clew and a torch tensor agree in everything that a file holds."""
    np.testing.assert_array_equal(ours._array, elements(theirs))
    assert repr(ours.dtype) == str(theirs.dtype)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.stride() == theirs.stride()
    assert ours.storage_offset() == theirs.storage_offset()
    assert ours.requires_grad == theirs.requires_grad
    assert isinstance(ours, Parameter) == isinstance(theirs, torch.nn.Parameter)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 3), (3, 0, 2), (1,)])
def test_every_dtype(name, shape):
    ours = clew.from_numpy(array_of(name, shape))
    theirs = to_torch(ours)
    same(ours, theirs)
    same(to_clew(theirs), theirs)


@pytest.mark.parametrize("name", [name for name in DTYPES if name[:2] != "ui" or name == "uint8"])
def test_every_dtype_in_the_old_format(name):
    ours = clew.from_numpy(array_of(name))
    stream = io.BytesIO()
    serialization.save(ours, stream, _use_new_zipfile_serialization=False)
    stream.seek(0)
    theirs = torch.load(stream)
    same(ours, theirs)
    same(to_clew(theirs, legacy=True), theirs)


def test_what_torch_cannot_read_from_the_old_format():
    with pytest.raises(TypeError, match="cannot read uint16, uint32 and uint64"):
        _saved(clew.from_numpy(array_of("uint16")), _use_new_zipfile_serialization=False)
    theirs = torch.ones(2, dtype=torch.uint16)
    same(to_clew(theirs, legacy=True), theirs)


VIEWS = {
    "transposed": lambda x: x.T,
    "row": lambda x: x[1],
    "column": lambda x: x[:, 2],
    "steps": lambda x: x[::2, ::2],
    "element": lambda x: x[2, 1, ...],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_strided_view_with_its_whole_storage(view):
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    ours = clew.from_numpy(view(base))
    theirs = to_torch(ours)
    same(ours, theirs)
    assert theirs.untyped_storage().nbytes() == base.nbytes
    same(to_clew(theirs), view(torch.arange(12.0).reshape(3, 4)))


def test_expanded():
    same(to_clew(torch.ones(1, 3).expand(4, 3)), torch.ones(1, 3).expand(4, 3))
    ours = clew.from_numpy(np.broadcast_to(np.ones((1, 3)), (4, 3)))
    assert to_torch(ours).stride() == (0, 1)


def test_fortran_order_keeps_its_strides():
    ours = clew.from_numpy(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    same(ours, to_torch(ours))


def test_negative_steps_become_a_copy():
    backwards = np.arange(4.0)[::-1]
    record = serialization.adapter.TensorRecord.from_array(backwards)
    np.testing.assert_array_equal(record.view(), backwards)
    assert record.stride == (1,)


def test_shared_storage_is_written_once_and_comes_back_shared():
    base = np.arange(1000.0)
    ours = {"all": clew.from_numpy(base), "part": clew.from_numpy(base[10:20])}
    stream = io.BytesIO()
    serialization.save(ours, stream)
    assert len(stream.getvalue()) < 1.5 * base.nbytes
    stream.seek(0)
    theirs = torch.load(stream)
    theirs["part"].fill_(-1)
    assert theirs["all"][10:20].eq(-1).all()
    back = to_clew(theirs)
    back["all"].numpy()[12] = 7
    assert back["part"].numpy()[2] == 7


@pytest.mark.parametrize("legacy", [False, True])
def test_shared_storage_from_torch(legacy):
    base = torch.arange(10.0)
    back = to_clew([base[2:], base[:5], base], legacy=legacy)
    back[2].numpy()[3] = -1
    assert back[0].numpy()[1] == back[1].numpy()[3] == -1


def test_one_object_twice_stays_one_object():
    x = tensor([1, 2])
    first, second = serialization.load(_saved([x, x]))
    assert first is second
    parameter = Parameter(tensor([1, 2]))
    first, second = to_torch([parameter, parameter])
    assert first is second


def _saved(obj, **options):
    stream = io.BytesIO()
    serialization.save(obj, stream, **options)
    stream.seek(0)
    return stream


def test_two_dtypes_on_one_storage():
    base = np.zeros(4, np.float32)
    pair = [clew.from_numpy(base), clew.from_numpy(base.view(np.int32))]
    with pytest.raises(RuntimeError) as ours:
        _saved(pair)
    x = torch.zeros(4)
    with pytest.raises(RuntimeError) as theirs:
        torch.save([x, x.view(torch.int32)], io.BytesIO())
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("requires_grad", [True, False])
def test_parameter(requires_grad):
    ours = Parameter(tensor([[1, 2]]), requires_grad=requires_grad)
    theirs = to_torch(ours)
    same(ours, theirs)
    for legacy in (False, True):
        same(to_clew(torch.nn.Parameter(torch.ones(2), requires_grad), legacy=legacy),
             torch.nn.Parameter(torch.ones(2), requires_grad))  # fmt: skip


def test_tensor_that_requires_grad():
    x = tensor([1.0, 2.0])
    x.requires_grad_(True)
    same(x, to_torch(x))
    theirs = torch.ones(2, requires_grad=True)
    back = to_clew(theirs * 2)
    assert back.requires_grad
    assert back.is_leaf


def state_dict_of(module):
    result = collections.OrderedDict(
        (name, clew.from_numpy(value.numpy().copy())) for name, value in module.state_dict().items()
    )
    result._metadata = module.state_dict()._metadata
    return result


def test_state_dict_with_metadata():
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    back = to_clew(module.state_dict())
    assert type(back) is collections.OrderedDict
    assert list(back) == list(module.state_dict())
    assert back._metadata == module.state_dict()._metadata
    for name, value in module.state_dict().items():
        same(back[name], value)
    theirs = to_torch(back)
    assert theirs._metadata == module.state_dict()._metadata
    module.load_state_dict(theirs)


def test_optimizer_state_dict():
    module = torch.nn.Linear(2, 3)
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    theirs = to_torch(to_clew(optimizer.state_dict()))
    expected = optimizer.state_dict()
    assert theirs["param_groups"] == expected["param_groups"]
    assert list(theirs["state"]) == [0, 1]
    for key, values in expected["state"].items():
        for name, value in values.items():
            torch.testing.assert_close(theirs["state"][key][name], value, rtol=0, atol=0)


VALUES: list[object] = [
    None, True, False, 0, 255, 256, 65536, -1, 2**31, 10**40, 1.5, float("inf"), "text", "ü\ud800",
    b"bytes", bytearray(b"array"), 1 + 2j, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [[]], {},
    {"a": {"b": [1, (2, {3})]}, 4: None}, {1, 2}, collections.Counter("aab"),
    collections.OrderedDict(b=1, a=2), list(range(3000)), "x" * 300,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_python_values(value):
    for back in (to_torch(value), to_clew(value), to_clew(value, legacy=True)):
        assert back == value
        assert type(back) is type(value)


def test_container_that_contains_itself():
    loop = [tensor([1])]
    loop.append(loop)
    back = serialization.load(_saved(loop))
    assert back[1] is back


def test_words_of_torch():
    ours = [dtypes.float32, dtypes.bool_, clew.Size((2, 3)), device("cpu"), device("cuda", 1),
            clew.strided]  # fmt: skip
    theirs = [torch.float32, torch.bool, torch.Size((2, 3)), torch.device("cpu"),
              torch.device("cuda", 1), torch.strided]  # fmt: skip
    assert to_torch(ours) == theirs
    back = to_clew(theirs)
    assert back == ours
    assert [type(x) for x in back] == [type(x) for x in ours]


def test_attributes_of_a_tensor():
    theirs = torch.ones(2)
    theirs.note = "kept"
    ours = to_clew(theirs)
    assert ours.note == "kept"
    back = to_torch(ours)
    assert back.note == "kept"
    assert type(back) is torch.Tensor
    theirs = torch.nn.Parameter(torch.ones(2))
    theirs.note = "kept"
    ours = to_clew(theirs)
    assert ours.note == "kept"
    assert isinstance(ours, Parameter)
    assert to_torch(ours).note == "kept"


class Marked(clew.Tensor):
    """A user's class of tensors."""


class SelfPickled(clew.Tensor):
    """One that says itself how it is pickled."""

    def __reduce_ex__(self, protocol):
        return (str, ("pickled",))


def test_subclass_of_tensor():
    ours = Marked._from_array(np.ones(2))
    ours.note = "kept"
    stream = _saved([ours, SelfPickled._from_array(np.ones(2))])
    with serialization.safe_globals([Marked, str]):
        back, text = serialization.load(stream)
    assert type(back) is Marked
    assert back.note == "kept"
    assert text == "pickled"
    stream.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL .*\.Marked was not an allowed"):
        serialization.load(stream)


def test_lazy_conjugate_and_negative():
    x = torch.tensor([1 + 2j, 3 - 4j])
    np.testing.assert_array_equal(to_clew(x.conj()).numpy(), np.array([1 - 2j, 3 + 4j]))
    np.testing.assert_array_equal(to_clew(x.conj().imag).numpy(), np.array([-2, 4], np.float32))


def test_file_is_byte_for_byte_that_of_torch(tmp_path):
    """Up to a record that PyTorch adds, a fingerprint of the file."""
    module = torch.nn.Linear(2, 3)
    theirs = {"model": module.state_dict(), "weight": module.weight, "empty": torch.ones(0, 2),
              "part": torch.arange(6)[2:4], "t": torch.ones(2, 3).t(), "d": torch.float32,
              "u": torch.ones(2, dtype=torch.uint16), "b": b"x"}  # fmt: skip
    ours = serialization.load(_torch_saved(theirs))
    (tmp_path / "ours").mkdir()
    torch.save(theirs, tmp_path / "model.pt")
    serialization.save(ours, tmp_path / "ours" / "model.pt")
    expected = (tmp_path / "model.pt").read_bytes()
    end = expected.rindex(b"PK\x03\x04")
    assert b"serialization_id" in expected[end:]
    assert (tmp_path / "ours" / "model.pt").read_bytes()[:end] == expected[:end]


def _torch_saved(obj):
    stream = io.BytesIO()
    torch.save(obj, stream)
    stream.seek(0)
    return stream


def test_torch_computes_the_positions_of_records(tmp_path, monkeypatch):
    # In this mode PyTorch compares each position with the one it computes from the layout.
    monkeypatch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
    parts = [tensor(range(n)) for n in (3, 0, 100, 16, 0, 1)]
    assert [len(x) for x in to_torch(parts)] == [3, 0, 100, 16, 0, 1]


@pytest.mark.parametrize("name", ["model.pt", "ünï.pt", "noext", ".pt", "a.b.pt", "back\\slash.pt"])
def test_memory_mapping(tmp_path, name):
    path = tmp_path / name
    base = np.arange(1000, dtype=np.float32)
    serialization.save({"a": clew.from_numpy(base), "b": tensor([1, 2]), "e": tensor([])}, path)
    theirs = torch.load(path, mmap=True)
    np.testing.assert_array_equal(theirs["a"].numpy(), base)
    ours = serialization.load(path, mmap=True)
    np.testing.assert_array_equal(ours["a"].numpy(), base)
    assert ours["e"].shape == (0,)
    before = path.read_bytes()
    ours["a"].numpy()[:] = 0
    assert path.read_bytes() == before
    again = _saved({"b": ours["b"]}).getvalue()
    assert len(again) < base.nbytes


def test_mapped_file_of_torch(tmp_path):
    path = tmp_path / "theirs.pt"
    torch.save([torch.arange(5), torch.ones(0), torch.ones(3, dtype=torch.bfloat16)], path)
    ours = serialization.load(str(path), mmap=True)
    np.testing.assert_array_equal(ours[0].numpy(), np.arange(5))
    np.testing.assert_array_equal(ours[2]._array, np.ones(3, ml_dtypes.bfloat16))


def test_other_byte_order():
    values = {
        "f": np.arange(3, dtype=np.float32), "d": np.arange(3.0), "b": np.array([True, False]),
        "c": np.array([1 + 2j], np.complex64), "i": np.arange(3, dtype=np.int16),
        "h": array_of("bfloat16", (3,)),
    }  # fmt: skip
    stream = _saved({name: clew.from_numpy(value) for name, value in values.items()})
    swapped = _with_records(
        stream,
        byteorder=b"big",
        **{f"data/{i}": _swapped(value) for i, value in enumerate(values.values())},
    )
    theirs = torch.load(io.BytesIO(swapped))
    ours = serialization.load(io.BytesIO(swapped))
    for name, value in values.items():
        np.testing.assert_array_equal(ours[name]._array, value)
        np.testing.assert_array_equal(elements(theirs[name]), value)


def _swapped(array):
    width = array.itemsize // (2 if array.dtype.kind == "c" else 1)
    return array.view(f"u{width}").byteswap().tobytes()


def _with_records(stream, **changed):
    import zipfile

    result = io.BytesIO()
    with zipfile.ZipFile(stream) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            new.writestr(name, changed.get(name.partition("/")[2], old.read(name)))
    return result.getvalue()


def test_untyped_storage_in_the_other_byte_order():
    stream = _saved(clew.from_numpy(np.ones(2, np.uint16)))
    with pytest.raises(NotImplementedError, match="other byte order"):
        serialization.load(io.BytesIO(_with_records(stream, byteorder=b"big")))


def test_unknown_byte_order():
    changed = _with_records(_saved(tensor([1])), byteorder=b"middle")
    for load in (torch.load, serialization.load):
        with pytest.raises(ValueError, match="Unknown endianness type: middle"):
            load(io.BytesIO(changed))


def test_without_byte_order_record():
    assert to_clew(to_torch(tensor([1, 2]))).numpy().tolist() == [1, 2]
    stream = _saved(tensor([1, 2]), _disable_byteorder_record=True)
    assert torch.load(stream).tolist() == [1, 2]


def test_checksums_switched_off():
    old = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        stream = _torch_saved(torch.arange(3))
    finally:
        torch.serialization.set_crc32_options(old)
    assert serialization.load(stream).numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_protocols(protocol):
    obj = {"x": tensor([1, 2]), "d": dtypes.float32, "s": {1}, "b": b"x"}
    stream = _saved(obj, pickle_protocol=protocol)
    assert serialization.load(stream)["x"].numpy().tolist() == [1, 2]
    stream.seek(0)
    theirs = torch.load(stream, weights_only=False)
    assert theirs["d"] is torch.float32
    back = to_clew({"x": torch.ones(2)})
    assert back["x"].numpy().tolist() == [1, 1]


UNSUPPORTED = {
    "a sparse tensor": lambda: torch.eye(2).to_sparse(),
    "a quantized tensor": lambda: torch.quantize_per_tensor(torch.ones(2), 1, 0, torch.qint8),
    "a tensor on the meta device": lambda: torch.ones(2, device="meta"),
    "a dtype": lambda: torch.ones(2).to(torch.float8_e4m3fn),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("kind", UNSUPPORTED)
def test_what_clew_does_not_have(kind, weights_only):
    with pytest.raises(pickle.UnpicklingError, match=f"holds {kind} .*which clew does not have"):
        to_clew(UNSUPPORTED[kind](), weights_only=weights_only)
